"""Policies that are open: loaded once, compiled once, for all viewers."""

import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np

from windvane.envs.environment import Environment
from windvane.errors import InputError
from windvane.evaluation import known_values
from windvane.policy import Policy
from windvane.runs.folder import is_run_folder, load_optimal
from windvane.studio.jobs import Job, Jobs
from windvane.studio.library import Library, PolicyEntry, group_of
from windvane.studio.stage import NativePrograms, Stage, make_stage

MOST_OPEN = 32


class Opened:
    """A policy with its compiled functions and, as soon as it is known, what is optimal."""

    def __init__(self, entry: PolicyEntry, policy: Policy, stamp: Any, optimum: Job):
        """Make the programs; they compile when they are first used."""
        self.entry, self.policy, self.stamp, self.optimum = entry, policy, stamp, optimum
        native = isinstance(policy.world, Environment)
        self.programs = NativePrograms(policy) if native else None
        world: Any = policy.world
        template = world if native else getattr(world.first, "unwrapped", world.first)
        names = getattr(template, "action_names", None) or ()
        number = policy.spec.num_actions
        good = len(names) == number and all(isinstance(name, str) for name in names)
        self.actions = list(names) if good else [f"action {i}" for i in range(number)]

    def stage(self) -> Stage:
        """A stage of one's own."""
        return make_stage(self.policy, self.programs)

    def same_form(self, policy: Policy) -> bool:
        """Whether another network of this policy can take its place in a stage."""
        return _alike(self.policy, policy)

    def best(self, weights: np.ndarray) -> float | None:
        """The best scaled utility for weights, where it is known by now."""
        values = self.optimum.result
        if values is None:
            return None
        return float((values @ weights).max() * self.policy.config.reward_scale)


class OpenedPolicies:
    """The policies that are open, by id; the one that was used least lately is closed first."""

    def __init__(self, library: Library, jobs: Jobs):
        """Nothing is open."""
        self._library, self._jobs = library, jobs
        self._lock = threading.Lock()
        self._opened: OrderedDict[str, Opened] = OrderedDict()

    def open(self, key: Any) -> Opened:
        """Open a policy, anew if its file is another than before."""
        entry = self._library.policy_entry(key)
        with self._lock:
            stamp = _stamp(entry.path)
            found = self._opened.get(entry.id)
            if found is None or found.stamp != stamp:
                found = self._load(entry, stamp, found)
                self._opened[entry.id] = found
            self._opened.move_to_end(entry.id)
            while len(self._opened) > MOST_OPEN:
                self._opened.popitem(last=False)
            return found

    def _load(self, entry: PolicyEntry, stamp: Any, before: Opened | None) -> Opened:
        policy = self._library.load(entry)
        if before is not None and _alike(before.policy, policy):
            # The same environment and programs, with another network: a run in progress.
            before.policy, before.stamp, before.entry = _moved(policy, before.policy), stamp, entry
            return before
        folder = None
        if entry.run_id is not None:
            folder = self._library.run_entry(entry.run_id).path
        return Opened(entry, policy, stamp, self._optimum(policy, folder))

    def _optimum(self, policy: Policy, folder: Path | None) -> Job:
        """Values of a coverage set, discounted and unscaled; a search may take minutes."""
        config = policy.config

        def find(progress: Any) -> np.ndarray | None:
            given = None
            if folder is not None and is_run_folder(folder):
                try:
                    given = load_optimal(folder, policy.spec.num_objectives)
                except InputError:  # it was a function
                    return None
            if given is not None:
                return np.asarray(given, float)
            if not config.oracle:
                return None
            return known_values(policy.world, config.gamma, progress)

        # The group tells apart environments that were made in Python, too.
        key = f"optimum {folder} {config.oracle} {group_of(config)}"
        return self._jobs.start(key, find)


def _stamp(path: Path | None) -> Any:
    if path is None:
        return None
    try:
        status = path.stat()
    except OSError as error:
        raise InputError("there is no such policy any more") from error
    return status.st_mtime_ns, status.st_size, status.st_ino


def _alike(one: Policy, other: Policy) -> bool:
    same = one.config == other.config and one.spec == other.spec and one.seed == other.seed
    return same and one.agent.policy_sizes(one.network) == other.agent.policy_sizes(other.network)


def _moved(policy: Policy, world_of: Policy) -> Policy:
    """A policy in the environment that another one has made already."""
    return Policy(
        policy.spec, policy.agent, policy.network, policy.config, policy.seed,
        step=policy.step, world=world_of.world,
    )  # fmt: skip
