"""The fused loop: acting, remembering and learning in one compiled chunk, many runs side by side.

A run's random draws depend on its own seed and on the step alone, so where chunks begin and end
changes nothing, and neither do neighbours.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from windvane.agents.core import Agent, Change, Encountered, Networks
from windvane.batching import once, where
from windvane.envs.environment import Environment
from windvane.envs.episodes import EpisodeState, reset_episode, step_autoreset
from windvane.networks import Architecture
from windvane.replay.buffer import ReplayBuffer
from windvane.replay.experience import Experience
from windvane.replay.exploration import ExplorationReplay
from windvane.training.settings import Hyperparameters
from windvane.weights import WeightSchedule


def _taken_apart(settings: Hyperparameters) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    return tuple(vars(settings).values()), tuple(vars(settings))


def _put_together(names: tuple[str, ...], values: Iterable[Any]) -> Hyperparameters:
    settings = object.__new__(Hyperparameters)  # unchecked: leaves may be anything for a while
    settings.__dict__.update(zip(names, values, strict=True))
    return settings


# A module like the others: a number in it may be an array.
jax.tree_util.register_pytree_node(Hyperparameters, _taken_apart, _put_together)


class Chance(eqx.Module):
    """All that is left to chance in one step. It depends on nothing that happens, so it is drawn
    for many steps at once: few large draws are quicker than many small ones.
    """

    exploring: Float[Array, ""]
    anything: Int[Array, ""]
    world: Key[Array, ""]
    encounter: Float[Array, ""]
    change: Key[Array, ""]


class Step(eqx.Module):
    """What the host is told of one step: all that an episode's record needs, when it `ended`."""

    ended: Bool[Array, ""]
    length: Int[Array, ""]
    weights: Float[Array, " objectives"]
    returns: Float[Array, " objectives"]
    epsilon: Float[Array, ""]
    loss: Float[Array, ""]


class RunState(eqx.Module):
    """Everything that one run is."""

    key: Key[Array, ""]
    online: PyTree[Array]
    target: PyTree[Array]
    memory: PyTree[Array]
    optimiser: PyTree[Array]
    replay: PyTree[Array]
    episode: EpisodeState[Any]
    episodes: Int[Array, ""]
    schedule: PyTree[Array]
    active: Float[Array, " objectives"]
    encountered: Encountered
    returns: Float[Array, " objectives"]
    loss: Float[Array, ""]
    failed: Bool[Array, ""]


