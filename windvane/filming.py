"""What the commands that film an episode have in common: their options, and what they print."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jaxtyping import Array, Key
from rich.console import Console

from windvane.envs.environment import Environment
from windvane.errors import require_int, require_positive_int
from windvane.files import make_folder
from windvane.progress import say

if TYPE_CHECKING:
    from windvane.envs.plans import Plan


@dataclass(frozen=True)
class Filming:
    """How an episode is filmed."""

    size: int = 240
    """Height of a frame in pixels."""
    steps: int = 100
    """Most steps to show."""
    fps: int = 6
    """Frames per second of a GIF."""
    seed: int = 0
    """Seed of the episode."""

    def check(self, out: Path) -> None:
        """Complain about what cannot be filmed, before anything takes long."""
        from windvane import rendering

        for name in ("size", "steps", "fps"):
            require_positive_int(f"--{name}", getattr(self, name))
        require_int("--seed", self.seed, 0, 2**32 - 1)
        rendering.check_path(out)

    def film(
        self, console: Console, env: Environment, plan: "Plan", key: Key[Array, ""], out: Path
    ) -> None:
        """Roll out the episode, write it, and print its length and returns."""
        from windvane import rendering

        make_folder(out.parent)
        episode = rendering.film(env, plan, key, self.steps, self.size)
        rendering.write(episode.frames, out, self.fps)
        earned = ", ".join(
            f"{name} {amount:.3f}"
            for name, amount in zip(env.objective_names, episode.rewards.sum(0), strict=True)
        )
        ending = "terminated" if episode.terminated else "was truncated"
        steps = len(episode.rewards)
        say(console, f"the episode {ending} after {steps} steps and earned {earned}")
        say(console, f"written: {out}")
