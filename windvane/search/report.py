"""What a study has found, as tables, settings to train with, and files in its folder."""

import csv
import io
import json
import shlex
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from windvane.experiments.report.statistics import Estimate
from windvane.files import atomic_write
from windvane.search.confirm import Confirmed, confirmed
from windvane.search.space import Choices
from windvane.search.study import PRESET, VALUES, WHY, Plan, Study
from windvane.training.config import TrainConfig
from windvane.training.settings import Settings

MEASURE = "measure"
"""What Optuna keeps of a study beside its trials: what the values are."""
SHOWN = 10
"""Configurations in the table."""
FEW = 10
"""Trials below which importances say nothing."""
ROUGH = 50
"""Trials below which importances are rough."""


@dataclass(frozen=True)
class Importances:
    """How much of the differences between trials each setting explains; the shares add up to 1."""

    early: dict[str, float] | None
    """Of values at the first rung, of all trials; None of too few."""
    early_trials: int
    end: dict[str, float] | None
    """Of values at the end, of the trials that got there."""
    end_trials: int

    @property
    def sentence(self) -> str:
        """What may be made of them."""
        counts = f"{self.early_trials} trials at the first rung and {self.end_trials} at the end"
        if self.early is None:
            return f"What mattered cannot be said yet: {counts}, and {FEW} are the least"
        rough = " This is rough: both are few." if self.early_trials < ROUGH else ""
        missing = f" At the end there are fewer than {FEW}." if self.end is None else ""
        return (
            f"Shares of the differences between trials (PED-ANOVA), from {counts}. Those at the "
            f"end are a selection, the better ones.{missing}{rough}"
        )


@dataclass(frozen=True)
class Report:
    """The outcome of a study so far."""

    folder: Path
    plan: Plan
    measure: str
    """What values are; less is better."""
    best: list[Any]
    """Optuna's trials that were trained to the end, best first, without the preset."""
    baseline: Any | None
    """The preset's trial."""
    counts: dict[str, int]
    """Trials by what became of them."""
    preset_confirmed: Estimate | None
    """The preset on fresh seeds."""
    confirmed: list[Confirmed]
    """The best configurations on the same seeds."""
    importances: Importances
    configs: dict[int, TrainConfig]
    """The settings of the trials in `best`, by number."""
    files: list[Path] = field(default_factory=list)

    @property
    def winner(self) -> Any | None:
        """The best configuration on fresh seeds; without those, in the search."""
        if self.confirmed:
            return min(self.confirmed, key=lambda one: one.value.value).trial
        return self.best[0] if self.best else None

    @property
    def settings(self) -> dict[str, Any]:
        """The winner's settings that differ from the preset's, as `TrainConfig.preset` and
        `windvane.train` take them; none without a winner.
        """
        return settings_of(self.plan, self.configs[self.winner.number]) if self.winner else {}

    @property
    def command(self) -> str | None:
        """A command that trains with the winner's settings."""
        winner = self.winner
        return None if winner is None else train_command(self.plan, self.configs[winner.number])

    @property
    def verdict(self) -> str:
        """What may be said of the winner and the preset."""
        winner = self.winner
        if winner is None:
            return "no trial has been trained to the end yet"
        found = next((one for one in self.confirmed if one.trial.number == winner.number), None)
        chosen = f"the best of {sum(self.counts[kind] for kind in ('complete', 'pruned'))} trials"
        if found is None or found.change is None:
            return (
                f"trial {winner.number} is {chosen}, so its value is partly luck with its seeds: "
                "whether it beats the preset, only a confirmation on fresh seeds can say"
            )
        text = f"trial {winner.number}, chosen on fresh seeds among {len(self.confirmed)}: "
        change = found.change
        text += f"{self.measure} {found.value.value:.4f}"
        if self.preset_confirmed is not None:
            text += f", and the preset {self.preset_confirmed.value:.4f}"
        text += f" ({len(found.runs)} fresh seeds, which no trial was trained with); "
        text += f"the paired difference is {interval(change)}"
        if found.p is not None:
            text += f", p = {found.p:.2g} after Holm's correction"
        return text + (
            ": it beats the preset"
            if found.beats_preset
            else ": it is not shown to beat the preset, so keep that"
        )


