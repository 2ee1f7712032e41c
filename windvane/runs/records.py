"""Records of episodes: from the step infos of a chunk to rows, to Parquet, and back.

While a run is in progress its records lie in part files, one for the steps between two checkpoints
and named by them. A part is written before the checkpoint that ends it, which holds its sum: after
a crash, the part beyond the checkpoint that the run resumes from is out of date and written anew.
Parts that are missing or damaged are said to be gone, and training continues without them.
"""

import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from windvane.errors import LARGEST_COUNT, InputError
from windvane.files import (
    faults_of,
    file_sum,
    make_folder,
    own_files,
    path_exists,
    remove_files,
    remove_folder,
    set_aside,
    shown_path,
    sweep,
)
from windvane.replay.buffer import ReplayBuffer
from windvane.replay.diverse import DiverseReplay
from windvane.replay.signature import ReturnSignature
from windvane.runs.checkpoint import Part
from windvane.runs.folder import CONFIG, EPISODES, RECORDS, is_finished, load_config
from windvane.runs.sums import check_files
from windvane.runs.tables import (
    Records,
    concatenate,
    numbers,
    read_table,
    vector,
    whole_numbers,
    write_table,
)
from windvane.training.config import MAX_RUNS, TrainConfig
from windvane.training.fused import StepInfo

TOLERANCE = 1e-5
"""Of sums of numbers with 32 bits."""
_PART = re.compile(r"steps-(\d{12})-(\d{12})\.parquet", re.ASCII)
_PARQUET = b"PAR1"
"""What every table begins with."""
Steps = tuple[int, int]
"""After the first, up to the second."""

OptimalValue = Callable[[Float[np.ndarray, "n objectives"]], Float[np.ndarray, " n"]]


def episode_rows(
    infos: StepInfo,
    start: int,
    seeds: Int[np.ndarray, " runs"],
    episodes: Int[np.ndarray, " runs"],
    optimal_value: OptimalValue,
) -> Records:
    """One row per episode that ended in a chunk, by step and then by run.

    `infos` has axes of steps and runs, `start` is the chunk's first step, `episodes` the number of
    episodes that each run had before, and `optimal_value` gives the best value for rows of weights.
    """
    ended = np.asarray(infos.ended)
    at, run = np.nonzero(ended)

    def column(values: Any) -> np.ndarray:
        return np.asarray(values)[at, run]

    weights, returns = column(infos.weights), column(infos.returns)
    best = optimal_value(weights)
    utility = (weights.astype(float) * returns).sum(-1)
    episode = (episodes + np.cumsum(ended, axis=0))[at, run] - 1
    return {
        "run": run.astype(np.int32),
        "seed": seeds[run].astype(np.int64),
        "episode": episode.astype(np.int32),
        "step": infos.step_numbers(at, start).astype(np.int32),
        "length": column(infos.length).astype(np.int32),
        **{f"weights_{i}": values for i, values in enumerate(weights.T)},
        **{f"return_{i}": values for i, values in enumerate(returns.T)},
        "optimal": best,
        "regret": best - utility,
        "utility": utility,
        "epsilon": column(infos.epsilon),
        "loss": column(infos.loss),
    }


def replay_content(replay: ReplayBuffer[Any] | None, states: list[Any]) -> Records | None:
    """The returns of the trajectories that the runs' diverse buffers hold (Figure 3, middle)."""
    if not (isinstance(replay, DiverseReplay) and isinstance(replay.signature, ReturnSignature)):
        return None
    tables = []
    for run, state in enumerate(states):
        for diverse, returns in enumerate(replay.signatures(state)):
            rows = {"run": np.full(len(returns), run), "diverse": np.full(len(returns), diverse)}
            rows = {name: column.astype(np.int32) for name, column in rows.items()}
            columns = {f"return_{i}": column for i, column in enumerate(returns.T)}
            tables.append(rows | columns)
    return concatenate(tables)


class RecordWriter:
    """Gathers the rows of a run folder and writes them, a part at each checkpoint."""

    def __init__(self, folder: Path, step: int, known: Iterable[Part] | None = None):
        """Resume from `step`. The part beyond it is written anew, so it is removed. The others are
        compared with the `known` ones of the checkpoint (with none, only checked for what they
        hold), and those that are not what was written are set aside.
        """
        self._folder, self._from = folder / RECORDS, step
        self._tables: list[Records] = []
        if self._folder.is_symlink():
            raise InputError(f"{self._folder} must be a folder of its own, not a link to another")
        make_folder(self._folder)
        sweep(self._folder)
        _clear_beyond(folder, step)
        config = load_config(folder) if path_exists(folder / CONFIG) else None
        # At once: that a part is damaged must not come out when the training is done.
        self.parts = _sound_parts(folder, known, config)
        self.gone = gaps([(part.start, part.stop) for part in self.parts], step)
        """The steps whose records are gone."""
        if self.gone:
            warnings.warn(_about_gaps(folder, self.gone), stacklevel=2)

    def add(self, rows: Records) -> None:
        """Keep rows for the next part."""
        self._tables.append(rows)

    def write(self, step: int) -> None:
        """Write what came since the last part, up to `step`; call it before the checkpoint."""
        if not self._tables or step == self._from:
            return
        path = self._folder / _part_name(self._from, step)
        write_table(path, concatenate(self._tables))
        self.parts.append(Part(self._from, step, file_sum(path)))
        self._tables, self._from = [], step

    def earlier(self) -> list[Records]:
        """The rows of the parts that are there, which a run is resumed after."""
        found = [
            (self._folder / _part_name(p.start, p.stop), (p.start, p.stop)) for p in self.parts
        ]
        return _read_parts(found, None)

    def finish(self) -> Records:
        """Write all parts as one file, beside them, and return what is in it."""
        folder = self._folder.parent
        found = _parts(folder)
        if not found:
            raise InputError(f"all records in {self._folder} are gone: there is nothing to finish")
        records = concatenate(_read_parts(found, load_config(folder)))
        write_table(folder / EPISODES, records)
        return records


