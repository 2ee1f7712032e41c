"""The policies and training runs that a page offers: found under a folder, named by opaque ids.

A browser never names a path: it names an id, and only what was found has one. No link is followed,
and nothing outside the folder is opened. What may not live here: anything that plays or draws.
"""

import hashlib
import json
import os
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from windvane.agents import AGENTS
from windvane.envs import ENVS
from windvane.envs.resolve import MO
from windvane.errors import InputError, in_one_line
from windvane.files import shown_path
from windvane.policy import Policy
from windvane.policy_files import read_header
from windvane.runs.folder import BEST, CURRENT, POLICIES, is_finished, is_run_folder, load_config
from windvane.runs.result import policy_path
from windvane.runs.status import is_fresh, read_status
from windvane.runs.sums import check_files
from windvane.spec import EnvSpec
from windvane.training.config import TrainConfig

SHIPPED = Path(__file__).parent / "policies"
"""Policies that come with the package, for a page without a folder."""
MOST_FOLDERS = 20_000
"""Folders that are looked at."""
MOST_POLICIES = 2_000
DEPTH = 8
"""Folders below one another."""
_SUFFIX = ".safetensors"

State = Literal["finished", "training", "stopped", "shipped"]


@dataclass(frozen=True)
class PolicyEntry:
    """A policy that can be chosen."""

    id: str
    name: str
    path: Path | None
    """None for one that was made in Python."""
    state: State
    config: TrainConfig | None = None
    spec: EnvSpec | None = None
    step: int | None = None
    run_id: str | None = None
    note: str | None = None
    problem: str | None = None

    def to_json(self) -> dict[str, Any]:
        """What the page shows of it."""
        config, spec = self.config, self.spec
        return {
            "id": self.id,
            "name": self.name,
            "agent": None if config is None else config.agent,
            "agent_label": None if config is None else label_of(AGENTS, config.agent),
            "env": None if config is None else config.env,
            "env_label": None if config is None else label_of(ENVS, config.env),
            "group": None if config is None else group_of(config),
            "objectives": None if spec is None else list(spec.objectives),
            "actions": None,
            "step": self.step,
            "state": self.state,
            "note": self.note,
            "problem": self.problem,
            "run_id": self.run_id,
        }


@dataclass(frozen=True)
class RunEntry:
    """A run folder."""

    id: str
    name: str
    path: Path
    state: State
    config: TrainConfig

    def to_json(self) -> dict[str, Any]:
        """What the page shows of it."""
        return {
            "id": self.id,
            "name": self.name,
            "state": self.state,
            "agent_label": label_of(AGENTS, self.config.agent),
            "env_label": label_of(ENVS, self.config.env),
        }


@dataclass
class _Found:
    policies: dict[str, PolicyEntry] = field(default_factory=dict)
    runs: dict[str, RunEntry] = field(default_factory=dict)


class Library:
    """What there is to choose from. `scan` looks again; everything else answers from what it saw.

    `given` are policies made in Python; `trust` allows the import of what only a file names.
    """

    def __init__(
        self, folder: Path | None = None, given: Iterable[Policy] = (), *, trust: bool = False
    ):
        """Look once."""
        self.folder = None if folder is None else Path(os.path.realpath(folder))
        self.shown_folder = None if folder is None else _readable(str(folder))
        self.trust = trust
        self._given = {f"given{number}": policy for number, policy in enumerate(given)}
        self._lock = threading.Lock()
        self._found = _Found()
        self._signature: Any = None
        self.scan()

    def scan(self) -> bool:
        """Look for policies and runs; whether there are others than before."""
        found = _Found()
        for key, policy in self._given.items():
            _add(found, _entry_of(key, policy))
        if self.folder is not None:
            for path in _folders(self.folder):
                self._look(found, path)
        if not found.policies:
            for path in sorted(SHIPPED.glob(f"*{_SUFFIX}")):
                _add(found, _shipped(path))
        signature = [entry.to_json() for entry in (*found.policies.values(), *found.runs.values())]
        with self._lock:
            changed, self._signature = signature != self._signature, signature
            self._found = found
        return changed

    def to_json(self) -> dict[str, Any]:
        """All that the page needs to know."""
        with self._lock:
            found = self._found
        policies = list(found.policies.values())
        sound = [entry for entry in policies if entry.problem is None]
        first = sound[0] if sound else None
        other = None
        if first is not None and first.config is not None:
            group = group_of(first.config)
            others = (e for e in sound[1:] if e.config and group_of(e.config) == group)
            other = next(others, None)
        return {
            "folder": self.shown_folder,
            "policies": [entry.to_json() for entry in policies],
            "runs": [entry.to_json() for entry in found.runs.values()],
            "default": None if first is None else first.id,
            "compare": None if other is None else other.id,
        }

    def policy_entry(self, key: Any) -> PolicyEntry:
        """The entry of an id."""
        with self._lock:
            entry = self._found.policies.get(key) if isinstance(key, str) else None
        if entry is None:
            raise InputError("there is no such policy: it may have been moved or deleted")
        return entry

    def run_entry(self, key: Any) -> RunEntry:
        """The entry of an id."""
        with self._lock:
            entry = self._found.runs.get(key) if isinstance(key, str) else None
        if entry is None:
            raise InputError("there is no such run: it may have been moved or deleted")
        return entry

    def load(self, entry: PolicyEntry) -> Policy:
        """The policy of an entry, checked as the file is now."""
        if entry.path is None:
            return self._given[entry.id]
        if entry.problem is not None:
            raise InputError(entry.problem)
        if entry.state != "shipped":
            self.inside(entry.path)
        if entry.state == "finished" and entry.run_id is not None:
            folder = self.run_entry(entry.run_id).path
            check_files(folder, entry.path)
        return Policy.load(entry.path, trust=self.trust)

    def inside(self, path: Path) -> Path:
        """Return a path if it lies in the folder, and no link leads to it."""
        root = self.folder
        if root is None or os.path.realpath(path) != str(path) or not path.is_relative_to(root):
            raise InputError(f"{shown_path(path.name)} lies outside the folder that is served")
        return path

    def _look(self, found: _Found, folder: Path) -> None:
        """Add what a folder holds."""
        if not is_run_folder(folder):
            for path in sorted(folder.glob(f"*{_SUFFIX}")):
                if not path.is_symlink() and folder.name not in (POLICIES, BEST, CURRENT):
                    _add(found, self._file(path))
            return
        key = self._id(folder)
        name = self._name(folder)
        try:
            config = load_config(folder)
            state = _state(folder)
        except InputError as error:
            problem = _readable(in_one_line(error))
            _add(found, PolicyEntry(key, name, folder, "stopped", problem=problem))
            return
        found.runs[key] = RunEntry(key, name, folder, state, config)
        several = len(config.run_names) > 1
        for run in config.run_names:
            path = _policy_of(folder, run, state)
            if path is not None:
                shown = f"{name} · {run}" if several else name
                _add(found, self._file(path, shown, key, state))

    def _file(
        self,
        path: Path,
        name: str | None = None,
        run_id: str | None = None,
        state: State = "finished",
    ) -> PolicyEntry:
        key, name = self._id(path), name or self._name(path)
        return _read_entry(key, name, path, state, run_id)

    def _id(self, path: Path) -> str:
        return hashlib.sha256(os.fsencode(path)).hexdigest()[:16]

    def _name(self, path: Path) -> str:
        root = self.folder
        assert root is not None
        relative = path.relative_to(root)
        return _readable(str(relative.with_suffix("")) if relative.parts else root.name)


