"""morl-baselines' agents as their own `train` drives them: acting, remembering, learning.

Left out are evaluation and logging. An update is made every four steps instead of every step.
Needs PyTorch, MO-Gymnasium and what morl-baselines imports; `make bench-training` installs them.
"""

import gc
import random
import time
from collections.abc import Callable
from itertools import cycle, islice
from typing import Any, ClassVar

import gymnasium
import mo_gymnasium
import numpy as np
import torch
from morl_baselines.common.weights import extrema_weights, random_weights
from morl_baselines.multi_policy.envelope.envelope import Envelope
from morl_baselines.multi_policy.gpi_pd.gpi_pd import GPILS
from torch.utils.flop_counter import FlopCounterMode

BATCH, INTERVAL = 64, 4
FEATURE_LAYERS, PIXEL_LAYERS = [256] * 4, [512] * 3
"""After the picture's encoder, which has a dense layer of 512 already."""
SUPPORT = 8
"""Weight vectors that GPI-LS acts by: the 3 extremes and 5 more, as after a few rounds."""
PICTURES = 2_000
"""Capacity on pixels: its buffer keeps both observations as float32, 111 kB a step."""
RECORDED = 10_000
"""Steps of random play that buffers are filled with, again and again."""
THREADS = sorted({1, torch.get_num_threads()})

TWO_WEIGHTS, FOUR_WEIGHTS, ENVELOPE, GPI = (
    "`Envelope(envelope=False, num_sample_w=2)`",
    "`Envelope(envelope=False)`",
    "`Envelope`",
    "`GPILS`",
)


class Pictures(gymnasium.Env):
    """Spaces of Minecart's two frames, one after the other as channels; nothing can be played."""

    observation_space = gymnasium.spaces.Box(0, 255, (6, 48, 48), np.uint8)
    action_space = gymnasium.spaces.Discrete(6)
    reward_space: ClassVar = gymnasium.spaces.Box(-np.inf, np.inf, (3,), np.float32)


class Peer:
    """One agent in its environment, and how `train` calls it."""

    def __init__(
        self,
        agent: Any,
        act: Callable[[torch.Tensor, torch.Tensor], int],
        draw: Callable[[], np.ndarray],
        update: Callable[[torch.Tensor], None],
    ):
        self.agent, self._act, self._draw, self._update = agent, act, draw, update
        self.cycles = self.updates = 0
        self._weights = self._new_weights()
        self._seen: np.ndarray | None = None

    def fill(self, transitions: list[tuple[Any, ...]]) -> None:
        """Remember these, again and again, until the buffer is full."""
        for transition in islice(cycle(transitions), self.agent.buffer_size):
            self.agent.replay_buffer.add(*transition)

    def costs(self) -> tuple[float, float]:
        """Seconds of a cycle, or nan where nothing can be played, and of an update.

        With one thread and with all of them; the quicker counts, whichever it is.
        """
        cycles, updates = [], []
        for threads in THREADS:
            torch.set_num_threads(threads)
            cycles.append(_time(self.cycle, self.cycles))
            updates.append(_time(self.learn, self.updates))
        return min(cycles), min(updates)

    def cycle(self) -> None:
        """Four steps and an update."""
        for _ in range(INTERVAL):
            self.step()
        self.learn()

    def step(self) -> None:
        """What a step of `train` does, but for the update."""
        agent = self.agent
        seen = agent.env.reset()[0] if self._seen is None else self._seen
        action = self._act(torch.as_tensor(seen).float().to(agent.device), self._weights)
        following, reward, terminated, truncated, _ = agent.env.step(action)
        agent.global_step += 1
        agent.replay_buffer.add(seen, action, reward, following, terminated)
        self._seen = following
        if terminated or truncated:
            self._seen, _ = agent.env.reset()
            self._weights = self._new_weights()

    def learn(self) -> None:
        """An update: a sample, a gradient step, new priorities."""
        self._update(self._weights)

    def gflop(self) -> float:
        """What the matrix products and convolutions of an update are, as PyTorch counts them."""
        with FlopCounterMode(display=False) as counter:
            self.learn()
        return counter.get_total_flops() / 1e9

    def _new_weights(self) -> torch.Tensor:
        return torch.tensor(self._draw()).float().to(self.agent.device)


