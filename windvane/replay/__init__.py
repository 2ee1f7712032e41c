"""Replay buffers: shared storage and sampling, one file per retention rule, and their registry.

Nothing here depends on `windvane.envs`.
"""

from windvane.registry import Entry, Registry

_HOME = "windvane.replay."

REPLAYS = Registry("replay", {
    "standard": Entry(
        "Standard ER", f"{_HOME}standard:StandardReplay.build", "The newest transitions."
    ),
    "der": Entry(
        "DER", f"{_HOME}diverse:DiverseReplay.build",
        "Half the newest, half trajectories with diverse returns.",
    ),
    "sel": Entry(
        "SEL", f"{_HOME}selective:SelectiveReplay.build",
        "Half the newest, half a uniform sample of all older ones.",
    ),
    "exp": Entry(
        "EXP", f"{_HOME}exploration:ExplorationReplay.build",
        "Half the newest, half those whose action was furthest from greedy.",
    ),
    "none": Entry("no replay", f"{_HOME}setup:no_replay", "For agents that learn from rollouts."),
})  # fmt: skip
