"""How an agent learns: numbers and their meaning. The field docstrings are help texts."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

import jax


@dataclass(frozen=True)
class Hyperparameters:
    """How an agent learns."""

    gamma: float = 0.98
    """Discount factor."""
    learning_rate: float = 0.02
    """Learning rate of the optimiser."""
    momentum: float = 0.9
    """Nesterov momentum coefficient, or Adam's b1 for agents that use Adam."""
    adam_epsilon: float = 1e-5
    """Adam's epsilon; gradients much smaller than it hardly move the network."""
    clip_norm: float = 1.0
    """Global norm that gradients are clipped to."""
    clip_targets: float = 0.0
    """Largest size of a target, per objective, discounted and scaled; 0 clips none.
    It is for agents with a replay buffer; take that of the returns that can be reached."""
    epsilon_start: float = 1.0
    """Probability of a random action at the first step."""
    epsilon_end: float = 0.05
    """Probability of a random action after epsilon_steps."""
    epsilon_steps: int = 100_000
    """Steps over which epsilon is annealed linearly."""
    batch_size: int = 64
    """Transitions per gradient step."""
    update_interval: int = 4
    """Environment steps per gradient step."""
    target_interval: int = 150
    """Gradient steps between updates of the target network."""
    learning_starts: int = 100
    """Environment steps before the first gradient step."""
    average_decay: float = 0.0
    """Decay per gradient step of an average of the networks, which becomes the policy.
    With 0 the newest network is the policy."""
    reward_scale: float = 1.0
    """Factor on all rewards, in learning and in everything that is reported."""
    weight_history_size: int = 16_384
    """Past weight vectors kept for training; beyond that number, a uniform sample of them."""


def _flatten(values: Hyperparameters) -> tuple[tuple[Any, ...], None]:
    return tuple(getattr(values, field.name) for field in fields(Hyperparameters)), None


def _unflatten(_: None, leaves: Iterable[Any]) -> Hyperparameters:
    made = object.__new__(Hyperparameters)  # unchecked: a leaf may be anything for a while
    for field, leaf in zip(fields(Hyperparameters), leaves, strict=True):
        object.__setattr__(made, field.name, leaf)
    return made


# A number may be an array, as in a sweep over learning rates in one program.
jax.tree_util.register_pytree_node(Hyperparameters, _flatten, _unflatten)
