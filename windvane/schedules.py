"""Weight schedules: which weights hold for each episode of a run.

A schedule returns the weights of the episode that begins. They depend on the run's key and on two
counters alone: there is no state to carry, every agent with the same seed meets the same weights,
and runs can be batched with `jax.vmap`. What may not live here: anything about an
environment or an agent. Weights that come from outside live in `live`.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, final, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Int, Key, PyTree

from windvane.errors import (
    LARGEST_COUNT,
    InputError,
    choose,
    require_int,
    require_positive_int,
    shown,
)
from windvane.schedule_registry import LIVE, SCHEDULES
from windvane.weights import (
    DISTRIBUTIONS,
    check_weight_rows,
    check_weights,
    sample_weights,
)

MAX_NAME = 4_000
"""Most characters of a schedule's name, enough for the weights of 64 objectives."""
Counter = int | np.integer | Int[Array, ""]
Unit = Literal["episodes", "steps"]


@dataclass(frozen=True)
class ScheduleSetup:
    """What a schedule is built for."""

    num_objectives: int
    steps: int
    """Steps of a run."""
    sparse_every: int
    """Steps between sparse changes, unless the schedule's arguments say otherwise."""


class WeightSchedule(eqx.Module):
    """Which weights hold for an episode. Subclasses are frozen pytrees with one pure method."""

    num_objectives: eqx.AbstractVar[int]
    changes_within_episodes: ClassVar[bool] = False
    """Whether new weights hold from the next step on rather than from the next episode."""

    @abstractmethod
    def weights(
        self, key: Key[Array, ""], episode: Counter, step: Counter
    ) -> Float[Array, " objectives"]:
        """Return the weights of the episode that begins now, for the whole of it.

        `episode` and `step` count the run's episodes and steps so far, both from 0. `key` is the
        run's own key for its weights, the same at every call. Compiled loops evaluate this at every
        step and use it where an episode begins, so it must be pure.
        """


