"""One good file of every kind that is read, and who reads it."""

import json
import shutil
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from tests.fuzz import corruptions
from tests.fuzz.corruptions import Corruption
from tests.runs.small import STEPS, small, without_sums
from windvane.envs.deep_sea_treasure import MAPS, DeepSeaTreasure, read_map
from windvane.envs.minecart import Minecart
from windvane.envs.minecart_config import PAPER, MinecartConfig
from windvane.errors import InputError
from windvane.experiments.report import content as report_content
from windvane.experiments.report.summarise import summarise_run
from windvane.experiments.report.summary_files import SUMMARIES, read_summaries, write_summaries
from windvane.experiments.runs.store import Store, read_run, read_summary
from windvane.live import LiveWeights
from windvane.oracle import shipped_path
from windvane.oracle.coverage import CoverageSet
from windvane.oracle.minecart_trips import TripPlan
from windvane.oracle.search_cache import SearchCache
from windvane.policy import Policy
from windvane.runs import checkpoint, records
from windvane.runs.folder import load_config, load_optimal, load_owner
from windvane.runs.greedy import read_evaluations
from windvane.runs.records import read_content, read_records
from windvane.runs.result import Result, policy_path
from windvane.runs.result import read_summary as read_run_summary
from windvane.runs.runner import train
from windvane.runs.tables import write_table
from windvane.training.build import build

PROVENANCE = {"version": "1", "device": "CPU", "seconds": 2.0, "parallel_runs": 2}


@dataclass(frozen=True)
class Kind:
    """A kind of file: where the good one is, its form, and who reads it."""

    file: str
    form: Callable[[bytes, np.random.Generator], Iterator[Corruption]]
    read: Callable[[Path], Any]
    """Given the file's path."""
    command: Callable[[Path], list[str]] | None = None
    """A command that reads the file and then ends before anything is compiled."""
    random: int = 12
    """Places in the file where bytes are changed."""

    def cases(self, data: bytes) -> list[Corruption]:
        """All ways to spoil the file."""
        draw = np.random.default_rng(0)
        return [
            *self.form(data, draw),
            *corruptions.of_bytes(data, draw, self.random),
            *corruptions.of_places(),
        ]


def text_only(data: bytes, draw: np.random.Generator) -> Iterator[Corruption]:
    """Texts instead of the good one, which holds numbers."""
    del data, draw
    for text in (
        "a b c", "nan nan", "1e400", "1,2,3,4", "[0.5, 0.5", "[[0.5], [0.5]]", '["0.5", "0.5"]',
        "[true, false]", "[0.5, null]", "{}", "0.5", "-1 2", "0.5,0.6", "1e308,1e308", "\0", "#",
        "0 0\n0", "1 1\n1 1", "0 -1\n-1 5", corruptions.DEEP, "9" * 10_000, "0 " * 300_000,
        "0 1e-30\n0 0", "0 1e30\n0 0", "0 0\n0 0", "0x10 1", "0 1_0\n0 0", "\uff10.5,0.5",
    ):  # fmt: skip
        yield corruptions.written(f"the text {text[:30]!r}", text.encode())


def _checkpoint(path: Path) -> Any:
    """The state of the newest checkpoint that is whole; one that is damaged is set aside."""
    folder = path.parent.parent
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        found = checkpoint.load(folder, _template(), load_owner(folder))
    for aside in (folder / "checkpoints").glob("*.aside1"):
        aside.unlink()
    assert found is not None
    assert found.step in (400, STEPS)
    return found


@cache
def _template() -> Any:
    return build(small().resolved()).session().template()


def _config(path: Path) -> Any:
    config = load_owner(path.parent).config
    assert 1 <= len(config.run_names) <= 10_000
    return config


def _coverage(path: Path) -> Any:
    """As the oracle does, which names the file and computes anew what cannot be used."""
    try:
        return CoverageSet.load(path, TripPlan.template())
    except ValueError as error:
        raise InputError(f"{path} cannot be used and is computed anew: {error}") from error


def _policy(path: Path) -> Any:
    policy = Policy.load(path)
    leaves = jax.tree.leaves(policy.network)
    assert all(np.isfinite(leaf).all() for leaf in leaves if hasattr(leaf, "dtype"))
    return policy.spec


def _compare(path: Path) -> list[str]:
    folder = (
        path.parent if path.suffix != ".parquet" or path.stem == "episodes" else path.parents[1]
    )
    return ["compare", str(folder), "--out", str(folder.parent / "pictures" / "compare.nope")]


def _evaluate(path: Path) -> list[str]:
    return ["evaluate", str(path.parents[1]), "--weights", "nonsense"]


def _render(problem: str, option: str) -> Callable[[Path], list[str]]:
    return lambda path: [
        "render", problem, option, str(path), "--weights", "nonsense", "--out", "/nowhere/a.gif",
    ]  # fmt: skip


def _report(path: Path) -> list[str]:
    store = path if path.name == "published" else path.parents[3]
    store = path.parent if path.name == SUMMARIES else store
    return ["report", str(store), "--out", str(store / "no\0folder")]


