"""Diverse Experience Replay (the paper's Algorithm 3): half the buffer is first-in first-out, half
keeps trajectories that differ from each other.

New transitions enter a ring. When it is full, its oldest trajectory is evicted as a whole and is a
candidate for the diverse half. While there is no room for it, the least diverse trajectory, the
candidate included, is removed; if that is the candidate, it is dropped and nothing else changes.

Rows [0, ring) are the ring. The trajectories of the diverse half follow, one after another, with
gaps where some were removed; they are compacted when the last row is reached.

The decision depends on the table of trajectories alone, which is small; rows are then updated in
place, one segment at a time. Neither step touches all rows, so that vmapped buffers stay fast.
"""

import dataclasses
from typing import Any, ClassVar, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Key, PyTree

from windvane.batching import cond_any, cond_any_in_place, where, while_any
from windvane.errors import LARGEST_COUNT, require_positive_int
from windvane.replay.buffer import SEGMENT, ReplayBuffer, Rows, check_buffer
from windvane.replay.crowding import CrowdingDistance
from windvane.replay.diversity import Diversity
from windvane.replay.priorities import Priorities
from windvane.replay.setup import ReplaySetup
from windvane.replay.signature import ReturnSignature, Signature


class Trajectory(eqx.Module):
    """One trajectory, or many; `whole` is false if its beginning or its end is missing."""

    length: Int[Array, "*many"]
    whole: Bool[Array, "*many"]
    signature: PyTree[Array]


class Ring(eqx.Module):
    """The first-in first-out half: closed trajectories, oldest first, then the open one.

    The closed ones are a queue: entry `queue_start` is the oldest of `queue_length`. `oldest` is a
    copy of that entry, so that a step never reads from the queue what it may overwrite.
    """

    write_index: Int[Array, ""]
    size: Int[Array, ""]
    queue_start: Int[Array, ""]
    queue_length: Int[Array, ""]
    queue: Trajectory
    oldest: Trajectory
    open_trajectory: Trajectory
    open_time: Int[Array, ""]


class DiverseTable(eqx.Module):
    """The table of the diverse half: its trajectories' rows, ages and signatures.

    `inserted_at` is -1 for a free slot, else the value of `considered` at the insertion; the free
    slots are `free[number:]`. `used` counts rows, and the next trajectory's rows begin at `end`.
    """

    offsets: Int[Array, " slots"]
    lengths: Int[Array, " slots"]
    inserted_at: Int[Array, " slots"]
    free: Int[Array, " slots"]
    signatures: PyTree[Array]
    diversity_state: PyTree[Array]
    number: Int[Array, ""]
    used: Int[Array, ""]
    end: Int[Array, ""]
    considered: Int[Array, ""]


class Eviction(eqx.Module):
    """`length` rows, beginning at `start`, leave the ring: a candidate, or rows to drop."""

    start: Int[Array, ""]
    length: Int[Array, ""]
    is_candidate: Bool[Array, ""]
    signature: PyTree[Array]


class Admission(eqx.Module):
    """Whether a candidate was accepted, its slot, and how many others were removed for it."""

    accepted: Bool[Array, ""]
    slot: Int[Array, ""]
    removed: Int[Array, ""]


class DiverseReplayState(eqx.Module):
    """The rows of both halves and the tables of their trajectories."""

    rows: Rows
    ring: Ring
    diverse: DiverseTable


