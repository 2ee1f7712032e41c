"""Search spaces: what may be written, what it means, and what is refused."""

from typing import Any

import pytest

from windvane.errors import InputError
from windvane.search.space import (
    Choices,
    Interval,
    apply,
    default_space,
    make_space,
    space_from_json,
    space_to_json,
)
from windvane.training.config import TrainConfig
from windvane.training.presets import PRESETS

BASE = TrainConfig.preset("quick-dst")


@pytest.mark.parametrize(
    ("text", "name", "dimension"),
    [
        ("learning_rate=log:0.001..0.1", "learning_rate", Interval(0.001, 0.1, log=True)),
        ("learning-rate=1e-4..1e-2", "learning_rate", Interval(1e-4, 1e-2)),
        ("clip_norm=1..10", "clip_norm", Interval(1.0, 10.0)),
        ("epsilon_end=.01...1", "epsilon_end", Interval(0.01, 0.1)),
        ("batch_size=8..64", "batch_size", Interval(8, 64, whole=True)),
        ("batch_size=log:8..64", "batch_size", Interval(8, 64, log=True, whole=True)),
        ("width=32,64", "width", Choices((32, 64))),
        ("replay=der,standard", "replay", Choices(("der", "standard"))),
        ("dueling=true,false", "dueling", Choices((True, False))),
        ("agent_args.kappa=log:0.01..0.1", "agent_args.kappa", Interval(0.01, 0.1, log=True)),
        ("replay_args.trajectories=50..500", "replay_args.trajectories",
         Interval(50, 500, whole=True)),
    ],
)  # fmt: skip
def test_texts(text: str, name: str, dimension: Any) -> None:
    assert make_space([text], BASE) == {name: dimension}


def test_a_dictionary() -> None:
    space = make_space(
        {"learning_rate": (0.001, 0.1, "log"), "batch_size": (8, 64), "width": [32, 64],
         "epsilon_end": "0.01..0.1"},
        BASE,
    )  # fmt: skip
    assert space == {
        "learning_rate": Interval(0.001, 0.1, log=True),
        "batch_size": Interval(8, 64, whole=True),
        "width": Choices((32, 64)),
        "epsilon_end": Interval(0.01, 0.1),
    }
    assert space_from_json(space_to_json(space), "it") == space


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("width", "must be of the form name=values"),
        ("widht=32,64", "unknown setting in the search space 'widht'"),
        ("steps=100,200", "steps cannot be searched"),
        ("env=dst,minecart", "env cannot be searched"),
        ("env_args.map=concave,convex", "env_args"),
        ("width=32", "width needs 2 to 100 different values, not '32'"),
        ("width=32,32", "width needs 2 to 100 different values"),
        ("width=64..32", "width must rise from 64, not to 32"),
        ("width=1.5..32", "width must be whole numbers, not '1.5..32'"),
        ("learning_rate=log:0..1", "learning_rate on a log scale must begin above 0"),
        ("learning_rate=a..b", "learning_rate must be a range such as"),
        ("learning_rate=0..1", "learning_rate cannot be 0.0: learning_rate must be a number above"),
        ("epsilon_end=0.01..0.5", "epsilon_end cannot be 0.5: epsilon_end must be at most"),
        ("agent=cn,cm", "agent cannot be cm: unknown agent 'cm'"),
        ("momentum=0.5..1", "momentum cannot be 1.0"),
    ],
)
def test_one_sentence_about_a_bad_one(text: str, sentence: str) -> None:
    with pytest.raises(InputError) as error:
        make_space([text], BASE)
    assert sentence in str(error.value)


@pytest.mark.parametrize("given", [{"width": 3}, {"width": (1, 2, 3)}, {"width": [[1], [2]]}])
def test_a_dictionary_with_something_else(given: Any) -> None:
    with pytest.raises(InputError, match="width must be a range such as"):
        make_space(given, BASE)


def test_settings_may_need_each_other() -> None:
    """An end of exploration above the preset's start is fine where the start is searched, too."""
    space = make_space(["epsilon_start=0.5..1", "epsilon_end=0.2..0.4"], BASE)
    assert list(space) == ["epsilon_start", "epsilon_end"]


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_the_default_space_suits_every_preset(preset: str) -> None:
    base = TrainConfig.preset(preset)
    space = default_space(base)
    assert make_space(space, base) == space
    assert base.learning_rate in space["learning_rate"]


def test_values_are_put_into_the_settings() -> None:
    base = TrainConfig.preset("quick-dst", agent="mn", agent_args={"kappa": 0.02})
    config = apply(base, {"width": 32, "agent_args.max_policies": 3})
    assert (config.width, dict(config.agent_args)) == (32, {"kappa": 0.02, "max_policies": 3})
    # Another agent has other arguments.
    assert dict(apply(base, {"agent": "cn"}).agent_args) == {}
