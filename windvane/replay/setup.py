"""What a replay rule is built from by name; a rule outside the package takes the same."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ReplaySetup:
    """Settings that all replay rules share, and what a signature of trajectories needs."""

    capacity: int
    priority_exponent: float
    priority_offset: float
    num_objectives: int
    gamma: float


def standard(setup):
    from windvane.replay.standard import StandardReplay
    return StandardReplay(setup.capacity, alpha=setup.priority_exponent, epsilon=setup.priority_offset)

def sel(setup):
    from windvane.replay.selective import SelectiveReplay
    return SelectiveReplay(setup.capacity, alpha=setup.priority_exponent, epsilon=setup.priority_offset)

def exp(setup):
    from windvane.replay.exploration import ExplorationReplay
    return ExplorationReplay(setup.capacity, alpha=setup.priority_exponent, epsilon=setup.priority_offset)

def der(setup, trajectories=None):
    from windvane.replay.diverse import DiverseReplay
    from windvane.replay.signature import ReturnSignature
    signature = ReturnSignature(setup.num_objectives, setup.gamma)
    most = trajectories or max(setup.capacity // 10, 1)
    return DiverseReplay(setup.capacity, signature, trajectories=most, alpha=setup.priority_exponent, epsilon=setup.priority_offset)