@final
class SparseChanges(WeightSchedule):
    """New weights from Dirichlet(1) every `every` steps, and constant in between.

    A change that falls due within an episode waits for the next one to begin.
    """

    every: Int[Array, ""]
    num_objectives: int = eqx.field(static=True)

    def __init__(self, num_objectives: int, every: Counter):
        """Prepare changes every `every` steps."""
        self.num_objectives = require_positive_int("the number of objectives", num_objectives)
        self.every = _count("the steps between weight changes", every)

    @staticmethod
    def build(setup: ScheduleSetup, every: Any = None) -> "SparseChanges":
        """For the registry; `every` counts steps."""
        return SparseChanges(setup.num_objectives, setup.sparse_every if every is None else every)

    def weights(
        self, key: Key[Array, ""], episode: Counter, step: Counter
    ) -> Float[Array, " objectives"]:
        """The draw with index step // every."""
        del episode
        return _target(key, _as_int32(step) // self.every, self.num_objectives)


@final
class RegularChanges(WeightSchedule):
    """Weights that move a little every episode, on a line from one random target to the next.

    Targets come from Dirichlet(1). Episode `episodes` x k has exactly target k, and the episodes
    after it move in equal steps towards target k + 1.
    """

    episodes: Int[Array, ""]
    num_objectives: int = eqx.field(static=True)

    def __init__(self, num_objectives: int, episodes: Counter = 10):
        """Prepare a new target every `episodes` episodes."""
        self.num_objectives = require_positive_int("the number of objectives", num_objectives)
        self.episodes = _count("the episodes per target", episodes)

    @staticmethod
    def build(setup: ScheduleSetup, every: Any = 10) -> "RegularChanges":
        """For the registry; `every` counts episodes per target."""
        return RegularChanges(setup.num_objectives, every)

    def weights(
        self, key: Key[Array, ""], episode: Counter, step: Counter
    ) -> Float[Array, " objectives"]:
        """A point on the line from target episode // episodes to the next."""
        del step
        index, passed = jnp.divmod(_as_int32(episode), self.episodes)
        start = _target(key, index, self.num_objectives)
        end = _target(key, index + 1, self.num_objectives)
        fraction = passed.astype(start.dtype) / self.episodes.astype(start.dtype)
        return (1 - fraction) * start + fraction * end


@final
class RandomWeights(WeightSchedule):
    """New weights for every episode, by default from Dirichlet(1)."""

    num_objectives: int = eqx.field(static=True)
    distribution: str = eqx.field(static=True)

    def __init__(self, num_objectives: int, distribution: str = "uniform"):
        """Prepare weights for so many objectives, from what `sample_weights` offers."""
        self.num_objectives = require_positive_int("the number of objectives", num_objectives)
        self.distribution = choose("distribution of weights", distribution, DISTRIBUTIONS)

    @staticmethod
    def build(setup: ScheduleSetup, distribution: Any = "uniform") -> "RandomWeights":
        """For the registry."""
        return RandomWeights(setup.num_objectives, distribution)

    def weights(
        self, key: Key[Array, ""], episode: Counter, step: Counter
    ) -> Float[Array, " objectives"]:
        """Draw number `episode`."""
        del step
        return _target(key, _as_int32(episode), self.num_objectives, self.distribution)


@final
class OneOf(WeightSchedule):
    """One of several schedules, by index; vmapped runs may have different ones."""

    schedules: tuple[WeightSchedule, ...]
    chosen: Int[Array, ""]
    num_objectives: int = eqx.field(static=True)

    def __init__(self, schedules: tuple[WeightSchedule, ...], chosen: int = 0):
        """Choose among schedules for the same number of objectives."""
        numbers = sorted({schedule.num_objectives for schedule in schedules})
        if len(numbers) != 1:
            raise InputError(f"schedules must be for one number of objectives, not for {numbers}")
        self.schedules = schedules
        self.chosen = jnp.asarray(chosen, jnp.int32)
        self.num_objectives = numbers[0]

    def weights(
        self, key: Key[Array, ""], episode: Counter, step: Counter
    ) -> Float[Array, " objectives"]:
        """The weights of the chosen schedule."""
        weights = [schedule.weights(key, episode, step) for schedule in self.schedules]
        return jnp.stack(weights)[self.chosen]


@final
class ChosenWeights(WeightSchedule):
    """Weights that the agent chooses in the course of a run; every episode has one of them at
    random. Until it has chosen any, they are those of one objective each.
    """

    vectors: Float[Array, "capacity objectives"]
    size: Int[Array, ""]
    num_objectives: int = eqx.field(static=True)

    def __init__(self, num_objectives: int, capacity: int = 64):
        """Keep the `capacity` weights that were chosen last."""
        self.num_objectives = require_positive_int("the number of objectives", num_objectives)
        require_int("the capacity of chosen weights", capacity, num_objectives, 65_536)
        self.vectors = jnp.eye(capacity, num_objectives)
        self.size = jnp.asarray(num_objectives, jnp.int32)

    @staticmethod
    def build(setup: ScheduleSetup, capacity: int = 64) -> "ChosenWeights":
        """For the registry."""
        return ChosenWeights(setup.num_objectives, capacity)

    def weights(
        self, key: Key[Array, ""], episode: Counter, step: Counter
    ) -> Float[Array, " objectives"]:
        """Draw number `episode`."""
        del step
        own = jax.random.fold_in(key, _as_int32(episode))
        return self.vectors[jax.random.randint(own, (), 0, self.size)]

    def replaced(self, chosen: Float[np.ndarray, "n objectives"]) -> "ChosenWeights":
        """The same with other weights."""
        kept = jnp.asarray(chosen[-len(self.vectors) :], self.vectors.dtype)
        vectors = jnp.zeros_like(self.vectors).at[: len(kept)].set(kept)
        return eqx.tree_at(
            lambda s: (s.vectors, s.size), self, (vectors, jnp.asarray(len(kept), jnp.int32))
        )


def with_chosen(arrays: PyTree[Array], chosen: Float[np.ndarray, "n objectives"]) -> PyTree[Array]:
    """A schedule or its arrays; where weights are left to the agent, with those that it chose."""

    def is_chosen(node: Any) -> bool:
        return isinstance(node, ChosenWeights)

    def replaced(node: Any) -> Any:
        return node.replaced(chosen) if isinstance(node, ChosenWeights) else node

    return jax.tree.map(replaced, arrays, is_leaf=is_chosen)


@final
class FixedWeights(WeightSchedule):
    """The same weights for every episode."""

    vector: Float[Array, " objectives"]
    num_objectives: int = eqx.field(static=True)

    def __init__(self, weights: Any):
        """Keep `weights`, a point of the simplex."""
        self.vector = jnp.asarray(_check_unless_traced(weights, check_weights))
        self.num_objectives = self.vector.shape[-1]

    def weights(
        self, key: Key[Array, ""], episode: Counter, step: Counter
    ) -> Float[Array, " objectives"]:
        """The fixed weights."""
        del key, episode, step
        return self.vector


@final
class WeightSequence(WeightSchedule):
    """A given sequence of weights that advances by one entry every `every` episodes or steps.

    The last entry holds for good or, with `repeat`, the sequence begins again.
    """

    sequence: Float[Array, "entries objectives"]
    every: Int[Array, ""]
    num_objectives: int = eqx.field(static=True)
    unit: Unit = eqx.field(static=True)
    repeat: bool = eqx.field(static=True)

    def __init__(
        self, sequence: Any, *, every: Counter = 1, unit: str = "episodes", repeat: bool = False
    ):
        """Keep `sequence`, one point of the simplex per row; `unit` is what `every` counts."""
        choose("unit of a weight sequence", unit, get_args(Unit))
        self.sequence = jnp.asarray(_check_unless_traced(sequence, check_weight_rows))
        self.num_objectives = self.sequence.shape[-1]
        self.every = _count(f"the {unit} between weight changes", every)
        self.unit = unit  # type: ignore[assignment]
        self.repeat = repeat

    @staticmethod
    def build(
        setup: ScheduleSetup,
        rows: Any,
        every: Any = 1,
        unit: str = "episodes",
        repeat: bool = False,
    ) -> "WeightSequence":
        """For the registry; `rows` are the weight vectors."""
        del setup
        return WeightSequence(rows, every=every, unit=unit, repeat=repeat)

    def weights(
        self, key: Key[Array, ""], episode: Counter, step: Counter
    ) -> Float[Array, " objectives"]:
        """The entry for this episode or step; the key is not used."""
        del key
        index = _as_int32(episode if self.unit == "episodes" else step) // self.every
        last = self.sequence.shape[0] - 1
        index = index % (last + 1) if self.repeat else jnp.minimum(index, last)
        return self.sequence[index]


def _target(
    key: Key[Array, ""],
    index: Int[Array, ""],
    num_objectives: int,
    distribution: str = "uniform",
) -> Float[Array, " objectives"]:
    return sample_weights(jax.random.fold_in(key, index), num_objectives, distribution)


def _as_int32(counter: Counter) -> Int[Array, ""]:
    return jnp.asarray(counter, jnp.int32)


def _count(what: str, value: Any) -> Int[Array, ""]:
    """A positive whole number as an array leaf; a traced value cannot be checked."""
    if isinstance(value, Tracer):
        return value.astype(jnp.int32)
    known = np.asarray(value)
    whole = known.shape == () and np.issubdtype(known.dtype, np.integer)
    if not (whole and 1 <= int(known) <= LARGEST_COUNT):
        raise InputError(
            f"{what} must be a whole number from 1 to {LARGEST_COUNT}, not {shown(value)}"
        )
    return jnp.asarray(known, jnp.int32)


def _check_unless_traced(value: Any, check: Any) -> Any:
    """Check a value unless it is traced."""
    return value if isinstance(value, Tracer) else check(value)


def parse_schedule(text: str) -> FixedWeights | None:
    """The schedule of a text such as `0.3,0.7`: these weights for every episode. Else None."""
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        return None
    return FixedWeights(numbers)


def check_schedule(name: Any) -> str:
    """Return the name of a schedule, or weights such as `0.3,0.7`, if it has the form of one."""
    text = name if isinstance(name, str) and len(name) <= MAX_NAME else ""
    if text.startswith(LIVE) or parse_schedule(text) is not None:
        return text
    try:
        return SCHEDULES.check(name)
    except InputError as error:
        raise InputError(f"{error}, fixed weights such as 0.3,0.7, or live:FILE") from None


def make_schedule(
    name: str, args: Mapping[str, Any], setup: ScheduleSetup, *, trusted: bool = False
) -> WeightSchedule:
    """Build a schedule by name, and check its number of objectives."""
    schedule = parse_schedule(name)
    if schedule is None:
        schedule = SCHEDULES.make(name, args, setup, trusted=trusted)
    elif args:
        raise InputError(f"fixed weights such as {name} take no arguments, not {dict(args)}")
    return check_objectives(schedule, setup.num_objectives, name)


def check_objectives(schedule: Any, num_objectives: int, name: str) -> WeightSchedule:
    """Return `schedule` if it is one, for that number of objectives."""
    if not isinstance(schedule, WeightSchedule):
        raise InputError(f"the schedule {name} must be a WeightSchedule, not {shown(schedule)}")
    if schedule.num_objectives != num_objectives:
        raise InputError(
            f"the schedule {name} is for {schedule.num_objectives} objectives, and the "
            f"environment has {num_objectives}"
        )
    return schedule
