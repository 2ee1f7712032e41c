"""Multi-Network (MN, the paper's Algorithm 2): a set of policies, one network each.

The network in training is the active weights' own. When they change it joins the set if it is the
best for any weights met so far, and training continues from the set's best for the new ones.
"""

from typing import Any, ClassVar, Literal, NamedTuple, final, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, Num, PyTree

from windvane.agents.core import Agent, Networks, WeightChange
from windvane.batching import cond_any_in_place, where
from windvane.errors import InputError, choose, is_number, require_positive_int
from windvane.networks import Dense, QNetwork

Reuse = Literal["full", "partial"]


class PolicySet(eqx.Module):
    """Networks and their values at the start of an episode; only entries in the `mask` count."""

    networks: PyTree[Array]
    values: Float[Array, "policies objectives"]
    mask: Bool[Array, " policies"]


@final
class MultiNetwork(Agent):
    """MN. It holds `max_policies` networks: for the paper's, 9 MB each per run.

    When the set is full, the policy that is best for the fewest weights is replaced. The
    optimiser's momentum stays through a change.
    """

    kappa: float = 0.01
    """By how much a policy of the set must be better than a newer one to stand against it."""
    reuse: Reuse = eqx.field(static=True, default="full")
    """Whether a policy's last layers are copied, too, or begin at random."""
    max_policies: int = eqx.field(static=True, default=24)
    """Most policies in the set."""
    conditioned: ClassVar[bool] = False

    def __check_init__(self) -> None:
        choose("reuse", self.reuse, get_args(Reuse))
        require_positive_int("max_policies", self.max_policies, 4096)
        traced = isinstance(self.kappa, jax.Array)
        if not traced and not (is_number(self.kappa) and self.kappa >= 0):
            raise InputError(f"kappa must be a number of at least 0, not {self.kappa!r}")

    def init_agent_state(self, network: QNetwork) -> PolicySet:
        """No policies yet."""
        number = self.max_policies
        blank = jax.tree.map(lambda leaf: jnp.zeros((number, *leaf.shape)), network)
        objectives = network.head.outputs
        return PolicySet(blank, jnp.zeros((number, objectives)), jnp.zeros(number, dtype=bool))

    def on_change(
        self, networks: Networks, change: WeightChange, observe: Any, key: Key[Array, ""]
    ) -> Networks:
        """Lines 25 to 32. At a step at which no run's weights change, nothing is done or copied."""

        def switch(networks: Networks, change: WeightChange, key: Key[Array, ""]) -> Networks:
            return self._switch(networks, change, observe(change.start), key)

        return cond_any_in_place(change.changed, switch, networks, change, key)

    def _switch(
        self, networks: Networks, change: WeightChange, start: Array, key: Key[Array, ""]
    ) -> Networks:
        online, target, policies = networks
        value = self.stateless_value(online, start, change.old)
        history = change.history
        admission = admit(
            policies.values, policies.mask, value, history.vectors, history.mask, self.kappa
        )
        policies = _insert(policies, online, value, admission, change.changed)
        source = best_policy(policies.values, policies.mask, change.new)
        picked = self.copy(_at(policies.networks, source), key)
        # A run whose values are not numbers has no policies.
        switched = change.changed & policies.mask.any()
        return Networks(where(switched, picked, online), where(switched, picked, target), policies)

    def stateless_value(
        self, network: QNetwork, start: Array, weights: Float[Array, " objectives"]
    ) -> Float[Array, " objectives"]:
        """V: Q(s0, a) of the greedy action for the weights the network was trained for."""
        q = network(start, weights)
        return q[jnp.argmax(self.scalarise(q, weights))]

    def copy(self, network: QNetwork, key: Key[Array, ""]) -> QNetwork:
        """The network to go on with: all of a policy's, or all but its last layers."""
        if self.reuse == "full":
            return network
        last = network.head.last
        keys = jax.random.split(key, len(last))
        fresh = tuple(
            Dense.make(k, *layer.kernel.shape) for k, layer in zip(keys, last, strict=True)
        )
        return eqx.tree_at(lambda n: n.head.last, network, fresh)

    def policy_network(
        self,
        networks: Networks,
        start: Num[Array, "..."] | None,
        weights: Float[Array, " objectives"],
    ) -> "BestOfSet":
        """The set, and the network in training as one more policy of it."""
        if start is None:
            raise InputError("the policy of mn needs an observation at the start of an episode")
        policies = networks.agent_state
        value = self.stateless_value(networks.online, start, weights)
        old, new = (policies.networks, policies.values), (networks.online, value)
        held = policies.mask
        both = jax.tree.map(lambda many, one: jnp.concatenate([many[held], one[None]]), old, new)
        return BestOfSet(*both)

    def policy_template(self, network: Any, sizes: dict[str, int]) -> "BestOfSet":
        """A set of as many networks as were saved."""
        number = sizes.get("policies", 1)
        stacked = jax.tree.map(lambda leaf: jnp.zeros((number, *leaf.shape)), network)
        return BestOfSet(stacked, jnp.zeros((number, network.head.outputs)))

    def policy_sizes(self, policy: Any) -> dict[str, int]:
        """How many policies there are."""
        return {"policies": len(policy.values)}


