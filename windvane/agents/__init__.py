"""Agents: one file each over one shared core, and the registry of their names."""

from windvane.registry import Entry, Registry

_CN = "windvane.agents.conditioned:ConditionedNetwork"

AGENTS = Registry("agent", {
    "cn": Entry("CN", _CN, "Conditioned network, trained on active and past weights."),
    "cn-active": Entry("CN-ACTIVE", _CN, "CN trained on active weights alone.", {"train_on": "active"}),
    "cn-uvfa": Entry("CN-UVFA", _CN, "CN trained on past weights alone.", {"train_on": "history"}),
    "uvfa": Entry("UVFA", "windvane.agents.uvfa:UVFA", "Scalar values, conditioned on weights."),
    "mn": Entry("MN", "windvane.agents.multi_network:MultiNetwork", "A set of policies."),
    "mo": Entry("MO", "windvane.agents.multi_objective:MultiObjectiveDQN", "Scalarised deep Q-learning."),
    "naive": Entry("NAIVE", "windvane.agents.naive:Naive", "Each objective by itself."),
})  # fmt: skip
