"""The weight simplex and weight schedules: which priorities hold for which episode of a run.

A schedule is asked once an episode, when it begins, so a change always waits for an episode's end.
Its answer depends on the run's key and on two counters alone: there is no state to carry, every
agent with the same seed meets the same weights, and runs can be batched with `jax.vmap`.
What may not live here: anything about an environment or an agent.
"""

from abc import abstractmethod
from itertools import combinations
from typing import Any, Literal, final, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Int, Key

from windvane.errors import InputError, choose, require_positive_int, shown

SUM_TOLERANCE = 1e-4
"""How far from 1 the sum of given weights may lie: room for a few printed digits."""

Counter = int | np.integer | Int[Array, ""]
Unit = Literal["episodes", "steps"]

_LARGEST_COUNT = 2**31 - 1


def check_weights(weights: Any, num_objectives: int | None = None) -> Float[np.ndarray, " n"]:
    """Return `weights` as an array if they are a point of the simplex, else raise an InputError.

    They are not renormalised. With `num_objectives`, there must be as many.
    """
    return _check_weights("the weights", weights, num_objectives)


def parse_weights(text: str, num_objectives: int | None = None) -> Float[np.ndarray, " n"]:
    """Read weights from a command line: numbers separated by commas, such as 0.2,0.3,0.5."""
    try:
        weights = [float(part) for part in text.split(",")]
    except ValueError as error:
        raise InputError(
            f"weights must be numbers separated by commas, such as 0.2,0.3,0.5, not {text!r}"
        ) from error
    return check_weights(weights, num_objectives)


def sample_weights(key: Key[Array, ""], num_objectives: int) -> Float[Array, " objectives"]:
    """Draw from Dirichlet(1), the uniform distribution on the simplex.

    Independent exponentials divided by their sum have that distribution, and unlike a rejection
    sampler they need no loop under `jax.vmap`.
    """
    # A uniform draw of 0 would give infinity and one of 1 could make all exponentials 0: the lower
    # bound excludes the first, and `uniform` itself the second.
    smallest = float(np.finfo(np.float32).tiny)
    exponentials = -jnp.log(jax.random.uniform(key, (num_objectives,), minval=smallest))
    return exponentials / exponentials.sum()


def simplex_grid(num_objectives: int, resolution: int) -> Float[np.ndarray, "points objectives"]:
    """Every point of the simplex whose coordinates are multiples of 1 / `resolution`.

    Points come in lexicographic order; there are (resolution + n - 1) choose (n - 1) of them.
    """
    require_positive_int("the number of objectives", num_objectives)
    require_positive_int("the resolution of a simplex grid", resolution)
    # Each way to put n-1 bars among resolution + n-1 places splits `resolution` into n counts.
    places = resolution + num_objectives - 1
    choices = list(combinations(range(places), num_objectives - 1))
    bars = np.asarray(choices, int).reshape(len(choices), num_objectives - 1)
    edges = np.pad(bars, ((0, 0), (1, 1)), constant_values=((0, 0), (-1, places)))
    return (np.diff(edges, axis=1) - 1) / resolution


