"""Diverse Experience Replay (the paper's Algorithm 3): half the buffer forgets by age, half by
likeness.

New transitions enter a ring. When it is full, its oldest trajectory leaves whole and is considered
for the diverse half: as long as there is no room for it, the least diverse of all considered
trajectories goes; if that is the newcomer, it is dropped and nothing else has changed.

Rows [0, ring) are the ring. Behind them trajectories of the diverse half lie one after another,
with gaps where some were removed, and are moved together when the end is reached.

The decision is made on the table of trajectories alone, which is small; rows are then changed in
place, a run at a time. Many buffers side by side stay fast because neither step touches all rows.
"""

import dataclasses
from typing import Any, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from windvane.batching import repeat, together, when, where
from windvane.errors import require_positive_int
from windvane.replay.buffer import RUN, ReplayBuffer, Rows, check_buffer
from windvane.replay.crowding import CrowdingDistance
from windvane.replay.diversity import Diversity
from windvane.replay.priorities import Priorities
from windvane.replay.signature import Signature


class Trajectory(eqx.Module):
    """What is known of a trajectory, or of many; `whole` is false if it has lost its beginning."""

    length: Int[Array, "*many"]
    whole: Bool[Array, "*many"]
    signature: PyTree[Array]


class Ring(eqx.Module):
    """The first-in first-out half: complete trajectories oldest first, then the running one.

    The complete ones queue up: entry `first` of the queue is the oldest of `number`. `oldest` is
    that entry once more, so that a step never reads from the queue what it may overwrite.
    """

    write: Int[Array, ""]
    held: Int[Array, ""]
    first: Int[Array, ""]
    number: Int[Array, ""]
    queue: Trajectory
    oldest: Trajectory
    running: Trajectory
    running_time: Int[Array, ""]


class Diverse(eqx.Module):
    """The table of the diverse half: its trajectories' rows, ages and signatures.

    `born` is -1 for a slot that is free; the free slots are `free[number:]`. `used` counts rows,
    `end` is where the next trajectory's rows begin.
    """

    offsets: Int[Array, " slots"]
    lengths: Int[Array, " slots"]
    born: Int[Array, " slots"]
    free: Int[Array, " slots"]
    signatures: PyTree[Array]
    points: PyTree[Array]
    number: Int[Array, ""]
    used: Int[Array, ""]
    end: Int[Array, ""]
    considered: Int[Array, ""]


class Leaving(eqx.Module):
    """`length` rows leave the ring from `begin` on: a trajectory to consider, or rows to forget."""

    begin: Int[Array, ""]
    length: Int[Array, ""]
    considered: Bool[Array, ""]
    signature: PyTree[Array]


class Verdict(eqx.Module):
    """What considering a trajectory led to: its slot, and how many others had to go."""

    accepted: Bool[Array, ""]
    slot: Int[Array, ""]
    removed: Int[Array, ""]


class DiverseReplayState(eqx.Module):
    """Rows of both halves and what is known of their trajectories."""

    rows: Rows
    ring: Ring
    diverse: Diverse


