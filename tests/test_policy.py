"""Trained policies: what they answer, files of them, and how good they are."""

import json
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from safetensors.numpy import load, save, save_file

from tests.runs.small import small
from windvane import InputError, Policy, optimal_value
from windvane.agents.multi_network import MultiNetwork, PolicySet
from windvane.envs.deep_sea_treasure import DeepSeaTreasure
from windvane.evaluation import confidence, evaluate
from windvane.oracle import coverage_set
from windvane.policy_files import FORMAT
from windvane.runs.result import Result
from windvane.training.build import build

HERE, WEIGHTS = np.asarray([2, 1]), [0.4, 0.6]
SPEC = DeepSeaTreasure().spec.to_json()


def test_a_policy_is_greedy(finished: Result) -> None:
    policy = finished.policies[0]
    q = policy.q_values(HERE, WEIGHTS)
    assert q.shape == (4, 2)
    assert policy.act(HERE, WEIGHTS) == int(np.argmax(q @ WEIGHTS))


def test_batches(finished: Result) -> None:
    policy = finished.policies[0]
    seen = np.asarray([[0, 0], [2, 1], [1, 3]])
    weights = np.asarray([[1.0, 0.0], [0.4, 0.6], [0.0, 1.0]])
    together = policy.act(seen, weights)
    assert together.tolist() == [policy.act(o, w) for o, w in zip(seen, weights, strict=True)]
    assert policy.act(seen, WEIGHTS).tolist() == [policy.act(o, WEIGHTS) for o in seen]
    assert policy.q_values(seen, weights).shape == (3, 4, 2)


def test_the_way_to_a_file_and_back(finished: Result, tmp_path: Path) -> None:
    policy = finished.policies[1]
    policy.save(tmp_path / "policy.safetensors")
    back = Policy.load(tmp_path / "policy.safetensors")
    assert back.config == finished.config.runs[1]
    assert back.seed == 5
    assert (back.q_values(HERE, WEIGHTS) == policy.q_values(HERE, WEIGHTS)).all()


