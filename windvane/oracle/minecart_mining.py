"""When to stop mining, and what a trip then earns.

Ore is drawn at random, so how long to mine depends on what is in the cart. Let a trip home take d
steps and burn fuel f, let u be the worth of the content and s its amount. Going home is worth
gamma^(d-1) u + w_fuel f; mining once more and then going home is worth the same one step later,
for the expected gain of content and the fuel of mining. The gain depends only on the room left in
the cart and shrinks with it, while the loss by discounting grows with u: once going home is the
better of the two it stays so, and looking one step ahead is optimal ("monotone case" of optimal
stopping). With several ways home the better one is taken for the content at hand; looking one step
ahead is then no longer proven optimal, only very nearly so (see the tests).
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from windvane.envs.minecart import Minecart
from windvane.envs.plans import discount

LOADS = 65
"""Points at which the expected gain is tabulated, from an empty to a full cart."""


class WaysHome(eqx.Module):
    """Alternatives for the way home: steps and discounted fuel of each; unused ones burn -inf."""

    steps: Int[Array, " ways"]
    fuel: Float[Array, " ways"]


class StoppingRule(eqx.Module):
    """Decides, for one reference weight vector, between mining on and each way home."""

    weights: Float[Array, " objectives"]
    ways: WaysHome
    expected_gain: Float[Array, "loads ores"]
    capacity: Float[Array, ""]
    mining_fuel: Float[Array, ""]
    gamma: Float[Array, ""]
    most: Int[Array, ""]

    def decide(
        self, content: Float[Array, " ores"], mined: Int[Array, ""]
    ) -> tuple[Bool[Array, ""], Int[Array, ""]]:
        """Whether to mine once more after `mined` steps of it, and the way home if not."""
        worth, fuel = self.weights[:-1], self.weights[-1]
        factor = discount(self.gamma, self.ways.steps - 1)
        home = factor * (worth @ content) + _weighted(fuel, self.ways.fuel)
        gain = self._gain(content.sum())
        later = factor * (worth @ (content + gain)) + _weighted(fuel, self.ways.fuel)
        mine_on = fuel * self.mining_fuel + self.gamma * later.max()
        return (mine_on > home.max()) & (mined < self.most), jnp.argmax(home)

    def _gain(self, load: Float[Array, ""]) -> Float[Array, " ores"]:
        position = jnp.clip(load / self.capacity, 0.0, 1.0) * (LOADS - 1)
        low = jnp.clip(jnp.floor(position).astype(int), 0, LOADS - 2)
        fraction = position - low.astype(position.dtype)
        return self.expected_gain[low] * (1 - fraction) + self.expected_gain[low + 1] * fraction


def _weighted(weight: Float[Array, ""], fuel: Float[Array, " ways"]) -> Float[Array, " ways"]:
    # 0 * -inf is NaN, yet an unused way must stay unused when fuel has no weight.
    return jnp.where(jnp.isinf(fuel), -jnp.inf, weight * jnp.where(jnp.isinf(fuel), 0.0, fuel))


def mine_once(
    env: Minecart, mine: Int[Array, ""], content: Float[Array, " ores"], key: Key[Array, ""]
) -> Float[Array, " ores"]:
    """The content after one agent step of mining."""
    return env.load(content, env.draw_hauls(mine, key), [jnp.asarray(True)] * env.frame_skip)


@eqx.filter_jit
def mining_paths(
    env: Minecart,
    mine: Int[Array, ""],
    key: Key[Array, ""],
    paths: int,
    steps: int,
    before: tuple[Int[Array, ""], int] | None = None,
) -> Float[Array, "paths times ores"]:
    """Contents after 0 to `steps` steps of mining, for many independent carts.

    `before` is a mine, and a number of steps, in which the carts mined earlier.
    """

    def path(key: Key[Array, ""]) -> Float[Array, "times ores"]:
        content = jnp.zeros(env.ore_means.shape[1:], env.capacity.dtype)
        key, early_key = jax.random.split(key)
        if before is not None:
            for early in jax.random.split(early_key, before[1]):
                content = mine_once(env, before[0], content, early)

        def step(content: Array, key: Array) -> tuple[Array, Array]:
            content = mine_once(env, mine, content, key)
            return content, content

        later = jax.lax.scan(step, content, jax.random.split(key, steps))[1]
        return jnp.concatenate([content[None], later])

    return jax.vmap(path)(jax.random.split(key, paths))


@eqx.filter_jit
def expected_gain(
    env: Minecart, mine: Int[Array, ""], key: Key[Array, ""], draws: int
) -> Float[Array, "loads ores"]:
    """Mean content gained by one step of mining, for each of `LOADS` loads."""
    keys = jax.random.split(key, draws)
    first = jnp.zeros(env.ore_means.shape[1:], env.capacity.dtype).at[0].set(1.0)

    def gain(load: Float[Array, ""]) -> Float[Array, " ores"]:
        after = jax.vmap(lambda k: mine_once(env, mine, first * load, k))(keys)
        return after.mean(0) - first * load

    return jax.lax.map(gain, jnp.linspace(0.0, 1.0, LOADS) * env.capacity)


class TripResult(eqx.Module):
    """Means over many trips: the discounted return, the steps mined, and each way home's share."""

    returns: Float[Array, " objectives"]
    mined: Float[Array, ""]
    ways: Float[Array, " ways"]


def trip_result(
    rule: StoppingRule,
    out_steps: Int[Array, ""],
    out_fuel: Float[Array, ""],
    paths: Float[Array, "paths times ores"],
) -> TripResult:
    """Drive out, mine by `rule` along each of `paths`, drive home."""
    gamma, times = rule.gamma, paths.shape[1]

    def one(contents: Float[Array, "times ores"]) -> TripResult:
        mine_on, way = jax.vmap(rule.decide)(contents, jnp.arange(times))
        stop = jnp.argmin(mine_on.at[-1].set(False))
        taken = way[stop]
        spent = jnp.where(jnp.arange(times) < stop, discount(gamma, jnp.arange(times)), 0.0).sum()
        leave = discount(gamma, out_steps + stop)
        ores = leave * discount(gamma, rule.ways.steps[taken] - 1) * contents[stop]
        burnt = out_fuel + discount(gamma, out_steps) * spent * rule.mining_fuel
        burnt = burnt + leave * rule.ways.fuel[taken]
        share = (jnp.arange(rule.ways.steps.size) == taken).astype(burnt.dtype)
        return TripResult(jnp.append(ores, burnt), stop.astype(burnt.dtype), share)

    return jax.tree.map(lambda leaf: leaf.mean(0), jax.vmap(one)(paths))
