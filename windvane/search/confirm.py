"""Confirmation: the best configurations and the preset, trained anew with fresh seeds.

The best trial of many owes part of its value to luck with its seeds; what it is worth only other
seeds can say.
"""

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from windvane.errors import InputError, is_number
from windvane.experiments.report.statistics import Estimate, difference, holm, mean
from windvane.files import BusyError, atomic_write, file_lock, path_exists, read_json
from windvane.progress import progress_display, say
from windvane.search.batch import Judge, Pace, Values, by_program, train_together
from windvane.search.study import PRESET, Study
from windvane.training.config import TrainConfig

CONFIRMATION = "confirmation.json"
CONFIRM_LOCK = "confirmation.lock"
SEEDS_PER_CALL = 5
"""Fresh seeds that are trained together."""

Runs = dict[int, float]


def fresh_seeds(config: TrainConfig, number: int) -> list[int]:
    """Seeds that no trial was trained with."""
    taken = set(config.seed_numbers)
    return list(itertools.islice((n for n in itertools.count(1_000) if n not in taken), number))


def key_of(trial: Any) -> str:
    """The name of a configuration in the file."""
    if trial is None or trial.user_attrs.get(PRESET):
        return PRESET
    return json.dumps(trial.params, sort_keys=True)


def confirm(
    study: Study, judge: Judge, best: int, seeds: int, most: int, pace: Pace, console: Console
) -> None:
    """Train what is missing of the confirmation; what is there is kept."""
    chosen = study.best[:best]
    if not chosen:
        return
    lock = study.folder / CONFIRM_LOCK
    lock.touch()
    try:
        with file_lock(lock):
            _confirm(study, chosen, judge, fresh_seeds(study.plan.config, seeds), most, pace,
                     console)  # fmt: skip
    except BusyError:
        say(console, "another process is confirming the best configurations")


def _confirm(
    study: Study, chosen: Sequence[Any], judge: Judge, seeds: Sequence[int], most: int, pace: Pace,
    console: Console,
) -> None:  # fmt: skip
    path, found = study.folder / CONFIRMATION, read_confirmation(study.folder)
    configs = {PRESET: study.plan.config} | {key_of(t): study.config_of(t) for t in chosen}
    size = min(SEEDS_PER_CALL, len(seeds))
    blocks = [tuple(seeds[at : at + size]) for at in range(0, len(seeds), size)]
    with progress_display(console) as progress:
        for number, block in enumerate(blocks):
            # All seeds of a block again, where one is missing: of one shape is one program.
            keys = [key for key in configs if not set(block) <= set(found.get(key, {}))]
            todo = [replace(configs[key], seeds=block) for key in keys]
            progress("confirmation on fresh seeds", number * size, len(seeds))
            groups = by_program(todo) if todo else ()
            for indices in (g[at : at + most] for g in groups for at in range(0, len(g), most)):
                values: Values = {}

                def decide(_: int, found: Values, values: Values = values) -> list[int]:
                    values.update(found)
                    return []

                group = [todo[index] for index in indices]
                # Of a few configurations there are as many lanes as the search had.
                train_together(group, judge, [group[0].steps], min(most, len(group)), decide, pace)
                for place, runs in values.items():
                    found.setdefault(keys[indices[place]], {}).update(runs)
                text = json.dumps(
                    {key: {str(s): x for s, x in runs.items()} for key, runs in found.items()},
                    indent=2,
                )
                atomic_write(path, lambda file, text=text: file.write(text.encode()))


def read_confirmation(folder: Path) -> dict[str, Runs]:
    """The values of each configuration by seed, so far."""
    path = folder / CONFIRMATION
    if not path_exists(path):
        return {}
    values = read_json(path)
    good = isinstance(values, dict) and all(
        isinstance(runs, dict) and all(s.isdecimal() and is_number(x) for s, x in runs.items())
        for runs in values.values()
    )
    if not good:
        raise InputError(f"{path} is no confirmation of a study: remove it to confirm anew")
    return {key: {int(s): float(x) for s, x in runs.items()} for key, runs in values.items()}


@dataclass(frozen=True)
class Confirmed:
    """A configuration on fresh seeds, beside the preset on the same."""

    trial: Any
    runs: Runs
    value: Estimate
    change: Estimate | None
    """How much higher its value is than the preset's: below 0 is better. Student's interval of the
    paired difference."""
    p: float | None
    """Of the difference, by Holm's correction for all that are confirmed."""

    @property
    def beats_preset(self) -> bool:
        """Whether it is better beyond what chance explains."""
        return self.p is not None and self.p < 0.05 and (self.change or self.value).value < 0


def confirmed(study: Study) -> tuple[Estimate | None, list[Confirmed]]:
    """The preset on fresh seeds, and all configurations that were trained with the same, in the
    order of the search.
    """
    found = read_confirmation(study.folder)
    preset = found.get(PRESET, {})
    rows = [(trial, found[key_of(trial)]) for trial in study.best if key_of(trial) in found]
    unique = {key_of(trial): (trial, runs) for trial, runs in reversed(rows)}
    ordered = sorted(unique.values(), key=lambda row: (row[0].value, row[0].number))
    changes = [difference(runs, preset) for _, runs in ordered]
    corrected = holm([None if change is None else change.p for change in changes])
    result = []
    for (trial, runs), change, p in zip(ordered, changes, corrected, strict=True):
        value = mean(runs)
        if value is not None:
            result.append(Confirmed(trial, runs, value, change, p))
    return mean(preset), result
