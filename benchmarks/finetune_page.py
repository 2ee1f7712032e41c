"""The page of `benchmarks.finetune`: tables, paired comparisons and a figure."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from benchmarks.replay import table
from windvane.experiments.report.statistics import holm

INSTANCES = {
    "paper": ("The paper's mines", "as the policies were trained on"),
    "ore": ("Other ore", "the same mines, each with the ore of the next one of the paper's list"),
    "moved": ("Moved mines", "the same ore, all mines nearer to the base"),
}
PARTS = {"first": "first 10%", "overall": "all episodes", "last": "last quarter"}
NAMES = {
    "frozen": "policy, frozen",
    "started": "CN + DER started with the policy, learning rate 2e-5",
    "careful": "CN + DER started with the policy, learning rate 2e-6",
    "scratch": "CN + DER from scratch",
}
# Of Okabe and Ito, for all kinds of eyes.
COLOURS = {"frozen": "#0072B2", "scratch": "#D55E00", "started": "#009E73", "careful": "#CC79A7"}
SHORT = {
    "frozen": "frozen", "scratch": "from scratch", "started": "started", "careful": "started, 2e-6",
}  # fmt: skip
PAIRS = (
    ("started", "scratch"), ("started", "frozen"), ("careful", "scratch"), ("careful", "frozen"),
)  # fmt: skip


def interval(values: np.ndarray) -> np.ndarray:
    """Half the width of Student's 95% interval of the mean over the last axis."""
    number = values.shape[-1]
    quantile = stats.t.ppf(0.975, number - 1)
    return quantile * values.std(-1, ddof=1) / np.sqrt(number)


def page(source: Path, out: Path) -> None:
    """Write the page and its figure."""
    read = {name: source / f"{name}.json" for name in INSTANCES}
    found = {name: json.loads(path.read_text()) for name, path in read.items() if path.exists()}
    if not found:
        raise SystemExit(f"there are no measurements in {source}")
    first = next(iter(found.values()))
    figure(found, out.with_suffix(".png"))
    text = TITLE.format(
        picture=out.with_suffix(".png").name, seeds=len(first["seeds"]), steps=first["steps"],
        policies=len(first["policies"]), policy_steps=first["policy_steps"],
        device=first["device"], settings=_settings(first),
    )  # fmt: skip
    parts = [text]
    compared = _compared(found)
    for name, one in found.items():
        title, what = INSTANCES[name]
        parts.append(f"## {title}\n\nMean regret over episodes: {what}.")
        heads = ("changes", "", *PARTS.values())
        rows = [
            [schedule, NAMES[contender], *(_cell(values[part]) for part in PARTS)]
            for schedule in ("sparse", "regular")
            for contender in NAMES
            if (values := one["contenders"].get(contender, {}).get(schedule))
        ]
        parts.append(table(heads, rows))
    heads = ("mines", "changes", "difference", "of", "mean", "p (Holm)")
    parts += [COMPARED.format(number=len(compared)), table(heads, compared)]
    seconds = ", ".join(
        f"{NAMES[contender]} on {INSTANCES[name][0].lower()} {values['seconds']:.0f} s"
        for name, one in found.items()
        for contender, values in one["contenders"].items()
    )
    parts.append(f"Time, with compilation, of all runs of both schedules together: {seconds}.")
    out.write_text("\n\n".join(parts) + "\n")
    print(f"written: {out}")


def _cell(values: list[float]) -> str:
    column = np.asarray(values)
    return f"{column.mean():.4f} ± {interval(column):.4f}"


def _compared(found: dict[str, Any]) -> list[list[str]]:
    """Paired differences on the same seeds; all p-values are of one family."""
    rows: list[list[str]] = []
    p_values: list[float | None] = []
    for name, one in found.items():
        for schedule in ("sparse", "regular"):
            for pair in PAIRS:
                if not all(contender in one["contenders"] for contender in pair):
                    continue
                for part in ("first", "last"):
                    a, b = (np.asarray(one["contenders"][c][schedule][part]) for c in pair)
                    p_values.append(float(stats.ttest_rel(a, b).pvalue))
                    label = f"{SHORT[pair[0]]} less {SHORT[pair[1]]}"
                    mean = f"{(a - b).mean():+.4f} ± {interval(a - b):.4f}"
                    rows.append([INSTANCES[name][0], schedule, label, PARTS[part], mean])
    adjusted = holm(p_values)
    shown = ("-" if p is None else "<0.0001" if p < 1e-4 else f"{p:.4f}" for p in adjusted)
    return [[*row, p] for row, p in zip(rows, shown, strict=True)]


