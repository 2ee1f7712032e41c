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

# Many environments at once and no replay buffer. A native environment can have hundreds of copies,
# a Gymnasium environment as many as there is patience for.
FAST: dict[str, Any] = {
    "observation": "auto",
    "agent": "pqn",
    "replay": "none",
    "schedule": "random",
    "rollout": 32,
    "num_envs": 8,
    "agent_args": {"minibatches": 4},
    "learning_rate": 1e-3,
    "clip_norm": 10.0,
    "average_decay": 0.999,
    "epsilon_steps": 500_000,
    "width": 128,
    "depth": 2,
    "dueling": False,
    "layer_norm": True,
    "chunk": 2_048,
}
FAST_MINECART = FAST | {
    "env": "minecart",
    "observation": "features",
    "num_envs": 256,
    "agent_args": {"minibatches": 32, "td_lambda": 0.75},
    "steps": 17 * 2**20,
    # Most weights are best served by mines that a random walk seldom finds: exploration lasts.
    "epsilon_steps": 11_000_000,
    "epsilon_end": 0.01,
    "chunk": 2**18,
}
# Which of two treasures is better hangs on a few thousandths; of what was tried, this came nearest.
# A random walk ends at the nearest treasure, so that exploration begins at a half.
FAST_DST = FAST | {
    "env": "dst",
    "observation": "features",
    "num_envs": 256,
    "agent_args": {"minibatches": 32},
    "steps": 2 * 2**20,
    "learning_rate": 2e-3,
    "epsilon_start": 0.5,
    "epsilon_steps": 1_500_000,
    "epsilon_end": 0.01,
    "layer_norm": False,
    "gamma": 0.95,
    "reward_scale": 0.01,
    "chunk": 2**17,
}

# What MO-Gymnasium's Minecart is trained with in morl-baselines 1.3.0. Its network has four hidden
# layers, the first of which is given both features and weights. It sees features as they are, and
# so does ours: Minecart's bounds are -1 and 1.
ENVELOPE: dict[str, Any] = {
    "observation": "auto",
    "agent": "envelope",
    "agent_args": {"distribution": "normal"},
    "replay": "standard",
    "schedule": "random",
    "schedule_args": {"distribution": "normal"},
    "steps": 100_000,
    "gamma": 0.98,
    "learning_rate": 3e-4,
    "clip_norm": 0.1,
    "epsilon_start": 1.0,
    "epsilon_end": 0.05,
    "epsilon_steps": 50_000,
    "batch_size": 64,
    "update_interval": 1,
    "target_interval": 1_000,
    "learning_starts": 100,
    "width": 256,
    "depth": 4,
    "encoder_depth": 0,
    "feature_scaling": "signed",
    "dueling": False,
    "capacity": 100_000,
    "adam_epsilon": 1e-8,
    "priority_exponent": 0.6,
    # There what is added to an error is the largest priority so far, which grows to about 1.
    "priority_offset": 1.0,
}

# Likewise for GPI-LS: without priorities, and without clipping, which a norm has to be named for.
GPI_LS: dict[str, Any] = ENVELOPE | {
    "agent": "gpi-ls",
    "agent_args": {},
    "schedule": "chosen",
    "schedule_args": {},
    "steps": 150_000,
    "clip_norm": 1e6,
    "batch_size": 128,
    "target_interval": 200,
    "depth": 3,
    "encoder_depth": 1,
    "layer_norm": True,
    "capacity": 200_000,
    "priority_exponent": 0.0,
}

DST_REWARDS: dict[str, Any] = {"env": "dst", "gamma": 0.95, "reward_scale": 0.01}

PRESETS: dict[str, dict[str, Any]] = {
    "paper-minecart": {},
    "paper-dst": PAPER_DST,
    # With the paper's learning rate and final exploration most of the regret on features would come
    # from these two. The average of the networks runs in circles for fewer weights than the newest.
    "quick-dst": PAPER_DST
    | {"observation": "features", "width": 64, "learning_rate": 0.005, "epsilon_end": 0.001,
       "average_decay": 0.999},
    # For environments that the paper does not have, on a CPU.
    "default": {
        "observation": "auto",
        "schedule": "regular",
        "steps": 100_000,
        "learning_rate": 0.005,
        "epsilon_steps": 20_000,
        "average_decay": 0.999,
        "width": 128,
        "capacity": 50_000,
        "chunk": 500,
    },
    "envelope": ENVELOPE,
    "envelope-dst": ENVELOPE | DST_REWARDS,
    "gpi-ls": GPI_LS,
    "gpi-ls-dst": GPI_LS | DST_REWARDS,
    "fast": FAST | {"steps": 2**20},
    "fast-minecart": FAST_MINECART,
    "fast-minecart-gpu": FAST_MINECART
    | {"num_envs": 1024, "width": 256, "depth": 3, "agent_args": {"minibatches": 64},
       "steps": 40 * 2**20, "epsilon_steps": 26_000_000, "epsilon_end": 0.01, "chunk": 2**20},
    "fast-minecart-pixels": FAST_MINECART
    | {"observation": "pixels", "num_envs": 1024, "width": 512, "depth": 3,
       "agent_args": {"minibatches": 32},
       "learning_rate": 5e-4, "steps": 20 * 2**20, "epsilon_steps": 13_000_000,
       "epsilon_end": 0.01, "chunk": 2**20},
    "fast-dst": FAST_DST,
    "fast-dst-pixels": FAST_DST
    | {"observation": "pixels", "width": 256, "agent_args": {"minibatches": 16},
       "learning_rate": 1e-3, "layer_norm": True, "steps": 6 * 2**20, "epsilon_steps": 4_400_000},
}  # fmt: skip

SUMMARIES = {
    "paper-minecart": "The paper's settings for Minecart, on pixels.",
    "paper-dst": "The paper's settings for Deep Sea Treasure, on pixels.",
    "quick-dst": "Deep Sea Treasure on features: a minute or two on any computer.",
    "default": "The paper's agents in an environment that the paper does not have.",
    "envelope": "Envelope Q-learning, with settings as in morl-baselines.",
    "envelope-dst": "The same for Deep Sea Treasure.",
    "gpi-ls": "GPI-LS, with settings as in morl-baselines.",
    "gpi-ls-dst": "The same for Deep Sea Treasure.",
    "fast": "A policy for every weight, on copies of any environment, without replay.",
    "fast-minecart": "The same for Minecart: about 3 minutes on 2 cores.",
    "fast-minecart-gpu": "The same with a larger network, for a GPU.",
    "fast-minecart-pixels": "The same on pixels, for a GPU.",
    "fast-dst": "A policy for every weight of Deep Sea Treasure.",
    "fast-dst-pixels": "The same on pixels.",
}
"""What each preset is for, in one sentence."""


def preset_for(env: str, agent: str | None = None) -> str:
    """The preset that settings for an environment and perhaps an agent start from, where the user
    names none.
    """
    from windvane.agents import AGENTS
    from windvane.envs import ENVS

    about = ENVS[env].about if env in ENVS else {}
    kind = AGENTS[agent].about.get("preset") if agent and agent in AGENTS else None
    if kind is None:
        return about.get("preset", "default")
    return f"{kind}-{env}" if f"{kind}-{env}" in PRESETS else kind
