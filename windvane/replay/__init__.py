"""Replay buffers: shared storage and sampling, one file per retention rule, and their registry."""

from windvane.registry import Entry, Registry

REPLAYS = Registry("replay", {
    "standard": Entry("Standard ER", "windvane.replay.standard:StandardReplay.build", "The newest transitions."),
    "der": Entry("DER", "windvane.replay.diverse:DiverseReplay.build", "Half newest, half diverse trajectories."),
    "sel": Entry("SEL", "windvane.replay.selective:SelectiveReplay.build", "Half newest, half a uniform sample."),
    "exp": Entry("EXP", "windvane.replay.exploration:ExplorationReplay.build", "Half newest, half exploratory."),
})  # fmt: skip
