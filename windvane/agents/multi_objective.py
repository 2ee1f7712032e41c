"""MO, the paper's baseline: one multi-objective DQN, trained on the active weights alone."""

from typing import ClassVar, final

from jaxtyping import Array, Float, Key

from windvane.agents.core import Agent, Encountered, active_only


@final
class MultiObjectiveDQN(Agent):
    """Scalarised deep Q-learning; when the weights change, it starts from what it has."""

    conditioned: ClassVar[bool] = False

    def training_weights(
        self,
        active: Float[Array, " objectives"],
        encountered: Encountered,
        key: Key[Array, ""],
        number: int,
    ) -> Float[Array, "n m objectives"]:
        """The active weights."""
        del encountered, key
        return active_only(active, number)
