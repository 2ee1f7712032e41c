"""The search itself: trials are asked for, trained together, stopped early or to the end."""

import math
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from windvane.envs.resolve import check_env
from windvane.errors import InputError, is_number, require_int, shown
from windvane.machine import use_compilation_cache
from windvane.progress import LOG_EVERY, progress_display, say
from windvane.runs.stopping import StopRequest, TrainingStopped, stop_request
from windvane.search.batch import (
    Judge,
    Pace,
    Values,
    build_trial,
    by_program,
    default_size,
    rungs,
    train_together,
)
from windvane.search.confirm import confirm
from windvane.search.report import MEASURE, Report, write_report
from windvane.search.space import make_space
from windvane.search.study import WHY, Plan, Proposal, Study, open_study
from windvane.search.workers import Worker, seconds_at_work
from windvane.training.config import TrainConfig
from windvane.training.presets import preset_for
from windvane.training.sweep import can_sweep

SEEDS = 2
"""Seeds per trial where none are given."""
TRIALS = 60
MOST_TRIALS = 100_000
RESUME_HINT = "stopped; the same command goes on with the study"


class TimeUpError(Exception):
    """The minutes of the search are over."""


def tune(
    env: Any = None,
    space: Mapping[str, Any] | Sequence[str] | None = None,
    *,
    preset: str | None = None,
    trials: int = TRIALS,
    minutes: float | None = None,
    out: str | Path = "out/tune",
    storage: str | None = None,
    episodes: int = 1,
    parallel_trials: int | None = None,
    best: int = 3,
    confirm_seeds: int = 10,
    cluster: str | None = None,
    tasks: int | None = None,
    sampler: Any = None,
    pruner: Any = None,
    progress: bool = True,
    console: Console | None = None,
    **settings: Any,
) -> Report:
    """Search for settings that lower the greedy regret, and confirm the best on fresh seeds.

    `env` is a name or a whole `TrainConfig`; `preset` and `settings` are as in `train`, and the
    same for all trials, `seeds` too. `space` holds what is searched, by name: `(low, high)`,
    `(low, high, "log")` or a list of choices; without one, the learning rate, exploration, clipping
    and momentum.

    The search ends after so many `trials`, or so many `minutes` in which any process worked on it.
    The study is in the folder `out`, or in the database at the URL `storage`; processes that are
    given the same `out` share it, and the same call continues it after any interruption. With
    `cluster`, the address of a Ray cluster, its `tasks` do the work. The `best` configurations and
    the preset are then trained with `confirm_seeds` new seeds each; 0 confirms nothing.

    `sampler` and `pruner` are Optuna's, if others are wanted than TPE and successive halving; the
    tasks of a cluster use these two.
    """
    console = console or Console(stderr=True, quiet=not progress)
    require_int("trials", trials, 1, MOST_TRIALS)
    if minutes is not None and not (is_number(minutes) and minutes > 0):
        raise InputError(f"minutes must be a number above 0, not {shown(minutes)}")
    if parallel_trials is not None:
        require_int("parallel_trials", parallel_trials, 1, 4096)
    require_int("best", best, 1, 100)
    require_int("confirm_seeds", confirm_seeds, 0, 10_000)
    require_int("episodes", episodes, 1, 1_000_000)
    plan = make_plan(env, space, preset, episodes, settings)
    use_compilation_cache()
    folder = Path(out)
    study = open_study(folder, plan, storage, sampler, pruner)
    if cluster is not None:
        from windvane.search.cluster import search_on

        search_on(cluster, study, storage, trials, minutes, parallel_trials, tasks, console)
        judge = _judge(plan, console)
    else:
        judge = search(study, trials, minutes, parallel_trials, console)
    if study.running:
        say(console, f"{study.running} trials are in training in other processes")
    elif confirm_seeds:
        with stop_request(RESUME_HINT) as stop:
            confirm(study, judge, best, confirm_seeds, parallel_trials or default_size(),
                    StopPace(stop), console)  # fmt: skip
    return write_report(study)


def report(out: str | Path, storage: str | None = None) -> Report:
    """What a study has found so far, written into its folder; nothing is trained."""
    return write_report(open_study(Path(out), None, storage))


def make_plan(
    env: Any, space: Any, preset: str | None, episodes: int, settings: Mapping[str, Any]
) -> Plan:
    """What is searched, checked, from what `tune` was given."""
    if isinstance(env, TrainConfig):
        config = replace(env, **settings)
        preset = preset or preset_for(config.env, config.agent)
    else:
        if env is not None and not isinstance(env, str):
            raise InputError(f"env must be a name or a configuration here, not {shown(env)}")
        if preset is None:
            preset = preset_for(check_env(env or "minecart"), settings.get("agent"))
        named = {} if env is None else {"env": env}
        config = TrainConfig.preset(preset, **{"seeds": SEEDS, **named, **settings})
    if config.start_from is not None:
        raise InputError("start_from is for windvane train: the search starts from random networks")
    if config.evaluate_every is not None:
        raise InputError("evaluate_every is for windvane train: the search evaluates by itself")
    if config.custom:
        raise InputError("the search needs parts by name, and this configuration has objects")
    return Plan(config, make_space(space, config), preset, episodes)


