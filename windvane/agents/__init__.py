"""Agents: one file each over one shared core, and the registry of their names."""

from windvane.registry import Entry, Registry

_HOME = "windvane.agents."
_CN = f"{_HOME}conditioned:ConditionedNetwork"

AGENTS = Registry("agent", {
    "cn": Entry("CN", _CN, "One network for all weights, trained on active and past ones."),
    "cn-active": Entry("CN-ACTIVE", _CN, "CN on active weights alone.", {"train_on": "active"}),
    "cn-uvfa": Entry("CN-UVFA", _CN, "CN on past weights alone.", {"train_on": "history"}),
    "uvfa": Entry("UVFA", f"{_HOME}uvfa:UVFA", "One network for all weights, with scalar values."),
    "mn": Entry(
        "MN", f"{_HOME}multi_network:MultiNetwork",
        "A set of networks, one per policy that was best for some weights.",
    ),
    "mo": Entry(
        "MO", f"{_HOME}multi_objective:MultiObjectiveDQN",
        "One multi-objective DQN, trained further whenever the weights change.",
    ),
    "naive": Entry("NAIVE", f"{_HOME}naive:Naive", "One DQN that learns each objective by itself."),
    "envelope": Entry(
        "Envelope", f"{_HOME}envelope:Envelope",
        "Envelope Q-learning (Yang et al., 2019), on random weights.",
        about={"preset": "envelope"},
    ),
    "gpi-ls": Entry(
        "GPI-LS", f"{_HOME}gpi_ls:GPILS",
        "Policies for corner weights (Alegre et al., 2023), which it chooses itself.",
        about={"preset": "gpi-ls"},
    ),
    "pqn": Entry(
        "PQN", f"{_HOME}pqn:PQN",
        "One network for all weights, on many environments at once, without replay.",
        about={"preset": "fast"},
    ),
})  # fmt: skip