class Trainer(eqx.Module):
    """The parts of a run and the pure functions that take it a step further."""

    env: Environment[Any]
    agent: Agent
    replay: ReplayBuffer[Any]
    schedule: WeightSchedule
    architecture: Architecture
    settings: Hyperparameters

    @property
    def optimiser(self) -> optax.GradientTransformation:
        """Stochastic gradient descent with Nesterov's momentum, for all parameters in a row."""
        s = self.settings
        descent = optax.sgd(s.learning_rate, s.momentum, nesterov=True)
        return optax.chain(optax.clip_by_global_norm(s.clip_norm), descent)

    def init(self, seed: Int[Array, ""], schedule: PyTree[Array] = None) -> RunState:
        """A run before its first step. `schedule` are arrays to use instead of the trainer's, for
        runs whose weights change in another way than their neighbours'.
        """
        key = jax.random.key(seed)
        network_key, replay_key, reset_key = (_purpose(key, name) for name in range(3))
        online = self.agent.build(self.env, self.architecture, network_key)
        first = reset_episode(self.env, reset_key)
        nothing = jnp.zeros(self.env.num_objectives)
        zero = jnp.zeros((), int)
        example = jax.eval_shape(partial(step_autoreset, self.env), first, zero, reset_key)[1]
        blank = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), example)
        schedule = eqx.filter(self.schedule, eqx.is_array) if schedule is None else schedule
        active = self._weights(schedule, key, zero, zero)
        return RunState(
            key=key,
            online=online,
            target=online,
            memory=self.agent.remember(online),
            optimiser=self.optimiser.init(_in_a_row(online)[0]),
            replay=self.replay.init(Experience.of(blank), replay_key),
            episode=first,
            episodes=zero,
            schedule=schedule,
            active=active,
            encountered=Encountered.start(active, self.settings.encountered),
            returns=nothing,
            loss=jnp.zeros(()),
            failed=jnp.asarray(False),
        )

    def epsilon(self, step: Int[Array, ""]) -> Float[Array, ""]:
        """Exploration falls in a line, then stays."""
        s = self.settings
        share = jnp.minimum(step.astype(jnp.float32) / s.epsilon_steps, 1.0)
        return s.epsilon_start + share * (s.epsilon_end - s.epsilon_start)

    def draw(self, run: RunState, step: Int[Array, ""]) -> Chance:
        """What chance has in store for a step."""
        exploring, anything, world, encounter, change = jax.random.split(_at(run.key, 0, step), 5)
        return Chance(
            exploring=jax.random.uniform(exploring),
            anything=jax.random.randint(anything, (), 0, self.env.num_actions),
            world=world,
            encounter=jax.random.uniform(encounter),
            change=change,
        )

    def step(self, run: RunState, step: Int[Array, ""], chance: Chance) -> tuple[RunState, Step]:
        """Act once, and remember it."""
        epsilon = self.epsilon(step)
        greedy = self.agent.act(run.online, self.env.observe(run.episode.state), run.active)
        action = jnp.where(chance.exploring < epsilon, chance.anything, greedy)
        episode, transition = step_autoreset(self.env, run.episode, action, chance.world)
        reward = transition.reward * self.settings.reward_scale
        experience = eqx.tree_at(lambda e: e.reward, Experience.of(transition), reward)
        score = self._leaving_score(run)
        replay = self.replay.add(run.replay, experience, transition.ended, score)
        time = run.episode.time
        returns = run.returns + self.settings.gamma ** time.astype(jnp.float32) * reward
        told = Step(transition.ended, time + 1, run.active, returns, epsilon, run.loss)
        episodes = run.episodes + transition.ended.astype(int)
        following = self._weights(run.schedule, run.key, episodes, step + 1)
        active = jnp.where(transition.ended, following, run.active)
        changed = (active != run.active).any()
        encountered = run.encountered.add(active, changed, chance.encounter)
        change = Change(changed, run.active, active, run.encountered, episode.state)
        networks = Networks(run.online, run.target, run.memory)
        networks = self.agent.on_change(networks, change, self.env, chance.change)
        run = RunState(
            key=run.key,
            **networks._asdict(),
            optimiser=run.optimiser,
            replay=replay,
            episode=episode,
            episodes=episodes,
            schedule=run.schedule,
            active=active,
            encountered=encountered,
            returns=jnp.where(transition.ended, 0.0, returns),
            loss=run.loss,
            failed=run.failed,
        )
        return run, told

    def learn(self, run: RunState, step: Int[Array, ""]) -> RunState:
        """One gradient step on a batch of memories."""
        sample_key, weights_key = jax.random.split(_at(run.key, 1, step))
        s = self.settings
        newest = min(s.update_interval, s.batch_size)
        batch = self.replay.sample(run.replay, sample_key, s.batch_size, newest)
        experience = batch.transitions
        weights = self.agent.training_weights(
            run.active, run.encountered, weights_key, s.batch_size
        )
        moments = jax.vmap(lambda e: e.moments(self.env), out_axes=1)(experience)
        grad = eqx.filter_grad(self.agent.loss, has_aux=True)
        gradient, learned = grad(
            run.online, run.target, moments, experience.action.astype(int), experience.reward,
            experience.terminated, weights, jnp.asarray(s.gamma),
        )  # fmt: skip
        row, unravel = _in_a_row(gradient)
        updates, optimiser = self.optimiser.update(row, run.optimiser)
        online = eqx.apply_updates(run.online, unravel(updates))
        # A run that has come to nonsense is left as it was, and its neighbours go on. Where the
        # gradient's norm is finite, so is all that is made of it.
        failed = run.failed | ~jnp.isfinite(learned.loss + optax.tree.norm(row))
        kept = where(failed, (run.online, run.optimiser), (online, optimiser))
        errors = jnp.where(failed, 0.0, learned.errors)
        replay = self.replay.update_priorities(run.replay, batch.places, errors)
        return eqx.tree_at(
            lambda r: (r.online, r.optimiser, r.replay, r.loss, r.failed),
            run,
            (*kept, replay, learned.loss, failed),
        )

    def _weights(
        self,
        arrays: PyTree[Array],
        key: Key[Array, ""],
        episode: Int[Array, ""],
        step: Int[Array, ""],
    ) -> Float[Array, " objectives"]:
        schedule = eqx.combine(arrays, self.schedule)
        return schedule.weights(weights_key(key), episode, step)

    def _leaving_score(self, run: RunState) -> Float[Array, ""] | None:
        """How exploratory the transition is that will leave the ring, for the rule that asks."""
        if not isinstance(self.replay, ExplorationReplay):
            return None
        leaving = self.replay.leaving(run.replay)
        q = run.online(self.env.observe(leaving.state), run.active)
        values = self.agent.scalarise(q, run.active)
        return values.max() - values[leaving.action]


