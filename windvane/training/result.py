"""What training leaves: records of episodes, regret, policies; and the summary in a run folder."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from windvane.errors import InputError
from windvane.files import atomic_write, make_folder
from windvane.policy import Policy
from windvane.training.config import TrainConfig
from windvane.training.records import Records, write_table

SUMMARY = "summary.json"
POLICIES = "policies"
CONTENT = "replay-content.parquet"


@dataclass(frozen=True)
class RegretSummary:
    """Mean regret of the episodes of each run: of all, and of those in the last quarter of steps.

    It is not a number where there was no episode, or where what is optimal is not known.
    """

    overall: np.ndarray
    last_quarter: np.ndarray


def regret_of(records: Records, runs: int, steps: int) -> RegretSummary:
    """Mean regret of each run in records of `steps` steps."""
    late = records["step"] > 0.75 * steps
    of = [records["run"] == run for run in range(runs)]
    regrets = records["regret"]
    return RegretSummary(
        np.asarray([_mean(regrets[mine]) for mine in of]),
        np.asarray([_mean(regrets[mine & late]) for mine in of]),
    )


@dataclass(frozen=True)
class Result:
    """A finished training; `failed` are the runs that came to nonsense and stopped, from 0 on."""

    config: TrainConfig
    records: Records
    policies: tuple[Policy, ...]
    failed: tuple[int, ...]
    folder: Path | None = None
    content: Records | None = None
    """What diverse buffers held in the end: a row a trajectory, with its run, whether it is in the
    diverse half, and its discounted return."""

    @property
    def regret(self) -> RegretSummary:
        """Regret of each run."""
        return regret_of(self.records, len(self.config.runs), self.config.steps)

    @property
    def sentence(self) -> str | None:
        """About runs that failed, if any did."""
        if not self.failed:
            return None
        names = self.config.run_names
        these = ", ".join(names[run] for run in self.failed)
        others = len(names) - len(self.failed)
        return (
            f"the loss or the gradient of {len(self.failed)} of {len(names)} runs ({these}) was "
            f"not finite, and they stopped learning there; the other {others} went on"
        )

    def save(self, folder: Path) -> None:
        """Write the policies and then the summary, which says that all is there."""
        make_folder(folder / POLICIES)
        for name, policy in zip(self.config.run_names, self.policies, strict=True):
            policy.save(policy_path(folder, name))
        if self.content is not None:
            write_table(folder / CONTENT, self.content)
        regret = self.regret
        summary = {
            "steps": self.config.steps,
            "runs": list(self.config.run_names),
            "failed": list(self.failed),
            "episodes": len(self.records["step"]),
            "regret": _plain(regret.overall),
            "regret_last_quarter": _plain(regret.last_quarter),
        }
        text = json.dumps(summary, indent=2) + "\n"
        atomic_write(folder / SUMMARY, lambda file: file.write(text.encode()))


def policy_path(folder: Path, run_name: str) -> Path:
    """Where the policy of a run is kept."""
    return folder / POLICIES / f"{run_name}.safetensors"


def load_policies(folder: Path, **own: Any) -> tuple[Policy, ...]:
    """The policies of a finished training, one a run."""
    if not (folder / "config.json").exists():
        raise InputError(f"there is no training run in {folder}")
    names = TrainConfig.load(folder / "config.json").run_names
    if not (folder / SUMMARY).exists():
        raise InputError(
            f"the training run in {folder} is not finished; go on with: windvane resume {folder}"
        )
    own = {name: part for name, part in own.items() if name in ("env", "agent")}
    return tuple(Policy.load(policy_path(folder, name), **own) for name in names)


def read_failed(folder: Path) -> tuple[int, ...]:
    """The runs that a finished training lists as failed."""
    try:
        return tuple(json.loads((folder / SUMMARY).read_text())["failed"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"cannot read {folder / SUMMARY}: {error}") from error


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if values.size else float("nan")


def _plain(values: np.ndarray) -> list[float | None]:
    """Numbers for JSON, which knows no NaN."""
    return [float(value) if np.isfinite(value) else None for value in values]
