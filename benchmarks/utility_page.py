"""The page and the figure of `benchmarks.time_to_utility`."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.replay import table
from windvane.experiments.report.palette import colour
from windvane.figure_style import End, describe, label_ends, new_figure, styled
from windvane.plots import save

SHARES = (0.90, 0.95, 0.99)
NAMES = {
    "fast": "Windvane `fast`",
    "cn-der": "Windvane CN + DER",
    "envelope": "Windvane Envelope",
    "gpi-ls": "Windvane GPI-LS",
    "morl-envelope": "morl-baselines Envelope",
    "morl-gpi-ls": "morl-baselines GPI-LS",
}
# Agents have the colours that they have in reports; peers are dashed, too.
COLOURS = {
    name: colour({"fast": "pqn", "cn-der": "cn"}.get(name, name.removeprefix("morl-")))
    for name in NAMES
}
PANEL = 1.1
"""Inches: the height of a panel."""
PEERS = tuple(name for name in NAMES if name.startswith("morl-"))
ORDER = ("minecart-v0", "deep-sea-treasure-v0", "four-room-v0", "fruit-tree-v0")


def seconds_to(run: dict[str, Any], share: float, clock: str = "seconds") -> float | None:
    """Seconds of the first look that found this share of the optimum, or None."""
    return next((row[clock] for row in run["rows"] if row["share"] >= share), None)


def write_page(source: Path, out: Path) -> None:
    """All results of a folder as a page, with a figure beside it."""
    runs = [json.loads(path.read_text()) for path in sorted(source.glob("*.json"))]
    runs = [run for run in runs if run["rows"]]
    figure = out.with_suffix(".png")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page(runs, figure.name))
    draw(runs, figure)
    print(f"written: {out} and {figure}")


def page(runs: list[dict[str, Any]], figure: str) -> str:
    """The page itself."""
    machines = [machine(name, runs) for name in sorted({run["processor"] for run in runs})]
    versions = sorted({f"{name} {what}" for run in runs for name, what in run["versions"].items()})
    parts = [TITLE, f"Machine: {'; '.join(machines)}. Versions: {', '.join(versions)}."]
    parts.append(f"![Share of the optimum against seconds of training]({figure})")
    parts += missing(runs)
    heads = ("contender", "seeds", *(f"{share:.0%}" for share in SHARES), "95% with compilation",
             "in the end", "worst weight", "steps", "seconds")  # fmt: skip
    for env in [name for name in ORDER if any(run["env"] == name for run in runs)]:
        here = {name: [r for r in runs if (r["env"], r["agent"]) == (env, name)] for name in NAMES}
        here = {name: found for name, found in here.items() if found}
        first = next(iter(here.values()))[0]
        parts.append(
            f"## {env}\n\nMean optimum {first['optimum']:.3f} ({first['optimum_from']}); random "
            f"play {first['random']:.3f}; discount {first['gamma']}."
        )
        parts.append(table(heads, [_row(name, found) for name, found in here.items()]))
        parts.append(verdict(here))
    return "\n\n".join(parts) + "\n"


def machine(processor: str, runs: list[dict[str, Any]]) -> str:
    """A kind of processor, and how busy its machine was while it was used."""
    loads = [
        load
        for run in runs
        if run["processor"] == processor
        for load in (run["load_at_start"][0], *(row["load"][0] for row in run["rows"]))
    ]
    return f"{processor}, one core of it, load {min(loads):.1f} to {max(loads):.1f}"


def missing(runs: list[dict[str, Any]]) -> list[str]:
    """A sentence about contenders that have no finished result yet, if there are any."""
    there = {(run["env"], run["agent"]) for run in runs if run.get("finished")}
    lacking = {env: [NAMES[name] for name in NAMES if (env, name) not in there] for env in ORDER}
    texts = [f"{env}: {', '.join(names)}" for env, names in lacking.items() if names]
    return (
        [f"Not measured yet ({'; '.join(texts)}): `make bench-utility` continues."] if texts else []
    )


def verdict(here: dict[str, list[dict[str, Any]]]) -> str:
    """Who came first to each share, and how `fast` compares with the best peer at 95%."""
    lines = []
    for share in SHARES:
        times = {name: median_seconds(found, share) for name, found in here.items()}
        reached = {name: time for name, time in times.items() if time is not None}
        if not reached:
            lines.append(f"{share:.0%}: nobody.")
            continue
        best = min(reached, key=lambda name: reached[name])
        wins = " A peer wins." if best in PEERS else ""
        lines.append(f"{share:.0%}: first {NAMES[best]}, {reached[best]:,.0f} s.{wins}")
    peers = {name: median_seconds(here[name], 0.95) for name in PEERS if name in here}
    peer = min((time for time in peers.values() if time is not None), default=None)
    fast = median_seconds(here.get("fast", []), 0.95)
    if fast and peer:
        ratio = peer / fast
        text = f"{ratio:.1f} times sooner" if ratio >= 1 else f"{1 / ratio:.1f} times later"
        lines.append(f"`fast` is at 95% {text} than the best peer.")
    elif fast and peers:
        longest = max(run["rows"][-1]["seconds"] for name in peers for run in here[name])
        lines.append(
            f"`fast` is at 95% after {fast:,.0f} s; no peer is within {longest:,.0f} s, more than "
            f"{longest / fast:.1f} times as long."
        )
    elif peer:
        lines.append(f"`fast` never is at 95%; the best peer is after {peer:,.0f} s.")
    return " ".join(lines)


def median_seconds(
    runs: list[dict[str, Any]], share: float, clock: str = "seconds"
) -> float | None:
    """The median over seeds, or None where half of them or more never got there."""
    times = [seconds_to(run, share, clock) for run in runs]
    known = sorted(np.inf if time is None else time for time in times)
    middle = float(np.median(known)) if known else np.inf
    return middle if np.isfinite(middle) else None


def _row(name: str, runs: list[dict[str, Any]]) -> list[str]:
    last = [run["rows"][-1] for run in runs]
    ends = f"{np.mean([row['share'] for row in last]):.1%}"
    if len(last) > 1:
        ends += (
            f" [{min(row['share'] for row in last):.1%}, {max(row['share'] for row in last):.1%}]"
        )
    seconds = np.mean([row["seconds"] for row in last])
    return [
        NAMES[name], str(len(runs)), *(_cell(runs, share) for share in SHARES),
        _cell(runs, 0.95, "with_compilation"),
        f"{np.mean([row['utility'] for row in last]):.3f} = {ends}",
        f"{np.mean([row['worst'] for row in last]):.3f}",
        f"{np.mean([row['steps'] for row in last]):,.0f}", f"{seconds:,.0f}",
    ]  # fmt: skip


def _cell(runs: list[dict[str, Any]], share: float, clock: str = "seconds") -> str:
    found = median_seconds(runs, share, clock)
    if found is not None:
        missing = sum(seconds_to(run, share) is None for run in runs)
        return f"{found:,.0f} s" + (f" ({missing} of {len(runs)} never)" if missing else "")
    longest = max(run["rows"][-1][clock] for run in runs)
    best = np.mean([max(row["share"] for row in run["rows"]) for run in runs])
    return f"not in {longest:,.0f} s (reached {best:.1%})"


def draw(runs: list[dict[str, Any]], path: Path) -> None:
    """One small panel per environment, the mean over seeds; lines bear their names."""
    envs = [name for name in ORDER if any(run["env"] == name for run in runs)]
    with styled():
        figure = new_figure(PANEL * len(envs) + 0.4)
        first = None
        panels = []
        for index, env in enumerate(envs):
            axes = figure.add_subplot(len(envs), 1, index + 1, sharex=first)
            first = first or axes
            ends = []
            for name in NAMES:
                here = [run for run in runs if (run["env"], run["agent"]) == (env, name)]
                if here:
                    times, shares = mean_curve(here)
                    style, shade = "--" if name in PEERS else "-", COLOURS[name]
                    axes.plot(times, np.maximum(shares, 0), style, color=shade)
                    height = float(np.clip(shares[-1], 0, 1))
                    short = NAMES[name].replace("`", "").partition(" ")[2]
                    ends.append(End(times[-1], height, short, shade))
            axes.set(xscale="log", ylim=(0, 1.04))
            axes.set_title(env.removesuffix("-v0").replace("-", " "), loc="left", weight="bold")
            axes.axhline(1, color="0.8", lw=0.6, zorder=0)
            axes.xaxis.set_major_formatter("{x:,g}")
            axes.xaxis.set_minor_formatter("")
            axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
            axes.tick_params(labelbottom=index == len(envs) - 1)
            panels.append((axes, ends))
        for axes, ends in panels:
            label_ends(axes, ends, 0.75 * PANEL)
        figure.supylabel("utility, of the optimum")
        describe(
            figure,
            "seconds of training",
            "Solid: Windvane, dashed: morl-baselines. Means over seeds.",
        )
    save(figure, path)


def mean_curve(runs: list[dict[str, Any]]) -> tuple[np.ndarray, np.ndarray]:
    """Shares of several seeds at the same moments, between looks on straight lines."""
    curves = [
        (np.log([row["seconds"] for row in run["rows"]]), [row["share"] for row in run["rows"]])
        for run in runs
    ]
    moments = np.unique(np.concatenate([times for times, _ in curves]))
    shares = np.mean([np.interp(moments, *curve) for curve in curves], axis=0)
    return np.exp(moments), shares


TITLE = """\
# Time to utility