def write_report(study: Study) -> Report:
    """What a study has found so far, also written into its folder."""
    best = study.best
    preset_confirmed, found = confirmed(study)
    finished = study.finished
    counts = {
        "complete": len(best) + (study.baseline is not None),
        "pruned": len(finished) - len(best) - (study.baseline is not None),
        "running": study.running,
    }
    report = Report(
        study.folder, study.plan, study.trials.user_attrs.get(MEASURE, "value"), best,
        study.baseline, counts, preset_confirmed, found, importances(study),
        {trial.number: study.config_of(trial) for trial in best},
    )  # fmt: skip
    report.files.extend(_write_files(study, report))
    return report


def _write_files(study: Study, report: Report) -> list[Path]:
    from windvane.plots import save
    from windvane.search.figures import figures

    folder = study.folder
    texts = {"trials.csv": trials_csv(study), "report.md": as_markdown(report)}
    if report.winner is not None:
        values = {
            "preset": report.plan.preset,
            "settings": report.settings,
            "command": report.command,
            "verdict": report.verdict,
        }
        texts["best.json"] = json.dumps(values, indent=2) + "\n"
    written = []
    for name, text in texts.items():
        atomic_write(folder / name, lambda file, text=text: file.write(text.encode()))
        written.append(folder / name)
    written += [save(figure, folder / name) for name, figure in figures(study, report).items()]
    return written


def importances(study: Study) -> Importances:
    """What mattered, where there are enough trials."""
    whole = [t for t in study.finished if set(t.params) >= set(study.names)]
    early = [(t, t.intermediate_values[min(t.intermediate_values)]) for t in whole
             if t.intermediate_values]  # fmt: skip
    end = [(t, t.value) for t in whole if t.state.name == "COMPLETE"]
    return Importances(_shares(study, early), len(early), _shares(study, end), len(end))


def _shares(study: Study, trials: Sequence[tuple[Any, float]]) -> dict[str, float] | None:
    """Of trials and their values; None of too few, or of values that are all the same."""
    if len(trials) < FEW or len({value for _, value in trials}) < 2:
        return None
    optuna = study.optuna
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        copy = optuna.create_study()
        for trial, value in trials:
            copy.add_trial(
                optuna.trial.create_trial(
                    params=trial.params, distributions=trial.distributions, value=value
                )
            )
        evaluator = optuna.importance.PedAnovaImportanceEvaluator()
        found = optuna.importance.get_param_importances(copy, evaluator=evaluator)
    return {name: float(share) for name, share in found.items()}


def settings_of(plan: Plan, config: TrainConfig) -> dict[str, Any]:
    """What differs from the preset, in plain values; the seeds are not part of it."""
    base, ours, theirs = TrainConfig.preset(plan.preset), config.to_json(), {}
    before = base.to_json()
    for one in fields(Settings):
        name = one.name
        if name == "seeds" or ours[name] == before[name]:
            continue
        theirs[name] = list(ours[name]) if isinstance(ours[name], tuple) else ours[name]
    return theirs


def train_command(plan: Plan, config: TrainConfig) -> str:
    """The command that trains with a configuration."""
    words = ["windvane", "train", "--preset", plan.preset]
    for name in settings_of(plan, config):
        flag, value = f"--{name.replace('_', '-')}", getattr(config, name)
        if name.endswith("_args"):
            value = value.to_texts()
        if isinstance(value, bool):
            words.append(flag if value else f"--no-{flag[2:]}")
        elif isinstance(value, tuple):
            words += [flag, *map(str, value)] if value else []
        else:
            words += [flag, repr(value) if isinstance(value, float) else str(value)]
    return shlex.join(words)


