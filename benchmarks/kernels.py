"""The GPU kernel of the first convolution stage beside the same in plain JAX.

    python -m benchmarks.kernels --out kernels.json    # on a GPU, about a minute
    python -m benchmarks.kernels --smoke               # tiny, without a GPU

First both are compared on Minecart's frames and on random ones. Then they are timed in turns on 128
frames per run, as many as the online network sees in an update: the stage alone, its gradient, and
a whole encoder with its gradient. A measurement is a loop in one compiled program that changes
every frame in each round; what the loop takes without a stage is subtracted. Times are medians, in
microseconds per round. The file is written after every line. Needs JAX, Equinox and NumPy.
"""

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from windvane import kernels
from windvane.envs.episodes import reset_episode, step_autoreset
from windvane.envs.minecart import Minecart
from windvane.kernels.convolution import Stage, Tiling, convolution_stage
from windvane.networks import SLOPE, ConvolutionStage, FrameEncoder

FRAMES, SHAPE = 128, (48, 48, 3)
PLAIN, KERNEL = "plain", "kernel"
DEFAULT = Stage(SLOPE)
FORWARD = ((128, 1, 4, 1), (64, 1, 4, 1), (128, 4, 8, 1), (128, 4, 8, 2), (64, 4, 4, 2))
BACKWARD = ((64, 8, 8, 1), (64, 32, 8, 1), (64, 16, 8, 2), (128, 8, 8, 1), (32, 32, 8, 1))
"""Tilings to try beside the default: rows, blocks, num_warps, num_stages."""
ROUNDS, TURNS = {1: 400, 10: 150, 100: 20}, 5
"""Rounds of a loop for each number of runs, and measurements of each loop."""
WHAT = ("forward", "gradient", "encoder")

Step = Callable[[Any, Any, Any], Any]
"""Takes the parameters, frames and a gradient of all runs; returns what is to be computed."""


def plain(parameters: Any, frames: Any, dtype: Any = jnp.bfloat16) -> Any:
    x = frames.astype(dtype) / jnp.asarray(255, dtype)
    return ConvolutionStage(*parameters)(x)


def kernel(stage: Stage, parameters: Any, frames: Any) -> Any:
    return convolution_stage(frames, *parameters, stage)


def gradient(function: Any, parameters: Any, frames: Any, given: Any) -> Any:
    """What the function makes of frames, and the gradients of its parameters."""
    out, pull = jax.vjp(lambda parameters: function(parameters, frames), parameters)
    return out, pull(given.astype(out.dtype))[0]


def forward_step(function: Any) -> Step:
    def step(parameters: Any, frames: Any, given: Any) -> Any:
        del given
        return jax.vmap(function)(parameters, frames)

    return step


def gradient_step(function: Any) -> Step:
    return jax.vmap(partial(gradient, function))


def encode(encoder: FrameEncoder, frames: Any) -> Any:
    return encoder(frames)


def drawn(runs: int, n: int) -> tuple[Any, Any, Any]:
    """Parameters as networks begin with, random frames and gradients, for each run."""
    keys = jax.random.split(jax.random.key(0), runs)
    made = jax.vmap(lambda key: ConvolutionStage.make(key, 6, SHAPE[2], 32))(keys)
    bias = 0.05 * jax.random.normal(jax.random.key(1), (runs, 32))
    frames = jax.random.bits(jax.random.key(2), (runs, n, *SHAPE), jnp.uint8)
    given = jax.random.normal(jax.random.key(3), (runs, n, 11, 11, 32), jnp.bfloat16)
    return (made.kernel, bias), frames, given


def minecart_frames(runs: int, n: int) -> Any:
    """What random play of Minecart shows: few colours, and so many ties."""
    env = Minecart(observation="pixels")

    def play(key: Any) -> Any:
        def step(carry: Any, key: Any) -> Any:
            action_key, step_key = jax.random.split(key)
            action = jax.random.randint(action_key, (), 0, env.num_actions)
            carry, _ = step_autoreset(env, carry, action, step_key)
            return carry, env.frame(env.views(carry.state)[1])

        return jax.lax.scan(step, reset_episode(env, key), jax.random.split(key, n))[1]

    return jax.jit(jax.vmap(play))(jax.random.split(jax.random.key(1), runs))