def search(
    study: Study,
    trials: int,
    minutes: float | None,
    parallel_trials: int | None,
    console: Console,
) -> Judge:
    """Work on a study, as one of the processes that do, until its limits are reached."""
    with Worker(study.folder) as worker, stop_request(RESUME_HINT) as stop:
        with study.locked():
            again = study.recover()
        there = len(study.finished)
        if there or again:
            say(console, f"the study goes on after {there} trials"
                + (f"; {again} that were interrupted begin anew" if again else ""))  # fmt: skip
        judge = _judge(study.plan, console)
        study.trials.set_user_attr(MEASURE, judge.measure)
        with search_display(console, study, trials, judge.measure) as show:
            pace = SearchPace(stop, worker, minutes, show)
            try:
                while batch := _ask(study, worker, trials, parallel_trials):
                    _train(study, batch, judge, parallel_trials or default_size(), pace)
                    pace.check()
            except TimeUpError:
                pass
    return judge


def _judge(plan: Plan, console: Console) -> Judge:
    with progress_display(console) as progress:
        return Judge.of(plan.config, plan.episodes, progress)


def _ask(study: Study, worker: Worker, trials: int, parallel_trials: int | None) -> list[Proposal]:
    """Trials to train now: as many as share a program."""
    with study.locked():
        study.recover()
        first = study.ask(worker, trials)
        if first is None:
            return []
        found = [first]
        if can_sweep(build_trial(first.config)):
            while len(found) < (parallel_trials or default_size()):
                other = study.ask(worker, trials, like=first)
                if other is None:
                    break
                found.append(other)
        return found


def _train(
    study: Study, batch: list[Proposal], judge: Judge, most: int, pace: "SearchPace"
) -> None:
    """Train trials to their ends; those that are not reached are waiting again."""
    left = list(batch)
    try:
        for indices in by_program([one.config for one in batch]):
            group = [batch[index] for index in indices]
            config = group[0].config

            def decide(step: int, values: Values, group: list[Proposal] = group) -> list[int]:
                going = judge_rung(study, group, step, values)
                for index in set(values) - set(going):
                    left.remove(group[index])
                return going

            configs = [one.config for one in group]
            train_together(configs, judge, rungs(config), most, decide, pace)
            pace.show()
    finally:
        if left:
            study.give_back(left)


def judge_rung(study: Study, group: list[Proposal], step: int, values: Values) -> list[int]:
    """Report the values of trials, and return which of them go on. The preset always does.

    Optuna's successive halving takes one after another and compares each with those before it, so
    they come in the order in which they were asked for, which says nothing of their values.
    """
    means = {index: sum(found.values()) / len(found) for index, found in values.items()}
    going = []
    for index in sorted(means, key=lambda index: group[index].trial.number):
        one, value = group[index], means[index]
        if not math.isfinite(value):
            one.trial.set_user_attr(WHY, "its greedy episodes have no finite value")
            study.fail(one.trial)
            continue
        one.trial.report(value, step)
        if step >= one.config.steps:
            study.complete(one, values[index], value)
        elif one.trial.should_prune() and not one.is_preset:
            study.prune(one)
        else:
            going.append(index)
    return sorted(going)


@dataclass
class StopPace(Pace):
    """Training that stops where it is asked to."""

    stop: StopRequest

    def check(self) -> None:
        """Raise where training should stop."""
        if self.stop.asked:
            raise TrainingStopped(RESUME_HINT)

    @contextmanager
    def chunk(self, kind: Hashable) -> Iterator[None]:
        """Around a compiled program."""
        with self.stop.chunk(kind, learning=False):
            yield


@dataclass
class SearchPace(StopPace):
    """Training that also stops when the time is up, and shows how far it is."""

    worker: Worker
    minutes: float | None
    show: Callable[[], None]

    def __post_init__(self) -> None:
        # Of the other processes, those that are at work now count as long as this one is.
        self._began = time.monotonic()
        self._before = seconds_at_work(self.worker.folder)

    def check(self) -> None:
        """Raise where training should stop."""
        super().check()
        self.worker.note()
        self.show()
        spent = self._before + time.monotonic() - self._began
        if self.minutes is not None and spent >= 60 * self.minutes:
            raise TimeUpError


@contextmanager
def search_display(
    console: Console, study: Study, trials: int, measure: str
) -> Iterator[Callable[[], None]]:
    """Yield what to call now and then: a bar on a terminal, a line now and then in a log."""
    looked = [-math.inf]

    def due(every: float) -> bool:
        now = time.monotonic()
        if now - looked[0] < every:
            return False
        looked[0] = now
        return True

    if not console.is_terminal:

        def log() -> None:
            if due(LOG_EVERY):
                say(console, _progress_text(study, trials, measure))

        yield log
        return
    columns = (BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bars:
        task = bars.add_task("compiling, which takes up to a minute", total=trials)

        def show() -> None:
            if due(0.5):
                text = _progress_text(study, trials, measure)
                bars.update(task, completed=len(study.finished), description=text)

        yield show


def _progress_text(study: Study, trials: int, measure: str) -> str:
    parts = [f"{len(study.finished)} of {trials} trials, {study.running} in training"]
    best, baseline = study.best, study.baseline
    if best:
        parts.append(f"best {measure} {best[0].value:.4f} (trial {best[0].number})")
    if baseline is not None:
        parts.append(f"preset {baseline.value:.4f}")
    return ", ".join(parts)


__all__ = ["Report", "report", "search", "tune"]
