"""Another process that imports, asks JAX and trains, one step after the other.

It prints an answer per step as a line of JSON, so that of a crash it is known which step it was.
What may not live here: what the answers mean.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

Answers = dict[str, dict[str, Any]]
"""For each step either what it found or, as `error`, why it failed."""

_PROGRAM = """
import json, sys
given = json.loads(sys.argv[1])
sys.path[:] = given["path"]
from windvane.doctor.probe import answer
answer(given["modules"], given["trial"])
"""
_LONGEST = 400
"""Characters of what others say that are passed on."""


def ask(modules: Iterable[str], *, trial: bool, seconds: float) -> Answers:
    """Start the process and collect its answers; a step that ends the process has an `error`."""
    given = {"path": sys.path, "modules": list(modules), "trial": trial}
    # JAX would take most of a GPU's memory for a few seconds, from whoever else is there.
    environment = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"} | os.environ
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, json.dumps(given)], env=environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said,
        )  # fmt: skip
        assert child.stdout is not None
        late = threading.Event()
        timer = threading.Timer(seconds, lambda: (late.set(), child.kill()))
        timer.start()
        try:
            with child.stdout as lines:
                answers = _collect(lines)
            child.wait()
        finally:
            timer.cancel()
            child.kill()
            child.wait()
        said.seek(0)
        last = said.read()[-100_000:].decode(errors="replace").strip().splitlines()
    if child.returncode:
        step = next((step for step, answer in answers.items() if not answer), "start")
        how = f"no answer within {seconds:.0f} s" if late.is_set() else _how(child.returncode)
        answers[step] = {"error": f"{how}{f': {last[-1][:_LONGEST]}' if last else ''}"}
    return {step: answer for step, answer in answers.items() if answer}


def _collect(lines: Iterable[bytes]) -> Answers:
    """A step that has begun and not ended has an empty answer."""
    answers: Answers = {}
    for line in lines:
        try:
            step, answer = json.loads(line)
        except ValueError:  # cut off by a crash
            continue
        answers[step] = answer
    return answers


def _how(code: int) -> str:
    return f"the process was ended by signal {-code}" if code < 0 else f"exit code {code}"


def answer(modules: Iterable[str], trial: bool) -> None:
    """What the process does."""
    lines = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print is no answer

    def report(step: str, found: dict[str, Any]) -> None:
        lines.write(json.dumps([step, found]) + "\n")
        lines.flush()

    def take(step: str, work: Callable[[], dict[str, Any]]) -> bool:
        report(step, {})
        begun = time.perf_counter()
        try:
            found = work()
        except BaseException as error:
            text = f"{type(error).__name__}: {' '.join(str(error).split())[:_LONGEST]}"
            report(step, {"error": text})
            return False
        report(step, {"seconds": time.perf_counter() - begun} | found)
        return True

    def importing(name: str) -> dict[str, Any]:
        import_module(name)
        return {}

    for name in modules:
        take(f"import {name}", lambda name=name: importing(name))
    if take("devices", _devices) and trial:
        take("train", _train)


def _devices() -> dict[str, Any]:
    """The devices, what JAX says while it looks for them, and where compiled programs are kept."""
    import logging

    import jax

    messages: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            error = record.exc_info[1] if record.exc_info else None
            text = record.getMessage() if error is None else f"{record.getMessage()}: {error}"
            messages.append(" ".join(text.split())[:_LONGEST])

    logging.getLogger("jax").addHandler(Keep(logging.WARNING))
    devices = [
        {"platform": device.platform, "kind": device.device_kind, "memory": _memory(device)}
        for device in jax.devices()
    ]
    from windvane.machine import use_compilation_cache

    use_compilation_cache()
    cache = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]
    return {
        "jax": jax.__version__, "devices": devices, "cache": cache, "messages": messages,
    }  # fmt: skip


def _memory(device: Any) -> int | None:
    """Bytes of a device's memory, where it says."""
    try:
        return int((device.memory_stats() or {}).get("bytes_limit") or 0) or None
    except Exception:  # some plugins have no such function
        return None


def _train() -> dict[str, Any]:
    """Train for a moment, write what training writes, read a policy back and let it act."""
    import jax

    import windvane

    with tempfile.TemporaryDirectory(prefix="windvane-") as folder:
        result = windvane.train(
            "dst", "pqn", observation="features", replay="none", schedule="random", steps=256,
            num_envs=4, rollout=16, agent_args={"minibatches": 2}, width=8, depth=1, chunk=128,
            out=folder, progress=False,
        )  # fmt: skip
        policy = windvane.Policy.load(Path(folder) / "policies" / "seed-0.safetensors")
        env: Any = policy.env
        policy.act(env.observe(env.reset(jax.random.key(0))), [0.5, 0.5])
    device = jax.devices()[0]
    return {"steps": result.config.steps, "device": device.device_kind}
