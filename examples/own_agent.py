r"""An agent of one's own: CN that trains on weights near the active ones, beside the active ones.

    windvane train --preset quick-dst --agent own_agent:Neighbours --agent-args reach=0.3 \
      --out out/near

Run by itself, it trains for a moment beside CN.
"""

from typing import ClassVar, final

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

import windvane
from windvane.agents.core import WeightHistory, active_weights
from windvane.weights import sample_weights


@final
class Neighbours(windvane.Agent):
    """Each transition is trained on the active weights and on some not far from them."""

    reach: float = 0.3
    """How far: 0 for the active weights themselves, 1 for any at all."""
    conditioned: ClassVar[bool] = True  # the network is given the weights

    def training_weights(
        self,
        active: Float[Array, "envs objectives"],
        history: WeightHistory,
        key: Key[Array, ""],
        number: int,
    ) -> Float[Array, "n m objectives"]:
        now = active_weights(active, number)  # number x 1 x objectives
        keys = jax.random.split(key, number)
        anywhere = jax.vmap(sample_weights, (0, None))(keys, active.shape[1])[:, None]
        return jnp.concatenate([now, (1 - self.reach) * now + self.reach * anywhere], axis=1)


def main() -> None:
    settings = {"observation": "features", "width": 32, "steps": 2_000}
    for agent in (Neighbours(reach=0.3), "cn"):
        result = windvane.train("dst", agent, progress=False, **settings)
        print(f"{result.config.agent}: regret {result.regret.overall[0]:.3f}")


if __name__ == "__main__":
    main()
