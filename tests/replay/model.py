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
    number, objectives = points.shape
    total = None
    for objective in range(objectives):
        order = np.argsort(points[:, objective], kind="stable")
        values = points[order, objective]
        extent = values[-1] - values[0]
        each = np.full(number, np.inf, np.float32)
        for place in range(1, number - 1):
            gap = np.float32(values[place + 1] - values[place - 1])
            each[order[place]] = gap / (extent if extent > 0 else np.float32(1))
        total = each if total is None else total + each
    return total


class SlowDiverseReplay:
    """Holds transitions by number."""

    def __init__(self, capacity: int):
        self.half = capacity // 2
        self.ring_capacity = capacity - self.half
        self.ring: list[Trajectory] = []
        self.running = Trajectory()
        self.diverse: list[Trajectory] = []

    def add(self, number: int, signature: np.ndarray, ended: bool) -> None:
        """`signature` is that of the running trajectory with this transition."""
        if sum(len(t.members) for t in self.ring) + len(self.running.members) == self.ring_capacity:
            if self.ring:
                oldest = self.ring.pop(0)
                if oldest.whole:
                    self.consider(oldest)
            else:
                self.running.members.pop(0)
                self.running.whole = False
        self.running.members.append(number)
        if ended:
            self.running.signature = np.asarray(signature, np.float32)
            self.ring.append(self.running)
            self.running = Trajectory()

    def consider(self, newcomer: Trajectory) -> None:
        candidates = [*self.diverse, newcomer]
        while sum(len(t.members) for t in candidates) > self.half:
            distances = crowding_distances(np.stack([t.signature for t in candidates]))
            worst = candidates.pop(int(np.argmin(distances)))
            if worst is newcomer:
                return
        self.diverse = candidates

    def held(self) -> list[int]:
        everything = [*self.ring, self.running, *self.diverse]
        return sorted(number for t in everything for number in t.members)
