"""Multi-Network (MN, the paper's Algorithm 2): a set of policies, one network each.

The network in training is the active weights' own. When they change it joins the set if it is the
best for any weights met so far, and training goes on from the set's best for the new ones.
"""

from typing import Any, ClassVar, Literal, NamedTuple, final, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from windvane.agents.core import Agent, Change, Networks
from windvane.batching import cond_any_in_place, where
from windvane.envs.environment import Environment
from windvane.errors import InputError, choose, is_number, require_positive_int
from windvane.networks import Dense, QNetwork

Reuse = Literal["full", "partial"]


class PolicySet(eqx.Module):
    """Networks and their values at the start; only places that are `held` mean anything."""

    networks: PyTree[Array]
    values: Float[Array, "room objectives"]
    held: Bool[Array, " room"]


@final
class MultiNetwork(Agent):
    """MN. It holds `room` networks: for the paper's, 9 MB each and run.

    When there is no room for one more, the policy that is best for the fewest weights gives way.
    The optimiser's momentum stays through a change.
    """

    kappa: float = 0.01
    """By how much a policy of the set must be better than a newer one to stand against it."""
    reuse: Reuse = eqx.field(static=True, default="full")
    """Whether a policy's last layers are copied, too, or begin at random."""
    room: int = eqx.field(static=True, default=24)
    conditioned: ClassVar[bool] = False

    def __check_init__(self) -> None:
        choose("reuse", self.reuse, get_args(Reuse))
        require_positive_int("the room for policies", self.room)
        if is_number(self.kappa) and self.kappa < 0:
            raise InputError(f"kappa must be 0 or more, not {self.kappa!r}")

    def remember(self, network: QNetwork) -> PolicySet:
        """No policies yet."""
        blank = jax.tree.map(lambda leaf: jnp.zeros((self.room, *leaf.shape)), network)
        objectives = network.head.value.bias.size
        return PolicySet(
            blank, jnp.zeros((self.room, objectives)), jnp.zeros(self.room, dtype=bool)
        )

    def on_change(
        self, networks: Networks, change: Change, env: Environment[Any], key: Key[Array, ""]
    ) -> Networks:
        """Lines 26 to 33. At a step at which no run's weights change, nothing is done or copied."""

        def switch(networks: Networks, change: Change, key: Key[Array, ""]) -> Networks:
            return self._switch(networks, change, env, key)

        return cond_any_in_place(change.happened, switch, networks, change, key)

    def _switch(
        self, networks: Networks, change: Change, env: Environment[Any], key: Key[Array, ""]
    ) -> Networks:
        online, target, policies = networks
        value = self.stateless_value(online, env.observe(change.start), change.before)
        admission = admit(
            policies.values, policies.held, value, *change.encountered.held, self.kappa
        )
        policies = _insert(policies, online, value, admission, change.happened)
        source = best_policy(policies.values, policies.held, change.after)
        picked = self.copy(_at(policies.networks, source), key)
        # A run whose values are not numbers has no policies.
        switched = change.happened & policies.held.any()
        return Networks(where(switched, picked, online), where(switched, picked, target), policies)

    def stateless_value(
        self, network: QNetwork, start: Array, weights: Float[Array, " objectives"]
    ) -> Float[Array, " objectives"]:
        """V: Q(s0, a) of the greedy action for the weights the network was trained for."""
        q = network(start, weights)
        return q[jnp.argmax(self.scalarise(q, weights))]

    def copy(self, network: QNetwork, key: Key[Array, ""]) -> QNetwork:
        """The network to go on with: all of a policy's, or all but its streams' last layers."""
        if self.reuse == "full":
            return network
        last = (network.head.value, network.head.advantage)
        keys = jax.random.split(key, len(last))
        fresh = tuple(
            Dense.make(k, *layer.kernel.shape) for k, layer in zip(keys, last, strict=True)
        )
        return eqx.tree_at(lambda n: (n.head.value, n.head.advantage), network, fresh)


class Admission(NamedTuple):
    """Whether a newcomer is added, to which place, and who is held then."""

    added: Bool[Array, ""]
    place: Int[Array, ""]
    held: Bool[Array, " room"]


def admit(
    values: Float[Array, "room objectives"],
    held: Bool[Array, " room"],
    value: Float[Array, " objectives"],
    past: Float[Array, "weights objectives"],
    met: Bool[Array, " weights"],
    kappa: float | Float[Array, ""],
) -> Admission:
    """Lines 26 to 29: compare a newcomer with the set by the `past` weights that were `met`.

    It is best where V.w > max V'.w - kappa. Added if that holds anywhere, it takes the place of a
    policy that is left best for none, else of the one that is best for the fewest.
    """
    scores = jnp.where(held, _dot(past[:, None], values), -jnp.inf)
    best = scores.max(1)
    won = met & (_dot(past, value) > best - kappa)
    lost = met & ~won
    best_for = (lost[:, None] & held & (scores == best[:, None])).sum(0)
    place = jnp.argmin(best_for)
    return Admission(won.any(), place, (best_for > 0).at[place].set(True))


def best_policy(
    values: Float[Array, "room objectives"],
    held: Bool[Array, " room"],
    weights: Float[Array, " objectives"],
) -> Int[Array, ""]:
    """Line 31: the place of the policy whose value is the largest for some weights."""
    return jnp.argmax(jnp.where(held, _dot(values, weights), -jnp.inf))


def _insert(
    policies: PolicySet,
    network: QNetwork,
    value: Float[Array, " objectives"],
    admission: Admission,
    happened: Bool[Array, ""],
) -> PolicySet:
    added, place = happened & admission.added, admission.place
    old, new = (policies.networks, policies.values), (network, value)
    # Written in any case, perhaps as it was: to choose between old and new would copy all.
    row = where(added, new, _at(old, place))
    networks, values = jax.tree.map(lambda rows, one: rows.at[place].set(one), old, row)
    return PolicySet(networks, values, jnp.where(added, admission.held, policies.held))


def _at(stacked: Any, place: Int[Array, ""]) -> Any:
    return jax.tree.map(lambda rows: rows[place], stacked)


def _dot(a: Float[Array, "..."], b: Float[Array, "..."]) -> Float[Array, "..."]:
    """Without the matrix units, which round more than kappa allows on some devices."""
    return (a * b).sum(-1)