def _part_name(start: int, stop: int) -> str:
    return f"steps-{start:012d}-{stop:012d}.parquet"


def remove_parts(folder: Path) -> None:
    """Remove the parts of a run folder, once there is one file of them all."""
    remove_files((path for path, _ in _parts(folder)), _PARQUET)
    sweep(folder / RECORDS)
    remove_folder(folder / RECORDS)


def gaps(parts: Iterable[Steps], stop: int) -> tuple[Steps, ...]:
    """The steps up to `stop` that no part has."""
    found, reached = [], 0
    for first, last in sorted(parts):
        if first > reached:
            found.append((reached, first))
        reached = max(reached, last)
    return (*found, (reached, stop)) if reached < stop else tuple(found)


def describe_gaps(gone: Sequence[Steps]) -> str:
    """Steps whose records are gone, as part of a sentence."""
    return " and ".join(f"{start + 1:,} to {stop:,}" for start, stop in gone)


def read_records(folder: str | Path) -> Records:
    """The episodes of a run folder so far, by step and then by run.

    Of a run that is not finished, up to its last checkpoint. The columns: `run`, `seed`,
    `episode`, `step` (the run's steps when the episode ended), `length`, `weights_0` and so on,
    `return_0` and so on (discounted and scaled), `optimal`, `regret`, `utility` (weights times
    returns), `epsilon`, `loss`. `optimal` and `regret` are NaN where the optimum is not known.
    """
    folder = Path(folder)
    config = load_config(folder) if path_exists(folder / CONFIG) else None
    parts = [] if is_finished(folder) else _parts(folder)
    if not parts and path_exists(folder / EPISODES):
        check_files(folder, folder / EPISODES)
        return _read(folder / EPISODES, config)
    if not parts:
        raise InputError(f"there are no records of a training run in {shown_path(folder)}")
    tables = _read_parts(parts, config)
    gone = gaps([steps for _, steps in parts], parts[-1][1][1])
    if gone:
        warnings.warn(_about_gaps(folder, gone), stacklevel=2)
    return concatenate(tables)


def check_episodes(table: Records, config: TrainConfig | None = None) -> Records:
    """Check records of episodes, column by column: types, numbers, order, and that they belong to a
    training where that is known. What is returned has the columns that are ours alone.
    """
    runs = None if config is None else config.runs
    steps = LARGEST_COUNT if config is None else config.steps
    run = whole_numbers(table, "run", 0, (MAX_RUNS if runs is None else len(runs)) - 1)
    seed = whole_numbers(table, "seed", 0, LARGEST_COUNT)
    episode = whole_numbers(table, "episode", 0, LARGEST_COUNT)
    step = whole_numbers(table, "step", 1, steps)
    checked = {"run": run, "seed": seed, "episode": episode, "step": step}
    checked["length"] = whole_numbers(table, "length", 1, LARGEST_COUNT)
    weights, returns = vector(table, "weights"), vector(table, "return")
    if len(weights) != len(returns):
        raise InputError(f"it has {len(weights)} columns of weights and {len(returns)} of returns")
    for name, columns in (("weights", weights), ("return", returns)):
        checked |= {f"{name}_{index}": column for index, column in enumerate(columns)}
    optimal, regret = (numbers(table, name, unknown=True) for name in ("optimal", "regret"))
    if (np.isnan(optimal) != np.isnan(regret)).any():
        raise InputError("the columns 'optimal' and 'regret' must be NaN in the same rows")
    with np.errstate(over="ignore", invalid="ignore"):
        terms = [w.astype(float) * r for w, r in zip(weights, returns, strict=True)]
        size, earned = np.sum(np.abs(terms), axis=0), np.sum(terms, axis=0)
    # Records of the first format lack it.
    utility = numbers(table, "utility") if "utility" in table else earned
    if not (np.abs(utility - earned) <= TOLERANCE * (1 + size)).all():
        raise InputError("the column 'utility' must be weights times returns")
    apart = np.abs(optimal - utility - regret)  # NaN where the optimum is not known
    if (apart > TOLERANCE * (1 + size + np.abs(optimal))).any():
        raise InputError("the column 'regret' must be the optimal value less the utility")
    checked |= {"optimal": optimal, "regret": regret, "utility": utility}
    checked["epsilon"] = numbers(table, "epsilon", 0, 1)
    loss = table.get("loss")
    if loss is None or loss.ndim != 1 or loss.dtype.kind != "f":  # a run that diverged has any
        raise InputError("it has no column 'loss' of numbers")
    _check_order(run, episode, step)
    if runs is not None:
        seeds = np.asarray([one.seed_numbers[0] for one in runs])
        if (seeds[run] != seed).any():
            raise InputError("the column 'seed' has others than the training")
    return checked | {"loss": loss}


