"""What training leaves: records of episodes, regret, policies; and the summary in a run folder."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from windvane.errors import InputError, is_number, require_int, shown
from windvane.files import atomic_write, faults_of, make_folder, path_exists, read_json
from windvane.policy import Policy, given_again
from windvane.runs.divergence import FACTOR, exploded_runs
from windvane.runs.folder import (
    BEST,
    CHECKPOINTS,
    CONFIG,
    CONTENT,
    CURRENT,
    EPISODES,
    EVALUATIONS,
    OPTIMAL,
    POLICIES,
    RECORDS,
    SUMMARY,
    has_old_objects,
    is_finished,
    load_config,
    load_owner,
)
from windvane.runs.records import Steps, describe_gaps
from windvane.runs.stretches import mean_over_time
from windvane.runs.sums import SUMS, check_files, check_sums, sums_of
from windvane.runs.tables import Records, write_table
from windvane.training.build import check_custom
from windvane.training.config import RUN_ID, TrainConfig

_MEANS = tuple(
    name + period
    for name in ("regret", "regret_over_time", "utility")
    for period in ("", "_last_quarter")
)
"""Entries of a summary with a number per run."""


@dataclass(frozen=True)
class RunMeans:
    """A mean over the episodes of each run: of all, and of those in the last quarter of steps.

    It is NaN where there was no episode, or where the quantity is not known.
    """

    overall: np.ndarray
    last_quarter: np.ndarray


def run_means(
    records: Records, column: str, runs: int, steps: int, *, over_time: bool = False
) -> RunMeans:
    """Mean of a column of each run in records of `steps` steps: over its episodes, or over
    stretches of time (`windvane.runs.stretches`).
    """
    late = records["step"] > 0.75 * steps
    masks = [records["run"] == run for run in range(runs)]
    values, ends = records[column], records["step"]

    def mean(mask: np.ndarray) -> float:
        return mean_over_time(ends[mask], values[mask]) if over_time else _mean(values[mask])

    return RunMeans(
        np.asarray([mean(mask) for mask in masks]),
        np.asarray([mean(mask & late) for mask in masks]),
    )


@dataclass(frozen=True)
class Result:
    """A finished training.

    `failed` are the indices of runs that diverged and stopped learning; `exploded` those of runs
    that diverged and kept learning.
    """

    config: TrainConfig
    records: Records
    policies: tuple[Policy, ...]
    failed: tuple[int, ...]
    folder: Path | None = None
    content: Records | None = None
    """What diverse replay buffers held in the end: one row per trajectory, with its run, whether it
    is in the diverse half, and its discounted return."""
    evaluations: Records | None = None
    """Greedy evaluations during training: one row per evaluation and run."""
    best: tuple[Policy, ...] | None = None
    """The policies with the best greedy evaluation, where there were evaluations."""
    gone: tuple[Steps, ...] = ()
    """Steps whose records were missing or damaged when the training was resumed."""

    @property
    def regret(self) -> RunMeans:
        """Regret of each run, discounted and scaled; NaN where the optimum is not known."""
        return run_means(self.records, "regret", len(self.config.runs), self.config.steps)

    @property
    def regret_over_time(self) -> RunMeans:
        """The same with a mean in which every stretch of 200 steps counts the same, by the mean of
        the episodes that end in it.
        """
        runs, steps = len(self.config.runs), self.config.steps
        return run_means(self.records, "regret", runs, steps, over_time=True)

    @property
    def utility(self) -> RunMeans:
        """Weights times discounted, scaled return of each run."""
        return run_means(self.records, "utility", len(self.config.runs), self.config.steps)

    @property
    def means(self) -> dict[str, np.ndarray]:
        """All of these, by name: a number per run."""
        found = {"regret": self.regret, "regret_over_time": self.regret_over_time}
        found["utility"] = self.utility
        return {
            name + period: values
            for name, means in found.items()
            for period, values in (("", means.overall), ("_last_quarter", means.last_quarter))
        }

    @property
    def exploded(self) -> tuple[int, ...]:
        """The runs that diverged although their loss stayed finite, by the rule of
        `windvane.runs.divergence`: they went on learning.
        """
        found = exploded_runs(self.records, self.config)
        return tuple(run for run in found if run not in self.failed)

    @property
    def sentences(self) -> list[str]:
        """What a reader of the numbers must know: runs that diverged, records that are gone."""
        said = [self._diverged] if self.failed else []
        exploded = self.exploded
        if exploded:
            said.append(self._exploded(exploded))
        if self.gone:
            said.append(f"the records of steps {describe_gaps(self.gone)} are gone")
        return said

    @property
    def _diverged(self) -> str:
        names = self.config.run_names
        these = ", ".join(names[run] for run in self.failed)
        return (
            f"{len(self.failed)} of {len(names)} runs diverged ({these}): their loss or gradient "
            "was not finite, and they stopped learning there; a lower learning rate often helps"
        )

    def _exploded(self, runs: tuple[int, ...]) -> str:
        names = self.config.run_names
        these = ", ".join(names[run] for run in runs)
        return (
            f"{len(runs)} of {len(names)} runs diverged with a finite loss ({these}): it was above "
            f"{FACTOR:g} times what their returns allow, and they went on learning"
        )

    def save(self, folder: Path) -> None:
        """Write the policies and then the summary, which says that all is there."""
        make_folder(folder / POLICIES)
        for name, policy in zip(self.config.run_names, self.policies, strict=True):
            policy.save(policy_path(folder, name))
        if self.content is not None:
            write_table(folder / CONTENT, self.content)
        summary = {
            "steps": self.config.steps,
            "runs": list(self.config.run_names),
            "failed": list(self.failed),
            "exploded": list(self.exploded),
            "gone": [list(steps) for steps in self.gone],
            "episodes": len(self.records["step"]),
            **{name: _plain(values) for name, values in self.means.items()},
            RUN_ID: load_owner(folder).run_id,
            SUMS: sums_of(folder, self._files(folder)),
        }
        text = json.dumps(summary, indent=2) + "\n"
        atomic_write(folder / SUMMARY, lambda file: file.write(text.encode()))

    def _files(self, folder: Path) -> list[Path]:
        """What the folder of a finished training holds beside the summary."""
        names = self.config.run_names
        paths = [folder / name for name in (CONFIG, OPTIMAL, EPISODES, EVALUATIONS, CONTENT)]
        paths += [policy_path(folder, name, best) for best in (False, True) for name in names]
        return [path for path in paths if path_exists(path)]


def policy_path(folder: Path, run_name: str, best: bool = False) -> Path:
    """Where the policy of a run is kept."""
    where = folder / POLICIES / BEST if best else folder / POLICIES
    return where / f"{run_name}.safetensors"


def written_folders(folder: Path) -> tuple[Path, ...]:
    """The folders of a training that files are written into, its own first."""
    policies = folder / POLICIES
    current = policies / CURRENT
    return (folder, folder / CHECKPOINTS, folder / RECORDS, policies, policies / BEST, current)


def load_policies(folder: Path, *, best: bool | None = False, **given: Any) -> tuple[Policy, ...]:
    """The policies of a finished training, one per run: the last or the best ones; with `best=None`
    the best where there are any. `given` is as in `Policy.load`.
    """
    config = load_config(folder)
    names = config.run_names
    if not is_finished(folder):
        raise InputError(
            f"the training run in {folder} is not finished; resume it with: "
            f"windvane resume {folder}"
        )
    if best is None:
        best = all(path_exists(policy_path(folder, name, True)) for name in names)
    given = {name: part for name, part in given.items() if name in ("env", "agent", "trust")}
    if has_old_objects(folder):
        objects = {kind: given.get(kind) for kind in ("env", "agent")}
        check_custom(config, given_again(config, objects, trust=False)[0], kinds=tuple(objects))
    paths = [policy_path(folder, name, best) for name in names]
    check_files(folder, folder / CONFIG, *paths)
    return tuple(Policy.load(path, **given) for path in paths)


class Summary(NamedTuple):
    """What a summary says that nothing else does."""

    failed: tuple[int, ...]
    gone: tuple[Steps, ...]


def read_summary(folder: Path, config: TrainConfig, episodes: int | None = None) -> Summary:
    """The summary of a training, checked to be of this one, and of so many episodes if their number
    is given.
    """
    path = folder / SUMMARY
    summary = read_json(path)
    with faults_of(path, "the summary"):
        found = _check_summary(summary, config)
        if episodes is not None and summary["episodes"] != episodes:
            raise InputError(
                f"it is of {summary['episodes']:,} episodes, and there are records of {episodes:,}"
            )
        return found


def _check_summary(summary: Any, config: TrainConfig) -> Summary:
    names = list(config.run_names)
    if not isinstance(summary, dict):
        raise InputError(f"it must be a JSON object, not {shown(summary)}")
    for name, expected in (("steps", config.steps), ("runs", names)):
        if type(summary.get(name)) is not type(expected) or summary[name] != expected:
            raise InputError(f"its {name} are {shown(summary.get(name))}, not {shown(expected)}")
    require_int("its number of episodes", summary.get("episodes"), 0)
    for name in _MEANS:
        values = summary.get(name, [None] * len(names))  # some came later
        listed = isinstance(values, list) and len(values) == len(names)
        if not listed or not all(value is None or is_number(value) for value in values):
            raise InputError(f"its {name} must be {len(names)} numbers or null: {shown(values)}")
    failed = _check_runs(summary.get("failed"), "failed", len(names))
    _check_runs(summary.get("exploded", []), "exploded", len(names))  # which came later
    gone = summary.get("gone", [])
    good = isinstance(gone, list) and all(
        isinstance(steps, list) and [type(step) for step in steps] == [int, int] for steps in gone
    )
    if not good:
        raise InputError(f"its steps without records must be pairs, not {shown(gone)}")
    check_sums(summary)
    return Summary(tuple(failed), tuple((start, stop) for start, stop in gone))


def _check_runs(runs: Any, what: str, number: int) -> list[int]:
    """A list of runs that failed, or exploded, each once."""
    if not isinstance(runs, list):
        raise InputError(f"it must list the runs that {what}, not {shown(runs)}")
    for run in runs:
        require_int(f"a run that {what}", run, 0, number - 1)
    if len(set(runs)) < len(runs):
        raise InputError(f"it lists a run that {what} twice: {shown(runs)}")
    return runs


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if values.size else float("nan")


def _plain(values: np.ndarray) -> list[float | None]:
    """Numbers for JSON, which knows no NaN."""
    return [float(value) if np.isfinite(value) else None for value in values]