`make bench-utility`. Mean discounted utility over 1,000 uniformly random weight vectors against \
seconds of training, in MO-Gymnasium's environments. Every contender has one core and one thread.

- **Share of the optimum** is the contender's mean utility divided by the mean optimum over the \
same weight vectors, which is positive in all four environments. It is below 0 where the mean \
utility is negative, and drawn at 0 there.
- **Judged** is the greedy policy: one episode per weight vector in MO-Gymnasium's own \
environment, the same for all. Looks are spread geometrically from 2 s on. A look is at the first \
200 weight vectors, at all 1,000 where it finds 80% of the optimum or more, and so is the last \
one. Times are those of the first look that found so much; it may be less again later. Minecart's \
ore is random and drawn by one generator, seeded alike for all; its episodes are cut after 350 \
steps, when the discount is below 0.001.
- **Seconds** are the processor's, of training: without looks, and without compilation except \
where it is said. With one thread on one core they are the seconds that pass on an idle machine. \
What an algorithm evaluates for its own sake counts.
- **morl-baselines** 1.3.0: Envelope with the settings of its `examples/envelope_minecart.py`, \
GPI-LS with those of `examples/gpi_pd_minecart.py` (`gpi-ls`, without GPI-PD, one gradient step \
per step, which the example leaves open; without priorities version 1.3.0 stops with an error, as \
its buffer returns one array more than is expected, which is dropped here). The other environments \
get these, too. They train as long as there are minutes, or until two looks running find 99.5%.
- **Windvane**: `fast` is `pqn`, on native environments with the same observations and rewards for \
Minecart and Deep Sea Treasure (256 copies) and on 16 copies of MO-Gymnasium's for the others; \
`cn-der` has the settings of `benchmarks/host.py`; `envelope` and `gpi-ls` are the presets, with \
the settings of morl-baselines' examples. All train one agent to the end of its steps, or as long \
as there are minutes, which may be fewer than the peers'; the last column says how long. Settings \
of `fast` and `cn-der` were chosen for these environments; the other four have Minecart's in all."""
