"""A search for settings that beat a preset, killed on the way and started again.

    python -m benchmarks.tune --out results/tune.md

It starts the command as a user would, kills it with SIGKILL on the way, starts it again, waits for
the end of the search and its confirmation on fresh seeds, and writes down what came of it. Other
work on the machine is written down, too, as load and as processor time.
"""

import argparse
import json
import os
import platform
import re
import resource
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

from windvane.machine import usable_cores
from windvane.search.study import open_study
from windvane.search.workers import cpu_seconds, seconds_at_work

SPACE = (
    "learning_rate=log:0.001..0.05", "epsilon_start=0.05..1", "epsilon_end=log:0.001..0.05",
    "epsilon_steps=log:5000..80000", "clip_norm=log:0.3..10",
)  # fmt: skip
FACTS = "bench.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--preset", default="quick-dst")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--trials", type=int, default=400)
    parser.add_argument("--kill-after", type=float, default=4.0, help="minutes of the search")
    # The regret of one seed in ten is large, so that two seeds say little.
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--best", type=int, default=3)
    parser.add_argument("--confirm-seeds", type=int, default=10)
    parser.add_argument("--study", type=Path, default=Path("out/bench-tune"))
    parser.add_argument("--out", type=Path, default=Path("results/tune.md"))
    parser.add_argument("--page", action="store_true", help="only write the page again")
    args = parser.parse_args()
    if args.page:
        return page(args.study, args.out)
    words = [
        "tune", "--preset", args.preset, "--space", *SPACE, "--trials", str(args.trials),
        "--seeds", str(args.seeds),
        "--minutes", f"{args.minutes:g}", "--best", str(args.best), "--confirm-seeds",
        str(args.confirm_seeds),
        "--out", str(args.study),
    ]  # fmt: skip
    loads, cpu = [os.getloadavg()[0]], resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.time()
    first = start(words)
    while first.poll() is None and seconds_at_work(args.study) < 60 * args.kill_after:
        time.sleep(1.0)
    first.send_signal(signal.SIGKILL)
    code = first.wait()
    killed = counts(args.study)
    loads.append(os.getloadavg()[0])
    second = start(words)
    while second.poll() is None and not went_on(args.study, killed["running"]):
        time.sleep(0.2)
    resumed = counts(args.study)
    while second.poll() is None:
        time.sleep(5.0)
        loads.append(os.getloadavg()[0])
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = used.ru_utime + used.ru_stime - cpu.ru_utime - cpu.ru_stime
    facts = {
        "command": shlex.join(["windvane", *words]),
        "machine": f"{platform.processor() or platform.machine()}, {usable_cores()} cores",
        "load": f"{min(loads):.1f} to {max(loads):.1f}",
        "wall minutes": round((time.time() - began) / 60, 1),
        "search minutes": round(seconds_at_work(args.study) / 60, 1),
        "processor minutes of the search": round(cpu_seconds(args.study) / 60, 1),
        "processor minutes in all": round(seconds / 60, 1),
        "exit code of the killed one": code,
        "exit code in the end": second.returncode,
        "trials when it was killed": killed,
        "trials after it was started again": resumed,
        "trials in the end": counts(args.study),
    }
    (args.study / FACTS).write_text(json.dumps(facts, indent=2))
    return page(args.study, args.out)


def start(words: list[str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-m", "windvane", *words], stdout=sys.stderr)


def went_on(study: Path, left: int) -> bool:
    """Whether the process that was started again has taken up all trials that were left."""
    found = counts(study)
    return found["running"] > 0 and found["waiting"] == 0 and found["fail"] >= left


def counts(folder: Path) -> dict[str, int]:
    """Trials by their state."""
    study = open_study(folder, None, None)
    states = [trial.state.name.lower() for trial in study.trials.get_trials(deepcopy=False)]
    names = ("complete", "pruned", "running", "waiting", "fail")
    return {name: states.count(name) for name in names}


def page(study: Path, out: Path) -> None:
    facts = json.loads((study / FACTS).read_text())
    report = (study / "report.md").read_text()
    body = re.sub(r"^#", "##", report, flags=re.M)
    lines = [
        "# A search for settings, killed on the way",
        "",
        "Made by `make bench-tune`. The search is killed once with SIGKILL and started again with "
        "the same command; its limit counts the minutes in which a process worked on it. Training "
        "for the confirmation comes after it. What else the machine did shows in the load: compare "
        "processor minutes, compiling included, with those that the cores would have had.",
        "",
        "```sh",
        str(facts.pop("command")),
        "```",
        "",
        "| | |",
        "|---|---|",
    ]
    for name, value in facts.items():
        if isinstance(value, dict):
            value = ", ".join(f"{number} {state}" for state, number in value.items())
        lines.append(f"| {name} | {value} |")
    lines += [
        "",
        "Trials that failed are those in training when the process was killed, or when the time "
        "was up: they are begun anew, or wait to be, under a new number.",
        "",
        body,
    ]
    out.write_text("\n".join(lines).rstrip() + "\n")


if __name__ == "__main__":
    main()
