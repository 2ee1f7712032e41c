"""Runs before their first step, compiled once for all problems of one shape."""

from typing import Any

import equinox as eqx
import jax

from windvane.training.fused import FusedDriver, RunState


@eqx.filter_jit
def initial(driver: FusedDriver, seeds: Any) -> RunState:
    return jax.vmap(driver.init)(seeds)


def pick(runs: Any, index: int) -> Any:
    """One run of many."""
    return jax.tree.map(lambda leaf: leaf[index], runs)
