"""A study: its trials, which Optuna keeps, and what all processes that work on it agree on.

The folder holds `study.json`, what is searched; `journal.log`, Optuna's trials, unless they are in
a database; and `workers`, who is at work. What may not live here: training.
"""

import json
import math
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import uuid4

from windvane.errors import InputError, in_one_line, shown
from windvane.files import (
    as_input_error,
    make_folder,
    path_exists,
    read_json,
    shown_path,
    write_new,
)
from windvane.search.space import Space, apply, space_from_json, space_to_json
from windvane.search.workers import Worker, is_gone, waiting_lock
from windvane.training.config import TrainConfig
from windvane.training.sweep import numbers_of

STUDY = "study.json"
JOURNAL = "journal.log"
LOCK = "study.lock"
FORMAT = 1
HALVING = 3
"""One of so many trials goes on from a rung to the next, which has as many times its steps."""
RUNGS = 2
"""Rungs before the end."""
MOST_INVALID = 100
"""Proposals in a row that training may refuse."""
PRESET, WORKER, WHY, VALUES = "preset", "worker", "why", "values"
"""What Optuna keeps of a trial beside its parameters: whether it is the preset, who trains it, why
it failed, and its last value of each seed.
"""


def load_optuna() -> Any:
    """Optuna, which is an extra."""
    try:
        optuna = import_module("optuna")
    except ImportError as error:
        raise InputError("the search needs Optuna: install windvane[tune]") from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