@final
class DiverseReplay(ReplayBuffer[DiverseReplayState]):
    """Half first-in first-out, half diverse; sampling makes no difference between them."""

    capacity: int = eqx.field(static=True)
    trajectories: int = eqx.field(static=True)
    signature: Signature
    diversity: Diversity[Any]
    alpha: float
    epsilon: float

    def __init__(
        self,
        capacity: int,
        signature: Signature,
        diversity: Diversity[Any] | None = None,
        *,
        trajectories: int | None = None,
        alpha: float = 2.0,
        epsilon: float = 0.01,
    ):
        """`trajectories` is how many the diverse half can hold at most, however short they are.

        By default there is room for any number; a smaller one saves time where trajectories are
        known to be longer than a few transitions. The default diversity is the crowding distance.
        """
        self.capacity = check_buffer(capacity, alpha, epsilon, least=2)
        most = capacity // 2 if trajectories is None else trajectories
        self.trajectories = require_positive_int("the number of trajectories", most)
        self.diversity = CrowdingDistance() if diversity is None else diversity
        self.signature, self.alpha, self.epsilon = signature, alpha, epsilon

    @property
    def diverse_capacity(self) -> int:
        """Transitions in the diverse half."""
        return self.capacity // 2

    @property
    def _diverse_rows(self) -> int:
        # Room behind the trajectories makes moving them together a rare event.
        rows = self.diverse_capacity + max(self.diverse_capacity // 4, RUN) + RUN
        return -(-rows // RUN) * RUN

    @property
    def _diverse_begin(self) -> int:
        # A block of priorities apart from the ring, so that rows can be moved between the halves.
        return (-(-self.ring_capacity // RUN) + 1) * RUN

    def init(self, example: PyTree[Array], key: Key[Array, ""]) -> DiverseReplayState:
        """Nothing held. The key is not used."""
        del key
        zero, yes = jnp.zeros((), int), jnp.asarray(True)
        size, slots = self.ring_capacity, self.trajectories + 1
        start = self.signature.start()
        rows = self.empty_rows(example, self._diverse_begin + self._diverse_rows)
        nothing = Trajectory(zero, yes, start)
        queue = _stacked(nothing, size)
        ring = Ring(
            write=zero, held=zero, first=zero, number=zero,
            queue=queue, oldest=nothing, running=nothing, running_time=zero,
        )  # fmt: skip
        diverse = Diverse(
            offsets=jnp.zeros(slots, int), lengths=jnp.zeros(slots, int),
            born=jnp.full(slots, -1, int), free=jnp.arange(slots),
            signatures=_stacked(start, slots),
            points=self.diversity.init(slots, start),
            number=zero, used=zero, end=zero, considered=zero,
        )  # fmt: skip
        return DiverseReplayState(rows, ring, diverse)

    def add(
        self,
        state: DiverseReplayState,
        transition: PyTree[Array],
        ended: Bool[Array, ""],
        score: Float[Array, ""] | None = None,
    ) -> DiverseReplayState:
        """Remember a transition, making room in the ring first if it is full."""
        del score
        leaving = self._leaving(state.ring)
        halves = (state.rows, state.diverse)
        rows, diverse = together(leaving.length > 0, self._take_out, halves, leaving)
        ring = self._make_room(state.ring, leaving)
        rows = rows.write(ring.write, transition)
        return DiverseReplayState(rows, self._append(ring, transition, ended), diverse)

    def next_place(self, state: DiverseReplayState) -> Int[Array, ""]:
        """Right after the newest."""
        return state.ring.write

    def size(self, state: DiverseReplayState) -> Int[Array, ""]:
        """Number of transitions held in both halves."""
        return state.ring.held + state.diverse.used

    def signatures(self, state: DiverseReplayState) -> tuple[Any, Any]:
        """Signatures of the complete trajectories held by the ring, oldest first, and by the
        diverse half, as NumPy arrays; to look at one buffer from outside a compiled program.
        """
        ring, diverse = state.ring, state.diverse
        order = (int(ring.first) + np.arange(int(ring.number))) % self.ring_capacity
        used = np.flatnonzero(np.asarray(diverse.born) >= 0)
        recent = jax.tree.map(lambda leaf: np.asarray(leaf)[order], ring.queue.signature)
        kept = jax.tree.map(lambda leaf: np.asarray(leaf)[used], diverse.signatures)
        return recent, kept

    def _leaving(self, ring: Ring) -> Leaving:
        """The ring's oldest trajectory, if the ring is full.

        If the ring holds nothing but the running trajectory, that one loses its oldest transition.
        """
        full, complete = ring.held == self.ring_capacity, ring.number > 0
        length = jnp.where(complete, ring.oldest.length, 1)
        return Leaving(
            begin=(ring.write - ring.held) % self.ring_capacity,
            length=jnp.where(full, length, 0),
            considered=full & complete & ring.oldest.whole,
            signature=ring.oldest.signature,
        )

    def _take_out(self, halves: tuple[Rows, Diverse], leaving: Leaving) -> tuple[Rows, Diverse]:
        """Take what leaves out of the ring's rows, into the diverse half if it is good for it."""
        rows, diverse = halves
        no, zero = jnp.asarray(False), jnp.zeros((), int)
        diverse, verdict = when(
            leaving.considered, self._consider, (diverse, Verdict(no, zero, zero)), leaving
        )
        at_end = verdict.accepted & (diverse.end + RUN > self._diverse_rows)
        rows, diverse, verdict = when(at_end, self._move_together, (rows, diverse, verdict))
        return self._change_rows(rows, diverse, verdict, leaving), diverse

    def _consider(
        self, before: tuple[Diverse, Verdict], leaving: Leaving
    ) -> tuple[Diverse, Verdict]:
        """Algorithm 3's loop, on a copy: only an accepted newcomer makes the removals real."""
        diverse, _ = before
        slot = diverse.free[diverse.number]
        trial = Diverse(
            offsets=diverse.offsets.at[slot].set(diverse.end),
            lengths=diverse.lengths.at[slot].set(leaving.length),
            born=diverse.born.at[slot].set(diverse.considered),
            free=diverse.free,
            signatures=_put(diverse.signatures, slot, leaving.signature),
            points=self.diversity.insert(diverse.points, slot, leaving.signature),
            number=diverse.number + 1,
            used=diverse.used + leaving.length,
            end=diverse.end + leaving.length,
            considered=diverse.considered + 1,
        )

        def lacks_room(trial: Diverse) -> Bool[Array, ""]:
            overfull = trial.used > self.diverse_capacity
            return (trial.born[slot] >= 0) & (overfull | (trial.number > self.trajectories))

        trial = jax.lax.while_loop(lacks_room, self._remove_least_diverse, trial)
        accepted = trial.born[slot] >= 0
        removed = diverse.number + 1 - trial.number
        kept = where(accepted, trial, diverse)
        kept = eqx.tree_at(lambda d: d.considered, kept, diverse.considered + 1)
        return kept, Verdict(accepted, slot, jnp.where(accepted, removed, 0))

    def _remove_least_diverse(self, diverse: Diverse) -> Diverse:
        """Take the least diverse trajectory out of the table; of equals, the oldest."""
        used = diverse.born >= 0
        diversities = jnp.where(used, self.diversity.diversities(diverse.points), jnp.inf)
        least = used & (diversities == diversities.min())
        worst = jnp.argmin(jnp.where(least, diverse.born, diverse.considered))
        return Diverse(
            offsets=diverse.offsets,
            lengths=diverse.lengths,
            born=diverse.born.at[worst].set(-1),
            free=diverse.free.at[diverse.number - 1].set(worst),
            signatures=diverse.signatures,
            points=self.diversity.remove(diverse.points, worst),
            number=diverse.number - 1,
            used=diverse.used - diverse.lengths[worst],
            end=diverse.end,
            considered=diverse.considered,
        )

    def _change_rows(
        self, rows: Rows, diverse: Diverse, verdict: Verdict, leaving: Leaving
    ) -> Rows:
        """Forget the rows of removed trajectories; move the leaving one's, or forget them too."""

        def pending(
            work: tuple[Rows, Array, Array], diverse: Diverse, verdict: Verdict, leaving: Leaving
        ) -> Bool[Array, ""]:
            _, trajectory, _ = work
            last = (trajectory == verdict.removed) & (leaving.length > 0)
            return (trajectory < verdict.removed) | last

        def one_run(
            work: tuple[Rows, Array, Array], diverse: Diverse, verdict: Verdict, leaving: Leaving
        ) -> tuple[Rows, Array, Array]:
            rows, trajectory, done = work
            # Whatever was removed from the table is on top of its stack of free slots.
            slot = diverse.free[diverse.number + trajectory]
            leaves = trajectory >= verdict.removed
            source = jnp.where(
                leaves,
                (leaving.begin + done) % self.ring_capacity,
                self._diverse_begin + diverse.offsets[slot] + done,
            )
            length = jnp.where(leaves, leaving.length, diverse.lengths[slot])
            before_wrap = jnp.where(leaves, self.ring_capacity - source, RUN)
            number = jnp.minimum(jnp.minimum(RUN, before_wrap), length - done)
            # A neighbour in the batch may have more to do than this one.
            busy = pending(work, diverse, verdict, leaving)
            number = jnp.where(busy, number, 0)
            kept = busy & leaves & verdict.accepted
            target = self._diverse_begin + diverse.offsets[verdict.slot] + done
            rows = rows.move_run(source, target, number, kept)
            finished = done + number >= length
            trajectory = trajectory + (finished & (number > 0)).astype(int)
            return rows, trajectory, jnp.where(finished, 0, done + number)

        start = (rows, jnp.zeros((), int), jnp.zeros((), int))
        return repeat(pending, one_run, start, diverse, verdict, leaving)[0]

    def _move_together(
        self, before: tuple[Rows, Diverse, Verdict]
    ) -> tuple[Rows, Diverse, Verdict]:
        """Close the gaps between the trajectories of the diverse half and make room behind them.

        The rows of removed trajectories are forgotten on the way; the newcomer's are not there yet.
        """
        rows, diverse, verdict = before
        size = self._diverse_rows
        present = (diverse.born >= 0).at[verdict.slot].set(False)
        # Mark where trajectories begin and end; in between, rows are held.
        begins = jnp.where(present, diverse.offsets, size + 1)
        marks = jnp.zeros(size + 1, int).at[begins].add(1, mode="drop")
        marks = marks.at[begins + diverse.lengths].add(-1, mode="drop")
        held = jnp.cumsum(marks)[:size] > 0
        source = self._diverse_begin + jnp.nonzero(held, size=size, fill_value=size - 1)[0]
        before_each = jnp.cumsum(held) - held.astype(int)
        end = held.sum()
        places = self._diverse_begin + jnp.arange(size)
        words = rows.words.at[places].set(rows.words[source])
        kept = jnp.where(jnp.arange(size) < end, rows.priorities[source], 0.0)
        new = jax.lax.dynamic_update_slice(
            rows.priorities.places, kept.reshape(-1, RUN), (self._diverse_begin // RUN, 0)
        )
        priorities = Priorities.of(new)
        offsets = before_each[jnp.minimum(diverse.offsets, size - 1)].at[verdict.slot].set(end)
        end = end + diverse.lengths[verdict.slot]
        diverse = eqx.tree_at(lambda d: (d.offsets, d.end), diverse, (offsets, end))
        verdict = eqx.tree_at(lambda v: v.removed, verdict, jnp.zeros((), int))
        rows = dataclasses.replace(rows, words=words, priorities=priorities)
        return rows, diverse, verdict

    def _make_room(self, ring: Ring, leaving: Leaving) -> Ring:
        """The ring without what leaves it, a complete trajectory or the running one's beginning."""
        leaves = leaving.length > 0
        complete = leaves & (ring.number > 0)
        torn = leaves & ~complete
        running = Trajectory(
            ring.running.length - torn.astype(int),
            ring.running.whole & ~torn,
            ring.running.signature,
        )
        return Ring(
            write=ring.write,
            held=ring.held - leaving.length,
            first=(ring.first + complete.astype(int)) % self.ring_capacity,
            number=ring.number - complete.astype(int),
            queue=ring.queue,
            oldest=ring.oldest,
            running=running,
            running_time=ring.running_time,
        )

    def _append(self, ring: Ring, transition: PyTree[Array], ended: Bool[Array, ""]) -> Ring:
        """The ring with one more transition in its running trajectory, which may end with it."""
        before, time = ring.running, ring.running_time
        signature = self.signature.extend(before.signature, transition, time)
        running = Trajectory(before.length + 1, before.whole, signature)
        tail = (ring.first + ring.number) % self.ring_capacity
        queue = _put(ring.queue, tail, running)
        nothing = Trajectory(jnp.zeros((), int), jnp.asarray(True), self.signature.start())
        return Ring(
            write=(ring.write + 1) % self.ring_capacity,
            held=ring.held + 1,
            first=ring.first,
            number=ring.number + ended.astype(int),
            queue=queue,
            oldest=jax.tree.map(lambda leaf: leaf[ring.first], queue),
            running=where(ended, nothing, running),
            running_time=jnp.where(ended, 0, time + 1),
        )


def _stacked(example: PyTree[Array], number: int) -> PyTree[Array]:
    """Room for `number` trees like `example`."""
    return jax.tree.map(lambda leaf: jnp.zeros((number, *leaf.shape), leaf.dtype), example)


def _put(many: PyTree[Array], place: Int[Array, ""], one: PyTree[Array]) -> PyTree[Array]:
    """Many trees, with one of them replaced."""
    return jax.tree.map(lambda leaf, new: leaf.at[place].set(new), many, one)
