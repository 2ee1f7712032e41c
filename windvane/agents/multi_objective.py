"""MO, the paper's baseline: one multi-objective DQN, trained on the active weights alone."""

from typing import ClassVar, final

from windvane.agents.core import Agent


@final
class MultiObjectiveDQN(Agent):
    """Scalarised deep Q-learning; when the weights change, it starts from what it has."""

    conditioned: ClassVar[bool] = False
