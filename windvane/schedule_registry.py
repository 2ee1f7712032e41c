"""The registry of weight schedules, apart from them: help texts list it without importing JAX."""

from windvane.registry import Entry, Registry

LIVE = "live:"
"""Prefix of a schedule that watches a file (see `live`)."""

_HOME = "windvane.schedules:"

SCHEDULES = Registry("schedule", {
    "sparse": Entry(
        "sparse", f"{_HOME}SparseChanges.build",
        "New random weights every 50,000 steps; 5,000 for dst, a twentieth of the run elsewhere.",
    ),
    "regular": Entry(
        "regular", f"{_HOME}RegularChanges.build",
        "A small step every episode, from one random target to the next.",
    ),
    "random": Entry("random", f"{_HOME}RandomWeights.build", "New random weights every episode."),
    "chosen": Entry(
        "chosen", f"{_HOME}ChosenWeights.build", "Weights that an agent such as gpi-ls chooses."
    ),
    "sequence": Entry(
        "sequence", f"{_HOME}WeightSequence.build", "Given rows of weights, in their order."
    ),
})  # fmt: skip
