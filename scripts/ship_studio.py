"""Train the policies that come with the package, for `windvane studio` without a folder.

    python -m scripts.ship_studio    # or make studio-policies: about ten minutes on 2 cores

What is trained already, under out/studio, is not trained again. How good each policy is goes into
notes.json, measured over a grid of weights.
"""

import json
from pathlib import Path
from typing import Any

import windvane
from windvane.policy import Policy
from windvane.runs.result import load_policies
from windvane.studio.library import SHIPPED
from windvane.training.config import TrainConfig

WORK = Path("out/studio")
EPISODES = 20
POLICIES: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "1-minecart-pqn": (
        "fast-minecart", {}, "Minecart · every weight",
        "Trained for every weight at once.",
    ),
    "2-minecart-one-weight": (
        "fast-minecart",
        {"schedule": "0.45,0.45,0.1", "steps": 8 * 2**20, "epsilon_steps": 5_500_000},
        "Minecart · one weight",
        "Trained for one weight vector only, 45% on either ore.",
    ),
    "3-dst-pqn": (
        "fast-dst", {}, "Deep Sea Treasure · every weight",
        "Trained for every weight at once.",
    ),
}  # fmt: skip


def trained(name: str) -> Policy:
    """The policy of that name, trained unless it is there."""
    preset, changes, _, _ = POLICIES[name]
    folder = WORK / name
    if (folder / "summary.json").exists():
        return load_policies(folder)[0]
    if (folder / "config.json").exists():
        return windvane.resume(folder).policies[0]
    return windvane.train(TrainConfig.preset(preset, **changes), out=folder).policies[0]


def main() -> None:
    """Train, evaluate, save."""
    notes = {}
    SHIPPED.mkdir(exist_ok=True)
    for name, (_, _, title, note) in POLICIES.items():
        policy = trained(name)
        found = windvane.evaluate(policy, episodes=EPISODES)
        print(f"{name}: mean regret {found.regret.mean():.4f}, worst {found.regret.max():.4f}")
        notes[name] = {
            "name": title,
            "note": note,
            "mean_regret": round(float(found.regret.mean()), 4),
            "worst_regret": round(float(found.regret.max()), 4),
        }
        policy.save(SHIPPED / f"{name}.safetensors")
    (SHIPPED / "notes.json").write_text(json.dumps(notes, indent=1) + "\n")
    size = sum(path.stat().st_size for path in SHIPPED.iterdir())
    print(f"written: {SHIPPED} ({size / 2**20:.1f} MB)")


if __name__ == "__main__":
    main()
