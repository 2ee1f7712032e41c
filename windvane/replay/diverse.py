"""Diverse Experience Replay (the paper's Algorithm 3): half the buffer forgets by age, half by
likeness.

New transitions enter a ring. When it is full, its oldest trajectory leaves whole and is considered
for the diverse half: as long as there is no room for it, the least diverse of all considered
trajectories goes; if that is the newcomer, it is dropped and nothing else has changed.

Rows [0, ring) are the ring. Behind them trajectories of the diverse half lie one after another,
with gaps where some were removed, and are moved together when the end is reached.
"""

from typing import final

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from windvane.batching import when
from windvane.errors import require_positive_int
from windvane.replay.buffer import ReplayBuffer, Rows, check_buffer
from windvane.replay.crowding import CrowdedSet
from windvane.replay.priorities import Priorities
from windvane.replay.signature import Signature

CHUNK = 32
"""Rows moved or blanked at once; trajectories are some tens of transitions long."""


class Ring(eqx.Module):
    """The first-in first-out half: complete trajectories oldest first, then the running one.

    `lengths` and `signatures` form a queue: entry `first` is the oldest of `number` trajectories.
    `whole` is false for a trajectory that had to lose its beginning; `running` is the length of
    the unfinished one, as far as it is held.
    """

    write: Int[Array, ""]
    held: Int[Array, ""]
    first: Int[Array, ""]
    number: Int[Array, ""]
    lengths: Int[Array, " ring"]
    whole: Bool[Array, " ring"]
    signatures: Float[Array, "ring values"]
    running: Int[Array, ""]
    running_whole: Bool[Array, ""]
    running_signature: Float[Array, " values"]
    running_time: Int[Array, ""]