def header(**changes: Any) -> dict[str, str]:
    values = {"format": FORMAT, "config": small().to_json(), "spec": SPEC, "sizes": {}}
    return {"windvane": json.dumps(values | changes)}


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        (None, "has no header"),
        ({"windvane": "{"}, "is not a policy"),
        ({"windvane": "[1]"}, "has no header"),
        (header(format=FORMAT + 1), "written by a newer Windvane"),
        (header(config={"format": 99}), "written by a newer Windvane"),
        (header(config=None), "is no configuration"),
        (header(), "another network than its configuration"),
        (header(spec=None), "does not describe an environment"),
        (header(spec=SPEC | {"stack": 0}), "does not describe an environment"),
        (header(sizes=None), "sizes of its network that cannot be meant"),
        (header(sizes={"policies": 0}), "sizes of its network that cannot be meant"),
        (header(sizes={"policies": True}), "sizes of its network that cannot be meant"),
        (header(seed="one"), "another network than its configuration"),
    ],
)
def test_bad_files(metadata: dict[str, str] | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "policy.safetensors"
    save_file({"array0000": np.zeros(3, np.float32)}, path, metadata)
    with pytest.raises(InputError, match=message):
        Policy.load(path)


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read the policy"):
        Policy.load(tmp_path / "none")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(InputError, match="is not a policy"):
        Policy.load(tmp_path / "text")


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def identity(policy: Policy) -> tuple[Any, ...]:
    return policy.config, policy.spec, policy.seed, policy.step, policy.checksum


def refusal(path: Path) -> str | None:
    try:
        Policy.load(path)
    except InputError as error:
        return str(error)
    return None


def test_a_flipped_bit_is_noticed_or_changes_nothing(finished: Result, tmp_path: Path) -> None:
    path = tmp_path / "policy.safetensors"
    finished.policies[0].save(path)
    data, expected = path.read_bytes(), identity(Policy.load(path))
    header = int.from_bytes(data[:8], "little") + 8
    draw = np.random.default_rng(0)
    bits = [*draw.choice(8 * header, 150, replace=False), *draw.choice(8 * len(data), 30)]
    # Digits of the discount factor, of the seed and of the steps, too.
    for name in (b"gamma", b"seed", b"step", b"num_actions", b"high"):
        place = data.index(b'\\"' + name + b'\\"')
        digit = next(i for i in range(place, header) if data[i : i + 1].isdigit())
        bits.append(8 * digit)
    refused = 0
    for bit in bits:
        path.write_bytes(flipped(data, int(bit)))
        said = refusal(path)
        refused += said is not None
        if said is None:
            assert identity(Policy.load(path)) == expected, bit
        else:
            assert str(path) in said
            assert "\n" not in said
    assert refused > len(bits) - 10


def test_policies_of_earlier_versions_have_fewer_checksums(
    finished: Result, tmp_path: Path
) -> None:
    path = tmp_path / "policy.safetensors"
    policy = finished.policies[0]
    policy.save(path)
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    whole = json.loads(json.loads(data[8 : 8 + size])["__metadata__"]["windvane"])
    for name in ("header_checksum", "checksum"):
        del whole[name]
        path.write_bytes(save(load(data), {"windvane": json.dumps(whole)}))
        assert identity(Policy.load(path)) == identity(policy)


@pytest.mark.parametrize(
    ("observation", "weights", "message"),
    [
        ([1, 2, 3], WEIGHTS, "must have the shape"),
        ([0.5, 1.0], WEIGHTS, "must be of int32, not float64"),
        ([1, 2], [0.5, 0.6], "must sum to 1"),
        ([1, 2], [0.2, 0.3, 0.5], "must be 2 numbers"),
        ([[1, 2]] * 3, [WEIGHTS] * 2, "one for each of 3"),
    ],
)
def test_bad_questions(
    observation: Any,
    weights: Any,
    message: str,
    finished: Result,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(InputError, match=message):
        finished.policies[0].act(observation, weights)


def test_of_a_set_the_best_for_the_weights_answers(tmp_path: Path) -> None:
    config = small(agent="mn")
    training = build(config)
    learner = training.learner
    start = eqx.filter_jit(learner.init)
    runs = [start(jax.random.key(seed), jnp.ones((1, 2)) / 2) for seed in range(3)]
    held = jnp.asarray([True, False, True])
    values = jnp.asarray([[9.0, -19.0], [99.0, 99.0], [-19.0, 9.0]])
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(run.online for run in runs))
    run = eqx.tree_at(lambda s: s.agent_state, runs[1], PolicySet(stacked, values, held))
    assert isinstance(learner.agent, MultiNetwork)
    with pytest.raises(InputError, match="needs an observation at the start"):
        learner.policy_network(run, None)
    network = learner.policy_network(run, jnp.zeros(2, jnp.int32))
    policy = Policy(learner.spec, learner.agent, network, config, 0, world=training.world)
    policy.save(tmp_path / "policy.safetensors")
    back = Policy.load(tmp_path / "policy.safetensors")
    for weights, who in (([1.0, 0.0], 0), ([0.5, 0.5], 1), ([0.0, 1.0], 2)):
        expected = runs[who].online(jnp.asarray(HERE, jnp.int32), jnp.asarray(weights))
        for one in (policy, back):
            np.testing.assert_allclose(one.q_values(HERE, weights), expected, rtol=1e-5)
            assert one.act(HERE, weights) == np.argmax(expected @ jnp.asarray(weights))


def test_evaluation(finished: Result) -> None:
    policy, weights = finished.policies[0], np.asarray(WEIGHTS)
    played = evaluate(policy, weights, episodes=3)
    best = float(optimal_value(policy.env, 0.95, weights)) * 0.01
    assert played.optimal == pytest.approx(best)
    assert played.returns.shape == (1, 3, 2)
    # Nothing is random in Deep Sea Treasure: a greedy episode, step by step, is any of them.
    state, returns, length = policy.env.reset(jax.random.key(0)), np.zeros(2), 0
    ended = False
    while not ended and length < policy.env.time_limit:
        action = policy.act(policy.env.observe(state), weights)
        state, reward, done = policy.env.step(state, jnp.asarray(action), jax.random.key(0))
        returns += 0.01 * 0.95**length * np.asarray(reward)
        ended, length = bool(done), length + 1
    assert played.lengths.tolist() == [[length] * 3]
    assert played.terminated.tolist() == [[ended] * 3]
    assert played.never_ending.tolist() == [not ended]
    np.testing.assert_allclose(played.returns[0], np.tile(returns, (3, 1)), atol=1e-5)
    np.testing.assert_allclose(played.utilities, np.full((1, 3), returns @ weights), atol=1e-5)
    np.testing.assert_allclose(played.regret, best - returns @ weights, atol=1e-5)
    assert (played.regret >= -1e-6).all()
    assert len(coverage_set(policy.env, 0.95)) == 10


def test_confidence() -> None:
    # 2.776 is Student's t for 4 degrees of freedom.
    values = np.asarray([1.0, 2.0, 3.0, 4.0, 5.0])
    assert confidence(values) == pytest.approx(2.776 * np.sqrt(2.5 / 5), rel=1e-3)
    assert np.isnan(confidence(np.asarray([1.0])))
