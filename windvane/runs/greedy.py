"""Greedy evaluations during training: their curve, and the best policy kept beside the last."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from windvane.errors import LARGEST_COUNT, InputError
from windvane.evaluation import Evaluation, evaluate
from windvane.files import faults_of, make_folder, path_exists
from windvane.policy import Policy, trained_policy
from windvane.runs.folder import EVALUATIONS, Owner
from windvane.runs.result import policy_path
from windvane.runs.tables import (
    Records,
    concatenate,
    numbers,
    read_table,
    whole_numbers,
    write_table,
)
from windvane.training.build import Training
from windvane.training.config import TrainConfig
from windvane.training.session import Session


@dataclass
class GreedyEvaluations:
    """What greedy evaluations of all runs came to so far; without any, nothing happens."""

    training: Training | None
    folder: Path | None
    optimal: Any = None
    tables: list[Records] = field(default_factory=list)
    policies: dict[int, tuple[float, Policy]] = field(default_factory=dict)

    @staticmethod
    def resume(
        training: Training, folder: Path | None, step: int, optimal: Any
    ) -> "GreedyEvaluations":
        """Continue from what a folder holds of the steps before."""
        found = GreedyEvaluations(training, folder, optimal)
        if folder is None or not path_exists(folder / EVALUATIONS):
            return found
        table = read_evaluations(folder / EVALUATIONS, training.config)
        kept = table["step"] <= step
        found.tables = [{name: column[kept] for name, column in table.items()}]
        for run, name in enumerate(training.config.run_names):
            path, scores = policy_path(folder, name, best=True), table["utility"][kept]
            mine = scores[table["run"][kept] == run]
            if path_exists(path) and mine.size:
                found.policies[run] = (float(mine.max()), _load(path, training))
        return found

    @staticmethod
    def read(folder: Path, config: TrainConfig, given: dict[str, Any]) -> "GreedyEvaluations":
        """What a finished training holds."""
        found = GreedyEvaluations(None, folder)
        if path_exists(folder / EVALUATIONS):
            found.tables = [read_evaluations(folder / EVALUATIONS, config)]
            given = {
                name: part for name, part in given.items() if name in ("env", "agent", "trust")
            }
            for run, name in enumerate(config.run_names):
                path = policy_path(folder, name, best=True)
                if path_exists(path):
                    found.policies[run] = (0.0, Policy.load(path, **given))
        return found

    @property
    def rows(self) -> Records | None:
        """One row per evaluation and run, or None if there was none."""
        return concatenate(self.tables) if self.tables else None

    def since(self, tables: int) -> Records | None:
        """The rows after so many tables, or None if there is none."""
        return concatenate(self.tables[tables:]) if len(self.tables) > tables else None

    @property
    def best(self) -> tuple[Policy, ...] | None:
        """The best policy of each run so far."""
        policies = tuple(policy for _, (_, policy) in sorted(self.policies.items()))
        return policies or None

    def consider(self, session: Session, start: int, stop: int) -> None:
        """Evaluate all runs if an evaluation fell due between two steps."""
        if self.training is None or self.training.config.evaluate_every is None:
            return
        config = self.training.config
        every = self.training.config.evaluate_every
        if start // every == stop // every and stop != config.steps:
            return
        for run, one in enumerate(config.runs):
            policy = trained_policy(self.training, session.policy_network(run), run, stop)
            found = evaluate(policy, seed=0, optimal=self.optimal, oracle=config.oracle)
            self.tables.append(_row(run, one.seed_numbers[0], stop, found))
            score = float(found.utility.mean())
            if run not in self.policies or score > self.policies[run][0]:
                self.policies[run] = score, policy
                if self.folder is not None:
                    path = policy_path(self.folder, config.run_names[run], best=True)
                    make_folder(path.parent)
                    policy.save(path)

    def write(self) -> None:
        """Write the curve into the run folder."""
        if self.folder is not None and self.rows is not None:
            write_table(self.folder / EVALUATIONS, self.rows)


def read_evaluations(path: Path, config: TrainConfig) -> Records:
    """The greedy evaluations of a training, checked; the columns that are ours alone."""
    table = read_table(path)
    with faults_of(path, "the table"):
        columns = {
            "run": whole_numbers(table, "run", 0, len(config.runs) - 1),
            "seed": whole_numbers(table, "seed", 0, LARGEST_COUNT),
            "step": whole_numbers(table, "step", 1, config.steps),
            **{name: numbers(table, name) for name in ("utility", "worst_utility")},
            **{name: numbers(table, name, unknown=True) for name in ("regret", "worst_regret")},
            "never_ending": numbers(table, "never_ending", 0, 1),
        }
        if (np.diff(columns["step"].astype(np.int64)) < 0).any():
            raise InputError("the column 'step' must not decrease from row to row")
        pairs = set(zip(columns["run"].tolist(), columns["step"].tolist(), strict=True))
        if len(pairs) < len(columns["run"]):
            raise InputError("it has two evaluations of one run at one step")
    return columns


def _row(run: int, seed: int, step: int, found: Evaluation) -> Records:
    values = {
        "run": np.int32(run),
        "seed": np.int64(seed),
        "step": np.int32(step),
        "utility": found.utility.mean(),
        "worst_utility": found.utility.min(),
        "regret": found.regret.mean(),
        "worst_regret": found.regret.max(),
        "never_ending": np.float64(found.never_ending.mean()),
    }
    return {name: np.asarray([value]) for name, value in values.items()}


def _load(path: Path, training: Training) -> Policy:
    """A policy that a run kept, with the parts of the training it belongs to."""
    learner, config = training.learner, training.config
    # By the name that this run has, so that no other is imported.
    given = learner.agent if "agent" in config.custom else config.agent
    kept = Policy.load(path, agent=given)
    if all(Owner(kept.config, None).difference(run) for run in config.runs):
        raise InputError(f"{path} is of another training run than the config.json of its folder")
    return Policy(
        kept.spec, learner.agent, kept.network, kept.config, kept.seed,
        step=kept.step, world=training.world,
    )  # fmt: skip
