"""Presets: named settings to start from. What may not live here: how settings are checked."""

from typing import Any

PAPER_DST: dict[str, Any] = {
    "env": "dst",
    "steps": 100_000,
    "gamma": 0.95,
    "epsilon_start": 0.1,
    "epsilon_end": 0.01,
    "epsilon_steps": 10_000,
    "batch_size": 16,
    "reward_scale": 0.01,
    "capacity": 10_000,
}

PRESETS: dict[str, dict[str, Any]] = {
    "paper-minecart": {},
    "paper-dst": PAPER_DST,
    # With the paper's learning rate and final exploration most of the regret on features would come
    # from these two.
    "quick-dst": PAPER_DST
    | {"observation": "features", "width": 64, "learning_rate": 0.005, "epsilon_end": 0.001},
    # For environments that the paper does not have, on a CPU.
    "default": {
        "observation": "auto",
        "schedule": "regular",
        "steps": 100_000,
        "learning_rate": 0.005,
        "epsilon_steps": 20_000,
        "width": 128,
        "capacity": 50_000,
        "chunk": 500,
    },
}


def preset_for(env: str) -> str:
    """The preset that settings for an environment start from, where the user names none."""
    from windvane.envs import ENVS

    return ENVS[env].about.get("preset", "default") if env in ENVS else "default"
