"""Branches and loops that a batch takes together: skipped only when no member needs them."""

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
        return once(needed, lambda value: change(value, *context), value)

    @choose.def_vmap
    def _(size: int, batched: Any, needed: Array, value: Any, context: Any) -> tuple[Any, Any]:
        needed, value, context = _spread(size, tuple(batched), (needed, value, context))

        def pick(new: Array, old: Array) -> Array:
            mask = needed.reshape(needed.shape + (1,) * (new.ndim - 1))
            return jnp.where(mask, new, old)

        def select(value: Any) -> Any:
            changed = jax.vmap(lambda v, c: change(v, *c))(value, context)
            return jax.tree.map(pick, changed, value)

        result = once(needed.any(), select, value)
        return result, jax.tree.map(lambda _: True, result)

    return choose(needed, value, context)


def repeat(
    needed: Callable[..., Bool[Array, ""]],
    change: Callable[..., Value],
    value: Value,
    *context: Any,
) -> Value:
    """Apply `change(value, *context)` as long as `needed(value, *context)`.

    Under `jax.vmap` a plain `lax.while_loop` also selects, in every round, between all of the old
    and all of the new value of every member. Here the batch goes on while any member needs it and
    the value is changed in place; so `change` must leave one that does not need it as it is.
    """

    @custom_vmap
    def loop(value: Any, context: Any) -> Any:
        return jax.lax.while_loop(
            lambda value: needed(value, *context), lambda value: change(value, *context), value
        )

    @loop.def_vmap
    def _(size: int, batched: Any, value: Any, context: Any) -> tuple[Any, Any]:
        value, context = _spread(size, tuple(batched), (value, context))
        result = jax.lax.while_loop(
            lambda value: jax.vmap(needed)(value, *context).any(),
            lambda value: jax.vmap(change)(value, *context),
            value,
        )
        return result, jax.tree.map(lambda _: True, result)

    return loop(value, context)


def together(
    needed: Bool[Array, ""], change: Callable[..., Value], value: Value, *context: Any
) -> Value:
    """As `when`, but a batch makes the change for all its members or for none.

    Nothing is selected afterwards, so the value is changed in place; `change` must leave a member
    that does not need it as it is.
    """

    def pending(carry: tuple[Any, Value], *_: Any) -> Any:
        return carry[0]

    def go(carry: tuple[Any, Value], *context: Any) -> tuple[Any, Value]:
        return jnp.asarray(False), change(carry[1], *context)

    return repeat(pending, go, (needed, value), *context)[1]


def where(condition: Bool[Array, ""], new: Any, old: Any) -> Any:
    """`new` where `condition` holds, else `old`, for trees of arrays."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), new, old)


def once(needed: Array, change: Callable[[Any], Any], value: Any) -> Any:
    """As `lax.cond`, in place: a loop of at most one round, since a branch that changes nothing
    may still copy everything.
    """
    return jax.lax.while_loop(
        lambda carry: carry[0],
        lambda carry: (jnp.asarray(False), change(carry[1])),
        (needed, value),
    )[1]


def _spread(size: int, batched: Any, values: Any) -> Any:
    """Give every array of a tree the batch's leading axis."""

    def one(leaf: Any, is_batched: bool) -> Array:
        return leaf if is_batched else jnp.broadcast_to(leaf, (size, *jnp.shape(leaf)))

    return jax.tree.map(one, values, batched)
