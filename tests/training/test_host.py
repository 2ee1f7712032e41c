"""The host driver: the same learner in Gymnasium environments, and what is refused there."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import windvane
from tests.envs import foreign
from tests.strangers import parts
from windvane.errors import InputError
from windvane.live import LiveWeights
from windvane.runs.records import read_records
from windvane.runs.runner import resume, train
from windvane.runs.stopping import TrainingStopped
from windvane.training.config import TrainConfig

SMALL: dict[str, Any] = {
    "steps": 240, "learning_starts": 40, "chunk": 40, "width": 8, "depth": 1, "batch_size": 8,
    "capacity": 100, "progress": False, "replay": "standard", "epsilon_steps": 100,
}  # fmt: skip


def trained(env: Any, agent: str = "cn", **changes: Any) -> Any:
    return train(env, agent, **(SMALL | changes))


def same_episodes(one: Any, other: Any) -> None:
    for name in ("run", "seed", "episode", "step", "length", "weights_0", "weights_1", "return_1"):
        np.testing.assert_array_equal(one.records[name], other.records[name], err_msg=name)
    for name in ("return_0", "regret", "utility", "loss", "epsilon"):
        np.testing.assert_allclose(one.records[name], other.records[name], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("replay", ["der", pytest.param("exp", marks=pytest.mark.slow)])
def test_both_drivers_agree_on_the_same_problem(replay: str) -> None:
    """Same seeds, same draws: the same episodes, but for rounding."""
    small = {name: value for name, value in SMALL.items() if name != "progress"}
    settings = small | {"seeds": 2, "schedule_args": {"every": 60}, "replay": replay}
    native = TrainConfig.preset("quick-dst", **settings)
    fused = train(native, progress=False)
    host = train(
        replace(native, env="windvane/DeepSeaTreasure-v0", observation="auto", one_hot=0),
        progress=False,
    )
    assert len(fused.records["step"]) > 10
    same_episodes(host, fused)


SLOW_COPIES = [pytest.param(kind, marks=pytest.mark.slow) for kind in ("own", "async")]


@pytest.mark.parametrize("vector", ["list", *SLOW_COPIES])
def test_several_copies_have_their_own_episodes(vector: str) -> None:
    env = {"own": "windvane/DeepSeaTreasure-v0"}.get(vector, "mo:deep-sea-treasure-v0")
    mode = "async" if vector == "async" else "sync"
    replay = "standard" if vector == "async" else "der"
    result = trained(env, num_envs=4, vector_mode=mode, schedule="regular", replay=replay)
    steps, lengths = result.records["step"], result.records["length"]
    assert len(np.unique(steps)) == len(steps)
    # Four episodes at a time: together they are as long as the run, but for the last four.
    assert 240 - 4 * 100 <= lengths.sum() <= 240
    assert np.array_equal(result.records["episode"], np.arange(len(steps)))


@pytest.mark.parametrize(
    ("agent", "replay", "env", "changes"),
    [
        ("cn", "der", "mo:four-room-v0", {}),
        pytest.param("uvfa", "exp", "mo:fruit-tree-v0", {}, marks=pytest.mark.slow),
        ("mn", "sel", "mo:breakable-bottles-v0", {}),
        ("mo", "standard", "mo:minecart-rgb-v0", {"frame_size": 16, "frame_stack": 2}),
        pytest.param(
            "naive", "der", "mo:resource-gathering-v0", {"num_envs": 2}, marks=pytest.mark.slow
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
def test_a_slice_of_all_combinations(agent: str, replay: str, env: str, changes: dict) -> None:
    result = trained(env, agent, replay=replay, **changes)
    assert not result.failed
    policy = result.policies[0]
    seen = np.zeros(policy.spec.observation_shape, policy.spec.frame.dtype)
    weights = np.full(policy.spec.num_objectives, 1 / policy.spec.num_objectives)
    assert 0 <= policy.act(seen, weights) < policy.spec.num_actions


@pytest.mark.parametrize(
    ("env", "sentence"),
    [
        (foreign.ScalarReward, "need vectors: give the environment a reward_space"),
        (foreign.Continuous, "wrap the environment to have a Discrete action space"),
        (foreign.ListObservation, "observations must be Box, Discrete, MultiDiscrete"),
    ],
)
def test_an_environment_that_cannot_be_trained_on(env: Any, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=sentence):
        trained(env(), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("env", "sentence"),
    [
        (foreign.InfiniteReward, "returned the reward .*inf.*: make its rewards finite"),
        (foreign.ShortReward, "a vector of 2 numbers"),
        (foreign.ChangingShape, r"the shape \(3,\), and the observation space says \(2,\)"),
        (foreign.NotFinite, "an observation that is not finite"),
        (foreign.Raising, "raised ZeroDivisionError in step: the sensor is broken"),
    ],
)
def test_an_environment_that_goes_wrong_loses_nothing(
    env: Any, sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        trained(env(), out=tmp_path / "run")
    assert "\n" not in str(caught.value)
    records = read_records(tmp_path / "run")
    assert records["length"].tolist() == [10, 10]


def test_an_environment_that_goes_wrong_in_a_later_run_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the copy is broken") as caught:
        trained(foreign.BrokenCopy(), seeds=2, out=tmp_path / "run")
    assert "\n" not in str(caught.value)


def test_copies_whose_weights_never_change() -> None:
    """Episodes that end within a cycle enter the buffer at once, and the network acts on."""
    result = trained(
        "mo:deep-sea-treasure-v0", replay="der", num_envs=2, schedule="0.5,0.5", epsilon_steps=1,
        update_interval=8,
    )  # fmt: skip
    assert len(result.records["step"]) > 4


def test_an_interrupted_run_resumes_with_new_episodes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from windvane.training import host

    real, calls = host.HostRun._one_step, []

    def step(self: Any) -> Any:
        import signal

        calls.append(1)
        if len(calls) == 75:
            signal.raise_signal(signal.SIGINT)
        return real(self)

    monkeypatch.setattr(host.HostRun, "_one_step", step)
    with pytest.raises(TrainingStopped, match="stopped at step 75; resume with: windvane resume"):
        trained("mo:deep-sea-treasure-v0", replay="der", out=tmp_path / "run")
    result = resume(tmp_path / "run", progress=True)
    assert "its environment cannot be saved: the episodes that were open begin anew" in (
        capsys.readouterr().err.replace("\n", " ")
    )
    assert result.records["step"].max() <= 240
    assert (np.diff(result.records["step"]) > 0).all()
    assert np.array_equal(result.records["episode"], np.arange(len(result.records["step"])))


def test_an_object_is_recognised_again(tmp_path: Path) -> None:
    trained(parts.Shop(3), out=tmp_path / "run")
    with pytest.raises(InputError, match=r"was an object made in Python .*Shop.* give it again"):
        windvane.Policy.load(tmp_path / "run/policies/seed-0.safetensors").world  # noqa: B018
    policy = windvane.Policy.load(tmp_path / "run/policies/seed-0.safetensors", env=parts.Shop(3))
    assert policy.act(np.asarray([0, 0], np.int32), [0.5, 0.5]) in (0, 1)


def test_a_known_environment_is_stored_by_name(tmp_path: Path) -> None:
    import mo_gymnasium

    result = trained(mo_gymnasium.make("deep-sea-treasure-v0"), out=tmp_path / "run")
    assert result.config.env == "mo:deep-sea-treasure-v0"
    assert not result.config.custom
    assert np.isfinite(result.records["regret"]).all()


def test_a_hundred_live_weight_changes_are_followed() -> None:
    live = LiveWeights([1.0, 0.0])
    seen: list[float] = []

    class Changing(foreign.Walk):
        """Somebody moves the weights in the middle of every episode."""

        def step(self, action: Any) -> Any:
            outcome = super().step(action)
            if self.time == 5:
                share = (self.episode * 7 % 100) / 100
                live.set([share, 1 - share])
                seen.append(share)
            return outcome

    result = trained(Changing(), schedule=live, steps=1040, learning_starts=1000)
    records = result.records
    assert len(records["step"]) == 104
    assert records["length"].tolist() == [10] * 104
    assert records["weights_0"][0] == 1.0
    # What was said during one episode holds for the next.
    np.testing.assert_allclose(records["weights_0"][1:], seen[:103], atol=1e-6)


def test_live_weights_at_the_next_step_and_from_a_function() -> None:
    clock = {"step": 0}

    def weights(episode: int, step: int) -> list[float]:
        clock["step"] = step
        return [episode % 2, 1 - episode % 2]

    result = trained(foreign.Walk(), schedule=weights)
    assert result.records["weights_0"].tolist() == [float(e % 2) for e in range(24)]
    live = LiveWeights([1.0, 0.0], immediately=True)

    class Changing(foreign.Walk):
        def step(self, action: Any) -> Any:
            if self.episode == 2 and self.time == 4:
                live.set([0.25, 0.75])
            return super().step(action)

    result = trained(Changing(), schedule=live)
    assert result.records["weights_0"].tolist() == [1.0] + [0.25] * 23


def test_live_weights_between_the_chunks_of_a_native_environment(tmp_path: Path) -> None:
    path = tmp_path / "weights.txt"
    path.write_text("0.5,0.5")
    live = LiveWeights.from_file(path)
    result = trained(parts.Corridor(), schedule=live)
    assert set(result.records["weights_0"].tolist()) == {0.5}
    result = trained(parts.Corridor(), weights=[0.25, 0.75])
    assert set(result.records["weights_0"].tolist()) == {0.25}
    with pytest.raises(InputError, match="is for 3 objectives, and the environment has 2"):
        trained(parts.Corridor(), weights=[0.2, 0.3, 0.5])


def test_the_best_policy_outlives_the_training(tmp_path: Path) -> None:
    """Training donates its arrays: a policy that is kept must have its own."""
    result = trained(foreign.Walk(), evaluate_every=80)
    assert result.evaluations is not None
    assert result.evaluations["step"].tolist() == [80, 160, 240]
    assert result.best is not None
    seen = np.zeros(2, np.float32)
    assert result.best[0].act(seen, [0.5, 0.5]) in (0, 1)


def test_frame_stacks_and_time_limits() -> None:
    result = trained(foreign.Walk(), frame_stack=3, time_limit=7)
    assert set(result.records["length"].tolist()) == {7}
    assert result.policies[0].spec.observation_shape == (3, 2)


def test_what_is_for_gymnasium_alone_is_refused_elsewhere() -> None:
    with pytest.raises(InputError, match="num_envs is for Gymnasium environments"):
        trained("dst", observation="features", num_envs=4)
    with pytest.raises(InputError, match="leave observation at auto"):
        trained("mo:deep-sea-treasure-v0", observation="pixels")


def test_a_custom_vector_environment() -> None:
    env = gymnasium.make_vec(
        "windvane/DeepSeaTreasure-v0",
        num_envs=2,
        vectorization_mode="vector_entry_point",
        autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP,
    )
    result = trained(env, num_envs=2)
    assert len(result.records["step"]) > 0
    with pytest.raises(InputError, match="2 copies, and 1"):
        trained(env)


def test_a_policy_answers_about_raw_observations() -> None:
    class Numbered(foreign.Walk):
        """Observations are the numbers from 2 to 12."""

        observation_space = gymnasium.spaces.Discrete(11, start=2)

        def seen(self) -> Any:
            return self.time + 2

    policy = trained(Numbered()).policies[0]
    assert policy.act(5, [0.5, 0.5]) in (0, 1)
    assert policy.act(np.asarray([[2], [12]]), [0.5, 0.5]).shape == (2,)