class Diverse(eqx.Module):
    """The diverse half: where each trajectory's rows begin, how many they are, and their crowd."""

    offsets: Int[Array, " slots"]
    lengths: Int[Array, " slots"]
    crowd: CrowdedSet
    used: Int[Array, ""]
    end: Int[Array, ""]
    considered: Int[Array, ""]


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
    alpha: float
    epsilon: float

    def __init__(
        self,
        capacity: int,
        signature: Signature,
        *,
        trajectories: int | None = None,
        alpha: float = 2.0,
        epsilon: float = 0.01,
    ):
        """`trajectories` is how many the diverse half can hold at most, however short they are.

        By default there is room for any number; a smaller one saves time where trajectories are
        known to be longer than a few transitions.
        """
        self.capacity = check_buffer(capacity, alpha, epsilon, least=2)
        most = capacity // 2 if trajectories is None else trajectories
        self.trajectories = require_positive_int("the number of trajectories", most)
        self.signature, self.alpha, self.epsilon = signature, alpha, epsilon

    @property
    def diverse_capacity(self) -> int:
        """Transitions in the diverse half."""
        return self.capacity // 2

    @property
    def ring_capacity(self) -> int:
        """Transitions in the first-in first-out half."""
        return self.capacity - self.diverse_capacity

    @property
    def _diverse_rows(self) -> int:
        # Room behind the trajectories makes moving them together a rare event.
        return self.diverse_capacity + max(self.diverse_capacity // 4, CHUNK) + CHUNK

    def init(self, example: PyTree[Array], key: Key[Array, ""]) -> DiverseReplayState:
        """Nothing held. The key is not used."""
        del key
        zero, yes = jnp.zeros((), int), jnp.asarray(True)
        size, slots = self.ring_capacity, self.trajectories
        start = self.signature.start()
        rows = self.empty_rows(example, size + self._diverse_rows)
        ring = Ring(
            write=zero, held=zero, first=zero, number=zero,
            lengths=jnp.zeros(size, int), whole=jnp.zeros(size, bool),
            signatures=jnp.zeros((size, start.size)),
            running=zero, running_whole=yes, running_signature=start, running_time=zero,
        )  # fmt: skip
        crowd = CrowdedSet.empty(slots + 1, start.size)
        blank = jnp.zeros(slots + 1, int)
        return DiverseReplayState(rows, ring, Diverse(blank, blank, crowd, zero, zero, zero))

    def add(
        self,
        state: DiverseReplayState,
        transition: PyTree[Array],
        ended: Bool[Array, ""],
        score: Float[Array, ""] | None = None,
    ) -> DiverseReplayState:
        """Remember a transition, making room in the ring first if it is full."""
        del score
        state = when(state.ring.held == self.ring_capacity, self._make_room, state)
        ring = state.ring
        rows = state.rows.write(ring.write, transition)
        signature = self.signature.extend(ring.running_signature, transition, ring.running_time)
        tail = (ring.first + ring.number) % self.ring_capacity
        length = ring.running + 1
        nothing = self.signature.start()
        ring = Ring(
            write=(ring.write + 1) % self.ring_capacity,
            held=ring.held + 1,
            first=ring.first,
            number=ring.number + ended.astype(int),
            lengths=ring.lengths.at[tail].set(length),
            whole=ring.whole.at[tail].set(ring.running_whole),
            signatures=ring.signatures.at[tail].set(signature),
            running=jnp.where(ended, 0, length),
            running_whole=ended | ring.running_whole,
            running_signature=jnp.where(ended, nothing, signature),
            running_time=jnp.where(ended, 0, ring.running_time + 1),
        )
        return DiverseReplayState(rows, ring, state.diverse)

    def size(self, state: DiverseReplayState) -> Int[Array, ""]:
        """Number of transitions held in both halves."""
        return state.ring.held + state.diverse.used

    def _make_room(self, state: DiverseReplayState) -> DiverseReplayState:
        """Take the oldest trajectory out of the ring and consider it for the diverse half.

        If the ring holds nothing but the running trajectory, that one loses its oldest transition.
        """
        ring = state.ring
        complete = ring.number > 0
        length = jnp.where(complete, ring.lengths[ring.first], 1)
        whole = complete & ring.whole[ring.first]
        begin = (ring.write - ring.held) % self.ring_capacity
        signature = ring.signatures[ring.first]
        state = self._consider(state, begin, length, signature, whole)
        rows = self._blank(state.rows, begin, length, self.ring_capacity)
        left = Ring(
            write=ring.write,
            held=ring.held - length,
            first=jnp.where(complete, (ring.first + 1) % self.ring_capacity, ring.first),
            number=jnp.where(complete, ring.number - 1, 0),
            lengths=ring.lengths,
            whole=ring.whole,
            signatures=ring.signatures,
            running=jnp.where(complete, ring.running, ring.running - 1),
            running_whole=ring.running_whole & complete,
            running_signature=ring.running_signature,
            running_time=ring.running_time,
        )
        return DiverseReplayState(rows, left, state.diverse)

    def _consider(
        self,
        state: DiverseReplayState,
        begin: Int[Array, ""],
        length: Int[Array, ""],
        signature: Float[Array, " values"],
        whole: Bool[Array, ""],
    ) -> DiverseReplayState:
        """Algorithm 3's loop, on a copy: only an accepted newcomer makes the removals real."""
        diverse = state.diverse
        slot = jnp.argmin(diverse.crowd.used)
        crowd = diverse.crowd.insert(slot, signature, diverse.considered)

        def lacks_room(trial: tuple[CrowdedSet, Array]) -> Bool[Array, ""]:
            crowd, used = trial
            room = (used + length <= self.diverse_capacity) & (crowd.number <= self.trajectories)
            return whole & crowd.used[slot] & ~room

        def remove(trial: tuple[CrowdedSet, Array]) -> tuple[CrowdedSet, Array]:
            crowd, used = trial
            worst = crowd.least_diverse()
            freed = jnp.where(worst == slot, 0, diverse.lengths[worst])
            return crowd.remove(worst), used - freed

        crowd, _ = jax.lax.while_loop(lacks_room, remove, (crowd, diverse.used))
        accepted = whole & crowd.used[slot]
        state = when(accepted, self._accept, state, crowd, slot, begin, length)
        considered = state.diverse.considered + 1
        return eqx.tree_at(lambda s: s.diverse.considered, state, considered)

    def _accept(
        self,
        state: DiverseReplayState,
        crowd: CrowdedSet,
        slot: Int[Array, ""],
        begin: Int[Array, ""],
        length: Int[Array, ""],
    ) -> DiverseReplayState:
        """Make `crowd` the diverse half's, with the ring's rows from `begin` on in `slot`."""
        diverse = state.diverse
        gone = diverse.crowd.used & ~crowd.used
        rows = self._blank_all(state.rows, gone, diverse)
        freed = jnp.where(gone, diverse.lengths, 0).sum()
        diverse = Diverse(
            offsets=diverse.offsets,
            lengths=jnp.where(crowd.used, diverse.lengths, 0).at[slot].set(0),
            crowd=crowd,
            used=diverse.used - freed + length,
            end=diverse.end,
            considered=diverse.considered,
        )
        full = diverse.end + length + CHUNK > self._diverse_rows
        rows, diverse = when(full, self._move_together, (rows, diverse))
        rows = self._copy(rows, begin, self.ring_capacity + diverse.end, length)
        diverse = Diverse(
            offsets=diverse.offsets.at[slot].set(diverse.end),
            lengths=diverse.lengths.at[slot].set(length),
            crowd=crowd,
            used=diverse.used,
            end=diverse.end + length,
            considered=diverse.considered,
        )
        return DiverseReplayState(rows, state.ring, diverse)

    def _copy(
        self, rows: Rows, begin: Int[Array, ""], to: Int[Array, ""], length: Int[Array, ""]
    ) -> Rows:
        """Copy rows of the ring, from `begin` on and around its end, to a run of rows at `to`."""

        def chunk(index: Int[Array, ""], rows: Rows) -> Rows:
            steps = index * CHUNK + jnp.arange(CHUNK)
            source = (begin + steps) % self.ring_capacity
            start = to + index * CHUNK
            transitions = jax.tree.map(
                lambda leaf: jax.lax.dynamic_update_slice_in_dim(leaf, leaf[source], start, 0),
                rows.transitions,
            )
            priority = jnp.where(steps < length, rows.priorities[source], 0.0)
            places = start + jnp.arange(CHUNK)
            return Rows(transitions, rows.priorities.set(places, priority), rows.highest)

        return jax.lax.fori_loop(0, -(-length // CHUNK), chunk, rows)

    def _blank(
        self, rows: Rows, begin: Int[Array, ""], length: Int[Array, ""], around: int
    ) -> Rows:
        """Drop `length` rows from `begin` on, around the first `around` rows."""

        def chunk(index: Int[Array, ""], priorities: Priorities) -> Priorities:
            steps = index * CHUNK + jnp.arange(CHUNK)
            beyond = priorities.places.size
            places = jnp.where(steps < length, (begin + steps) % around, beyond)
            return priorities.set(places, jnp.zeros(CHUNK))

        priorities = jax.lax.fori_loop(0, -(-length // CHUNK), chunk, rows.priorities)
        return Rows(rows.transitions, priorities, rows.highest)

    def _blank_all(self, rows: Rows, gone: Bool[Array, " slots"], diverse: Diverse) -> Rows:
        """Drop the rows of all trajectories in `gone`."""

        def one(carry: tuple[Rows, Array]) -> tuple[Rows, Array]:
            rows, gone = carry
            slot = jnp.argmax(gone)
            begin = self.ring_capacity + diverse.offsets[slot]
            total = self.ring_capacity + self._diverse_rows
            rows = self._blank(rows, begin, diverse.lengths[slot], total)
            return rows, gone.at[slot].set(False)

        return jax.lax.while_loop(lambda carry: carry[1].any(), one, (rows, gone))[0]

    def _move_together(self, halves: tuple[Rows, Diverse]) -> tuple[Rows, Diverse]:
        """Close the gaps between the trajectories of the diverse half."""
        rows, diverse = halves
        size = self._diverse_rows
        present = diverse.lengths > 0
        # Mark where trajectories begin and end; in between, rows are held.
        begins = jnp.where(present, diverse.offsets, size + 1)
        marks = jnp.zeros(size + 1, int).at[begins].add(1, mode="drop")
        marks = marks.at[begins + diverse.lengths].add(-1, mode="drop")
        held = jnp.cumsum(marks)[:size] > 0
        source = self.ring_capacity + jnp.nonzero(held, size=size, fill_value=size - 1)[0]
        before = jnp.cumsum(held) - held.astype(int)
        end = held.sum()
        places = self.ring_capacity + jnp.arange(size)
        transitions = jax.tree.map(lambda leaf: leaf.at[places].set(leaf[source]), rows.transitions)
        kept = jnp.where(jnp.arange(size) < end, rows.priorities[source], 0.0)
        priorities = rows.priorities.set(places, kept)
        together = Diverse(
            offsets=jnp.where(present, before[jnp.minimum(diverse.offsets, size - 1)], 0),
            lengths=diverse.lengths,
            crowd=diverse.crowd,
            used=diverse.used,
            end=end,
            considered=diverse.considered,
        )
        return Rows(transitions, priorities, rows.highest), together