def _readable(name: str) -> str:
    """A name of a file, which may be no text, as text that can be sent."""
    return os.fsencode(name).decode(errors="replace")


def group_of(config: TrainConfig) -> str:
    """The same text for policies that can be compared: one environment, one unit of returns."""
    what = [
        config.env, config.args("env").to_json(), config.custom.get("env"),
        config.gamma, config.reward_scale,
    ]  # fmt: skip
    text = json.dumps(what, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def label_of(registry: Any, name: str) -> str:
    """What a part is called."""
    return registry[name].title if name in registry else name.removeprefix(MO)


def _policy_of(folder: Path, run: str, state: State) -> Path | None:
    """The policy of a run: the best or else the last; of one in progress, that of now."""
    paths = [policy_path(folder, run, best=True), policy_path(folder, run)]
    now = folder / POLICIES / CURRENT / f"{run}{_SUFFIX}"
    paths = [*paths, now] if state == "finished" else [now, *paths]
    return next((path for path in paths if path.is_file() and not path.is_symlink()), None)


def _add(found: _Found, entry: PolicyEntry) -> None:
    if len(found.policies) < MOST_POLICIES:
        found.policies[entry.id] = entry


def _entry_of(key: str, policy: Policy) -> PolicyEntry:
    return PolicyEntry(
        key, f"{policy.config.agent}, seed {policy.seed}", None, "finished",
        policy.config, policy.spec, policy.step,
    )  # fmt: skip


def _shipped(path: Path) -> PolicyEntry:
    notes = json.loads((SHIPPED / "notes.json").read_text(encoding="utf-8"))
    about = notes.get(path.stem, {})
    return _read_entry(
        path.stem, about.get("name", path.stem), path, "shipped", None, about.get("note")
    )


def _read_entry(
    key: str, name: str, path: Path, state: State, run_id: str | None, note: str | None = None
) -> PolicyEntry:
    """An entry of a file, from its header alone."""
    try:
        header = read_header(path)
        config = TrainConfig.from_json(header.get("config"), shown_path(path.name))
        spec = None
        if header.get("format") != 1:
            spec = EnvSpec.from_json(header.get("spec"), shown_path(path.name))
        step = header.get("step")
        step = step if isinstance(step, int) else config.steps
        return PolicyEntry(key, name, path, state, config, spec, step, run_id, note)
    except InputError as error:
        problem = _readable(in_one_line(error))
        return PolicyEntry(key, name, path, state, run_id=run_id, note=note, problem=problem)


def _state(folder: Path) -> State:
    if is_finished(folder):
        return "finished"
    try:
        status = read_status(folder)
    except InputError:  # what is damaged says nothing
        return "stopped"
    return "training" if status is not None and is_fresh(status) else "stopped"


def _folders(root: Path) -> Iterator[Path]:
    """The folder and those below it, in order, links left out. A run folder's own are not entered:
    what they hold is known from their configuration.
    """
    queue: list[tuple[Path, int]] = [(root, 0)]
    seen = 0
    while queue and seen < MOST_FOLDERS:
        path, depth = queue.pop(0)
        seen += 1
        yield path
        if depth == DEPTH or is_run_folder(path):
            continue
        try:
            with os.scandir(path) as entries:
                below = sorted(
                    entry.name
                    for entry in entries
                    if entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".")
                )
        except OSError:  # it is gone, or belongs to somebody else
            continue
        queue += [(path / name, depth + 1) for name in below]
