"""What takes minutes: kills at any moment, a Ray cluster, several processes, other environments."""

import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tests.runs.lives import live, start
from windvane.search.study import open_study

pytest.importorskip("optuna")

PROGRAM = """
import sys
from pathlib import Path
from windvane.search.tune import tune

tune(
    "dst", {"learning_rate": (0.001, 0.1, "log")}, preset="quick-dst", trials=int(sys.argv[1]),
    parallel_trials=2, best=1, confirm_seeds=2, out=Path(sys.argv[2]), progress=False, seeds=1,
    steps=480, learning_starts=80, chunk=80, width=8, depth=1, capacity=200, batch_size=8,
)
"""

pytestmark = pytest.mark.slow


def check(folder: Path, trials: int) -> None:
    """The study is whole: so many trials finished, none left, one preset."""
    study = open_study(folder, None, None)
    assert len(study.finished) == trials
    assert study.running == 0
    assert study.baseline is not None
    rows = (folder / "trials.csv").read_text().splitlines()
    assert len(rows) == 1 + len(study.trials.get_trials())
    assert (folder / "confirmation.json").exists()


@pytest.mark.parametrize("renames", [False, True])
def test_killed_at_many_moments(renames: bool, tmp_path: Path) -> None:
    cache, out, draw = tmp_path / "cache", tmp_path / "study", Random(int(renames))
    trials, finished, killed = 8, 0, 0
    for _ in range(12):
        killed += live(PROGRAM, cache, out, trials, out, renames=renames, draw=draw) == -9
        if (out / "study.json").exists():
            now = len(open_study(out, None, None).finished)
            assert now >= finished
            finished = now
    assert killed
    assert start(PROGRAM, cache, trials, out).wait() == 0
    check(out, trials)


def test_two_processes_share_a_study(tmp_path: Path) -> None:
    cache, out = tmp_path / "cache", tmp_path / "study"
    processes = [start(PROGRAM, cache, 12, out) for _ in range(2)]
    assert [process.wait() for process in processes] == [0, 0]
    assert start(PROGRAM, cache, 12, out).wait() == 0
    check(out, 12)
    study = open_study(out, None, None)
    assert len({trial.user_attrs["worker"] for trial in study.finished}) == 2


CLUSTER = """
import sys
import threading
import time
from pathlib import Path

from ray.cluster_utils import Cluster

from windvane.search.study import open_study
from windvane.search.tune import tune

out = Path(sys.argv[1])
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
nodes = [cluster.add_node(num_cpus=2) for _ in range(2)]
cluster.wait_for_nodes()


def lose_a_node():
    while not (out / "study.json").exists() or not open_study(out, None, None).finished:
        time.sleep(0.1)
    cluster.remove_node(nodes[0], allow_graceful=False)
    print("a node is lost", flush=True)


threading.Thread(target=lose_a_node, daemon=True).start()
report = tune(
    "dst", {"learning_rate": (0.001, 0.1, "log")}, preset="quick-dst", trials=12, tasks=2,
    parallel_trials=2, best=1, confirm_seeds=2, out=out, progress=False, seeds=1,
    cluster=cluster.address, steps=480, learning_starts=80, chunk=80, width=8, depth=1,
    capacity=200, batch_size=8,
)
print("counts", report.counts, flush=True)
cluster.shutdown()
"""


def test_a_lost_node_loses_no_trial(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    command = [sys.executable, "-c", CLUSTER, str(tmp_path / "study")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    assert "a node is lost" in done.stdout
    check(tmp_path / "study", 12)


def test_an_environment_through_the_host_driver(tmp_path: Path) -> None:
    from windvane.search.tune import tune

    report = tune(
        "tests.cli.strangers:Corridor", {"learning_rate": (0.001, 0.1, "log")}, trials=3, seeds=2,
        best=1, confirm_seeds=2, out=tmp_path / "study", progress=False, steps=160,
        learning_starts=40, chunk=40, width=8, depth=1, capacity=100, batch_size=8,
        env_args={"length": 4}, schedule="0.3,0.7",
    )  # fmt: skip
    assert report.measure == "minus greedy utility"
    assert sum(report.counts.values()) == 3
    assert report.baseline is not None


def test_an_agent_that_learns_from_rollouts(tmp_path: Path) -> None:
    from windvane.search.tune import tune

    report = tune(
        "dst", {"agent_args.td_lambda": (0.5, 0.9)}, preset="fast-dst", trials=3, seeds=1, best=1,
        confirm_seeds=2, out=tmp_path / "study", progress=False, num_envs=8, rollout=8,
        agent_args={"minibatches": 2}, steps=64 * 18, chunk=128, width=8,
    )  # fmt: skip
    assert report.measure == "greedy regret"
    assert sum(report.counts.values()) == 3