def distance(found: Any, expected: Any) -> float:
    found, expected = (np.asarray(x).astype(np.float64) for x in (found, expected))
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


def agreement(stage: Stage, n: int, runs: int = 2) -> Iterator[dict[str, Any]]:
    """How far kernel and plain stage are from each other, and both gradients from float32's."""
    parameters, random, given = drawn(runs, n)
    for name, frames in (("random", random), ("minecart", minecart_frames(runs, n))):
        functions = {PLAIN: plain, KERNEL: partial(kernel, stage)}
        found = {
            key: jax.jit(gradient_step(function))(parameters, frames, given)
            for key, function in functions.items()
        }
        with jax.default_matmul_precision("highest"):
            exact = jax.jit(gradient_step(partial(plain, dtype=jnp.float32)))
            _, right = exact(parameters, frames, given.astype(jnp.float32))
        (theirs, plain_sums), (ours, kernel_sums) = found[PLAIN], found[KERNEL]
        alone = jax.jit(forward_step(functions[KERNEL]))(parameters, frames, given)
        theirs, ours, alone = (np.asarray(x).astype(np.float32) for x in (theirs, ours, alone))
        row: dict[str, Any] = {
            "what": "agreement", "frames": name, "equal": float(np.mean(theirs == ours)),
            "largest": float(np.abs(theirs - ours).max()), "scale": float(np.abs(theirs).max()),
            "distance": distance(ours, theirs), "finite": bool(np.isfinite(ours).all()),
            "same_without_gradient": bool((ours == alone).all()),
        }  # fmt: skip
        names = ("kernel", "bias")
        for part, a, b, c in zip(names, kernel_sums, plain_sums, right, strict=True):
            row[f"{part}_gradient"] = {
                "largest": float(np.abs(np.asarray(a) - np.asarray(b)).max()),
                "scale": float(np.abs(np.asarray(b)).max()), "distance": distance(a, b),
                "kernel_from_float32": distance(a, c), "plain_from_float32": distance(b, c),
            }  # fmt: skip
        yield row


def looped(step: Step | None, rounds: int) -> Callable[..., Any]:
    """A program that takes a step so often, on frames that change."""

    def program(parameters: Any, frames: Any, given: Any) -> Any:
        def body(_: Any, carry: Any) -> Any:
            frames, out = carry
            frames = frames ^ jnp.uint8(1)
            return frames, out if step is None else step(parameters, frames, given)

        shapes = () if step is None else jax.eval_shape(step, parameters, frames, given)
        zeros = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
        return jax.lax.fori_loop(0, rounds, body, (frames, zeros))

    return program


def measure(program: Any, arguments: Any, rounds: int) -> float:
    """Seconds per round."""
    began = time.perf_counter()
    jax.block_until_ready(program(*arguments))
    return (time.perf_counter() - began) / rounds


def first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]


class Report:
    """Rows, printed and written as they come."""

    def __init__(self, out: Path | None) -> None:
        self.began = time.perf_counter()
        device = jax.devices()[0].device_kind
        self.out, self.content = out, {"device": device, "jax": jax.__version__, "rows": []}

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self.began

    def add(self, row: dict[str, Any]) -> None:
        row = {**row, "at": round(self.elapsed, 1)}
        print(json.dumps(row), flush=True)
        self.content["rows"].append(row)
        if self.out:
            self.out.write_text(json.dumps(self.content, indent=1) + "\n")


def steps_of(what: str, variants: dict[str, Stage]) -> dict[str, Step]:
    """The plain stage or encoder and the kernel's variants."""
    make = forward_step if what == "forward" else gradient_step
    if what == "encoder":
        return {PLAIN: make(encode), **{name: make(encode) for name in variants}}
    found = {name: make(partial(kernel, stage)) for name, stage in variants.items()}
    return {PLAIN: make(plain), **found}


def lowered(loop: Callable[..., Any], name: str, arguments: Any) -> Any:
    """A loop, traced with or without kernels in encoders."""
    before = os.environ.get(kernels.SWITCH)
    os.environ[kernels.SWITCH] = "0" if name == PLAIN else "1"
    try:
        return jax.jit(loop).lower(*arguments)
    finally:
        os.environ.pop(kernels.SWITCH)
        if before is not None:
            os.environ[kernels.SWITCH] = before