def _settings(found: dict[str, Any]) -> str:
    """What differs from the preset `paper-minecart`, in words."""
    config = found["contenders"].get("started", next(iter(found["contenders"].values())))["config"]
    return (
        f"priorities with an exponent of {config['priority_exponent']:g}, learning from step "
        f"{config['learning_starts']:,} on, and networks {config['width']} units wide with "
        f"{config['depth']} layers in the head"
        + (" and layer normalisation" if config["layer_norm"] else "")
    )


def figure(found: dict[str, Any], path: Path) -> None:
    """Regret along the steps: a row of panels per instance."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import MaxNLocator

    panels, axes = plt.subplots(
        len(found), 2, figsize=(10, 3.1 * len(found)), squeeze=False, sharex=True, sharey="row"
    )
    for row, (name, one) in enumerate(found.items()):
        for axis, schedule in zip(axes[row], ("sparse", "regular"), strict=True):
            ends = []
            for contender in NAMES:
                if contender not in one["contenders"]:
                    continue
                curve = np.asarray(one["contenders"][contender][schedule]["curve"])
                steps = (np.arange(len(curve)) + 0.5) * one["steps"] / len(curve)
                mean, half = curve.mean(-1), interval(curve)
                colour = COLOURS[contender]
                axis.plot(steps, mean, color=colour, linewidth=1.6)
                axis.fill_between(steps, mean - half, mean + half, color=colour, alpha=0.2, lw=0)
                ends.append((float(mean[-4:].mean()), contender))
            axis.axhline(0, color="0.6", linewidth=0.8, linestyle=":")
            axis.set_title(f"{INSTANCES[name][0]}, {schedule} changes", fontsize=10)
            axis.spines[["top", "right"]].set_visible(False)
            axis.set_xlim(0, one["steps"])
            axis.xaxis.set_major_locator(MaxNLocator(5))
            axis.xaxis.set_major_formatter(lambda step, _: f"{step:,.0f}")
            _label(axis, ends)
            if row == len(found) - 1:
                axis.set_xlabel("steps")
        axes[row][0].set_ylabel("mean regret")
    panels.suptitle(
        "Regret while acting; means over seeds, bands are 95% intervals (Student)", fontsize=11
    )
    panels.tight_layout()
    panels.savefig(path, dpi=150, bbox_inches="tight")
    plt.close(panels)


def _label(axis: Any, ends: list[tuple[float, str]]) -> None:
    """Names at the ends of the lines, moved apart where they would overlap."""
    low, high = axis.get_ylim()
    gap, place = 0.075 * (high - low), -np.inf
    for value, contender in sorted(ends):
        place = max(value, place + gap)
        axis.annotate(
            SHORT[contender], (1.01, place), xycoords=("axes fraction", "data"),
            color=COLOURS[contender], fontsize=9, va="center", annotation_clip=False,
        )  # fmt: skip


TITLE = """\
# Pre-train, then follow

![Regret along the steps]({picture})

`python -m benchmarks.finetune run`, then `page`. Minecart from features; regret is discounted, \
against the optimum of the very instance. {policies} policies of the agent `pqn`, each trained for \
{policy_steps:,} steps on the paper's mines, meet {steps:,} steps under the paper's sparse (every \
50,000 steps) and regular (every episode) changes of the weights; {seeds} seeds, the same weights \
for all contenders, means with 95% intervals over seeds (Student). Frozen is the greedy policy. CN \
with DER has the preset `paper-minecart` but for {settings}; from scratch it explores as the paper \
does (1 to 0.05 over 100,000 steps) and has the paper's learning rate, 0.02; started with the \
policy it explores little (0.05 to 0.01) and learns slowly, since with larger rates it forgot the \
policy in trials on other seeds. The observation does not show the mines, so a policy cannot see \
that they changed. Device: {device}."""

COMPARED = """\
## Differences on the same seeds

Paired by seed, with 95% intervals (Student); p-values of paired t-tests, corrected by Holm for \
all {number} of this table. Below zero: started with the policy has the lower regret."""