def value_text(value: Any) -> str:
    """A setting in a table."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def interval(estimate: Estimate) -> str:
    """A number with its interval."""
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.4f}"
    return f"{estimate.value:.4f} [{estimate.low:.4f}, {estimate.high:.4f}]"


def preset_value(plan: Plan, name: str) -> Any:
    """What the preset has for a searched setting."""
    part, _, argument = name.partition(".")
    own = getattr(plan.config, part)
    return own.get(argument) if argument else own


def table(report: Report) -> tuple[list[str], list[list[str]]]:
    """Headers and rows: the preset, then the best configurations."""
    names = list(report.plan.space)
    header = ["trial", "in the search", *names, "fresh seeds", "less preset"]
    baseline = report.baseline
    fresh = report.preset_confirmed
    rows = [[
        PRESET, "-" if baseline is None else f"{baseline.value:.4f}",
        *(value_text(preset_value(report.plan, name)) for name in names),
        "-" if fresh is None else interval(fresh), "",
    ]]  # fmt: skip
    by_number = {one.trial.number: one for one in report.confirmed}
    shown = report.best[:SHOWN]
    shown += [t for t in report.best[SHOWN:] if t.number in by_number]
    for trial in shown:
        one = by_number.get(trial.number)
        change = None if one is None else one.change
        rows.append([
            str(trial.number), f"{trial.value:.4f}",
            *(value_text(trial.params[name]) for name in names),
            "-" if one is None else interval(one.value),
            "-" if change is None else interval(change),
        ])  # fmt: skip
    return header, rows


def as_markdown(report: Report) -> str:
    """The report as a page."""
    header, rows = table(report)
    counts = report.counts
    lines = [
        f"# A search around {report.plan.preset}",
        "",
        f"{counts['complete']} trials were trained to the end and {counts['pruned']} stopped "
        f"early, each with {len(report.plan.config.seed_numbers)} seeds. Values are the "
        f"{report.measure}, discounted by "
        f"{report.plan.config.gamma:g}, rewards times {report.plan.config.reward_scale:g}; less is "
        "better. The best of many trials owes part of its value to luck with its seeds, so that "
        "only fresh seeds count for a comparison with the preset. Intervals are Student's, 95%; "
        "differences are paired by seed.",
        "",
        "| " + " | ".join(header) + " |",
        "|" + "---|" * len(header),
        *("| " + " | ".join(row) + " |" for row in rows),
        "",
        f"In short: {report.verdict}.",
        "",
    ]
    if report.command is not None:
        lines += ["```sh", report.command, "```", ""]
    lines += ["## What was searched", ""]
    lines += [
        f"- `{name}`: {'one of ' if isinstance(dimension, Choices) else ''}{dimension}"
        for name, dimension in report.plan.space.items()
    ]
    lines += ["", "## What mattered", "", report.importances.sentence, ""]
    lines += importance_lines(report.importances)
    return "\n".join(lines).rstrip() + "\n"


def importance_lines(found: Importances) -> list[str]:
    """A table in Markdown; nothing where there are too few trials."""
    if found.early is None:
        return []
    end = found.end or {}
    lines = ["| setting | at the first rung | at the end |", "|---|---|---|"]
    for name, share in found.early.items():
        lines.append(f"| {name} | {share:.2f} | {f'{end[name]:.2f}' if name in end else '-'} |")
    return lines


def trials_csv(study: Study) -> str:
    """All trials, also those that failed."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["trial", "state", "value", "step", *study.names, "values of seeds", "note"])
    for trial in study.trials.get_trials(deepcopy=False):
        reached = max(trial.intermediate_values, default=0)
        value = trial.value if trial.value is not None else trial.intermediate_values.get(reached)
        preset = bool(trial.user_attrs.get(PRESET))
        note = PRESET if preset else trial.user_attrs.get(WHY, "")
        params = [
            trial.params.get(name, preset_value(study.plan, name) if preset else "")
            for name in study.names
        ]
        seeds = json.dumps(trial.user_attrs.get(VALUES, {}))
        writer.writerow(
            [trial.number, trial.state.name.lower(), value, reached, *params, seeds, note]
        )
    return text.getvalue()
