"""What is installed and works on this machine, and what to do about what does not.

Each check is a function that returns `Finding`s. Nothing but the standard library and Windvane's
tools is imported by this process: what may be broken, such as JAX, is tried in another one
(`probe`), so that a crash there is a sentence here. What may not live here: how findings are
printed.
"""

import os
import platform
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from windvane.doctor.devices import jax_devices, nvidia_gpus, taken_memory
from windvane.doctor.finding import Finding
from windvane.doctor.packages import extras, modules_of_requirements, required_packages
from windvane.doctor.probe import Answers, ask
from windvane.doctor.surroundings import compilation_cache, machine, programs, screen
from windvane.errors import in_one_line
from windvane.version import __version__

__all__ = ["Finding", "about", "examine"]

TRIAL_SECONDS = 600.0
"""Most that all questions to the other process may take; a busy machine is slow."""


def about() -> dict[str, Any]:
    """Which Windvane this is, where it runs, and with which Python."""
    return {
        "windvane": __version__,
        "location": str(Path(__file__).parents[1]),
        "python": platform.python_version(),
        "executable": sys.executable,
        "platform": platform.platform(),
    }


def examine(*, quick: bool = False) -> Iterator[Finding]:
    """Look at one thing after another; `quick` leaves out the training."""
    yield from _guarded("packages", required_packages)
    yield from _guarded("extras", extras)
    yield from _guarded("machine", machine)
    yield from _guarded("programs", programs)
    yield from _guarded("display", screen)
    # Before JAX takes memory of its own.
    gpus, required = None, ["jax"]
    with suppress(Exception):  # whatever a driver says
        gpus = nvidia_gpus()
    with suppress(Exception):  # whatever the metadata of packages holds
        required = modules_of_requirements()
    yield from _guarded("GPU memory", lambda: taken_memory(gpus))
    answers = ask(required, trial=not quick, seconds=TRIAL_SECONDS)
    yield from _guarded("imports", lambda: _imports(answers))
    yield from _guarded("devices", lambda: jax_devices(answers, gpus, os.environ))
    yield from _guarded("compiled programs", lambda: compilation_cache(answers))
    if not quick:
        yield from _guarded("trial", lambda: _trial(answers))


def _guarded(topic: str, check: Callable[[], Iterable[Finding]]) -> list[Finding]:
    """What a check finds; one that fails itself is a finding, too."""
    try:
        return list(check())
    except Exception as error:
        why = f"{type(error).__name__}: {in_one_line(error)}"
        return [Finding(topic, f"this could not be looked at ({why})", "note")]


def _imports(answers: Answers) -> Iterator[Finding]:
    """Whether the required packages can be imported."""
    if "start" in answers:
        error = answers["start"]["error"]
        yield Finding("imports", f"a second Python process fails ({error})", "problem")
    tried = {step: answer for step, answer in answers.items() if step.startswith("import ")}
    broken = {step: answer["error"] for step, answer in tried.items() if answer.get("error")}
    for step, error in broken.items():
        name = step.removeprefix("import ")
        yield Finding(
            "imports", f"{name} cannot be imported ({error})", "problem",
            "pip install --force-reinstall windvane",
        )  # fmt: skip
    if tried and not broken:
        seconds = sum(answer["seconds"] for answer in tried.values())
        text = f"all {len(tried)} required packages can be imported, in {seconds:.1f} s"
        yield Finding("imports", text)


def _trial(answers: Answers) -> Iterator[Finding]:
    answer = answers.get("train")
    if answer is None:
        yield Finding("trial", "a training was not tried, because of what is said above", "problem")
    elif "error" in answer:
        yield Finding(
            "trial", f"a small training fails ({answer['error']})", "problem",
            "read what is said above; if that is no help, report it with the output of "
            "`windvane doctor --json`",
        )  # fmt: skip
    else:
        text = f"a training of {answer['steps']} steps works, compiled and run in"
        yield Finding("trial", f"{text} {answer['seconds']:.1f} s on {answer['device']}")
