"""Conditionals and loops for `jax.vmap`: a batch skips the work that none of its members needs."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool

Value = TypeVar("Value")


def cond_any(
    needed: Bool[Array, ""], change: Callable[..., Value], value: Value, *context: Any
) -> Value:
    """`change(value, *context)` if `needed`, else `value`.

    Under `jax.vmap` a plain `lax.cond` computes both branches for every member. Here `change` runs
    only if any member of the batch needs it, and each member then selects its own result.
    `change` must not close over batched arrays: pass them as `context`.
    """

    @custom_vmap
    def choose(needed: Array, value: Any, context: Any) -> Any:
        return cond_in_place(needed, lambda value: change(value, *context), value)

    @choose.def_vmap
    def _(size: int, batched: Any, needed: Array, value: Any, context: Any) -> tuple[Any, Any]:
        needed, value, context = _broadcast(size, tuple(batched), (needed, value, context))

        def pick(new: Array, old: Array) -> Array:
            mask = needed.reshape(needed.shape + (1,) * (new.ndim - 1))
            return jnp.where(mask, new, old)

        def select(value: Any) -> Any:
            changed = jax.vmap(lambda v, c: change(v, *c))(value, context)
            return jax.tree.map(pick, changed, value)

        result = cond_in_place(needed.any(), select, value)
        return result, jax.tree.map(lambda _: True, result)

    return choose(needed, value, context)


def while_any(
    needed: Callable[..., Bool[Array, ""]],
    change: Callable[..., Value],
    value: Value,
    *context: Any,
) -> Value:
    """Apply `change(value, *context)` while `needed(value, *context)`.

    Under `jax.vmap` a plain `lax.while_loop` selects, in every iteration, between the whole old and
    the whole new value of every member. Here the loop runs while any member needs it and updates
    the value in place, so `change` must leave a member that does not need it unchanged.
    """

    @custom_vmap
    def loop(value: Any, context: Any) -> Any:
        return jax.lax.while_loop(
            lambda value: needed(value, *context), lambda value: change(value, *context), value
        )

    @loop.def_vmap
    def _(size: int, batched: Any, value: Any, context: Any) -> tuple[Any, Any]:
        value, context = _broadcast(size, tuple(batched), (value, context))
        result = jax.lax.while_loop(
            lambda value: jax.vmap(needed)(value, *context).any(),
            lambda value: jax.vmap(change)(value, *context),
            value,
        )
        return result, jax.tree.map(lambda _: True, result)

    return loop(value, context)


def cond_any_in_place(
    needed: Bool[Array, ""], change: Callable[..., Value], value: Value, *context: Any
) -> Value:
    """As `cond_any`, but a batch applies the change to all its members or to none.

    Nothing is selected afterwards, so the value is updated in place; `change` must leave a member
    that does not need it unchanged.
    """

    def pending(carry: tuple[Any, Value], *_: Any) -> Any:
        return carry[0]

    def apply(carry: tuple[Any, Value], *context: Any) -> tuple[Any, Value]:
        return jnp.asarray(False), change(carry[1], *context)

    return while_any(pending, apply, (needed, value), *context)[1]


def where(condition: Bool[Array, ""], new: Any, old: Any) -> Any:
    """`new` where `condition` holds, else `old`, for trees of arrays."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), new, old)


def cond_in_place(needed: Array, change: Callable[[Any], Any], value: Any) -> Any:
    """As `lax.cond`, in place: a loop of at most one iteration.

    A branch of `lax.cond` that changes nothing may still copy everything.
    """
    return jax.lax.while_loop(
        lambda carry: carry[0],
        lambda carry: (jnp.asarray(False), change(carry[1])),
        (needed, value),
    )[1]


def _broadcast(size: int, batched: Any, values: Any) -> Any:
    """The arrays of a tree, each with the batch's leading axis."""

    def one(leaf: Any, is_batched: bool) -> Array:
        return leaf if is_batched else jnp.broadcast_to(leaf, (size, *jnp.shape(leaf)))

    return jax.tree.map(one, values, batched)
