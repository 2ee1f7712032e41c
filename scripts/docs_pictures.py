"""The pictures of the setting in the docs, each by the command that draws it.

    python -m scripts.docs_pictures    # or make docs-pictures

It takes a minute. Nothing is trained.
"""

import shlex
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from windvane.cli import main as windvane
from windvane.policy import Policy
from windvane.rendering import film_policy

OUT = Path("docs/pictures")
POLICY = Path("windvane/studio/policies/1-minecart-pqn.safetensors")
COMMANDS = (
    "windvane oracle dst --out {out}",
    "windvane oracle minecart --out {out}",
    "windvane render dst --weights 0.3,0.7 --out {out}/dst-trip.png",
)
KEPT = (
    "dst-map.png", "dst-coverage-set.png", "dst-weight-space.png", "minecart-map.png",
    "minecart-weight-space.png", "dst-trip.png",
)  # fmt: skip
WEIGHTS = ((0.8, 0.1, 0.1), (0.1, 0.8, 0.1), (0.05, 0.05, 0.9))
FRAMES = 8
GAP = ((2, 2), (2, 2), (0, 0))


def one_policy(path: Path) -> None:
    """Rows of frames: the policy that ships with the studio, under three weight vectors."""
    policy = Policy.load(POLICY)
    rows = []
    for weights in WEIGHTS:
        frames = film_policy(policy, weights, seed=0, steps=60, size=160).frames
        shown = np.linspace(0, len(frames) - 1, FRAMES).round().astype(int)
        rows.append(np.concatenate([np.pad(frames[i], GAP, constant_values=255) for i in shown], 1))
    Image.fromarray(np.concatenate(rows)).save(path)


def main() -> None:
    """Draw all of them."""
    OUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as out:
        for command in COMMANDS:
            if code := windvane(shlex.split(command.format(out=out))[1:]):
                raise SystemExit(code)
        for name in KEPT:
            Image.open(Path(out) / name).save(OUT / name, optimize=True)
    one_policy(OUT / "one-policy.png")


if __name__ == "__main__":
    main()
