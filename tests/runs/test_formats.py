"""Run folders and policies of the first formats: read, resumed, and their objects asked for."""

import json
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.formats import OLD, write_checkpoint, write_policy
from tests.runs.crashes import stop_after
from tests.runs.small import small, state_of, without_sums
from tests.runs.test_runner import same_outcome
from windvane import Policy, read_records, resume, train
from windvane.agents.multi_network import PolicySet
from windvane.envs.deep_sea_treasure import DeepSeaTreasure
from windvane.errors import InputError
from windvane.runs import checkpoint
from windvane.runs.folder import load_config
from windvane.runs.result import Result, load_policies
from windvane.runs.stopping import TrainingStopped
from windvane.runs.tables import read_table, write_table
from windvane.training.build import build

SMALL = OLD | {"weights_every": 100, "encountered": 16_384}
"""The small training of these tests."""


def make_old(folder: Path) -> None:
    """Rewrite an unfinished run folder as the first format had it."""
    (folder / "config.json").write_text(json.dumps(SMALL))
    like = build(small()).session().template()
    for path in checkpoint.saved(folder):
        step, runs, *_ = checkpoint.read(path, like)
        write_checkpoint(path, step, runs)
    for path in (folder / "records").glob("*.parquet"):
        table = read_table(path)
        del table["utility"]
        write_table(path, table)


def stopped(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stop_after(monkeypatch, [240])
    with pytest.raises(TrainingStopped):
        train(small(), out=folder, progress=False)
    make_old(folder)


@pytest.mark.usefixtures("keep_checkpoints")
def test_an_old_run_resumes_to_the_same_end(
    folder: Path, finished: Result, last_state: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped(folder, monkeypatch)
    assert load_config(folder) == finished.config
    before = read_records(folder)
    assert list(before) == list(finished.records)
    assert (before["utility"] == finished.records["utility"][: len(before["utility"])]).all()
    assert same_outcome(resume(folder, progress=False), finished)
    assert state_of(folder) == last_state
    assert same_outcome(resume(folder, progress=False), finished)


def test_objects_of_an_old_run_are_asked_for(
    folder: Path, finished: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped(folder, monkeypatch)
    (folder / "own-parts.json").write_text(json.dumps({"env": "DeepSeaTreasure"}))
    assert load_config(folder).custom.to_json() == {"env": {"type": "DeepSeaTreasure"}}
    asked = (
        r"object made in Python \(DeepSeaTreasure\) and cannot be rebuilt: give it again, as env"
    )
    with pytest.raises(InputError, match=asked):
        resume(folder)
    with pytest.raises(InputError, match="this run's agent is 'cn' by name"):
        resume(folder, env=DeepSeaTreasure(), agent=build(small()).learner.agent)
    env = DeepSeaTreasure()
    assert same_outcome(resume(folder, env=env, progress=False), finished)
    # What it has written now says so itself.
    with pytest.raises(InputError, match=asked):
        _ = Policy.load(folder / "policies" / "seed-3.safetensors").env
    assert same_outcome(resume(folder, env=env), finished)
    # And what the first format wrote is asked for by the folder.
    without_sums(folder)
    for name, policy in zip(("seed-3", "seed-5"), finished.policies, strict=True):
        path = folder / "policies" / f"{name}.safetensors"
        write_policy(path, policy.network, SMALL | {"seeds": [policy.seed]}, policy.seed)
    with pytest.raises(InputError, match=asked):
        resume(folder)
    with pytest.raises(InputError, match=asked):
        load_policies(folder)
    assert same_outcome(resume(folder, env=env), finished)
    assert load_policies(folder, env=env)[0].env is env


@pytest.mark.parametrize("names", [3, {"env": 3}, {"chess": "Chess"}])
def test_bad_names_of_objects(names: Any, folder: Path) -> None:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(SMALL))
    (folder / "own-parts.json").write_text(json.dumps(names))
    with pytest.raises(InputError, match="must name the classes of custom parts"):
        load_config(folder)


def test_weights_of_an_old_run_are_its_schedule(folder: Path) -> None:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(SMALL))
    (folder / "own-parts.json").write_text(json.dumps({"weights": "FixedWeights"}))
    assert load_config(folder).custom.to_json() == {"schedule": {"type": "FixedWeights"}}


SEEN = np.asarray([[0, 0], [2, 1], [1, 3], [5, 6]])
WEIGHTS = np.asarray([[1.0, 0.0], [0.4, 0.6], [0.0, 1.0], [0.5, 0.5]])


def test_an_old_policy_acts_as_it_did(finished: Result, tmp_path: Path) -> None:
    policy, path = finished.policies[1], tmp_path / "policy.safetensors"
    write_policy(path, policy.network, SMALL | {"seeds": [5]}, 5)
    back = Policy.load(path)
    assert (back.config, back.seed, back.step) == (policy.config, 5, 480)
    assert back.spec == policy.spec
    assert np.array_equal(back.q_values(SEEN, WEIGHTS), policy.q_values(SEEN, WEIGHTS))
    assert np.array_equal(back.act(SEEN, WEIGHTS), policy.act(SEEN, WEIGHTS))
    # Written anew, it is of this format.
    back.save(path)
    again = Policy.load(path)
    assert np.array_equal(again.q_values(SEEN, WEIGHTS), policy.q_values(SEEN, WEIGHTS))


def test_an_old_set_of_policies_acts_as_it_did(tmp_path: Path) -> None:
    config = small(agent="mn", agent_args={"kappa": 0.1, "max_policies": 3}).resolved()
    learner = build(config).learner
    start = eqx.filter_jit(learner.init)
    runs = [start(jax.random.key(seed), jnp.ones((1, 2)) / 2) for seed in range(3)]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(run.online for run in runs))
    values = jnp.asarray([[9.0, -19.0], [0.0, 0.0], [-19.0, 9.0]])
    held = PolicySet(stacked, values, jnp.asarray([True, False, True]))
    run = eqx.tree_at(lambda s: s.agent_state, runs[1], held)
    network = learner.policy_network(run, jnp.zeros(2, jnp.int32))
    policy = Policy(learner.spec, learner.agent, network, config, 0)
    path = tmp_path / "policy.safetensors"
    old = SMALL | {"agent": "mn", "kappa": 0.1, "room": 3}
    write_policy(path, network, old, 0, policies=3)
    back = Policy.load(path)
    assert back.agent == learner.agent
    assert back.config == config
    assert np.array_equal(back.q_values(SEEN, WEIGHTS), policy.q_values(SEEN, WEIGHTS))
    assert np.array_equal(back.act(SEEN, WEIGHTS), policy.act(SEEN, WEIGHTS))
    write_policy(path, network, old, 0, policies=2)
    with pytest.raises(InputError, match="another network than its configuration describes"):
        Policy.load(path)


def test_an_old_policy_may_be_given_its_environment(finished: Result, tmp_path: Path) -> None:
    path, env = tmp_path / "policy.safetensors", DeepSeaTreasure(time_limit=7)
    write_policy(path, finished.policies[0].network, SMALL | {"seeds": [3]}, 3)
    given = Policy.load(path, env=env)
    assert given.env is env
    given.save(path)
    with pytest.raises(InputError, match="give it again, as env="):
        _ = Policy.load(path).env
    assert Policy.load(path, env=env).env is env
