"""The search space: which settings are searched, and what values they may have.

What may not live here: how values are chosen (Optuna's sampler), or what becomes of them.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from windvane.errors import InputError, choose, is_number, shown
from windvane.training.config import PARTS, TrainConfig

FIXED = (
    "env", "env_args", "steps", "seeds", "start_from", "start_checksum", "custom", "evaluate_every",
    "oracle", "chunk", "checkpoint_seconds", "observation", "time_limit",
)  # fmt: skip
"""Settings that make another problem, or do not change what is learned."""
MOST_CHOICES = 100
_RANGE = re.compile(r"(?P<log>log:)?(?P<low>[^.,:]*(\.\d+)?[^.,:]*)\.\.(?P<high>[^,:]+)")
GRAMMAR = "a range such as 0.01..0.1 or log:0.001..0.1, or choices such as 32,64"


@dataclass(frozen=True)
class Interval:
    """Numbers from `low` to `high`, both included."""

    low: float
    high: float
    log: bool = False
    whole: bool = False

    def suggest(self, trial: Any, name: str) -> Any:
        """A value, from Optuna."""
        suggest = trial.suggest_int if self.whole else trial.suggest_float
        return suggest(name, self.low, self.high, log=self.log)

    def __contains__(self, value: object) -> bool:
        """Whether it may be suggested."""
        fits = is_number(value) and (not self.whole or float(value) == int(value))  # type: ignore[arg-type]
        return fits and self.low <= value <= self.high  # type: ignore[operator]

    @property
    def samples(self) -> tuple[Any, ...]:
        """Values that all others lie between."""
        return self.low, self.high

    def to_json(self) -> Any:
        """As plain values."""
        return {"low": self.low, "high": self.high, "log": self.log, "whole": self.whole}

    def __str__(self) -> str:
        return f"{'log:' if self.log else ''}{self.low:g}..{self.high:g}"


@dataclass(frozen=True)
class Choices:
    """Some values."""

    values: tuple[Any, ...]

    def suggest(self, trial: Any, name: str) -> Any:
        """A value, from Optuna."""
        return trial.suggest_categorical(name, self.values)

    def __contains__(self, value: object) -> bool:
        """Whether it may be suggested."""
        same = (one for one in self.values if isinstance(one, bool) == isinstance(value, bool))
        return value in list(same)

    @property
    def samples(self) -> tuple[Any, ...]:
        """All values."""
        return self.values

    def to_json(self) -> Any:
        """As plain values."""
        return list(self.values)

    def __str__(self) -> str:
        return ",".join(map(str, self.values))


Dimension = Interval | Choices
Space = dict[str, Dimension]


def make_space(given: Any, base: TrainConfig) -> Space:
    """A space from texts such as `width=32,64`, or from a dictionary, checked against the settings
    that it changes. Without any it is `default_space`.
    """
    if not given:
        return default_space(base)
    pairs = list(given.items() if isinstance(given, Mapping) else map(_pair, given))
    names = [name for name, _ in pairs]
    for name in names:
        _check_name(name, base)
        if names.count(name) > 1:
            raise InputError(f"the search space has {name} twice")
    space = {name: _dimension(name, values, base) for name, values in pairs}
    for name, dimension in space.items():
        _check_values(name, dimension, space, base)
    return space


def default_space(base: TrainConfig) -> Space:
    """What matters for most agents, around the settings that are there: the learning rate, how
    exploration ends, and how far gradients are clipped. Only numbers that one compiled program can
    be given.
    """
    rate, clip = base.learning_rate, base.clip_norm
    least = min(0.001, base.epsilon_start / 2)
    most = min(0.2, base.epsilon_start)
    space: Space = {
        "learning_rate": Interval(rate / 8, rate * 8, log=True),
        "epsilon_end": Interval(least, most, log=True),
        "epsilon_steps": Interval(max(base.steps // 50, 1), base.steps, log=True, whole=True),
        "clip_norm": Interval(clip / 8, clip * 8, log=True),
    }
    if least == 0.0:  # nothing is explored
        del space["epsilon_end"], space["epsilon_steps"]
    if not base.rollout:
        space["momentum"] = Interval(0.5, 0.99)
    return space


def apply(base: TrainConfig, values: Mapping[str, Any]) -> TrainConfig:
    """The settings with some of them replaced. Another part loses the arguments of the former."""
    changes: dict[str, Any] = {name: value for name, value in values.items() if "." not in name}
    for part in PARTS:
        name = f"{part}_args"
        if part in changes and changes[part] != getattr(base, part):
            changes[name] = {}
        dotted = {
            key.partition(".")[2]: value
            for key, value in values.items()
            if key.startswith(f"{name}.")
        }
        if dotted:
            changes[name] = {**changes.get(name, getattr(base, name)), **dotted}
    return replace(base, **changes)


def space_to_json(space: Space) -> dict[str, Any]:
    """As plain values, to write and to compare."""
    return {name: dimension.to_json() for name, dimension in space.items()}


def space_from_json(values: Any, source: str) -> Space:
    """The space that `space_to_json` wrote; `source` is for complaints."""
    try:
        return {
            name: Choices(tuple(value)) if isinstance(value, list) else Interval(**value)
            for name, value in values.items()
        }
    except (TypeError, AttributeError) as error:
        raise InputError(f"{source} has no search space: {shown(values)}") from error


def _pair(text: str) -> tuple[str, str]:
    name, equals, values = text.partition("=")
    if not (name and equals and values):
        raise InputError(f"--space must be of the form name=values, {GRAMMAR}, not {shown(text)}")
    return name.replace("-", "_"), values


def _check_name(name: Any, base: TrainConfig) -> None:
    if not isinstance(name, str):
        raise InputError(f"the search space must be settings by name, not {shown(name)}")
    part, dot, argument = name.partition(".")
    if dot:
        choose("part with arguments in the search space", part, [f"{x}_args" for x in PARTS])
        if part == "env_args" or not argument.isidentifier():
            raise InputError(f"{name} cannot be searched")
        return
    known = [field.name for field in fields(base) if field.name not in FIXED]
    known = [x for x in known if not x.endswith("_args")]
    if name in FIXED:
        raise InputError(
            f"{name} cannot be searched: all trials have the same problem, steps and seeds"
        )
    choose("setting in the search space", name, known)


def _dimension(name: str, given: Any, base: TrainConfig) -> Dimension:
    """One dimension from a text, a pair of numbers, `(low, high, "log")`, or a list of choices."""
    whole = _is_whole(name, base)
    if isinstance(given, Interval | Choices):
        return given
    if isinstance(given, str):
        match = _RANGE.fullmatch(given)
        if match is not None:
            ends = [_value(match[end]) for end in ("low", "high")]
            return _interval(name, ends, bool(match["log"]), whole, given)
        return _choices(name, [_value(text) for text in given.split(",")], given)
    if isinstance(given, list):
        return _choices(name, given, given)
    if isinstance(given, tuple) and given[2:] in ((), ("log",)):
        return _interval(name, list(given[:2]), len(given) == 3, whole, given)
    raise _unusable(name, given)


def _interval(name: str, ends: list[Any], log: bool, whole: bool | None, given: Any) -> Interval:
    if len(ends) != 2 or not all(map(is_number, ends)):
        raise _unusable(name, given)
    low, high = ends
    if low >= high:
        raise InputError(f"in the search space, {name} must rise from {low:g}, not to {high:g}")
    if log and low <= 0:
        raise InputError(f"in the search space, {name} on a log scale must begin above 0")
    integers = all(isinstance(end, int) for end in ends)
    if whole and not integers:
        raise InputError(f"in the search space, {name} must be whole numbers, not {shown(given)}")
    if integers and whole is not False:
        return Interval(low, high, log, whole=True)
    return Interval(float(low), float(high), log)


def _choices(name: str, values: Sequence[Any], given: Any) -> Choices:
    plain = all(x is None or isinstance(x, str | int | float) for x in values)
    known = [json.dumps(x) for x in values] if plain else []
    if not plain or not all(math.isfinite(x) for x in values if isinstance(x, float)):
        raise _unusable(name, given)
    if not 2 <= len(values) <= MOST_CHOICES or len(set(known)) < len(values):
        raise InputError(
            f"in the search space, {name} needs 2 to {MOST_CHOICES} different values, "
            f"not {shown(given)}"
        )
    return Choices(tuple(values))


def _unusable(name: str, given: Any) -> InputError:
    return InputError(f"in the search space, {name} must be {GRAMMAR}, not {shown(given)}")


def _value(text: str) -> Any:
    """A number, true, false or none; else the text itself."""
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _is_whole(name: str, base: TrainConfig) -> bool | None:
    """Whether a setting is a whole number; None where only its values tell."""
    if "." in name:
        return None
    value = getattr(base, name)
    return isinstance(value, int) and not isinstance(value, bool)


def _check_values(name: str, dimension: Dimension, space: Space, base: TrainConfig) -> None:
    """Complain about values that training refuses, whatever the others in the space are."""
    for value in dimension.samples:
        problem = None
        for others in _corners(name, space):
            try:
                apply(base, {**others, name: value})
            except InputError as error:
                problem = problem or error
            else:
                problem = None
                break
        if problem is not None:
            raise InputError(f"in the search space, {name} cannot be {value}: {problem}")


def _corners(name: str, space: Space) -> Iterable[dict[str, Any]]:
    """Values of the other dimensions to try one with: none, all first ones, all last ones."""
    rest = {key: dimension.samples for key, dimension in space.items() if key != name}
    yield {}
    yield {key: values[0] for key, values in rest.items()}
    yield {key: values[-1] for key, values in rest.items()}
