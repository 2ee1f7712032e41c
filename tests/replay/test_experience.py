"""Steps of native environments in replay: what is sampled looks as it did when it was played."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from windvane.envs.deep_sea_treasure import DeepSeaTreasure
from windvane.envs.episodes import reset_episode, rollout, step_autoreset
from windvane.envs.minecart import Minecart
from windvane.replay.diverse import DiverseReplay
from windvane.replay.experience import Experience
from windvane.replay.exploration import ExplorationReplay
from windvane.replay.selective import SelectiveReplay
from windvane.replay.signature import ReturnSignature
from windvane.replay.standard import StandardReplay


@pytest.mark.parametrize("make", [Minecart, DeepSeaTreasure])
@pytest.mark.parametrize("kind", ["pixels", "features"])
def test_what_is_sampled_looks_as_it_did(make: Any, kind: str) -> None:
    env = make(observation=kind)
    key = jax.random.key(0)

    def policy(state: Any, key: Any) -> Any:
        del state
        return jax.random.randint(key, (), 0, env.num_actions)

    transitions = rollout(env, policy, key, 300)
    seen = jax.jit(jax.vmap(env.observe))(transitions.state)
    followed = jax.jit(jax.vmap(env.observe))(transitions.next_state)
    buffer = DiverseReplay(
        200, ReturnSignature(env.num_objectives, 0.98, reward=lambda t: t[1].reward)
    )

    @jax.jit
    def fill_and_sample(transitions: Any) -> Any:
        numbered = (jnp.arange(300), jax.vmap(Experience.of)(transitions))

        def step(state: Any, item: Any) -> tuple[Any, None]:
            stored, ended = item
            return buffer.add(state, stored, ended), None

        state = buffer.init(jax.tree.map(lambda leaf: leaf[0], numbered), key)
        ended = transitions.terminated | transitions.truncated
        state = jax.lax.scan(step, state, (numbered, ended))[0]
        numbers, experience = buffer.sample(state, key, 64).transitions
        return numbers, experience, jax.vmap(lambda e: e.observe(env))(experience)

    numbers, experience, (before, after) = fill_and_sample(transitions)
    assert np.array_equal(before, np.asarray(seen)[numbers])
    assert np.array_equal(after, np.asarray(followed)[numbers])
    assert np.array_equal(experience.action, np.asarray(transitions.action)[numbers])
    assert np.array_equal(experience.reward, np.asarray(transitions.reward)[numbers])
    assert np.array_equal(experience.terminated, np.asarray(transitions.terminated)[numbers])


@pytest.mark.parametrize("rule", ["standard", "diverse", "selective", "exploration"])
def test_a_hundred_thousand_minecart_steps_fit_into_twenty_megabytes(rule: str) -> None:
    env = Minecart(observation="pixels")
    buffer = {
        "standard": StandardReplay(100_000),
        "diverse": DiverseReplay(100_000, ReturnSignature(3, 0.98)),
        "selective": SelectiveReplay(100_000),
        "exploration": ExplorationReplay(100_000),
    }[rule]
    key = jax.random.key(0)
    _, transition = step_autoreset(env, reset_episode(env, key), jnp.zeros((), int), key)
    state = jax.eval_shape(lambda: buffer.init(Experience.of(transition), key))
    leaves = [
        leaf
        for leaf in jax.tree.leaves(state)
        if not jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    ]
    assert sum(leaf.size * leaf.dtype.itemsize for leaf in leaves) <= 20e6