@dataclass(frozen=True)
class Plan:
    """What is searched, from where, and how it is judged: the same for all processes."""

    config: TrainConfig
    """The settings that are searched around; all trials are trained with its seeds."""
    space: Space
    preset: str = ""
    """Where the settings come from, for the command that trains with the best ones."""
    episodes: int = 1
    """Greedy episodes per weight vector."""

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "config": self.config.to_json(),
            "space": space_to_json(self.space),
            "preset": self.preset,
            "episodes": self.episodes,
        }

    @staticmethod
    def from_json(values: Mapping[str, Any], source: str) -> "Plan":
        """The plan that `to_json` wrote; `source` is for complaints."""
        try:
            return Plan(
                TrainConfig.from_json(values["config"], source),
                space_from_json(values["space"], source),
                str(values["preset"]),
                int(values["episodes"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{source} is no study: {in_one_line(error)}") from error

    def difference(self, other: "Plan") -> str | None:
        """The first thing in which another plan differs, as part of a sentence."""
        for one in fields(TrainConfig):
            ours, theirs = getattr(self.config, one.name), getattr(other.config, one.name)
            if one.name not in ("checkpoint_seconds", "chunk") and ours != theirs:
                return f"{one.name} is {shown(ours)} there and {shown(theirs)} here"
        for name in sorted({*self.space, *other.space}):
            ours, theirs = (
                str(space[name]) if name in space else "not searched"
                for space in (self.space, other.space)
            )
            if ours != theirs:
                return f"{name} is {ours} there and {theirs} here"
        if self.episodes != other.episodes:
            return f"episodes is {self.episodes} there and {other.episodes} here"
        return None


@dataclass(eq=False)
class Proposal:
    """A trial that is to be trained now."""

    trial: Any
    config: TrainConfig
    is_preset: bool


@dataclass
class Study:
    """The trials of a plan, in a folder that processes may share."""

    folder: Path
    plan: Plan
    optuna: Any
    trials: Any
    """Optuna's study."""
    names: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self.names = list(self.plan.space)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One process at a time."""
        with waiting_lock(self.folder / LOCK):
            yield

    def ask(self, worker: Worker, limit: int, like: Proposal | None = None) -> Proposal | None:
        """A trial to train, or None where `limit` are there; to be called `locked`.

        Trials that others began and left come first. One that is new has the same program as
        `like`: its other settings alone are chosen anew.
        """
        problem = ""
        for _ in range(MOST_INVALID):
            if not self._waiting():
                if self.begun >= limit:
                    return None
                if like is not None:
                    self.trials.enqueue_trial(self._program_values(like))
            trial = self.trials.ask()
            trial.set_user_attr(WORKER, worker.id)
            is_preset = bool(trial.user_attrs.get(PRESET))
            values = self._suggest(trial, is_preset)
            try:
                config = self.plan.config if is_preset else apply(self.plan.config, values)
            except InputError as error:
                problem = in_one_line(error)
                trial.set_user_attr(WHY, problem)
                self.fail(trial)
                continue
            return Proposal(trial, config, is_preset)
        raise InputError(
            f"{MOST_INVALID} combinations of the search space in a row cannot be trained; the last "
            f"one: {problem}"
        )

    def _suggest(self, trial: Any, is_preset: bool) -> dict[str, Any]:
        """Values from Optuna. Of the preset, those that the search space has."""
        found = {}
        for name, dimension in self.plan.space.items():
            if not is_preset or name in _values_of(self.plan):
                found[name] = dimension.suggest(trial, name)
        return found

    def _program_values(self, proposal: Proposal) -> dict[str, Any]:
        """The searched settings of a trial that its compiled program is not given."""
        given = numbers_of(proposal.config)
        values = proposal.trial.params
        return {name: value for name, value in values.items() if name not in given}

    def recover(self) -> int:
        """Trials that processes began which have ended since are waiting again; how many. To be
        called `locked`: a trial without a worker is then of one that was killed while it asked.
        """
        running = self._in_state("RUNNING")
        gone = [
            trial
            for trial in running
            if WORKER not in trial.user_attrs or is_gone(self.folder, trial.user_attrs[WORKER])
        ]
        for trial in gone:
            self._begin_anew(trial)
        there = self._in_state("WAITING", "RUNNING", "COMPLETE")
        there += [trial for trial in self._in_state("FAIL") if WHY in trial.user_attrs]
        if not any(trial.user_attrs.get(PRESET) for trial in there):
            self.trials.enqueue_trial(_values_of(self.plan), user_attrs={PRESET: True})
        return len(gone)

    def give_back(self, proposals: list[Proposal]) -> None:
        """Trials of this process that it does not train to the end are waiting again."""
        with self.locked():
            numbers = {one.trial.number for one in proposals}
            for trial in self._in_state("RUNNING"):
                if trial.number in numbers:
                    self._begin_anew(trial)

    def _begin_anew(self, trial: Any) -> None:
        self.trials.tell(trial.number, state=self._state("FAIL"), skip_if_finished=True)
        kept = {PRESET: True} if trial.user_attrs.get(PRESET) else None
        self.trials.enqueue_trial(trial.params, user_attrs=kept)

    def complete(self, proposal: Proposal, values: Mapping[int, float], value: float) -> None:
        """A trial was trained to the end; `values` are those of each seed."""
        proposal.trial.set_user_attr(VALUES, {str(seed): x for seed, x in values.items()})
        self.trials.tell(proposal.trial.number, value, skip_if_finished=True)

    def prune(self, proposal: Proposal) -> None:
        """A trial was stopped early."""
        self.trials.tell(proposal.trial.number, state=self._state("PRUNED"), skip_if_finished=True)

    def fail(self, trial: Any) -> None:
        """Nothing can be said of a trial."""
        self.trials.tell(trial.number, state=self._state("FAIL"), skip_if_finished=True)

    @property
    def begun(self) -> int:
        """Trials that are finished, or that processes are training."""
        return len(self._in_state("COMPLETE", "PRUNED", "RUNNING"))

    @property
    def running(self) -> int:
        """Trials that processes are training, or were when they ended."""
        return len(self._in_state("RUNNING"))

    @property
    def finished(self) -> list[Any]:
        """Trials that were trained to the end or stopped early, in their order."""
        return self._in_state("COMPLETE", "PRUNED")

    @property
    def best(self) -> list[Any]:
        """Trials that were trained to the end, best first; the preset is not among them."""
        found = [t for t in self._in_state("COMPLETE") if not t.user_attrs.get(PRESET)]
        return sorted(found, key=lambda trial: (trial.value, trial.number))

    @property
    def baseline(self) -> Any | None:
        """The preset's trial, once it is trained to the end."""
        found = [t for t in self._in_state("COMPLETE") if t.user_attrs.get(PRESET)]
        return found[0] if found else None

    def config_of(self, trial: Any) -> TrainConfig:
        """The settings of a trial."""
        if trial.user_attrs.get(PRESET):
            return self.plan.config
        return apply(self.plan.config, trial.params)

    def _in_state(self, *names: str) -> list[Any]:
        states = tuple(map(self._state, names))
        return self.trials.get_trials(deepcopy=False, states=states)

    def _waiting(self) -> bool:
        return bool(self._in_state("WAITING"))

    def _state(self, name: str) -> Any:
        return self.optuna.trial.TrialState[name]


def open_study(
    folder: Path, plan: Plan | None, storage: str | None, sampler: Any = None, pruner: Any = None
) -> Study:
    """The study in a folder, which is made where there is none. A study of another plan is refused;
    without a plan, the study must be there. `sampler` and `pruner` are Optuna's.
    """
    optuna = load_optuna()
    path = folder / STUDY
    if not path_exists(path):
        if plan is None:
            raise InputError(f"there is no study in {shown_path(folder)}")
        make_folder(folder)
        values = {"format": FORMAT, "id": uuid4().hex, "database": storage is not None}
        text = json.dumps(values | plan.to_json(), indent=2) + "\n"
        write_new(path, lambda file: file.write(text.encode()))
    found = read_json(path)
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise InputError(f"{shown_path(path)} is no study of this version")
    known = Plan.from_json(found, str(path))
    difference = None if plan is None else known.difference(plan)
    if difference is not None:
        raise InputError(
            f"the study in {shown_path(folder)} is another one: {difference}; give its settings "
            "again, or choose another --out"
        )
    if bool(found.get("database")) != (storage is not None):
        kept = "a database: give" if found.get("database") else "its folder: leave out"
        raise InputError(f"the study in {shown_path(folder)} is kept in {kept} --storage")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        trials = optuna.create_study(
            storage=_storage(optuna, folder, storage),
            sampler=sampler or optuna.samplers.TPESampler(constant_liar=True),
            pruner=pruner
            or optuna.pruners.SuccessiveHalvingPruner(
                min_resource=max(known.config.steps // HALVING**RUNGS, 1),
                reduction_factor=HALVING,
            ),
            study_name=f"windvane-{found.get('id')}",
            load_if_exists=True,
        )
    return Study(folder, known, optuna, trials)


def _storage(optuna: Any, folder: Path, url: str | None) -> Any:
    if url is None:
        journal = import_module("optuna.storages.journal")
        # Absolute, as the lock is a link to it, and would be looked up from where the link is.
        path = str((folder / JOURNAL).absolute())
        lock = journal.JournalFileSymlinkLock(path)
        backend = journal.JournalFileBackend(path, lock_obj=lock)
        lock.acquire()
        try:
            mend(folder / JOURNAL)
        finally:
            lock.release()
        return optuna.storages.JournalStorage(backend)
    try:
        return optuna.storages.RDBStorage(url)
    except Exception as error:  # whatever a database, or its driver, may say
        raise InputError(f"cannot open the database of --storage: {in_one_line(error)}") from error


def mend(journal: Path) -> None:
    """Remove half a line from the end, which a process that was killed may have left: with another
    one after it nothing could be read any more.
    """
    with as_input_error(journal), journal.open("r+b") as file:
        data = file.read()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            file.truncate(whole)


def _values_of(plan: Plan) -> dict[str, Any]:
    """The searched settings of the preset that lie in the search space."""
    found = {}
    for name, dimension in plan.space.items():
        part, _, argument = name.partition(".")
        own = getattr(plan.config, part)
        value = own.get(argument, math.nan) if argument else own
        if value in dimension:
            found[name] = value
    return found
