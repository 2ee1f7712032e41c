"""Agents: one file each over one shared core, and the registry of their names."""

from windvane.registry import Entry, Registry

_HOME = "windvane.agents."
_CN = f"{_HOME}conditioned:ConditionedNetwork"

AGENTS = Registry("agent", {
    "cn": Entry("CN", _CN, "Conditioned network, trained on active and past weights."),
    "cn-active": Entry("CN-ACTIVE", _CN, "CN on active weights.", {"train_on": "active"}),
    "cn-uvfa": Entry("CN-UVFA", _CN, "CN on past weights.", {"train_on": "history"}),
    "uvfa": Entry("UVFA", f"{_HOME}uvfa:UVFA", "Scalar values, conditioned on weights."),
    "mn": Entry("MN", f"{_HOME}multi_network:MultiNetwork", "A set of policies."),
    "mo": Entry("MO", f"{_HOME}multi_objective:MultiObjectiveDQN", "Scalarised Q-learning."),
    "naive": Entry("NAIVE", f"{_HOME}naive:Naive", "Each objective by itself."),
    "envelope": Entry(
        "Envelope", f"{_HOME}envelope:Envelope", "Envelope Q-learning, on random weights.",
        about={"preset": "envelope"},
    ),
    "gpi-ls": Entry(
        "GPI-LS", f"{_HOME}gpi_ls:GPILS", "Generalised policy improvement and linear support.",
        about={"preset": "gpi-ls"},
    ),
    "pqn": Entry(
        "PQN", f"{_HOME}pqn:PQN", "One network on many environments at once, without replay.",
        about={"preset": "fast"},
    ),
})  # fmt: skip