@eqx.filter_jit(donate="all-except-first")
def run_chunk(
    what: tuple[Trainer, Int[Array, ""], int, bool], runs: RunState
) -> tuple[RunState, Step]:
    """Take all runs `cycles` times `update_interval` steps further, from step `first` on.

    `what` is (trainer, first, cycles, learning); the runs are given up. What is told of the steps
    has a leading axis of steps, then one of runs.
    """
    trainer, first, cycles, learning = what
    interval, copying = trainer.settings.update_interval, trainer.settings.target_interval
    # An accelerator waits less between steps that are laid out one after another; for the few
    # before learning starts that is not worth compiling.
    unroll = interval if learning and jax.default_backend() != "cpu" else 1

    def act(runs: RunState, of: tuple[Int[Array, ""], Chance]) -> tuple[RunState, Step]:
        return jax.vmap(trainer.step, (0, None, 0))(runs, *of)

    def cycle(runs: RunState, begin: Int[Array, ""]) -> tuple[RunState, Step]:
        steps = begin + jnp.arange(interval)
        chances = jax.vmap(jax.vmap(trainer.draw, (0, None)), (None, 0))(runs, steps)
        runs, told = jax.lax.scan(act, runs, (steps, chances), unroll=unroll)
        end = begin + interval
        if learning:
            runs = jax.vmap(trainer.learn, (0, None))(runs, end)
        due = end // interval % copying == 0
        target = once(due, lambda _: runs.online, runs.target)
        return eqx.tree_at(lambda r: r.target, runs, target), told

    runs, told = jax.lax.scan(cycle, runs, first + interval * jnp.arange(cycles))
    return runs, jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), told)


def _in_a_row(tree: PyTree) -> tuple[Float[Array, " n"], Callable[[Any], PyTree]]:
    """All numbers of a tree in one array, and how to put such an array back into the tree."""
    return ravel_pytree(eqx.filter(tree, eqx.is_array))


def weights_key(key: Key[Array, ""]) -> Key[Array, ""]:
    """What the weights of a run with this key are drawn by."""
    return _purpose(key, 3)


def _purpose(key: Key[Array, ""], number: int) -> Key[Array, ""]:
    """A key of its own for each thing that is drawn once."""
    return jax.random.fold_in(jax.random.fold_in(key, 0), number)


def _at(key: Key[Array, ""], what: int, step: Int[Array, ""]) -> Key[Array, ""]:
    """A key of its own for each thing that is drawn at a step."""
    return jax.random.fold_in(jax.random.fold_in(key, 1 + what), step)
