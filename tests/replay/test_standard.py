"""Standard replay keeps the newest transitions."""

import jax
import jax.numpy as jnp
import pytest

from tests.replay.streams import fill, held
from windvane.replay.standard import StandardReplay


@pytest.mark.parametrize("capacity", [1, 5, 130])
def test_standard_keeps_the_last(capacity: int) -> None:
    buffer = StandardReplay(capacity)
    state = fill(buffer, jax.random.key(0), jnp.arange(300), jnp.zeros(300))
    assert held(state) == list(range(300 - capacity, 300))
