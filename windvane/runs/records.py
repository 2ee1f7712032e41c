"""Records of episodes: from the step infos of a chunk to rows, to Parquet, and back.

While a run is in progress its records lie in part files, one for the steps between two checkpoints
and named by them. A part is written before the checkpoint that ends it: after a crash, parts beyond
the checkpoint that the run resumes from are out of date and are written anew.
"""

import re
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import IO, Any

import numpy as np
from jaxtyping import Float, Int

from windvane.errors import InputError
from windvane.files import UNFINISHED, atomic_write
from windvane.replay.buffer import ReplayBuffer
from windvane.replay.diverse import DiverseReplay
from windvane.replay.signature import ReturnSignature
from windvane.training.fused import StepInfo

Records = dict[str, np.ndarray]
"""A table: columns of equal length by name."""

EPISODES = "episodes.parquet"
_PARTS = "records"
_PART = re.compile(r"steps-(\d+)-(\d+)\.parquet")

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
        "step": (start + at + 1).astype(np.int32),
        "length": column(infos.length).astype(np.int32),
        **{f"weights_{i}": values for i, values in enumerate(weights.T)},
        **{f"return_{i}": values for i, values in enumerate(returns.T)},
        "optimal": best,
        "regret": best - utility,
        "utility": utility,
        "epsilon": column(infos.epsilon),
        "loss": column(infos.loss),
    }


def replay_content(replay: ReplayBuffer[Any], states: list[Any]) -> Records | None:
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


def concatenate(tables: Iterable[Records]) -> Records:
    """One table of many with the same columns; of none, one without columns."""
    tables = list(tables)
    names = tables[0] if tables else {}
    return {name: np.concatenate([table[name] for table in tables]) for name in names}


class RecordWriter:
    """Gathers the rows of a run folder and writes them, a part at each checkpoint."""

    def __init__(self, folder: Path, step: int):
        """Resume from `step`: parts that reach beyond it are removed."""
        self._folder, self._from = folder / _PARTS, step
        self._tables: list[Records] = []
        self._folder.mkdir(parents=True, exist_ok=True)
        for path, (_, to) in _parts(folder):
            if to > step:
                path.unlink()
        for path in self._folder.glob(f"*{UNFINISHED}"):
            path.unlink()

    def add(self, rows: Records) -> None:
        """Keep rows for the next part."""
        self._tables.append(rows)

    def write(self, step: int) -> None:
        """Write what came since the last part, up to `step`; call it before the checkpoint."""
        if not self._tables:
            return
        name = f"steps-{self._from:012d}-{step:012d}.parquet"
        write_table(self._folder / name, concatenate(self._tables))
        self._tables, self._from = [], step

    def finish(self) -> Records:
        """Write all parts as one file, and return what is in it."""
        return merge(self._folder.parent)


def merge(folder: Path) -> Records:
    """Write all parts of a run folder as one file, beside them."""
    records = read_records(folder)
    if not (folder / EPISODES).exists():
        write_table(folder / EPISODES, records)
    return records


def remove_parts(folder: Path) -> None:
    """Remove the parts of a run folder, once there is one file of them all."""
    for path in (folder / _PARTS).glob("*.parquet*"):
        path.unlink()
    if (folder / _PARTS).exists():
        (folder / _PARTS).rmdir()


def read_records(folder: str | Path) -> Records:
    """The episodes of a run folder so far, by step and then by run.

    Of a run that is not finished, up to its last checkpoint. The columns: `run`, `seed`,
    `episode`, `step` (the run's steps when the episode ended), `length`, `weights_0` and so on,
    `return_0` and so on (discounted and scaled), `optimal`, `regret`, `utility` (weights times
    returns), `epsilon`, `loss`. `optimal` and `regret` are NaN where the optimum is not known.
    """
    folder = Path(folder)
    if (folder / EPISODES).exists():
        return _with_utility(read_table(folder / EPISODES))
    parts = _parts(folder)
    if not parts:
        raise InputError(f"there are no records of a training run in {folder}")
    return concatenate(_with_utility(read_table(path)) for path, _ in parts)


def write_table(path: Path, records: Records, about: dict[str, str] | None = None) -> None:
    """Write Parquet with polars, or with pyarrow where there is only that; `about` goes into the
    file's metadata.
    """

    def write(file: IO[bytes]) -> None:
        try:
            import polars
        except ImportError:
            arrow, parquet = _pyarrow()
            table = arrow.table(records).replace_schema_metadata(about)
            parquet.write_table(table, file, compression="zstd")
        else:
            polars.DataFrame(records).write_parquet(file, metadata=about)

    atomic_write(path, write)


def read_table(path: Path) -> Records:
    """Read Parquet as columns."""
    try:
        import polars
    except ImportError:
        table = _pyarrow()[1].read_table(path)
        return {name: table[name].to_numpy() for name in table.column_names}
    frame = polars.read_parquet(path, memory_map=False)
    return {name: frame[name].to_numpy() for name in frame.columns}


def read_about(path: Path) -> dict[str, str]:
    """The metadata of a Parquet file."""
    try:
        import polars
    except ImportError:
        found = _pyarrow()[1].read_metadata(path).metadata or {}
        return {name.decode(): text.decode() for name, text in found.items()}
    return polars.read_parquet_metadata(path)


def _with_utility(records: Records) -> Records:
    """Records as they are written now: earlier versions left out the utility."""
    if "utility" in records or "regret" not in records:
        return records
    number = sum(name.startswith("weights_") for name in records)
    weights, returns = (
        np.stack([records[f"{name}_{i}"] for i in range(number)], axis=-1)
        for name in ("weights", "return")
    )
    utility = (weights.astype(float) * returns).sum(-1)
    names = list(records)
    after = names.index("regret") + 1
    columns = records | {"utility": utility}
    return {name: columns[name] for name in [*names[:after], "utility", *names[after:]]}


def _pyarrow() -> tuple[Any, Any]:
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError as error:
        raise InputError("records need polars or pyarrow: install one of them") from error


def _parts(folder: Path) -> list[tuple[Path, tuple[int, int]]]:
    """Part files and their steps, in order."""
    found = []
    for path in (folder / _PARTS).glob("steps-*.parquet"):
        match = _PART.fullmatch(path.name)
        if match:
            found.append((path, (int(match[1]), int(match[2]))))
    return sorted(found, key=lambda part: part[1])
