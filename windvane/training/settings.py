"""All settings of a training run: their names, defaults and what they mean.

They are not checked here, so that the command line can read them before `TrainConfig` complains.
The field docstrings are the command line's help texts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from windvane.learning.hyperparameters import Hyperparameters

ObservationName = Literal["auto", "pixels", "features"]
PrecisionName = Literal["auto", "float32", "bfloat16"]
VectorMode = Literal["sync", "async"]


@dataclass(frozen=True)
class Task:
    """What is trained on what, how often and for how long."""

    env: str = "minecart"
    """Environment: minecart, dst, mo:ID of MO-Gymnasium, any Gymnasium id, or module:factory."""
    env_args: Mapping[str, Any] | tuple[str, ...] = ()
    """Arguments of the environment, as name=value."""
    observation: ObservationName = "pixels"
    """What the agent sees: two frames of 48x48 pixels, or a few numbers. A Gymnasium environment
    has one observation only: auto."""
    agent: str = "cn"
    """Agent: cn, cn-active, cn-uvfa, uvfa, mn, mo, naive, or module:factory."""
    agent_args: Mapping[str, Any] | tuple[str, ...] = ()
    """Arguments of the agent, as name=value, such as kappa=0.02 of mn."""
    replay: str = "der"
    """Replay rule: standard, der, sel, exp, or module:factory."""
    replay_args: Mapping[str, Any] | tuple[str, ...] = ()
    """Arguments of the replay rule, as name=value, such as trajectories=500 of der."""
    schedule: str | tuple[str, ...] = "sparse"
    """How weights change: sparse, regular, fixed weights such as 0.3,0.7, live:FILE for weights in
    a watched file, or module:factory. With several, every seed is trained with each of them."""
    schedule_args: Mapping[str, Any] | tuple[str, ...] = ()
    """Arguments of the schedule, as name=value: every=N steps (sparse) or episodes (regular)."""
    steps: int = 1_000_000
    """Steps of every run; a multiple of the update interval and of the number of environments."""
    seeds: int | tuple[int, ...] = 1
    """Number of runs, seeded 0, 1, 2 and so on, or two or more seeds."""


@dataclass(frozen=True)
class HostSettings:
    """How a Gymnasium environment is run; native environments need none of it."""

    num_envs: int = 1
    """Copies of a Gymnasium environment per run, stepped together."""
    vector_mode: VectorMode = "sync"
    """Whether the copies are stepped in this process or in processes of their own."""
    frame_stack: int = 1
    """Latest observations that the agent sees together."""
    frame_size: int | None = None
    """Side in pixels that image observations are scaled to. Default: as they are."""
    one_hot: int = 32
    """Whole numbers with at most this many values, such as places in a grid, are one-hot encoded;
    0: none."""
    time_limit: int | None = None
    """Steps after which an episode is truncated, besides the environment's own limit."""


@dataclass(frozen=True)
class NetworkSettings:
    """Sizes of the network."""

    width: int = 512
    """Units of every dense layer."""
    depth: int = 3
    """Layers of each stream of the network's head."""
    encoder_depth: int = 1
    """Dense layers that encode features."""
    precision: PrecisionName = "auto"
    """Type of matrix products; auto is bfloat16 on an accelerator, else float32."""


@dataclass(frozen=True)
class ReplaySettings:
    """What the replay buffer holds, and how it is sampled."""

    capacity: int = 100_000
    """Transitions that the replay buffer holds."""
    priority_exponent: float = 2.0
    """Priorities are (error + offset)^exponent."""
    priority_offset: float = 0.01
    """Priorities are (error + offset)^exponent."""


@dataclass(frozen=True)
class RunSettings:
    """What is measured and kept during training."""

    evaluate_every: int | None = None
    """Steps between greedy evaluations over a grid of weights; the best policy is kept beside the
    last. Default: none."""
    oracle: bool = True
    """Whether regret is measured where the optimum can be computed; a search for a new instance of
    Minecart takes minutes."""
    chunk: int = 1_000
    """Most steps between two looks at the clock, the keyboard and the records."""
    checkpoint_seconds: float = 300.0
    """Seconds between checkpoints; 0 makes one after every chunk."""


@dataclass(frozen=True)
class Settings(RunSettings, ReplaySettings, NetworkSettings, HostSettings, Hyperparameters, Task):
    """Settings of a training run. The defaults are the paper's for Minecart."""
