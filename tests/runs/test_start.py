"""Runs that start with the network of a policy."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import jax
import jaxtyping
import numpy as np
import pytest

import windvane
from tests.runs.small import STOPS, files_of, results_of, small
from windvane import InputError, Policy, TrainConfig
from windvane.cli import main
from windvane.experiments.runs.jobs import Job
from windvane.experiments.runs.paths import relative_path
from windvane.runs import runner
from windvane.runs.starting import OBJECT, architecture_of, open_start, start_network
from windvane.training.build import build

PQN: dict[str, Any] = {
    "num_envs": 8, "rollout": 4, "steps": 64, "width": 8, "depth": 2, "layer_norm": True,
    "agent_args": {"minibatches": 2}, "chunk": 32,
}  # fmt: skip


class Line(gymnasium.Env):
    """Two actions on a line of four places, worth time and energy."""

    observation_space = gymnasium.spaces.Box(0, 4, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    reward_space = gymnasium.spaces.Box(-4, 0, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.left = 4
        return np.float32([self.left]), {}

    def step(self, action: Any) -> Any:
        self.left = max(self.left - 1 - int(action), 0)
        reward = np.float32([-1, -((1 + action) ** 2)])
        return np.float32([self.left]), reward, self.left == 0, False, {}


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a policy of pqn on Deep Sea Treasure."""
    folder = tmp_path_factory.mktemp("pretrained") / "run"
    windvane.train(TrainConfig.preset("fast-dst", **PQN), out=folder, progress=False)
    return folder / "policies" / "seed-0.safetensors"


def leaves(tree: Any) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


def same(tree: Any, other: Any) -> bool:
    return all(map(np.array_equal, leaves(tree), leaves(other)))


def started(config: TrainConfig, policy: Policy, env: Any = None) -> Any:
    """The session of a training before its first step."""
    custom = {} if env is None else {"env": env}
    training = build(config, **custom)
    session = training.session()
    session.begin(None, 0, start_network(training, policy))
    return session


def cn(policy: Path | str, **changes: Any) -> TrainConfig:
    sizes = architecture_of(Policy.load(policy)) if Path(policy).exists() else {}
    return small(**({"start_from": str(policy)} | sizes | changes))


def test_runs_begin_with_exactly_that_network(policy: Path) -> None:
    given = Policy.load(policy)
    learner = started(cn(policy), given).state.learner
    for run in range(2):
        one = jax.tree.map(lambda leaf, run=run: leaf[run], learner)
        assert same(one.online, given.network)
        assert same(one.target, given.network)


def test_rollouts_begin_with_exactly_that_network(policy: Path) -> None:
    given = Policy.load(policy)
    config = TrainConfig.preset("fast-dst", **PQN, start_from=str(policy), seeds=(3,))
    session = started(config, given)
    assert same([leaf[0] for leaf in leaves(session.state.learner.online)], given.network)
    assert same(session.policy_network(0), given.network)


@pytest.mark.parametrize("agent", ["cn", "pqn"])
def test_gymnasium_runs_begin_with_exactly_that_network(agent: str) -> None:
    fast: dict[str, Any] = {"width": 8, "depth": 1, "steps": 80, "progress": False}
    first = windvane.train(Line(), "cn", capacity=64, batch_size=8, **fast).policies[0]
    rest = {"agent": "pqn", "replay": "none", "num_envs": 4, "rollout": 5} | {
        "agent_args": {"minibatches": 2}
    }
    config = first.config
    if agent == "pqn":
        values = config.to_json() | rest
        values |= {"start_from": "a", "seeds": 2}
        config = TrainConfig.from_json(values)
    else:
        config = TrainConfig.from_json(config.to_json() | {"start_from": "a", "seeds": 2})
    session = started(config, first, Line())
    state = session.state.learner
    second = [leaf[1] for leaf in leaves(state.online)]
    assert same(second, first.network)
    session.advance(0, 20, True, lambda: False)
    assert all(np.isfinite(leaf).all() for leaf in leaves(first.network))  # not donated
    session.close()


def test_the_configuration_keeps_the_path_and_the_checksum(policy: Path, tmp_path: Path) -> None:
    result = windvane.train(
        "dst", "cn", start_from=policy, observation="features", steps=80, capacity=100,
        out=tmp_path / "run", progress=False,
    )  # fmt: skip
    config = TrainConfig.load(tmp_path / "run" / "config.json")
    assert config == result.config
    assert config.start_from == str(policy)
    assert config.start_checksum == Policy.load(policy).checksum
    assert (config.width, config.depth, config.layer_norm, config.dueling) == (8, 2, True, False)


def test_older_configurations_have_no_such_setting() -> None:
    values = TrainConfig().to_json()
    for name in ("start_from", "start_checksum"):
        del values[name]
    assert TrainConfig.from_json(values) == TrainConfig()


def test_what_a_policy_of_another_precision_is_computed_in(policy: Path) -> None:
    given = Policy.load(policy)
    network = start_network(build(cn(policy, precision="bfloat16")), given)
    assert network.encoder.precision == "bfloat16"
    assert same(network, given.network)


