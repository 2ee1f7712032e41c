"""The registry of weight schedules, apart from them: help texts list it without importing JAX."""

from windvane.registry import Entry, Registry

LIVE = "live:"
"""Prefix of a schedule that watches a file (see `live`)."""

_HOME = "windvane.schedules:"

SCHEDULES = Registry("schedule", {
    "sparse": Entry("sparse", f"{_HOME}SparseChanges.build", "New weights every so many steps."),
    "regular": Entry("regular", f"{_HOME}RegularChanges.build", "A small change every episode."),
    "random": Entry("random", f"{_HOME}RandomWeights.build", "New weights every episode."),
    "chosen": Entry("chosen", f"{_HOME}ChosenWeights.build", "Weights that the agent chooses."),
    "sequence": Entry("sequence", f"{_HOME}WeightSequence.build", "The given rows."),
})  # fmt: skip
