"""A replay rule of one's own: it remembers how episodes ended for longer than the rest.

    windvane train --env dst --replay own_replay_rule:KeepsEndings.build --out out/endings

Run by itself, it trains for a moment beside standard replay.
"""

from typing import Any, final

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, Key, PyTree

import windvane
from windvane.replay.buffer import Rows
from windvane.replay.setup import ReplaySetup


class EndingsState(eqx.Module):
    """Rows, of which the first are a ring of all transitions and the rest one of endings."""

    rows: Rows
    added: Int[Array, ""]
    endings: Int[Array, ""]


@final
class KeepsEndings(windvane.ReplayBuffer[EndingsState]):
    """The newest transitions and, in `share` of the capacity, the last ones of episodes."""

    capacity: int = eqx.field(static=True)
    priority_exponent: float
    priority_offset: float
    share: float = eqx.field(static=True, default=0.25)

    @staticmethod
    def build(setup: ReplaySetup, share: Any = 0.25) -> "KeepsEndings":
        """What `--replay` calls, with `--replay-args`."""
        return KeepsEndings(setup.capacity, **setup.priorities, share=share)

    @property
    def ring_capacity(self) -> int:
        """Rows that the newest transitions have."""
        return self.capacity - int(self.share * self.capacity)

    def init(self, example: PyTree[Array], key: Key[Array, ""]) -> EndingsState:
        del key
        zero = jnp.zeros((), int)
        return EndingsState(self.empty_rows(example, self.capacity), zero, zero)

    def add(
        self, state: EndingsState, transition: PyTree[Array], ended: Bool[Array, ""]
    ) -> EndingsState:
        ring = self.ring_capacity
        rows = state.rows.write(self.write_index(state), transition)
        # An ending has a second row; anything else is written where it is already.
        second = ring + state.endings % (self.capacity - ring)
        rows = rows.write(jnp.where(ended, second, self.write_index(state)), transition)
        return EndingsState(rows, state.added + 1, state.endings + ended.astype(int))

    def write_index(self, state: EndingsState) -> Int[Array, ""]:
        return state.added % self.ring_capacity

    def size(self, state: EndingsState) -> Int[Array, ""]:
        recent = jnp.minimum(state.added, self.ring_capacity)
        return recent + jnp.minimum(state.endings, self.capacity - self.ring_capacity)


def main() -> None:
    settings = {"observation": "features", "width": 32, "steps": 2_000, "capacity": 400}
    mine = KeepsEndings(400, priority_exponent=2.0, priority_offset=0.01)
    for replay in (mine, "standard"):
        result = windvane.train("dst", "cn", replay=replay, progress=False, **settings)
        print(f"{result.config.replay}: regret {result.regret.overall[0]:.3f}")


if __name__ == "__main__":
    main()
