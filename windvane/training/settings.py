"""All settings of a training run: their names, defaults and what they mean.

Here they are not checked, so that the command line can read them before `TrainConfig` complains.
"""

from dataclasses import dataclass
from typing import Literal

EnvName = Literal["minecart", "dst"]
ObservationName = Literal["pixels", "features"]
AgentName = Literal["cn", "cn-active", "cn-uvfa", "uvfa", "mn", "mo", "naive"]
ReplayName = Literal["standard", "der", "sel", "exp"]
WeightsName = Literal["sparse", "regular"]
ReuseName = Literal["full", "partial"]
PrecisionName = Literal["auto", "float32", "bfloat16"]
PresetName = Literal["paper-minecart", "paper-dst", "quick-dst"]


@dataclass(frozen=True)
class Task:
    """What is trained on what, how often and for how long."""

    env: EnvName = "minecart"
    """Problem to train on."""
    observation: ObservationName = "pixels"
    """What the agent sees: two frames of 48x48 pixels, or a few numbers."""
    agent: AgentName = "cn"
    """Agent: the conditioned network and its ablations, UVFA, multi-network, and baselines."""
    replay: ReplayName = "der"
    """What is remembered: the newest, or half of it diverse, uniform or exploratory."""
    weights: WeightsName | tuple[WeightsName, ...] = "sparse"
    """How weights change: anew after many steps, or a little every episode. With both, every seed
    is trained twice, all side by side."""
    weights_every: int | None = None
    """Steps between sparse changes (default 50,000 for minecart, 5,000 for dst), or episodes a
    target of regular ones (default 10)."""
    steps: int = 1_000_000
    """Steps of every run; a multiple of the update interval."""
    seeds: int | tuple[int, ...] = 1
    """Runs side by side: a number of them, seeded 0, 1, 2 and so on, or two or more seeds."""


@dataclass(frozen=True)
class Hyperparameters:
    """How it learns: the appendix's table for Minecart; `paper-dst` changes some of it."""

    gamma: float = 0.98
    """Discount factor."""
    learning_rate: float = 0.02
    """Of stochastic gradient descent."""
    momentum: float = 0.9
    """Nesterov's."""
    clip_norm: float = 1.0
    """Largest norm of a gradient."""
    epsilon_start: float = 1.0
    """Exploration at first."""
    epsilon_end: float = 0.05
    """Exploration in the end."""
    epsilon_steps: int = 100_000
    """Steps from the first to the last exploration."""
    batch_size: int = 64
    """Transitions a gradient step."""
    update_interval: int = 4
    """Steps between gradient steps."""
    target_interval: int = 150
    """Gradient steps between copies of the network to the target network."""
    learning_starts: int = 100
    """Steps before the first gradient step."""
    reward_scale: float = 1.0
    """What rewards are multiplied by before anything is learned from or reported of them."""
    encountered: int = 16_384
    """Weight vectors remembered for training; of more, a uniform sample."""


@dataclass(frozen=True)
class Settings(Hyperparameters, Task):
    """Settings of a training run. The defaults are the paper's for Minecart."""

    kappa: float = 0.01
    """Of mn: how much better a policy must be than a newer one to stand against it."""
    reuse: ReuseName = "full"
    """Of mn: whether a policy's last layers are copied, too, when the weights change."""
    room: int = 24
    """Of mn: most policies that are kept."""

    width: int = 512
    """Units of every dense layer."""
    depth: int = 3
    """Layers of each stream of the network's head."""
    encoder_depth: int = 1
    """Dense layers that encode features."""
    precision: PrecisionName = "auto"
    """What products are computed in; auto is bfloat16 on an accelerator, else float32."""

    capacity: int = 100_000
    """Transitions that the replay buffer holds."""
    priority_exponent: float = 2.0
    """Priorities are (error + offset)^exponent."""
    priority_offset: float = 0.01
    """Priorities are (error + offset)^exponent."""
    trajectories: int | None = None
    """Most trajectories in the diverse half of der. Default: a tenth of the capacity."""

    chunk: int = 1_000
    """Most steps between two looks at the clock, the keyboard and the records."""
    checkpoint_seconds: float = 300.0
    """Seconds between checkpoints; 0 makes one after every chunk."""