@pytest.fixture
def interrupted(policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable:
    """Stops a training when so many steps are taken, in a folder whose policy may then vanish."""

    def stop(at: int) -> Path:
        copy, real = tmp_path / "policy.safetensors", runner.episode_rows
        shutil.copy(policy, copy)

        def rows(infos: Any, start: int, *rest: Any) -> Any:
            if start + len(infos.ended) == at:
                raise KeyboardInterrupt
            return real(infos, start, *rest)

        with monkeypatch.context() as patch:
            patch.setattr(runner, "episode_rows", rows)
            with pytest.raises(KeyboardInterrupt):
                windvane.train(cn(copy), out=tmp_path / "run", progress=False)
        return copy

    return stop


def test_interrupted_runs_end_as_others(interrupted: Any, tmp_path: Path) -> None:
    interrupted(STOPS[2]).unlink()  # a checkpoint needs it no more
    windvane.resume(tmp_path / "run", progress=False)
    begun = results_of(tmp_path / "run")
    copy = interrupted_before(tmp_path / "whole", interrupted, tmp_path)
    windvane.train(cn(copy), out=tmp_path / "again", progress=False)
    assert results_of(tmp_path / "again") == begun


def interrupted_before(folder: Path, interrupted: Any, tmp_path: Path) -> Path:
    shutil.rmtree(tmp_path / "run")
    copy = interrupted(STOPS[0])
    (tmp_path / "run").rename(folder)
    assert not list((folder / "checkpoints").glob("*.npz"))
    return copy


def test_before_a_checkpoint_the_policy_is_needed(
    interrupted: Any, policy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy, run = interrupted(STOPS[0]), tmp_path / "run"
    copy.unlink()
    assert main(["resume", str(run)]) == 2
    assert f"cannot read the policy {copy}" in capsys.readouterr().err
    other = Policy.load(policy)
    other.network = jax.tree.map(lambda leaf: leaf * 2, other.network)
    other.save(copy)
    assert main(["resume", str(run)]) == 2
    assert "its network's checksum differs" in capsys.readouterr().err
    assert main(["resume", str(run), "--start-from", str(policy)]) == 0
    whole = tmp_path / "whole"
    windvane.train(TrainConfig.load(run / "config.json"), start_from=policy, out=whole)
    mended, expected = files_of(run), files_of(whole)
    assert {name: data for name, data in mended.items() if name.endswith("parquet")} == {
        name: data for name, data in expected.items() if name.endswith("parquet")
    }


def test_an_object_must_be_given_again(policy: Path, tmp_path: Path) -> None:
    given = Policy.load(policy)
    result = windvane.train(cn("none", **architecture_of(given)), start_from=given, progress=False)
    assert result.config.start_from == OBJECT
    with pytest.raises(InputError, match="was an object made in Python"):
        windvane.train(result.config, progress=False)
    with pytest.raises(InputError, match="must be a policy or the path of a saved one, not 3"):
        open_start(3)


LINE = "train --env dst --observation features --agent cn --steps 80 --capacity 100 --start-from "
BAD = {
    "{policy} --width 16": "has width 8, not 16: leave these settings out",
    "{policy} --dueling --no-layer-norm": (
        "has dueling false, not true and layer_norm true, not false: leave these settings out"
    ),
    "{policy} --agent mo": "start_from is for agents with one network that is given the weights",
    "{policy} --agent uvfa": "and the agent uvfa has another",
    "{policy} --observation pixels": "observations of shape (2,), not (2, 48, 48, 3)",
    "{policy} --env minecart": "has a number of actions of 4, not 6",
    "{here}/nothing": "cannot read the policy {here}/nothing",
    "{here}": "cannot read the policy {here}: Is a directory",
    "{here}/bad": "{here}/bad is not a policy",
    "{here}/spoilt": "the policy {here}/spoilt is damaged: its network's checksum is wrong",
    "{here}/mo": "the agent mo of {here}/mo has another",
}


@pytest.mark.parametrize("line", BAD)
def test_what_is_refused(
    line: str, policy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad").write_bytes(b"nothing of the kind")
    data = bytearray(policy.read_bytes())
    data[-2] ^= 1
    (tmp_path / "spoilt").write_bytes(data)
    if line.endswith("mo"):
        small_mo = small(agent="mo", replay="standard", steps=80, seeds=1)
        windvane.train(small_mo, progress=False).policies[0].save(tmp_path / "mo")
    names = {"policy": policy, "here": tmp_path}
    full = [*LINE.split(), *line.format(**names).split(), "--out", str(tmp_path / "out")]
    assert main(full) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert BAD[line].format(**names) in said, said
    assert said.count("windvane:") == 1
    assert not (tmp_path / "out").exists()


def test_other_objectives_are_refused(policy: Path) -> None:
    given = Policy.load(policy)
    given.spec = replace(given.spec, objectives=("a", "b"))
    with pytest.raises(InputError, match=r"the objectives a, b, not treasure, time"):
        start_network(build(cn(policy)), given)


def test_settings_that_cannot_be_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(InputError, match="must be the path of a saved policy, not 3"):
        TrainConfig(start_from=3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="start_checksum is for runs with start_from"):
        TrainConfig(start_checksum="a" * 64)
    with pytest.raises(InputError, match="must be a SHA-256 sum or None, not 'x'"):
        TrainConfig(start_from="a", start_checksum="x")


def test_results_stores_tell_such_runs_apart() -> None:
    first, second = (TrainConfig(seeds=(0,), start_from=name) for name in "ab")
    plain = TrainConfig(seeds=(0,))
    assert len({relative_path(run) for run in (plain, first, second)}) == 3
    assert len({Job(run).name for run in (plain, first, second)}) == 3
    # As before there was such a setting.
    assert str(relative_path(plain)) == "runs/minecart/cn-der-sparse/5e5fbf8b21-seed-0.parquet"
    assert Job(plain).name == "minecart-cn-der-185c4f9061"