def arguments_of(what: str, runs: int, n: int) -> tuple[Any, Any, Any]:
    """What loops are given."""
    parameters, frames, given = drawn(runs, n)
    if what == "encoder":
        make = partial(FrameEncoder.make, frame_shape=SHAPE, width=512, precision="bfloat16")
        parameters = eqx.filter_vmap(make)(jax.random.split(jax.random.key(0), runs))
        given = jax.random.normal(jax.random.key(3), (runs, n, 512), jnp.bfloat16)
    return parameters, frames, given


def speed(
    report: Report, pool: ThreadPoolExecutor, what: str, runs: list[int], n: int, stage: Stage
) -> None:
    """Compile everything at once, then time variants in turns."""
    compiling: dict[tuple[int, str], Future[Any]] = {}
    arguments = {number: arguments_of(what, number, n) for number in runs}
    for number in runs:
        steps = {"loop": None, **steps_of(what, tilings(what, number, stage))}
        for name, step in steps.items():
            try:
                loop = looped(step, ROUNDS.get(number, 2))
                program = lowered(loop, name, arguments[number])
                compiling[number, name] = pool.submit(program.compile)
            except Exception as error:
                row = {"what": what, "runs": number, "variant": name}
                report.add({**row, "error": first_line(error)})
    # None is timed while others are compiled: XLA times its own products then.
    wait(compiling.values())
    for number in runs:
        timed: dict[str, tuple[Any, list[float]]] = {}
        rounds = ROUNDS.get(number, 2)
        for (other, name), future in compiling.items():
            if other == number:
                try:
                    measure(future.result(), arguments[number], rounds)
                    timed[name] = (future.result(), [])
                except Exception as error:
                    row = {"what": what, "runs": number, "variant": name}
                    report.add({**row, "error": first_line(error)})
        for _ in range(TURNS):
            for program, seconds in timed.values():
                seconds.append(measure(program, arguments[number], rounds))
        base = float(np.median(timed["loop"][1])) if "loop" in timed else 0.0
        for name, (_, seconds) in timed.items():
            median = float(np.median(seconds)) - (0 if name == "loop" else base)
            spread = max(seconds) - min(seconds)
            report.add({
                "what": what, "runs": number, "variant": name, "us": round(1e6 * median, 2),
                "spread": round(1e6 * spread, 2),
            })  # fmt: skip


def tilings(what: str, runs: int, stage: Stage) -> dict[str, Stage]:
    """The default and, for one run and for many, others."""
    found = {KERNEL: stage}
    if what == "encoder" or runs == 10 or stage.interpret:
        return found
    for numbers in FORWARD if what == "forward" else BACKWARD:
        tiling, name = Tiling(*numbers), "/".join(map(str, numbers))
        if what == "forward":
            found[name] = Stage(SLOPE, forward=tiling)
        else:
            found[name] = Stage(SLOPE, backward=tiling)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--out", type=Path, help="a JSON file")
    parser.add_argument("--runs", type=int, nargs="+", default=[100, 1, 10])
    parser.add_argument("--what", nargs="+", choices=WHAT, default=WHAT)
    parser.add_argument("--limit", type=float, default=70, help="seconds until no more is begun")
    parser.add_argument("--smoke", action="store_true", help="tiny, and interpreted on the host")
    arguments = parser.parse_args()
    stage, n, runs = DEFAULT, FRAMES, arguments.runs
    if arguments.smoke:
        stage, n, runs = Stage(SLOPE, interpret=True), 3, [2]
    report = Report(arguments.out)
    try:
        # 67 frames are not a multiple of what a program computes at once.
        for row in agreement(stage, min(n, 67)):
            report.add(row)
    except Exception as error:
        report.add({"what": "agreement", "error": first_line(error)})
    with ThreadPoolExecutor(max((os.cpu_count() or 2) - 2, 2)) as pool:
        for what in arguments.what:
            if report.elapsed > arguments.limit:
                report.add({"what": what, "error": "no time left"})
                continue
            try:
                speed(report, pool, what, runs, n, stage)
            except Exception as error:
                report.add({"what": what, "error": first_line(error)})


if __name__ == "__main__":
    main()
