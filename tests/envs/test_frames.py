"""Observation spaces as frames: images, vectors, categories; and what is refused."""

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from windvane.envs.frames import frame_reader
from windvane.errors import InputError


@pytest.mark.parametrize(
    ("space", "options", "shape", "kind"),
    [
        (spaces.Box(0, 255, (48, 40, 3), np.uint8), {}, (48, 40, 3), "image"),
        (spaces.Box(0, 255, (3, 48, 40), np.uint8), {}, (48, 40, 3), "image"),
        (spaces.Box(0, 255, (20, 30), np.uint8), {}, (20, 30, 1), "image"),
        (spaces.Box(0, 255, (96, 96, 3), np.uint8), {"frame_size": 24}, (24, 24, 3), "image"),
        (spaces.Box(-1, 1, (2, 3), np.float64), {}, (6,), "vector"),
        (spaces.Box(0, 11, (2,), np.int32), {}, (2,), "vector"),
        (spaces.Box(0, 11, (2,), np.int32), {"one_hot": 32}, (2,), "categories"),
        (spaces.Box(-3, 3, (2,), np.int32), {"one_hot": 32}, (2,), "vector"),
        (spaces.Discrete(5), {}, (1,), "categories"),
        (spaces.Discrete(5, start=2), {}, (1,), "categories"),
        (spaces.Discrete(5, start=-2), {}, (1,), "vector"),
        (spaces.MultiDiscrete([3, 4]), {}, (2,), "categories"),
        (spaces.MultiBinary(4), {}, (4,), "vector"),
        (spaces.Dict({"a": spaces.Discrete(3), "b": spaces.Box(0, 1, (2,))}), {}, (5,), "vector"),
    ],
)
def test_every_space_gives_frames_of_its_spec(
    space: Any, options: dict, shape: tuple[int, ...], kind: str
) -> None:
    reader = frame_reader(space, **options)
    assert reader.spec.shape == shape
    found = (
        "image" if reader.spec.is_image else "categories" if reader.spec.categories else "vector"
    )
    assert found == kind
    space.seed(0)
    for _ in range(20):
        frame = reader.read(space.sample())
        assert frame.shape == shape
        assert frame.dtype == reader.spec.dtype
        if kind == "categories":
            assert (frame >= 0).all()
            assert (frame < np.asarray(reader.spec.categories)).all()
        if kind == "vector":
            assert (frame >= np.asarray(reader.spec.low)).all()
            assert (frame <= np.asarray(reader.spec.high)).all()


def test_what_the_environment_returned_is_what_is_stored() -> None:
    """Nothing is subtracted or scaled: a policy can be asked about raw observations later."""
    assert frame_reader(spaces.Discrete(5, start=2)).read(4).tolist() == [4]
    grid = spaces.Box(1, 9, (2,), np.int32)
    assert frame_reader(grid, one_hot=32).read(np.asarray([3, 9])).tolist() == [3, 9]


def test_channels_first_and_last_show_the_same_picture() -> None:
    picture = np.random.default_rng(0).integers(0, 256, (16, 12, 3), dtype=np.uint8)
    last = frame_reader(spaces.Box(0, 255, (16, 12, 3), np.uint8)).read(picture)
    first = frame_reader(spaces.Box(0, 255, (3, 16, 12), np.uint8)).read(picture.transpose(2, 0, 1))
    assert np.array_equal(last, picture)
    assert np.array_equal(first, picture)


def test_scaling_averages() -> None:
    picture = np.zeros((32, 32, 1), np.uint8)
    picture[:, :16] = 200
    scaled = frame_reader(spaces.Box(0, 255, (32, 32, 1), np.uint8), 8).read(picture)
    assert scaled[:, :4].tolist() == [[[200]] * 4] * 8
    assert not scaled[:, 4:].any()


@pytest.mark.parametrize(
    ("space", "options", "sentence"),
    [
        (spaces.Sequence(spaces.Discrete(2)), {}, "observations must be Box, Discrete"),
        (spaces.Box(-1, 1, (2,)), {"frame_size": 8}, "frame_size is for images"),
        (spaces.Box(0, 255, (32, 32, 3), np.uint8), {"frame_size": 4}, "at least 8 pixels"),
    ],
)
def test_what_cannot_be_shown(space: Any, options: dict, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        frame_reader(space, **options)


def test_an_observation_of_another_shape() -> None:
    reader = frame_reader(spaces.Box(-1, 1, (3,)))
    with pytest.raises(InputError, match=r"the shape \(2,\), and the observation space says \(3,"):
        reader.read(np.zeros(2))
