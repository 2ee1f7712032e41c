"""Episode drivers: truncation is not termination, resets are automatic, and nothing is lost."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from windvane.envs.deep_sea_treasure import DeepSeaTreasure
from windvane.envs.episodes import reset_episode, rollout, step_autoreset

KEY = jax.random.key(0)
DOWN, RIGHT = jnp.asarray(1), jnp.asarray(3)


def test_termination_resets_and_keeps_the_final_state():
    env = DeepSeaTreasure()
    episode = reset_episode(env, KEY)
    episode, first = step_autoreset(env, episode, DOWN, KEY)
    assert not first.ended
    assert episode.time == 1
    episode, last = step_autoreset(env, episode, DOWN, KEY)
    assert last.terminated
    assert not last.truncated
    assert last.next_state.position.tolist() == [2, 0]
    assert episode.state.position.tolist() == [0, 0]
    assert episode.time == 0


def test_a_cut_is_a_truncation_with_its_true_next_state():
    env = DeepSeaTreasure(time_limit=3)
    transitions = rollout(env, lambda state, key: RIGHT, KEY, 7)
    assert transitions.truncated.tolist() == [False, False, True, False, False, True, False]
    assert not transitions.terminated.any()
    assert transitions.next_state.position[:, 1].tolist() == [1, 2, 3, 1, 2, 3, 1]
    assert transitions.state.position[:, 1].tolist() == [0, 1, 2, 0, 1, 2, 0]


def test_a_treasure_on_the_last_step_terminates():
    env = DeepSeaTreasure(time_limit=2)
    transitions = rollout(env, lambda state, key: DOWN, KEY, 2)
    assert transitions.terminated.tolist() == [False, True]
    assert not transitions.truncated.any()


def test_rollouts_vmap_and_their_randomness_differs():
    env = DeepSeaTreasure()
    keys = jax.random.split(KEY, 4)

    def policy(state, key):
        return jax.random.randint(key, (), 0, env.num_actions)

    run = eqx.filter_jit(jax.vmap(lambda key: rollout(env, policy, key, 20)))
    transitions = run(keys)
    assert transitions.reward.shape == (4, 20, 2)
    assert len(np.unique(np.asarray(transitions.action), axis=0)) == 4
