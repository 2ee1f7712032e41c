"""The appendix's Algorithm 3, slow and obvious: lists of trajectories, sorted anew each time."""

from dataclasses import dataclass, field

import numpy as np


@dataclass
class Trajectory:
    """Numbers of transitions, and the signature."""

    members: list[int] = field(default_factory=list)
    signature: np.ndarray | None = None
    whole: bool = True


def crowding_distances(points: np.ndarray) -> np.ndarray:
    """NSGA-II's crowding distance in float32; equal values are ordered by index."""
    total = np.zeros(len(points), np.float32)
    for values in points.T:
        order = np.argsort(values, kind="stable")
        ordered = values[order]
        extent = ordered[-1] - ordered[0]
        each = np.full(len(points), np.inf, np.float32)
        gaps = ordered[2:] - ordered[:-2]
        each[order[1:-1]] = gaps / (extent if extent > 0 else np.float32(1))
        total = total + each
    return total


class SlowDiverseReplay:
    """Holds transitions by number."""

    def __init__(self, capacity: int, diversity=crowding_distances):
        self.diversity = diversity
        self.half = capacity // 2
        self.ring_capacity = capacity - self.half
        self.ring: list[Trajectory] = []
        self.open_trajectory = Trajectory()
        self.diverse: list[Trajectory] = []

    def add(self, number: int, signature: np.ndarray, ended: bool) -> None:
        """`signature` is that of the open trajectory with this transition."""
        in_ring = [*self.ring, self.open_trajectory]
        if sum(len(t.members) for t in in_ring) == self.ring_capacity:
            if self.ring:
                oldest = self.ring.pop(0)
                if oldest.whole:
                    self.consider(oldest)
            else:
                self.open_trajectory.members.pop(0)
                self.open_trajectory.whole = False
        self.open_trajectory.members.append(number)
        self.open_trajectory.signature = np.asarray(signature)
        if ended:
            self.ring.append(self.open_trajectory)
            self.open_trajectory = Trajectory()

    def close_trajectory(self) -> None:
        """The open trajectory goes on as one that has lost its beginning would."""
        if self.open_trajectory.members:
            self.open_trajectory.whole = False
            self.ring.append(self.open_trajectory)
            self.open_trajectory = Trajectory()

    def consider(self, candidate: Trajectory) -> None:
        candidates = [*self.diverse, candidate]
        while sum(len(t.members) for t in candidates) > self.half:
            distances = self.diversity(np.stack([t.signature for t in candidates]))
            worst = candidates.pop(int(np.argmin(distances)))
            if worst is candidate:
                return
        self.diverse = candidates

    def held(self) -> list[int]:
        everything = [*self.ring, self.open_trajectory, *self.diverse]
        return sorted(number for t in everything for number in t.members)
