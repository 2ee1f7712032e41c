"""Environments of others: what they must declare, what they need not, and what is said if not."""

import runpy
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from windvane import oracle, rendering
from windvane.envs.checking import check_environment
from windvane.envs.deep_sea_treasure import DeepSeaTreasure
from windvane.envs.environment import (
    Environment,
    PixelObservations,
    Renderable,
    require_observation,
    require_pixels,
    require_renderable,
)
from windvane.envs.episodes import reset_episode, rollout, step_autoreset
from windvane.envs.gymnasium import WindvaneEnv
from windvane.envs.gymnasium_vector import WindvaneVectorEnv
from windvane.envs.minecart import Minecart
from windvane.errors import InputError
from windvane.oracle.coverage import CoverageSet, stack_plans
from windvane.runs.runner import train

KEY = jax.random.key(0)
EXAMPLE = Path(__file__).parents[2] / "examples" / "native_environment.py"


class Walk(Environment[Any]):
    """Two steps to the end; the second action pays another objective."""

    goal: int = 2

    num_actions = 2
    objective_names = ("near", "far")
    feature_bounds = np.zeros(1, np.float32), np.full(1, 9, np.float32)

    def reset(self, key: Any) -> Any:
        return jnp.zeros((), jnp.int32)

    def step(self, state: Any, action: Any, key: Any) -> Any:
        return state + 1, jax.nn.one_hot(action, 2), state + 1 >= self.goal

    def features(self, state: Any) -> Any:
        return state[None].astype(jnp.float32)


def test_what_need_not_be_declared() -> None:
    env = Walk()
    assert env.time_limit == 1000
    assert env.observation == "features"
    assert env.action_names == ()
    assert env.reward_bounds[0].tolist() == [-np.inf] * 2
    assert env.reward_bounds[1].tolist() == [np.inf] * 2
    assert env.spec.num_actions == 2
    assert env.spec.frame.high == (9.0,)
    assert check_environment(env) == env.spec
    assert not isinstance(env, PixelObservations | Renderable)


def test_declarations_may_be_fields_or_properties() -> None:
    class Any4(Walk):
        num_actions: int = eqx.field(static=True, kw_only=True)
        time_limit: int = eqx.field(static=True, default=7)

        @property
        def reward_bounds(self) -> tuple[np.ndarray, np.ndarray]:
            return np.zeros(2, np.float32), np.ones(2, np.float32)

    env = Any4(num_actions=4)
    assert (env.spec.num_actions, env.time_limit) == (4, 7)
    assert env.reward_bounds[1].tolist() == [1, 1]
    with pytest.raises(TypeError, match="num_actions"):
        Any4()

    class Named(Walk):
        action_names = ("a", "b", "c")
        num_actions = Environment.__dict__["num_actions"]

    assert Named().num_actions == 3


def test_rollouts_and_gymnasium() -> None:
    env = Walk(goal=3)
    transitions = rollout(env, lambda state, key: jnp.asarray(1), KEY, 6)
    assert transitions.terminated.tolist() == [False, False, True] * 2
    _, first = eqx.filter_jit(step_autoreset)(env, reset_episode(env, KEY), jnp.asarray(0), KEY)
    assert first.reward.tolist() == [1, 0]
    single = WindvaneEnv(env)
    assert single.reset(seed=0)[0].tolist() == [0]
    assert single.step(1)[1].tolist() == [0, 1]
    many = WindvaneVectorEnv(env, 3, max_episode_steps=2)
    many.reset(seed=0)
    many.step(np.zeros(3, int))
    assert many.step(np.zeros(3, int))[3].all()
    # A Python number in another environment is another number.
    other = WindvaneEnv(Walk(goal=1))
    other.reset(seed=0)
    assert other.step(0)[2]


def test_pixels_and_pictures_that_are_not_there() -> None:
    env = Walk()
    for refuses, sentence in {
        lambda: require_pixels(env): "Walk has no pixel observations",
        lambda: require_observation(env, "pixels"): "Walk has no pixel observations",
        lambda: require_observation(env, "smell"): "unknown observation 'smell'",
        lambda: require_observation(Minecart(), "pixels"): "this Minecart shows features",
        lambda: require_renderable(env): "Walk has no pictures",
        lambda: WindvaneEnv(env, render_mode="rgb_array"): "Walk has no pictures",
        lambda: WindvaneVectorEnv(env, 2, render_mode="rgb_array"): "Walk has no pictures",
        lambda: rendering.film(env, rendering.RandomPlan(2, KEY), KEY, 3, 48): "no pictures",
        lambda: train(env, observation="pixels", steps=8): "Walk has no pixel observations",
        lambda: train(DeepSeaTreasure(), observation="pixels", steps=8): "shows features",
    }.items():
        with pytest.raises(InputError, match=sentence) as caught:
            refuses()
        assert "\n" not in str(caught.value)


def test_pixels_are_more_than_a_word() -> None:
    class Claims(Walk):
        observation = "pixels"

    with pytest.raises(InputError, match="Claims has no pixel observations"):
        Claims()


METHODS = ("reset", "step", "features")


@pytest.mark.parametrize("missing", METHODS)
def test_the_three_methods_are_needed(missing: str) -> None:
    methods = {name: Walk.__dict__[name] for name in METHODS if name != missing}
    kind = type("Lacking", (Environment,), methods)
    with pytest.raises(TypeError, match=missing):
        kind()


