"""Environments: native ones as pure functions, adapters for Gymnasium, and the registry."""

from windvane.registry import Entry, Registry

ENVS = Registry("env", {
    "minecart": Entry(
        "Minecart", "windvane.envs.factories:minecart", "Mine ore, sell it, save fuel.",
        about={"preset": "paper-minecart", "sparse_every": 50_000},
    ),
    "dst": Entry(
        "Deep Sea Treasure", "windvane.envs.factories:deep_sea_treasure",
        "Dive for a treasure; richer ones lie further away.",
        about={
            "preset": "paper-dst", "sparse_every": 5_000,
            "source": "windvane.envs.deep_sea_treasure:source",
        },
    ),
})  # fmt: skip
