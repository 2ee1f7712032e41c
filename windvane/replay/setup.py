"""What a replay rule is built from by name; a rule outside the package takes the same."""

from dataclasses import dataclass

NONE = "none"
"""The name of the rule that keeps nothing, for agents that learn from rollouts."""


@dataclass(frozen=True)
class ReplaySetup:
    """Settings that all replay rules share, and what a signature of trajectories needs."""

    capacity: int
    priority_exponent: float
    priority_offset: float
    num_objectives: int
    gamma: float

    @property
    def priorities(self) -> dict[str, float]:
        """What makes priorities, as keyword arguments of a buffer."""
        return {
            "priority_exponent": self.priority_exponent,
            "priority_offset": self.priority_offset,
        }


def no_replay(setup: ReplaySetup) -> None:
    """No buffer at all."""
    del setup
