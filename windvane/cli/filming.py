"""What the commands that film an episode have in common: their options, and the file they write."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windvane.errors import require_int, require_positive_int
from windvane.files import make_folder

if TYPE_CHECKING:
    from rich.console import Console

    from windvane.rendering import Caption, Episode


@dataclass(frozen=True)
class Filming:
    """The film."""

    size: int = 240
    """Pixels from the top to the bottom of a frame."""
    steps: int = 100
    """Steps to show at most; the episode itself is played to its end."""
    fps: int = 6
    """Frames per second of a .gif or .mp4."""
    seed: int = 0
    """Seed of the episode's random numbers."""

    def check(self, out: Path) -> None:
        """Complain about what cannot be filmed, before anything takes long."""
        from windvane import rendering

        for name, most in (("size", 4_096), ("steps", 10_000), ("fps", 10_000)):
            require_positive_int(f"--{name}", getattr(self, name), most)
        require_int("--seed", self.seed, 0, 2**32 - 1)
        rendering.check_path(out)

    def write(
        self,
        console: "Console",
        episode: "Episode",
        names: tuple[str, ...],
        weights: Any,
        out: Path,
    ) -> None:
        """Write the film, and print how long the episode was and what it earned."""
        from windvane import rendering
        from windvane.progress import say

        make_folder(out.parent)
        frames = rendering.with_captions(episode.frames, _captions(episode, names, weights))
        rendering.write(frames, out, self.fps)
        ending = "terminated" if episode.terminated else "was truncated"
        say(console, f"the episode {ending} after {len(episode.rewards)} steps")
        say(console, f"undiscounted return: {amounts(names, episode.rewards.sum(0))}")
        say(console, f"written: {out}")


def amounts(names: tuple[str, ...], values: Any) -> str:
    """A number for each objective."""
    return ", ".join(f"{name} {value:.4f}" for name, value in zip(names, values, strict=True))


def _captions(episode: "Episode", names: tuple[str, ...], weights: Any) -> "list[Caption]":
    """Weights, step and return so far, for every frame."""
    import numpy as np

    from windvane.rendering import Caption

    totals = np.concatenate([np.zeros_like(episode.rewards[:1]), episode.rewards.cumsum(0)])
    shown = None if weights is None else tuple(map(float, weights))
    return [
        Caption(step, names, shown, tuple(map(float, totals[step])))
        for step in range(len(episode.frames))
    ]