KINDS = {
    "config": Kind("run/config.json", corruptions.of_json, _config, _compare),
    "summary": Kind(
        "run/summary.json",
        corruptions.of_json,
        lambda path: read_run_summary(path.parent, small()),
    ),
    "custom parts": Kind(
        "objects/own-parts.json", corruptions.of_json, lambda path: load_config(path.parent)
    ),
    "optimal values": Kind(
        "run/optimal-values.json", corruptions.of_json, lambda path: load_optimal(path.parent, 2)
    ),
    "records": Kind(
        "run/episodes.parquet",
        corruptions.of_table,
        lambda path: read_records(path.parent),
        _compare,
        random=30,
    ),
    "part of records": Kind(
        "stopped/records/steps-000000000080-000000000160.parquet",
        corruptions.of_table,
        lambda path: read_records(path.parents[1]),
        _compare,
    ),
    "evaluations": Kind(
        "run/evaluations.parquet",
        corruptions.of_table,
        lambda path: read_evaluations(path, small()),
    ),
    "replay content": Kind(
        "run/replay-content.parquet", corruptions.of_table, lambda path: read_content(path, 2)
    ),
    "policy": Kind(
        "run/policies/seed-3.safetensors", corruptions.of_policy, _policy, _evaluate, random=25
    ),
    "checkpoint": Kind(
        f"stopped/checkpoints/step-{STEPS:012d}.npz", corruptions.of_archive, _checkpoint, random=15
    ),
    "stored run": Kind("store/run.parquet", corruptions.of_table, read_summary, random=20),
    "stored run, whole": Kind("store/run.parquet", corruptions.of_table, read_run, random=5),
    "published summaries": Kind(
        f"published/{SUMMARIES}",
        corruptions.of_table,
        lambda path: read_summaries(path.parent),
        _report,
        random=20,
    ),
    "stored content": Kind(
        "store/content.parquet", corruptions.of_table, report_content.read_content
    ),
    "coverage set": Kind(
        "loose/coverage.npz",
        corruptions.of_archive,
        _coverage,
        random=25,
    ),
    "search cache": Kind("loose/search.json", corruptions.of_json, SearchCache),
    "Minecart instance": Kind(
        "loose/instance.json",
        corruptions.of_json,
        lambda path: Minecart(MinecartConfig.from_json(path)),
        _render("minecart", "--config"),
    ),
    "map": Kind(
        "loose/map.txt",
        text_only,
        lambda path: DeepSeaTreasure(read_map(str(path))),
        _render("dst", "--map"),
    ),
    "live weights": Kind("loose/weights.txt", text_only, LiveWeights.from_file),
}
"""By name: every kind of file that is read."""


def make_specimens(base: Path, finished: Result) -> Path:
    """Write a good file of every kind."""
    assert finished.folder is not None
    run, config = base / "run", finished.config
    shutil.copytree(finished.folder, run)
    without_sums(run)  # or every change is refused by its sum alone
    names = ("utility", "worst_utility", "regret", "worst_regret", "never_ending")
    evaluations = {name: np.linspace(0.1, 0.4, 4) for name in names}
    whole = {"run": [0, 1, 0, 1], "seed": [3, 5, 3, 5], "step": [240, 240, 480, 480]}
    evaluations |= {name: np.asarray(values, np.int32) for name, values in whole.items()}
    write_table(run / "evaluations.parquet", evaluations)
    policy_path(run, "seed-3", best=True).parent.mkdir()
    for name in config.run_names:
        shutil.copy(policy_path(run, name), policy_path(run, name, best=True))
    (run / "optimal-values.json").write_text("[[1.5, -2.0], [3.0, -4.0]]")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "remove", lambda folder: None)
        patch.setattr(records, "remove_parts", lambda folder: None)
        train(small(), out=base / "stopped", progress=False)
    for name in ("summary.json", "episodes.parquet"):
        (base / "stopped" / name).unlink()
    (base / "objects").mkdir()
    shutil.copy(run / "config.json", base / "objects")
    (base / "objects" / "own-parts.json").write_text('{"agent": "MyAgent", "weights": "Mine"}')
    _make_store(base, finished)
    loose = base / "loose"
    loose.mkdir()
    shutil.copy(shipped_path(Minecart(), 0.98), loose / "coverage.npz")
    PAPER.to_json(loose / "instance.json")
    np.savetxt(loose / "map.txt", MAPS["dcrac"])
    (loose / "weights.txt").write_text("0.3,0.7")
    (loose / "search.json").write_text(json.dumps({"a": [1.0, 2.0], "b": None}))
    return base


def _make_store(base: Path, finished: Result) -> None:
    table, content = finished.records, finished.content
    assert content is not None
    runs = finished.config.runs
    summaries = []
    store = Store(base / "scratch")
    path = content_path = store.folder
    for number, run in enumerate(runs):
        rows = {name: column[table["run"] == number] for name, column in table.items()}
        path = store.write(run, rows, False, PROVENANCE)
        summaries.append(summarise_run(run, rows, False, PROVENANCE))
        mine = {name: column[content["run"] == number] for name, column in content.items()}
        content_path = store.write_content(run, mine)
    (base / "store").mkdir()
    shutil.copy(path, base / "store" / "run.parquet")
    shutil.copy(content_path, base / "store" / "content.parquet")
    shutil.rmtree(store.folder)
    write_summaries(summaries, base / "published")
