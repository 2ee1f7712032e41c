"""One policy's episodes, one after another, as messages for a browser."""

from collections.abc import Callable
from typing import Any

import numpy as np

from windvane.studio.plain import plain
from windvane.studio.stage import Decision, Message, Moment, Stage

Best = Callable[[np.ndarray], float | None]
"""The best utility for weights, where it is known."""


class Lane:
    """A stage with its place beside others, its count of episodes, and the returns of this one."""

    def __init__(self, number: int, stage: Stage, seed: int, best: Best):
        """Nothing is played yet."""
        self.number, self.stage, self._seed, self._best = number, stage, seed, best
        self._episode = -1
        self.ended = True
        """Whether the next tick begins an episode."""
        self._time = 0
        self._begin_counting()

    def _begin_counting(self) -> None:
        objectives = self.stage.policy.spec.num_objectives
        self._returns, self._discounted = np.zeros(objectives), np.zeros(objectives)
        self._held: np.ndarray | None = None
        self._moved = False

    def restart(self) -> None:
        """Begin the next episode at the next tick."""
        self.ended = True

    def tick(self, weights: np.ndarray) -> list[Message]:
        """Take a step, or begin an episode where the last one ended."""
        if self.ended:
            return self._begin(weights)
        return self._step(weights)

    def decide(self, weights: np.ndarray) -> list[Message]:
        """What would be done now."""
        if self.ended:
            return []
        decision = self.stage.decide(weights)
        return [{"type": "decision", "lane": self.number} | self._said(decision, weights)]

    def _begin(self, weights: np.ndarray) -> list[Message]:
        self._episode += 1
        self._time = 0
        self._begin_counting()
        moment = self.stage.reset(self._seed, self._episode)
        decision = self.stage.decide(weights)
        self.ended = False  # only now: where a reset fails, the next tick tries another
        said = self._said(decision, weights) | {"action": None}
        return self._shown(said, np.zeros(len(self._returns)), moment)

    def _step(self, weights: np.ndarray) -> list[Message]:
        if self._held is None:
            self._held = weights
        self._moved |= not np.array_equal(self._held, weights)
        taken = self.stage.step(weights)
        config = self.stage.policy.config
        self._returns = self._returns + taken.reward
        discount = config.reward_scale * config.gamma**self._time
        self._discounted = self._discounted + discount * taken.reward
        self._time += 1
        messages = self._shown(self._said(taken.decision, weights), taken.reward, taken.moment)
        if taken.terminated or taken.truncated:
            self.ended = True
            messages.append(self._summary(weights, taken.terminated))
        return messages

    def _said(self, decision: Decision, weights: np.ndarray) -> dict[str, Any]:
        return {"action": decision.action, "q": plain(decision.q), "weights": plain(weights)}

    def _shown(self, said: dict[str, Any], reward: np.ndarray, moment: Moment) -> list[Message]:
        message = {
            "type": "step",
            "lane": self.number,
            "episode": self._episode,
            "step": self._time,
            **said,
            "reward": plain(reward),
            "returns": plain(self._returns),
            **moment.numbers,
        }
        if moment.picture is None:
            return [message]
        head = bytes([self.number]) + self._time.to_bytes(4, "big")
        return [message, head + moment.picture]

    def _summary(self, weights: np.ndarray, terminated: bool) -> dict[str, Any]:
        """How an episode went; its utility and regret have a meaning where the weights stayed."""
        utility = regret = None
        if not self._moved:
            utility = float(weights @ self._discounted)
            best = self._best(weights)
            regret = None if best is None else best - utility
        return {
            "type": "episode",
            "lane": self.number,
            "episode": self._episode,
            "weights": None if self._moved else plain(weights),
            "returns": plain(self._discounted),
            "utility": plain(utility),
            "regret": plain(regret),
            "steps": self._time,
            "terminated": terminated,
        }