class WeightSchedule(eqx.Module):
    """Which weights hold for an episode. Subclasses are frozen pytrees with one pure method."""

    num_objectives: eqx.AbstractVar[int]

    @abstractmethod
    def weights(
        self, key: Key[Array, ""], episode: Counter, step: Counter
    ) -> Float[Array, " objectives"]:
        """Return the weights of the episode that begins now, for the whole of it.

        `episode` and `step` count the run's episodes and steps so far, both from 0. `key` is the
        run's own key for its weights, the same at every call.
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

    def weights(
        self, key: Key[Array, ""], episode: Counter, step: Counter
    ) -> Float[Array, " objectives"]:
        """Draw number step // every."""
        del episode
        return _target(key, _whole(step) // self.every, self.num_objectives)


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
        self.episodes = _count("the episodes a target", episodes)

    def weights(
        self, key: Key[Array, ""], episode: Counter, step: Counter
    ) -> Float[Array, " objectives"]:
        """The point reached between target episode // episodes and the next."""
        del step
        index, passed = jnp.divmod(_whole(episode), self.episodes)
        start = _target(key, index, self.num_objectives)
        end = _target(key, index + 1, self.num_objectives)
        share = passed.astype(start.dtype) / self.episodes.astype(start.dtype)
        return (1 - share) * start + share * end


@final
class OneOf(WeightSchedule):
    """One of several schedules, by number: runs side by side may differ in it."""

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
        """What the chosen one says."""
        every = [schedule.weights(key, episode, step) for schedule in self.schedules]
        return jnp.stack(every)[self.chosen]


@final
class FixedWeights(WeightSchedule):
    """The same weights for every episode."""

    vector: Float[Array, " objectives"]
    num_objectives: int = eqx.field(static=True)

    def __init__(self, weights: Any):
        """Keep `weights`, a point of the simplex."""
        self.vector = jnp.asarray(_known(weights, check_weights))
        self.num_objectives = self.vector.shape[-1]

    def weights(
        self, key: Key[Array, ""], episode: Counter, step: Counter
    ) -> Float[Array, " objectives"]:
        """The fixed weights."""
        del key, episode, step
        return self.vector


@final
class WeightSequence(WeightSchedule):
    """A sequence of the user's own, one entry every `every` episodes or steps.

    After the last entry that one stays, or with `repeat` the sequence begins again.
    """

    sequence: Float[Array, "entries objectives"]
    every: Int[Array, ""]
    num_objectives: int = eqx.field(static=True)
    unit: Unit = eqx.field(static=True)
    repeat: bool = eqx.field(static=True)

    def __init__(
        self, sequence: Any, *, every: Counter = 1, unit: str = "episodes", repeat: bool = False
    ):
        """Keep `sequence`, one point of the simplex a row; `unit` is what `every` counts."""
        choose("unit of a weight sequence", unit, get_args(Unit))
        self.sequence = jnp.asarray(_known(sequence, _check_sequence))
        self.num_objectives = self.sequence.shape[-1]
        self.every = _count(f"the {unit} between weight changes", every)
        self.unit = unit  # type: ignore[assignment]
        self.repeat = repeat

    def weights(
        self, key: Key[Array, ""], episode: Counter, step: Counter
    ) -> Float[Array, " objectives"]:
        """The entry whose turn it is; the key is not used."""
        del key
        index = _whole(episode if self.unit == "episodes" else step) // self.every
        last = self.sequence.shape[0] - 1
        index = index % (last + 1) if self.repeat else jnp.minimum(index, last)
        return self.sequence[index]


def _target(
    key: Key[Array, ""], index: Int[Array, ""], num_objectives: int
) -> Float[Array, " objectives"]:
    return sample_weights(jax.random.fold_in(key, index), num_objectives)


def _whole(counter: Counter) -> Int[Array, ""]:
    return jnp.asarray(counter, jnp.int32)


def _count(what: str, value: Any) -> Int[Array, ""]:
    """A traced leaf from a positive whole number; inside a transformation its value is unknown."""
    if isinstance(value, Tracer):
        return value.astype(jnp.int32)
    known = np.asarray(value)
    whole = known.shape == () and np.issubdtype(known.dtype, np.integer)
    if not (whole and 1 <= int(known) <= _LARGEST_COUNT):
        raise InputError(f"{what} must be a whole number from 1 to {_LARGEST_COUNT}, not {value!r}")
    return jnp.asarray(known, jnp.int32)


def _known(value: Any, check: Any) -> Any:
    """Check a value unless it is traced: inside a transformation only its caller knows it."""
    return value if isinstance(value, Tracer) else check(value)


def _check_sequence(sequence: Any) -> Float[np.ndarray, "entries objectives"]:
    rows = list(sequence) if np.iterable(sequence) and not isinstance(sequence, str) else []
    if not rows:
        raise InputError(f"a weight sequence needs at least one row of weights, not {sequence!r}")
    first = _check_weights("row 0 of the weight sequence", rows[0], None)
    others = [
        _check_weights(f"row {index} of the weight sequence", row, len(first))
        for index, row in enumerate(rows[1:], 1)
    ]
    return np.stack([first, *others])


def _check_weights(what: str, weights: Any, num_objectives: int | None) -> Float[np.ndarray, " n"]:
    try:
        given = np.asarray(weights)
        listed = weights if isinstance(weights, (list, tuple)) else given.ravel()[:1]
        real = any(jnp.issubdtype(given.dtype, kind) for kind in (np.floating, np.integer))
        # Text and truth values would become numbers without a word.
        if not real or any(isinstance(entry, (bool, np.bool_)) for entry in listed):
            raise ValueError("not numbers")
        array = given.astype(float)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{what} must be a list of numbers, not {shown(weights)}") from error
    if array.ndim != 1 or array.size == 0:
        raise InputError(f"{what} must be one list of numbers, not an array of shape {array.shape}")
    numbers = array.tolist()
    if num_objectives is not None and array.size != num_objectives:
        raise InputError(
            f"{what} must be {num_objectives} numbers, one per objective, "
            f"and {numbers} has {array.size}"
        )
    if not np.isfinite(array).all():
        raise InputError(f"{what} must be finite numbers, and {numbers} has one that is not")
    if (array < 0).any():
        raise InputError(f"{what} must be 0 or more, and {numbers} has {array.min():g}")
    if abs(array.sum() - 1) > SUM_TOLERANCE:
        raise InputError(f"{what} must sum to 1, and {numbers} sums to {array.sum():.6g}")
    return array