def check_finite(rows: Records) -> None:
    """Complain about an environment or a schedule that gave numbers which are not finite."""
    for name, column in rows.items():
        if name not in ("loss", "optimal", "regret") and not np.isfinite(column).all():
            where = int(np.flatnonzero(~np.isfinite(column))[0])
            raise InputError(
                f"{name} of the episode that ended at step {rows['step'][where]:,} is "
                f"{column[where]}: rewards and weights must be finite"
            )


def read_content(path: Path, runs: int) -> Records:
    """What diverse buffers held in the end, from the file of a training with so many runs."""
    table = read_table(path)
    with faults_of(path, "the replay content"):
        columns = {
            "run": whole_numbers(table, "run", 0, runs - 1),
            "diverse": whole_numbers(table, "diverse", 0, 1),
        }
        returns = vector(table, "return")
    return columns | {f"return_{index}": column for index, column in enumerate(returns)}


def _check_order(run: np.ndarray, episode: np.ndarray, step: np.ndarray) -> None:
    if (np.diff(step.astype(np.int64)) < 0).any():
        raise InputError("the column 'step' must not decrease from row to row")
    order = np.argsort(run, kind="stable")
    same = np.diff(run[order].astype(np.int64)) == 0
    if (np.diff(episode[order].astype(np.int64))[same] <= 0).any():
        raise InputError("the column 'episode' must increase from row to row of a run")


def _read(path: Path, config: TrainConfig | None) -> Records:
    table = read_table(path)
    with faults_of(path, "the table"):
        return check_episodes(table, config)


def _read_parts(parts: list[tuple[Path, Steps]], config: TrainConfig | None) -> list[Records]:
    """Parts that follow one another and have the same columns."""
    tables: list[Records] = []
    reached = 0
    for path, (start, stop) in parts:
        if start < reached or stop <= start:
            raise InputError(
                f"{path} has the records from step {start:,} on, and those before it end at "
                f"{reached:,}: a part is there twice"
            )
        table = _read_part(path, (start, stop), config)
        with faults_of(path, "the table"):
            if tables and list(table) != list(tables[0]):
                raise InputError("it has other columns than the part before it")
        tables.append(table)
        reached = stop
    return tables


def _read_part(path: Path, steps: Steps, config: TrainConfig | None) -> Records:
    table = _read(path, config)
    with faults_of(path, "the table"):
        whole_numbers(table, "step", steps[0] + 1, steps[1])
    return table


def _parts(folder: Path) -> list[tuple[Path, Steps]]:
    """Part files and their steps, in order."""
    found = []
    for path in own_files(folder / RECORDS, _PART):
        match = _PART.fullmatch(path.name)
        if match:
            found.append((path, (int(match[1]), int(match[2]))))
    return sorted(found, key=lambda part: part[1])


def _clear_beyond(folder: Path, step: int) -> None:
    """Remove the part that was written just before a crash; more of them, as there are where a
    checkpoint was lost, are set aside.
    """
    beyond = [path for path, (_, stop) in _parts(folder) if stop > step]
    if len(beyond) == 1:
        remove_files(beyond, _PARQUET)
    for path in beyond:
        if path_exists(path):
            set_aside(path)
    if len(beyond) > 1:
        warnings.warn(
            f"training resumes at step {step:,}: records of later steps are kept in "
            f"{folder / RECORDS} under names that end in .aside1",
            stacklevel=3,
        )


def _sound_parts(
    folder: Path, known: Iterable[Part] | None, config: TrainConfig | None
) -> list[Part]:
    """The parts that are what was written; others are set aside with a warning. Where the sums are
    known they decide alone. What cannot be read now, for whatever reason, is not damaged.
    """
    sums = None if known is None else {(part.start, part.stop): part.sum for part in known}
    sound: list[Part] = []
    for path, steps in _parts(folder):
        part = Part(*steps, file_sum(path))
        try:
            if sound and steps[0] < sound[-1].stop:
                raise InputError("it has steps of the part before it once more")
            if sums is None:
                _read_part(path, steps, config)
            elif sums.get(steps) != part.sum:
                raise InputError("it is not the file that this training wrote")
        except InputError as error:
            if isinstance(error.__cause__, OSError | MemoryError | ImportError):
                raise
            kept = set_aside(path)
            warnings.warn(
                f"{path} cannot be used and is kept as {kept.name}: {error}", stacklevel=3
            )
        else:
            sound.append(part)
    return sound


def _about_gaps(folder: Path, gone: Sequence[Steps]) -> str:
    return f"the records of steps {describe_gaps(gone)} of the training in {folder} are gone"
