"""Many environments per run: chunks and neighbours change nothing, records are right, runs resume
bit for bit and fail alone.
"""

from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.runs.crashes import stop_after
from tests.runs.small import results_of, same_records
from windvane.agents.conditioned import ConditionedNetwork
from windvane.agents.pqn import PQN
from windvane.envs.deep_sea_treasure import DeepSeaTreasure
from windvane.errors import InputError
from windvane.evaluation import evaluate
from windvane.policy import Policy
from windvane.runs.runner import resume, train
from windvane.runs.stopping import TrainingStopped
from windvane.training.build import build
from windvane.training.config import TrainConfig
from windvane.training.fused import StepInfo
from windvane.training.parallel import RECORDED

ENVS, ROLLOUT = 8, 4
CYCLE = ENVS * ROLLOUT
STEPS = 12 * CYCLE


def small(**changes: Any) -> TrainConfig:
    settings = {
        "steps": STEPS, "num_envs": ENVS, "rollout": ROLLOUT, "chunk": 3 * CYCLE, "width": 8,
        "agent_args": {"minibatches": 2}, "seeds": (3, 5), "epsilon_steps": 200,
        "checkpoint_seconds": 0.0, "env_args": {"time_limit": 6},
    }  # fmt: skip
    return TrainConfig.preset("fast-dst", **(settings | changes))


def advanced(config: TrainConfig, lengths: list[int]) -> tuple[Any, StepInfo]:
    """The state of all runs, and the infos of all steps, after some chunks."""
    session = build(config).session()
    session.begin(None, 0)
    start, parts = 0, []
    for cycles in lengths:
        stop = start + cycles * CYCLE
        parts.append(jax.tree.map(np.asarray, session.advance(start, stop, True, lambda: False)))
        start = stop
    return session.state, jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)


def same(a: Any, b: Any) -> bool:
    plain = [
        [jax.random.key_data(x) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else x
         for x in jax.tree.leaves(tree)]
        for tree in (a, b)
    ]  # fmt: skip
    return all(np.array_equal(x, y) for x, y in zip(*plain, strict=True))


@pytest.fixture(scope="module")
def whole() -> tuple[Any, StepInfo]:
    return advanced(small(), [6, 6])


def test_chunks_change_nothing(whole: Any) -> None:
    state, infos = advanced(small(), [4, 4, 4])
    assert same(state, whole[0])
    assert same(infos, whole[1])


def test_neighbours_change_nothing(whole: Any) -> None:
    state, infos = advanced(small(seeds=(5,)), [6, 6])
    assert same(state, jax.tree.map(lambda leaf: leaf[1:], whole[0]))
    assert same(infos, jax.tree.map(lambda leaf: leaf[:, 1:], whole[1]))


def test_seeds_and_environments_differ(whole: Any) -> None:
    weights = np.asarray(whole[0].weights).reshape(-1, 2)
    assert len(np.unique(weights, axis=0)) == len(weights)
    kernels = np.asarray(whole[0].learner.online.head.values.kernel)
    assert not np.array_equal(kernels[0], kernels[1])


def test_an_episode_has_one_weight_vector(whole: Any) -> None:
    infos = whole[1]
    ended = infos.ended.reshape(-1, ENVS, 2)
    weights = infos.weights.reshape(-1, ENVS, 2, 2)
    changed = (weights[1:] != weights[:-1]).any(-1)
    assert changed.any()
    assert np.array_equal(changed, ended[:-1])


def test_episodes_are_recorded_with_their_steps_and_returns(whole: Any) -> None:
    result = train(small(), progress=False)
    records, infos = result.records, whole[1]
    assert len(records["step"]) == infos.ended.sum()
    assert records["step"].max() <= STEPS
    # An episode that ended at step s of environment e ended in row s - 1: rows follow each other.
    rows = records["step"] - 1
    assert infos.ended[rows, records["run"]].all()
    assert np.array_equal(infos.length[rows, records["run"]], records["length"])
    # A dive of n steps costs the discounted sum of so many times -1, in hundredths.
    lengths = records["length"].astype(float)
    cost = -0.01 * (1 - 0.95**lengths) / (1 - 0.95)
    np.testing.assert_allclose(records["return_1"], cost, rtol=1e-5)
    assert (records["regret"] > -1e-6).all()