@final
class BestOfSet(eqx.Module):
    """Networks of which the one with the best value at the start, for the weights, answers."""

    networks: QNetwork
    values: Float[Array, "policies objectives"]

    def __call__(self, observation: Array, weights: Array) -> Float[Array, "actions outputs"]:
        """Q-values of one observation for one weight vector."""
        best = best_policy(self.values, jnp.ones(len(self.values), bool), weights)
        return _at(self.networks, best)(observation, weights)


class Admission(NamedTuple):
    """Whether a policy is added, in which slot, and which policies the set holds then."""

    added: Bool[Array, ""]
    slot: Int[Array, ""]
    mask: Bool[Array, " policies"]


def admit(
    values: Float[Array, "policies objectives"],
    mask: Bool[Array, " policies"],
    value: Float[Array, " objectives"],
    past: Float[Array, "weights objectives"],
    known: Bool[Array, " weights"],
    kappa: float | Float[Array, ""],
) -> Admission:
    """Lines 26 to 29: compare a policy with the set by the `past` weights that are `known`.

    It is best where V.w > max V'.w - kappa. Added if that holds anywhere, it takes the slot of a
    policy that is left best for none, else of the one that is best for the fewest.
    """
    scores = jnp.where(mask, _dot(past[:, None], values), -jnp.inf)
    best = scores.max(1)
    won = known & (_dot(past, value) > best - kappa)
    lost = known & ~won
    best_for = (lost[:, None] & mask & (scores == best[:, None])).sum(0)
    slot = jnp.argmin(best_for)
    return Admission(won.any(), slot, (best_for > 0).at[slot].set(True))


def best_policy(
    values: Float[Array, "policies objectives"],
    mask: Bool[Array, " policies"],
    weights: Float[Array, " objectives"],
) -> Int[Array, ""]:
    """Line 30: the index of the policy whose value is the largest for some weights."""
    return jnp.argmax(jnp.where(mask, _dot(values, weights), -jnp.inf))


def _insert(
    policies: PolicySet,
    network: QNetwork,
    value: Float[Array, " objectives"],
    admission: Admission,
    changed: Bool[Array, ""],
) -> PolicySet:
    added, slot = changed & admission.added, admission.slot
    old, new = (policies.networks, policies.values), (network, value)
    # Written in any case, perhaps as it was: to choose between old and new would copy all.
    row = where(added, new, _at(old, slot))
    networks, values = jax.tree.map(lambda rows, one: rows.at[slot].set(one), old, row)
    return PolicySet(networks, values, jnp.where(added, admission.mask, policies.mask))


def _at(stacked: Any, index: Int[Array, ""]) -> Any:
    return jax.tree.map(lambda rows: rows[index], stacked)


def _dot(a: Float[Array, "..."], b: Float[Array, "..."]) -> Float[Array, "..."]:
    """Without the matrix units, which round more than kappa allows on some devices."""
    return (a * b).sum(-1)
