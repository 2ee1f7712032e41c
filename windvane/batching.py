"""Branches that a batch takes together: skipped only when no member needs them."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool

Value = TypeVar("Value")


def when(
    needed: Bool[Array, ""], change: Callable[..., Value], value: Value, *context: Any
) -> Value:
    """`change(value, *context)` if `needed`, else `value`.

    Under `jax.vmap` a plain `lax.cond` computes both branches for every member at every step.
    Here the batch asks first whether any member needs the change, and if none does, none pays.
    `change` must not close over arrays that are batched: those belong into `context`.
    """

    @custom_vmap
    def choose(needed: Array, value: Any, context: Any) -> Any:
        return jax.lax.cond(needed, lambda: change(value, *context), lambda: value)

    @choose.def_vmap
    def _(size: int, batched: Any, needed: Array, value: Any, context: Any) -> tuple[Any, Any]:
        def spread(leaf: Array, is_batched: bool) -> Array:
            return leaf if is_batched else jnp.broadcast_to(leaf, (size, *jnp.shape(leaf)))

        needed, value, context = jax.tree.map(spread, (needed, value, context), tuple(batched))

        def pick(new: Array, old: Array) -> Array:
            mask = needed.reshape(needed.shape + (1,) * (new.ndim - 1))
            return jnp.where(mask, new, old)

        def select() -> Any:
            changed = jax.vmap(lambda v, c: change(v, *c))(value, context)
            return jax.tree.map(pick, changed, value)

        result = jax.lax.cond(needed.any(), select, lambda: value)
        return result, jax.tree.map(lambda _: True, result)

    return choose(needed, value, context)
