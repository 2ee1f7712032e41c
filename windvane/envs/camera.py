"""A wrapper that has a picture taken of every state of a Gymnasium environment.

What may not live here: what is done with the pictures.
"""

from collections.abc import Callable
from typing import Any, final

import gymnasium


@final
class Camera(gymnasium.Wrapper):
    """Calls `take` after every step, and for the first state of an episode that was asked for; not
    for one that begins where another ended, which has no seed.
    """

    def __init__(self, env: Any, take: Callable[[Any], None] | None):
        """Without `take` there are no pictures."""
        super().__init__(env)
        self._take = take

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self.env, attribute)

    def reset(self, **options: Any) -> Any:
        """Reset, and take a picture if there is a seed."""
        outcome = self.env.reset(**options)
        if self._take is not None and options.get("seed") is not None:
            self._take(self.env)
        return outcome

    def step(self, action: Any) -> Any:
        """Step, and take a picture."""
        outcome = self.env.step(action)
        if self._take is not None:
            self._take(self.env)
        return outcome
