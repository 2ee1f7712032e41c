"""The setting that clips targets reaches the loss, and is off by default."""

from typing import Any

import numpy as np
import pytest

from tests.formats import OLD
from tests.runs.small import same_records, small
from windvane.errors import InputError
from windvane.experiments.runs.paths import relative_path
from windvane.runs.runner import train
from windvane.training.config import TrainConfig

SHORT: dict[str, Any] = {"steps": 160, "seeds": (3,), "precision": "float32", "env_args": {}}


def test_what_cannot_be_reached_is_not_learned() -> None:
    """No reward is larger than 1 (scaled): a limit beyond all returns changes nothing, and one of a
    thousandth leaves nothing to learn but values of that size.
    """
    plain, wide, narrow = (
        train(small(**SHORT, clip_targets=limit)).records for limit in (0.0, 1e3, 1e-3)
    )
    assert same_records(plain, wide)
    assert not np.array_equal(plain["loss"], narrow["loss"])


def test_the_setting_is_younger_than_its_format() -> None:
    old = TrainConfig.from_json(OLD)
    assert old.clip_targets == 0
    values = small(**SHORT).to_json()
    del values["clip_targets"]
    assert TrainConfig.from_json(values) == small(**SHORT)
    assert relative_path(small(**SHORT)) != relative_path(small(**SHORT, clip_targets=2.0))
    with pytest.raises(InputError, match="clip_targets must be a number of at least 0 and at most"):
        small(clip_targets=-1)
