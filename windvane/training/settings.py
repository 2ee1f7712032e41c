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
ScalingName = Literal["unit", "signed"]


@dataclass(frozen=True)
class Task:
    """What is trained on what, how often and for how long."""

    env: str = "minecart"
    """Environment: minecart, dst, mo:ID of MO-Gymnasium, any Gymnasium id, or module:factory."""
    env_args: Mapping[str, Any] | tuple[str, ...] = ()
    """Arguments of the environment, as name=value."""
    observation: ObservationName = "pixels"
    """What the agent sees: pixels (two frames of 48x48) or features (a few numbers).
    A Gymnasium environment has one observation only: auto."""
    agent: str = "cn"
    """Agent: cn, cn-active, cn-uvfa, uvfa, mn, mo, naive, envelope, gpi-ls or pqn.
    An agent from elsewhere is module:factory."""
    agent_args: Mapping[str, Any] | tuple[str, ...] = ()
    """Arguments of the agent, as name=value, such as kappa=0.02 for mn."""
    start_from: str | None = None
    """A saved policy whose network the runs start with; None for random networks."""
    replay: str = "der"
    """Replay rule: standard, der, sel, exp, or module:factory.
    none is for agents that learn from rollouts, such as pqn."""
    replay_args: Mapping[str, Any] | tuple[str, ...] = ()
    """Arguments of the replay rule, as name=value, such as trajectories=500 for der."""
    schedule: str | tuple[str, ...] = "sparse"
    """How weights change: sparse, regular, random, chosen, live:FILE, module:factory, or 0.3,0.7.
    random draws new weights for every episode; 0.3,0.7 are fixed weights.
    chosen are those that the agent chooses, such as gpi-ls.
    live:FILE takes the weights from a watched file.
    With several schedules, every seed is trained with each of them."""
    schedule_args: Mapping[str, Any] | tuple[str, ...] = ()
    """Arguments of the schedule, as name=value: every=N steps (sparse) or episodes (regular)."""
    steps: int = 1_000_000
    """Environment steps per run; a multiple of update_interval and of num_envs."""
    seeds: int | tuple[int, ...] = 1
    """A number of seeds, counted from 0, or a list of two or more seeds."""


@dataclass(frozen=True)
class ParallelSettings:
    """Environments that one run steps together."""

    num_envs: int = 1
    """Copies of the environment per run.
    Agents with a replay buffer have one copy of a native environment."""
    rollout: int = 0
    """Steps that each copy takes between two updates of an agent that learns from rollouts.
    0 is for agents with a replay buffer."""


@dataclass(frozen=True)
class HostSettings:
    """How a Gymnasium environment is run; native environments need none of it."""

    vector_mode: VectorMode = "sync"
    """sync steps the copies in this process, async in one process each."""
    frame_stack: int = 1
    """Number of latest observations that are stacked."""
    frame_size: int | None = None
    """Side in pixels that image observations are resized to; None to leave them as they are."""
    one_hot: int = 32
    """Integers with at most this many values, such as grid cells, are one-hot encoded.
    0 encodes none."""
    time_limit: int | None = None
    """Steps after which an episode is truncated; None for the environment's own limit alone."""


@dataclass(frozen=True)
class NetworkSettings:
    """Sizes of the network."""

    width: int = 512
    """Units per dense layer."""
    depth: int = 3
    """Layers in each stream of the dueling head."""
    encoder_depth: int = 1
    """Dense layers that encode features before the weights join them; 0 for none."""
    precision: PrecisionName = "auto"
    """Data type of matrix products; auto is bfloat16 on an accelerator, else float32."""
    dueling: bool = True
    """Whether the head has separate streams for values and advantages."""
    layer_norm: bool = False
    """Whether dense layers are normalised before their activation."""
    feature_scaling: ScalingName = "unit"
    """How numbers with bounds are scaled: unit to [0, 1].
    signed keeps 0 where it is: of bounds on both sides of it, the farther one becomes 1 or -1."""


@dataclass(frozen=True)
class ReplaySettings:
    """What the replay buffer holds, and how it is sampled."""

    capacity: int = 100_000
    """Most transitions that the replay buffer holds."""
    priority_exponent: float = 2.0
    """Exponent in the priority (TD error + offset)^exponent."""
    priority_offset: float = 0.01
    """Offset in the priority (TD error + offset)^exponent."""


@dataclass(frozen=True)
class RunSettings:
    """What is measured and saved during training."""

    evaluate_every: int | None = None
    """Steps between greedy evaluations over a grid of weights; None for no evaluations.
    The best policy is saved beside the last."""
    oracle: bool = True
    """Whether regret is measured where the optimum can be computed.
    The search for a new instance of Minecart takes minutes."""
    chunk: int = 1_000
    """Most steps between two checks for progress, Ctrl-C and checkpoints."""
    checkpoint_seconds: float = 300.0
    """Seconds between checkpoints; 0 writes one after every chunk."""


@dataclass(frozen=True)
class Settings(
    RunSettings, ReplaySettings, NetworkSettings, HostSettings, ParallelSettings, Hyperparameters,
    Task,
):  # fmt: skip
    """Settings of a training run. The defaults are the paper's for Minecart."""
