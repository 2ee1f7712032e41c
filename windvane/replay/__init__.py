"""Replay buffers: shared storage and sampling, one file per retention rule, and their registry."""

from windvane.registry import Entry, Registry

REPLAYS = Registry("replay", {
    "standard": Entry("Standard ER", "windvane.replay.setup:standard", "The newest transitions."),
    "der": Entry("DER", "windvane.replay.setup:der", "Half newest, half diverse trajectories."),
    "sel": Entry("SEL", "windvane.replay.setup:sel", "Half newest, half a uniform sample."),
    "exp": Entry("EXP", "windvane.replay.setup:exp", "Half newest, half exploratory."),
})  # fmt: skip