def envelope_peer(env: gymnasium.Env, **options: Any) -> Peer:
    """Envelope Q-learning; with `envelope=False` double DQN conditioned on weights, as CN."""
    agent = Envelope(env, batch_size=BATCH, per=True, log=False, seed=0, **options)

    def draw() -> np.ndarray:
        return random_weights(agent.reward_dim, 1, dist="gaussian", rng=agent.np_random)

    return Peer(agent, agent.act, draw, lambda _: agent.update())


def gpi_peer(env: gymnasium.Env, **options: Any) -> Peer:
    """GPI-LS between two of its choices of new weights."""
    agent = GPILS(env, batch_size=BATCH, per=True, gradient_updates=1, log=False, seed=0, **options)
    more = random_weights(agent.reward_dim, SUPPORT - agent.reward_dim, rng=agent.np_random)
    support = [*extrema_weights(agent.reward_dim), *more]
    agent.set_weight_support(support)
    agent.police_indices = []
    return Peer(agent, agent._act, lambda: random.choice(support), agent.update)


def feature_peers(capacity: int, times: int) -> dict[str, Peer]:
    """Those on MO-Gymnasium's Minecart with full buffers; `times` cycles are timed at once."""
    _seed()

    def env() -> gymnasium.Env:
        return mo_gymnasium.make("minecart-v0")

    options: dict[str, Any] = {"net_arch": FEATURE_LAYERS, "buffer_size": capacity}
    peers = {
        TWO_WEIGHTS: envelope_peer(env(), envelope=False, num_sample_w=2, **options),
        FOUR_WEIGHTS: envelope_peer(env(), envelope=False, **options),
        ENVELOPE: envelope_peer(env(), envelope=True, **options),
        GPI: gpi_peer(env(), **options),
    }
    transitions = played(env(), RECORDED)
    for peer in peers.values():
        peer.agent.env.reset(seed=0)
        peer.fill(transitions)
        peer.cycles = peer.updates = times
    return peers


def pixel_peers(times: int) -> dict[str, Peer]:
    """Those on pictures of noise, which can learn but not act; `times` updates at once."""
    _seed()
    options: dict[str, Any] = {"net_arch": PIXEL_LAYERS, "buffer_size": PICTURES}
    peers = {
        TWO_WEIGHTS: envelope_peer(Pictures(), envelope=False, num_sample_w=2, **options),
        FOUR_WEIGHTS: envelope_peer(Pictures(), envelope=False, **options),
    }
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 256, (PICTURES + 1, 6, 48, 48), dtype=np.uint8)
    rewards = rng.uniform(-0.03, 0, (PICTURES, 3)).astype(np.float32)
    actions = rng.integers(0, 6, PICTURES)
    ended = rng.uniform(size=PICTURES) < 1 / 40
    transitions = list(zip(pictures, actions, rewards, pictures[1:], ended, strict=False))
    for peer in peers.values():
        peer.fill(transitions)
        peer.updates = times
    return peers


def played(env: gymnasium.Env, steps: int) -> list[tuple[Any, ...]]:
    """Transitions of random play."""
    env.action_space.seed(0)
    seen, _ = env.reset(seed=0)
    transitions = []
    for _ in range(steps):
        action = env.action_space.sample()
        following, reward, terminated, truncated, _ = env.step(action)
        transitions.append((seen, action, reward, following, terminated))
        seen = env.reset()[0] if terminated or truncated else following
    return transitions


def _seed() -> None:
    # The peers' buffers and networks draw from these.
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    torch.manual_seed(0)


def _time(work: Callable[[], None], times: int) -> float:
    """Seconds of one call, without Python's collector, or nan for none."""
    if not times:
        return float("nan")
    gc.disable()
    began = time.perf_counter()
    for _ in range(times):
        work()
    elapsed = time.perf_counter() - began
    gc.enable()
    return elapsed / times