@final
class DiverseReplay(ReplayBuffer[DiverseReplayState]):
    """Half first-in first-out, half diverse; sampling treats both halves alike."""

    capacity: int = eqx.field(static=True)
    trajectories: int = eqx.field(static=True)
    signature: Signature
    diversity: Diversity[Any]
    priority_exponent: float
    priority_offset: float

    whole_trajectories: ClassVar[bool] = True

    def __init__(
        self,
        capacity: int,
        signature: Signature,
        diversity: Diversity[Any] | None = None,
        *,
        trajectories: int | None = None,
        priority_exponent: float = 2.0,
        priority_offset: float = 0.01,
    ):
        """`trajectories` is the largest number of trajectories in the diverse half.

        The default has room for any number; a smaller one saves time where trajectories are known
        to be longer than a few transitions. The default diversity is the crowding distance.
        """
        self.capacity = check_buffer(capacity, priority_exponent, priority_offset, smallest=2)
        limit = self.diverse_capacity if trajectories is None else trajectories
        self.trajectories = require_positive_int("the number of trajectories", limit, LARGEST_COUNT)
        self.diversity = CrowdingDistance() if diversity is None else diversity
        self.signature = signature
        self.priority_exponent, self.priority_offset = priority_exponent, priority_offset

    @staticmethod
    def build(setup: ReplaySetup, trajectories: Any = None) -> "DiverseReplay":
        """For the registry: returns as signatures, and by default room for a tenth as many
        trajectories as transitions.
        """
        signature = ReturnSignature(setup.num_objectives, setup.gamma)
        most = max(setup.capacity // 10, 1) if trajectories is None else trajectories
        return DiverseReplay(setup.capacity, signature, None, trajectories=most, **setup.priorities)

    @property
    def diverse_capacity(self) -> int:
        """Transitions in the diverse half."""
        return self.capacity // 2

    @property
    def _diverse_rows(self) -> int:
        # Spare rows behind the trajectories make compaction rare.
        rows = self.diverse_capacity + max(self.diverse_capacity // 4, SEGMENT) + SEGMENT
        return -(-rows // SEGMENT) * SEGMENT

    @property
    def _diverse_start(self) -> int:
        # A block of priorities apart from the ring, so that rows can be moved between the halves.
        return (-(-self.ring_capacity // SEGMENT) + 1) * SEGMENT

    def init(self, example: PyTree[Array], key: Key[Array, ""]) -> DiverseReplayState:
        """Nothing held. The key is not used."""
        del key
        zero = jnp.zeros((), int)
        size, slots = self.ring_capacity, self.trajectories + 1
        start = self.signature.start()
        rows = self.empty_rows(example, self._diverse_start + self._diverse_rows)
        empty = self._empty_trajectory()
        ring = Ring(
            write_index=zero, size=zero, queue_start=zero, queue_length=zero,
            queue=_stacked(empty, size), oldest=empty, open_trajectory=empty, open_time=zero,
        )  # fmt: skip
        diverse = DiverseTable(
            offsets=jnp.zeros(slots, int), lengths=jnp.zeros(slots, int),
            inserted_at=jnp.full(slots, -1, int), free=jnp.arange(slots),
            signatures=_stacked(start, slots),
            diversity_state=self.diversity.init(slots, start),
            number=zero, used=zero, end=zero, considered=zero,
        )  # fmt: skip
        return DiverseReplayState(rows, ring, diverse)

    def add(
        self, state: DiverseReplayState, transition: PyTree[Array], ended: Bool[Array, ""]
    ) -> DiverseReplayState:
        """Add a transition to the open trajectory; a full ring evicts its oldest one first."""
        eviction = self._next_eviction(state.ring)
        halves = (state.rows, state.diverse)
        rows, diverse = cond_any_in_place(eviction.length > 0, self._evict, halves, eviction)
        ring = self._make_room(state.ring, eviction)
        rows = rows.write(ring.write_index, transition)
        return DiverseReplayState(rows, self._append(ring, transition, ended), diverse)

    def close_trajectory(self, state: DiverseReplayState) -> DiverseReplayState:
        """The open trajectory is abandoned: the next transition begins another.

        Its transitions stay in the ring until it is evicted, but as it is not whole it is then
        dropped and not considered for the diverse half. If none is open, nothing changes.
        """
        ring = state.ring
        is_open = ring.open_trajectory.length > 0
        abandoned = Trajectory(
            ring.open_trajectory.length, jnp.asarray(False), ring.open_trajectory.signature
        )
        tail = (ring.queue_start + ring.queue_length) % self.ring_capacity
        # The end of a full queue is its start, which must not change: what is there is put back.
        there = jax.tree.map(lambda leaf: leaf[tail], ring.queue)
        queue = _put(ring.queue, tail, where(is_open, abandoned, there))
        first = is_open & (ring.queue_length == 0)
        closed = Ring(
            write_index=ring.write_index,
            size=ring.size,
            queue_start=ring.queue_start,
            queue_length=ring.queue_length + is_open.astype(int),
            queue=queue,
            oldest=where(first, abandoned, ring.oldest),
            open_trajectory=where(is_open, self._empty_trajectory(), ring.open_trajectory),
            open_time=jnp.where(is_open, 0, ring.open_time),
        )
        return DiverseReplayState(state.rows, closed, state.diverse)

    def write_index(self, state: DiverseReplayState) -> Int[Array, ""]:
        """The index after the newest."""
        return state.ring.write_index

    def size(self, state: DiverseReplayState) -> Int[Array, ""]:
        """Number of transitions held in both halves."""
        return state.ring.size + state.diverse.used

    def signatures(self, state: DiverseReplayState) -> tuple[Any, Any]:
        """Signatures of the closed trajectories in the ring, oldest first, and of those in the
        diverse half, as NumPy arrays; for inspecting one buffer outside a compiled program.
        """
        ring, diverse = state.ring, state.diverse
        order = (int(ring.queue_start) + np.arange(int(ring.queue_length))) % self.ring_capacity
        used = np.flatnonzero(np.asarray(diverse.inserted_at) >= 0)
        recent = jax.tree.map(lambda leaf: np.asarray(leaf)[order], ring.queue.signature)
        kept = jax.tree.map(lambda leaf: np.asarray(leaf)[used], diverse.signatures)
        return recent, kept

    def _next_eviction(self, ring: Ring) -> Eviction:
        """The ring's oldest trajectory, if the ring is full.

        If the ring holds nothing but the open trajectory, that one loses its oldest transition.
        """
        full, any_closed = ring.size == self.ring_capacity, ring.queue_length > 0
        length = jnp.where(any_closed, ring.oldest.length, 1)
        return Eviction(
            start=(ring.write_index - ring.size) % self.ring_capacity,
            length=jnp.where(full, length, 0),
            is_candidate=full & any_closed & ring.oldest.whole,
            signature=ring.oldest.signature,
        )

    def _evict(
        self, halves: tuple[Rows, DiverseTable], eviction: Eviction
    ) -> tuple[Rows, DiverseTable]:
        """Remove the evicted rows from the ring; those of an accepted candidate move."""
        rows, diverse = halves
        no, zero = jnp.asarray(False), jnp.zeros((), int)
        diverse, admission = cond_any(
            eviction.is_candidate, self._try_admit, (diverse, Admission(no, zero, zero)), eviction
        )
        at_end = admission.accepted & (diverse.end + SEGMENT > self._diverse_rows)
        rows, diverse, admission = cond_any(at_end, self._compact, (rows, diverse, admission))
        return self._update_rows(rows, diverse, admission, eviction), diverse

    def _try_admit(
        self, before: tuple[DiverseTable, Admission], eviction: Eviction
    ) -> tuple[DiverseTable, Admission]:
        """Algorithm 3's loop, on a copy of the table that is kept if the candidate is accepted."""
        diverse, _ = before
        slot = diverse.free[diverse.number]
        trial = DiverseTable(
            offsets=diverse.offsets.at[slot].set(diverse.end),
            lengths=diverse.lengths.at[slot].set(eviction.length),
            inserted_at=diverse.inserted_at.at[slot].set(diverse.considered),
            free=diverse.free,
            signatures=_put(diverse.signatures, slot, eviction.signature),
            diversity_state=self.diversity.insert(
                diverse.diversity_state, slot, eviction.signature
            ),
            number=diverse.number + 1,
            used=diverse.used + eviction.length,
            end=diverse.end + eviction.length,
            considered=diverse.considered + 1,
        )

        def lacks_room(trial: DiverseTable) -> Bool[Array, ""]:
            overfull = trial.used > self.diverse_capacity
            return (trial.inserted_at[slot] >= 0) & (overfull | (trial.number > self.trajectories))

        trial = jax.lax.while_loop(lacks_room, self._remove_least_diverse, trial)
        accepted = trial.inserted_at[slot] >= 0
        removed = diverse.number + 1 - trial.number
        kept = where(accepted, trial, diverse)
        kept = eqx.tree_at(lambda d: d.considered, kept, diverse.considered + 1)
        return kept, Admission(accepted, slot, jnp.where(accepted, removed, 0))

    def _remove_least_diverse(self, diverse: DiverseTable) -> DiverseTable:
        """Remove the least diverse trajectory from the table; among equals, the oldest."""
        used = diverse.inserted_at >= 0
        diversities = jnp.where(used, self.diversity.diversities(diverse.diversity_state), jnp.inf)
        least = used & (diversities == diversities.min())
        worst = jnp.argmin(jnp.where(least, diverse.inserted_at, diverse.considered))
        return DiverseTable(
            offsets=diverse.offsets,
            lengths=diverse.lengths,
            inserted_at=diverse.inserted_at.at[worst].set(-1),
            free=diverse.free.at[diverse.number - 1].set(worst),
            signatures=diverse.signatures,
            diversity_state=self.diversity.remove(diverse.diversity_state, worst),
            number=diverse.number - 1,
            used=diverse.used - diverse.lengths[worst],
            end=diverse.end,
            considered=diverse.considered,
        )

    def _update_rows(
        self, rows: Rows, diverse: DiverseTable, admission: Admission, eviction: Eviction
    ) -> Rows:
        """Drop the rows of removed trajectories; move or drop those of the evicted one."""

        def pending(
            work: tuple[Rows, Array, Array],
            diverse: DiverseTable,
            admission: Admission,
            eviction: Eviction,
        ) -> Bool[Array, ""]:
            _, trajectory, _ = work
            last = (trajectory == admission.removed) & (eviction.length > 0)
            return (trajectory < admission.removed) | last

        def update_segment(
            work: tuple[Rows, Array, Array],
            diverse: DiverseTable,
            admission: Admission,
            eviction: Eviction,
        ) -> tuple[Rows, Array, Array]:
            rows, trajectory, done = work
            # The slots of removed trajectories are on top of the stack of free ones.
            slot = diverse.free[diverse.number + trajectory]
            is_evicted = trajectory >= admission.removed
            source = jnp.where(
                is_evicted,
                (eviction.start + done) % self.ring_capacity,
                self._diverse_start + diverse.offsets[slot] + done,
            )
            length = jnp.where(is_evicted, eviction.length, diverse.lengths[slot])
            before_wrap = jnp.where(is_evicted, self.ring_capacity - source, SEGMENT)
            number = jnp.minimum(jnp.minimum(SEGMENT, before_wrap), length - done)
            # Another member of the batch may have more to do than this one.
            busy = pending(work, diverse, admission, eviction)
            number = jnp.where(busy, number, 0)
            kept = busy & is_evicted & admission.accepted
            target = self._diverse_start + diverse.offsets[admission.slot] + done
            rows = rows.move_segment(source, target, number, kept)
            finished = done + number >= length
            trajectory = trajectory + (finished & (number > 0)).astype(int)
            return rows, trajectory, jnp.where(finished, 0, done + number)

        start = (rows, jnp.zeros((), int), jnp.zeros((), int))
        return while_any(pending, update_segment, start, diverse, admission, eviction)[0]

    def _compact(
        self, before: tuple[Rows, DiverseTable, Admission]
    ) -> tuple[Rows, DiverseTable, Admission]:
        """Close the gaps between the trajectories of the diverse half.

        Drops the rows of removed trajectories as well; the candidate's rows are still in the ring.
        """
        rows, diverse, admission = before
        size = self._diverse_rows
        present = (diverse.inserted_at >= 0).at[admission.slot].set(False)
        # +1 where a trajectory starts, -1 where it ends: rows are held where the sum is positive.
        starts = jnp.where(present, diverse.offsets, size + 1)
        marks = jnp.zeros(size + 1, int).at[starts].add(1, mode="drop")
        marks = marks.at[starts + diverse.lengths].add(-1, mode="drop")
        held = jnp.cumsum(marks)[:size] > 0
        source = self._diverse_start + jnp.nonzero(held, size=size, fill_value=size - 1)[0]
        held_before = jnp.cumsum(held) - held.astype(int)
        end = held.sum()
        indices = self._diverse_start + jnp.arange(size)
        data = rows.data.at[indices].set(rows.data[source])
        kept = jnp.where(jnp.arange(size) < end, rows.priorities[source], 0.0)
        values = jax.lax.dynamic_update_slice(
            rows.priorities.values,
            kept.reshape(-1, SEGMENT),
            (self._diverse_start // SEGMENT, 0),
        )
        priorities = Priorities.of(values)
        offsets = held_before[jnp.minimum(diverse.offsets, size - 1)].at[admission.slot].set(end)
        end = end + diverse.lengths[admission.slot]
        diverse = eqx.tree_at(lambda d: (d.offsets, d.end), diverse, (offsets, end))
        admission = eqx.tree_at(lambda a: a.removed, admission, jnp.zeros((), int))
        rows = dataclasses.replace(rows, data=data, priorities=priorities)
        return rows, diverse, admission

    def _make_room(self, ring: Ring, eviction: Eviction) -> Ring:
        """The ring without the evicted rows: a closed trajectory or the open one's beginning."""
        evicts = eviction.length > 0
        closed = evicts & (ring.queue_length > 0)
        torn = evicts & ~closed
        open_trajectory = Trajectory(
            ring.open_trajectory.length - torn.astype(int),
            ring.open_trajectory.whole & ~torn,
            ring.open_trajectory.signature,
        )
        return Ring(
            write_index=ring.write_index,
            size=ring.size - eviction.length,
            queue_start=(ring.queue_start + closed.astype(int)) % self.ring_capacity,
            queue_length=ring.queue_length - closed.astype(int),
            queue=ring.queue,
            oldest=ring.oldest,
            open_trajectory=open_trajectory,
            open_time=ring.open_time,
        )

    def _append(self, ring: Ring, transition: PyTree[Array], ended: Bool[Array, ""]) -> Ring:
        """The ring with one more transition in its open trajectory, which may end with it."""
        before, time = ring.open_trajectory, ring.open_time
        signature = self.signature.extend(before.signature, transition, time)
        extended = Trajectory(before.length + 1, before.whole, signature)
        tail = (ring.queue_start + ring.queue_length) % self.ring_capacity
        queue = _put(ring.queue, tail, extended)
        return Ring(
            write_index=(ring.write_index + 1) % self.ring_capacity,
            size=ring.size + 1,
            queue_start=ring.queue_start,
            queue_length=ring.queue_length + ended.astype(int),
            queue=queue,
            oldest=jax.tree.map(lambda leaf: leaf[ring.queue_start], queue),
            open_trajectory=where(ended, self._empty_trajectory(), extended),
            open_time=jnp.where(ended, 0, time + 1),
        )

    def _empty_trajectory(self) -> Trajectory:
        return Trajectory(jnp.zeros((), int), jnp.asarray(True), self.signature.start())


def _stacked(example: PyTree[Array], number: int) -> PyTree[Array]:
    """Zeros for `number` trees like `example`, with a leading axis."""
    return jax.tree.map(lambda leaf: jnp.zeros((number, *leaf.shape), leaf.dtype), example)


def _put(many: PyTree[Array], index: Int[Array, ""], one: PyTree[Array]) -> PyTree[Array]:
    """Stacked trees with one of them replaced."""
    return jax.tree.map(lambda leaf, new: leaf.at[index].set(new), many, one)