def test_objectives_and_features_are_needed() -> None:
    methods = {name: Walk.__dict__[name] for name in METHODS}
    with pytest.raises(InputError, match="Lacking must declare its objective_names"):
        type("Lacking", (Environment,), methods)()
    more = methods | {"objective_names": ("one",)}
    with pytest.raises(InputError, match="Lacking must declare its feature_bounds"):
        type("Lacking", (Environment,), more)()
    more["feature_bounds"] = (np.zeros(1), np.ones(1))
    with pytest.raises(InputError, match=r"number of actions .* not 0"):
        _ = type("Lacking", (Environment,), more)().spec


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"feature_bounds": 3}, "must be two vectors"),
        ({"feature_bounds": (np.zeros(1), np.ones(2))}, "two vectors of one length"),
        ({"feature_bounds": (np.zeros((1, 1)), np.ones((1, 1)))}, "two vectors of one length"),
        ({"feature_bounds": (np.zeros(2), np.ones(2))}, r"float32 of shape \(2,\), as it declares"),
        ({"feature_bounds": (np.zeros(1, int), np.ones(1, int))}, "must show int32"),
        ({"objective_names": ("one", "two", "three")}, "a reward of 3 floating-point numbers"),
        ({"objective_names": ("one", "one")}, "'one' is there twice"),
        ({"step": lambda self, state, action, key: state}, "must return a state, a reward"),
        (
            {"step": lambda self, state, action, key: (state, jnp.zeros(2, int), state > 1)},
            "floating-point numbers, one per objective, not int32",
        ),
        (
            {
                "step": lambda self, state, action, key: (
                    state.astype(float),
                    jnp.zeros(2),
                    state > 1,
                )
            },
            r"int32 of shape \(\) becomes float32 of shape \(\)",
        ),
        (
            {"step": lambda self, state, action, key: ((state, 1), jnp.zeros(2), state > 1)},
            "built differently",
        ),
        (
            {"step": lambda self, state, action, key: (state, jnp.zeros(2), state)},
            r"one truth value, .* not int32 of shape \(\)",
        ),
    ],
)
def test_what_a_check_says(changes: dict[str, Any], sentence: str) -> None:
    env = type("Other", (Walk,), changes)()
    with pytest.raises(InputError, match=sentence) as caught:
        check_environment(env)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("observation", ["features", "pixels"])
def test_the_paper_s_problems_pass_the_check(observation: str) -> None:
    for env in (Minecart(observation=observation), DeepSeaTreasure(observation=observation)):
        assert check_environment(env) == env.spec


class Solved(Walk):
    """An environment that brings its optimum along."""

    values: tuple[tuple[float, ...], ...] = eqx.field(static=True, default=((2.0, 0.0), (0.0, 2.0)))

    def coverage_set(self, gamma: float, progress: Any) -> CoverageSet:
        progress("solving", 1, 1)
        plans = stack_plans([rendering.RandomPlan(2, KEY)] * len(self.values))
        names = tuple(map(str, range(len(self.values))))
        return CoverageSet(gamma, np.asarray(self.values), plans, names, names)


def test_an_environment_may_bring_its_optimum() -> None:
    told: list[str] = []
    coverage = oracle.coverage_set(Solved(), 0.9, lambda what, *_: told.append(what))
    assert (len(coverage), told) == (2, ["solving"])
    assert oracle.optimal_value(Solved(), 0.9, [0.25, 0.75]) == 1.5
    assert oracle.regret(Solved(), 0.9, [0.25, 0.75], [1.0, 0.0]) == 1.25
    assert len(oracle.pareto_front(Solved(), 0.9)) == 2
    with pytest.raises(InputError, match="rows of 2 objectives, not of shape"):
        oracle.coverage_set(Solved(values=((1.0,),)), 0.9)
    with pytest.raises(InputError, match="must be finite"):
        oracle.coverage_set(Solved(values=((1.0, float("nan")),)), 0.9)
    odd = type("Odd", (Walk,), {"coverage_set": lambda self, gamma, progress: 3})()
    with pytest.raises(InputError, match=r"Odd\.coverage_set must return a CoverageSet, not 3"):
        oracle.coverage_set(odd, 0.9)


def test_an_oracle_may_be_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="no oracle for Walk; there is one for Minecart and Deep"):
        oracle.coverage_set(Walk(), 0.9)
    solved = Solved().coverage_set(0.9, lambda *_: None)
    monkeypatch.setitem(oracle.ORACLES, Walk, lambda env, gamma, progress: solved)
    assert oracle.coverage_set(Walk(), 0.9) is solved


def test_the_example_is_a_whole_environment() -> None:
    example = runpy.run_path(str(EXAMPLE))
    env = example["DeliveryVan"](headwind=0.2)
    assert check_environment(env).objectives == ("parcel", "energy")
    transitions = rollout(env, lambda *_: jnp.asarray(1), KEY, 50)
    assert transitions.terminated.sum() == 10
    assert transitions.reward[:, 0].sum() == 10
    wrapped = WindvaneEnv(env)
    observation, _ = wrapped.reset(seed=1)
    assert wrapped.observation_space.contains(observation)