def test_of_many_environments_some_are_recorded() -> None:
    envs = 2 * RECORDED
    config = small(num_envs=envs, steps=envs * ROLLOUT * 2, chunk=10**6, seeds=1)
    result = train(config, progress=False)
    steps = result.records["step"]
    assert steps.size
    assert ((steps - 1) % envs < RECORDED).all()
    assert steps.max() > envs * ROLLOUT
    assert result.records["episode"].tolist() == list(range(steps.size))


def test_a_run_is_resumed_bit_for_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = train(small(), out=tmp_path / "whole", progress=False)
    stop_after(monkeypatch, [6 * CYCLE])
    with pytest.raises(TrainingStopped):
        train(small(), out=tmp_path / "cut", progress=False)
    again = resume(tmp_path / "cut", progress=False)
    assert same_records(whole.records, again.records)
    assert results_of(tmp_path / "whole") == results_of(tmp_path / "cut")
    loaded = Policy.load(tmp_path / "cut" / "policies" / "seed-5.safetensors")
    env = DeepSeaTreasure(time_limit=6, observation="features")
    seen = np.asarray(env.observe(env.reset(jax.random.key(0))))
    q = whole.policies[1].q_values(seen, [0.3, 0.7])
    assert np.array_equal(loaded.q_values(seen, [0.3, 0.7]), q)


def test_a_run_that_diverges_fails_alone() -> None:
    session = build(small()).session()
    session.begin(None, 0)
    session.advance(0, 3 * CYCLE, True, lambda: False)
    broken = session.state.learner.online.head.values.bias.at[0].set(jnp.nan)
    session._runs = eqx.tree_at(  # type: ignore[attr-defined]
        lambda s: s.learner.online.head.values.bias, session.state, broken
    )
    before = np.asarray(session.state.learner.online.head.features.kernel)
    session.advance(3 * CYCLE, 6 * CYCLE, True, lambda: False)
    after = np.asarray(session.state.learner.online.head.features.kernel)
    assert session.failed.tolist() == [True, False]
    assert np.array_equal(before[0], after[0])
    assert not np.array_equal(before[1], after[1])
    assert np.isfinite(after).all()


def test_it_learns_all_of_deep_sea_treasure() -> None:
    config = TrainConfig.preset(
        "fast-dst", num_envs=64, steps=120 * 64 * 32, epsilon_steps=100_000, width=64, chunk=10**6,
        agent_args={"minibatches": 8, "epochs": 4},
    )  # fmt: skip
    result = train(config, progress=False)
    found = evaluate(result.policies[0])
    assert found.regret.mean() < 0.01
    assert found.terminated.all()


def test_a_gymnasium_environment_through_the_host() -> None:
    result = train(
        "mo:deep-sea-treasure-v0", "pqn", steps=8 * 16 * 6, num_envs=8, rollout=16, width=8,
        seeds=2, chunk=256, progress=False, epsilon_steps=300,
    )  # fmt: skip
    records = result.records
    assert records["step"].max() <= 8 * 16 * 6
    assert len(result.policies) == 2
    assert np.isfinite(records["loss"]).all()
    assert records["loss"].max() > 0
    # Each copy has weights of its own.
    first = records["weights_0"][(records["run"] == 0) & (records["step"] < 400)]
    assert len(np.unique(first)) == len(first)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"replay": "der"}, "rollout 4 does not go with replay der"),
        ({"rollout": 0}, "rollout 0 does not go with replay none"),
        ({"steps": STEPS + 1}, f"a multiple of {CYCLE}, the steps of a cycle, such as {STEPS}"),
        ({"agent_args": {"minibatches": 5}}, f"minibatches must divide {CYCLE}"),
        ({"agent": "cn", "agent_args": {}}, "learns from replay: set a replay rule"),
        ({"rollout": -1}, "rollout"),
    ],
)
def test_settings_that_do_not_fit(changes: Any, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        build(small(**changes))


def test_arguments_come_on_top_of_those_of_the_preset() -> None:
    args = TrainConfig.preset("fast-minecart", agent_args={"epochs": 3}).agent_args
    assert dict(args) == {"epochs": 3, "minibatches": 32, "td_lambda": 0.75}
    other = TrainConfig.preset("fast-minecart", agent="mn", agent_args={"kappa": 0.1}, steps=8192)
    assert dict(other.agent_args) == {"kappa": 0.1}


def test_objects_start_from_what_suits_their_kind() -> None:
    env = DeepSeaTreasure(observation="features")
    with pytest.raises(InputError, match="steps must be a multiple"):
        train(env, PQN(), steps=7, progress=False)
    with pytest.raises(InputError, match="num_envs is for Gymnasium"):
        train(env, ConditionedNetwork(), num_envs=4, progress=False)
