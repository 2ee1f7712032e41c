"""How an agent learns: numbers and their meaning. The field docstrings are help texts.

What may not live here: anything that imports JAX, since help is shown without it; `learner` makes a
pytree of the class.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Hyperparameters:
    """Learning and exploration."""

    learning_rate: float = 0.02
    """Learning rate of the optimiser."""
    gamma: float = 0.98
    """Discount factor of future rewards, per step."""
    batch_size: int = 64
    """Transitions per gradient step."""
    epsilon_start: float = 1.0
    """Probability of a random action at the first step."""
    epsilon_end: float = 0.05
    """Probability of a random action after --epsilon-steps."""
    epsilon_steps: int = 100_000
    """Steps over which the probability of a random action falls linearly."""
    learning_starts: int = 100
    """Steps before the first gradient step."""
    update_interval: int = 4
    """Steps per gradient step."""
    target_interval: int = 150
    """Gradient steps between two updates of the target network."""
    reward_scale: float = 1.0
    """Factor on all rewards, in learning and in everything that is reported."""
    momentum: float = 0.9
    """Nesterov momentum coefficient, or b1 of Adam for agents that use Adam."""
    adam_epsilon: float = 1e-5
    """Epsilon of Adam; gradients much smaller than it hardly move the network."""
    clip_norm: float = 1.0
    """Global norm that gradients are clipped to."""
    clip_targets: float = 0.0
    """Largest absolute target per objective, discounted and scaled, for agents with a replay
    buffer: no more than the returns that can be reached. With 0 targets are not clipped."""
    average_decay: float = 0.0
    """Decay, per gradient step, of an average of the networks, which becomes the policy. With 0 the
    newest network is the policy."""
    weight_history_size: int = 16_384
    """Past weight vectors that are kept for training; beyond that number, a uniform sample of
    them."""
