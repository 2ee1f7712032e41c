"""A native environment of one's own: a delivery van that trades speed for battery.

Two objectives, parcels and energy. It has all that training, replay and Gymnasium need: a state,
three pure methods and four declarations. Run with `python -m examples.native_environment`.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from windvane import Environment
from windvane.envs.episodes import rollout


class VanState(eqx.Module):
    """A pytree of arrays whose shapes and types never change."""

    distance: Float[Array, ""]
    battery: Float[Array, ""]


class DeliveryVan(Environment[VanState]):
    """Drive ten units to the customer, slowly or fast; a headwind costs energy at random."""

    headwind: float = 0.1  # a field: environments may differ in it

    action_names = ("slow", "fast")
    objective_names = ("parcel", "energy")
    feature_bounds = np.zeros(2, np.float32), np.asarray([10.0, 1.0], np.float32)
    time_limit = 50  # steps after which an episode is truncated

    def reset(self, key: Key[Array, ""]) -> VanState:
        return VanState(distance=jnp.asarray(10.0), battery=jnp.asarray(1.0))

    def step(
        self, state: VanState, action: Int[Array, ""], key: Key[Array, ""]
    ) -> tuple[VanState, Float[Array, " objectives"], Bool[Array, ""]]:
        speed = jnp.where(action == 1, 2.0, 1.0)
        used = 0.02 * speed**2 + self.headwind * jax.random.uniform(key) / 10
        used = jnp.minimum(used, state.battery)
        after = VanState(jnp.maximum(state.distance - speed, 0.0), state.battery - used)
        arrived = after.distance == 0
        reward = jnp.stack([jnp.where(arrived, 1.0, 0.0), -used])
        return after, reward, arrived | (after.battery == 0)

    def features(self, state: VanState) -> Float[Array, " features"]:
        return jnp.stack([state.distance, state.battery])


def main() -> None:
    env = DeliveryVan(headwind=0.2)
    print(env.spec)
    for action, name in enumerate(env.action_names):
        transitions = rollout(env, lambda *_, a=action: jnp.asarray(a), jax.random.key(0), 100)
        mean = np.asarray(transitions.reward.sum(0)) / int(transitions.ended.sum())
        print(f"{name}: parcels {mean[0]:.2f}, energy {mean[1]:.2f} per episode")


if __name__ == "__main__":
    main()
