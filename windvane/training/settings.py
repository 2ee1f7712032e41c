"""All settings of a training run: their names, defaults and what they mean.

They are not checked here, so that the command line can read them before `TrainConfig` complains.
The field docstrings are the command line's help texts, and the first lines of the classes' the
headings there (see `windvane.cli.options`): a text begins with the kind of value where there is a
word for it, and says the default itself where that is None. What may not live here: anything that
imports JAX, since help is shown without it.
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
    """Environment, agent, replay and weights: what is trained on what, how often and how long."""

    env: str = "minecart"
    """Environment: minecart, dst, mo:ID of MO-Gymnasium, any Gymnasium id, or module:factory."""
    env_args: Mapping[str, Any] | tuple[str, ...] = ()
    """Arguments of the environment."""
    observation: ObservationName = "pixels"
    """What the agent sees: pixels (two frames of 48x48) or features (a few numbers). A Gymnasium
    environment has one observation only, auto."""
    agent: str = "cn"
    """Agent: a name of `AGENTS`, or module:factory."""
    agent_args: Mapping[str, Any] | tuple[str, ...] = ()
    """Arguments of the agent."""
    start_from: str | None = None
    """File of a saved policy whose network the runs start with. Default: random networks."""
    replay: str = "der"
    """Replay rule: a name of `REPLAYS`, or module:factory."""
    replay_args: Mapping[str, Any] | tuple[str, ...] = ()
    """Arguments of the replay rule."""
    schedule: str | tuple[str, ...] = "sparse"
    """How the weights change during training: a name of `SCHEDULES`, fixed weights such as 0.3,0.7,
    live:FILE, or module:factory. With several, every seed is trained with each."""
    schedule_args: Mapping[str, Any] | tuple[str, ...] = ()
    """Arguments of the schedule."""
    steps: int = 1_000_000
    """Steps of the environment per run; a multiple of --update-interval and of --num-envs."""
    seeds: int | tuple[int, ...] = 1
    """Number of seeds, counted from 0, or a list of two or more seeds. Every seed is a run."""


@dataclass(frozen=True)
class ParallelSettings:
    """Many environments at once.

    How many one run steps together, and for how long between two updates.
    """

    num_envs: int = 1
    """Copies of the environment per run. With an agent that has a replay buffer, a native
    environment has one."""
    rollout: int = 0
    """Steps that each copy takes between two updates of an agent that learns from rollouts, such as
    pqn. Agents with a replay buffer take 0."""


@dataclass(frozen=True)
class HostSettings:
    """Gymnasium environments.

    How they are run; native environments need none of it.
    """

    vector_mode: VectorMode = "sync"
    """Where the copies are stepped: sync is in this process, async in one process each."""
    frame_stack: int = 1
    """Number of latest observations that the agent sees together."""
    frame_size: int | None = None
    """Pixels per side that image observations are resized to. Default: their own size."""
    one_hot: int = 32
    """Integers with at most this many values, such as grid cells, are one-hot encoded. With 0 none
    are."""
    time_limit: int | None = None
    """Steps after which an episode is truncated. Default: the environment's own limit alone."""


@dataclass(frozen=True)
class NetworkSettings:
    """Network."""

    width: int = 512
    """Units per dense layer."""
    depth: int = 3
    """Dense layers in each stream of the dueling head."""
    encoder_depth: int = 1
    """Dense layers that encode features before the weights join them. With 0 both go into the same
    first layer."""
    precision: PrecisionName = "auto"
    """Data type of matrix products; auto is bfloat16 on an accelerator, else float32."""
    dueling: bool = True
    """Whether the head has separate streams for values and advantages."""
    layer_norm: bool = False
    """Whether dense layers are normalised before their activation."""
    feature_scaling: ScalingName = "unit"
    """How features with bounds are scaled: unit maps them to [0, 1]; signed keeps 0 where it is and
    divides by the bound that is farther from it."""


@dataclass(frozen=True)
class ReplaySettings:
    """Replay buffer."""

    capacity: int = 100_000
    """Transitions that the replay buffer holds, at most."""
    priority_exponent: float = 2.0
    """Exponent in the priority (TD error + offset)^exponent of a transition. With 0 all are sampled
    alike."""
    priority_offset: float = 0.01
    """Offset in the priority (TD error + offset)^exponent."""


@dataclass(frozen=True)
class RunSettings:
    """Measuring and saving."""

    evaluate_every: int | None = None
    """Steps between greedy evaluations over a grid of weights, after which the best policy is saved
    beside the last. Default: no evaluations."""
    oracle: bool = True
    """Whether regret is measured where the optimum can be computed. The search for a new instance
    of Minecart takes minutes."""
    chunk: int = 1_000
    """Steps between two looks at progress, Ctrl-C and checkpoints, at most."""
    checkpoint_seconds: float = 300.0
    """Seconds between checkpoints. With 0 every chunk ends with one."""


@dataclass(frozen=True)
class Settings(
    RunSettings, ReplaySettings, NetworkSettings, HostSettings, ParallelSettings, Hyperparameters,
    Task,
):  # fmt: skip
    """Settings of a training run. The defaults are the paper's for Minecart."""
