"""Where the time of a training cycle goes on an accelerator, kernel by kernel.

    python -m benchmarks.cycle_profile --runs 100 10 1 --out out/profile

A cycle of `paper-minecart` (CN with DER) is four steps and one update, as in
`benchmarks.training`. For each number of runs it is timed first, then traced. Written are the
optimised program (`RUNS.hlo.txt`) and `RUNS.json`: milliseconds and launches per cycle of every
kernel, with the name of the operation in our code that it came from.
"""

import argparse
import json
import re
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.training import INTERVAL, Ours
from windvane.machine import use_compilation_cache
from windvane.training.config import TrainConfig
from windvane.training.fused import ChunkSpec, run_chunk

# What is within `act` or `observe` belongs to these, also where it is of an encoder.
PARTS = (
    ("(act)", "acting"),
    ("(environment)", "environment"),
    ("(observe)", "observing: replay buffer and weights"),
    ("(sample)", "sampling"),
    ("(priorities)", "new priorities"),
    ("(frames)", "drawing frames"),
    ("transpose(jvp(encoder", "encoder, backward"),
    ("encoder", "encoder"),
    ("transpose(jvp(head", "head, backward"),
    ("head", "head"),
    ("(optimiser)", "optimiser"),
)
"""Parts by the named scopes in our code, the first that fits."""
LIBRARY = re.compile(r"gemm|nvjet|cutlass|cublas|splitK|sm\d\d_", re.IGNORECASE)


def trace(ours: Ours, cycles: int) -> dict[str, tuple[float, float]]:
    """Milliseconds and launches per cycle of each kernel, by its name in the program."""
    found: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            advance(ours, cycles)
        for path in Path(folder).rglob("*.xplane.pb"):
            for plane in jax.profiler.ProfileData.from_file(str(path)).planes:
                if not plane.name.startswith("/device:GPU"):
                    continue
                for line in plane.lines:
                    if not line.name.startswith("Stream"):
                        continue
                    for event in line.events:
                        stats = {str(name): value for name, value in event.stats}
                        name = str(stats.get("hlo_op") or event.name)
                        if name.startswith("command_buffer"):  # of many kernels
                            name = event.name
                        found[name][0] += event.duration_ns / 1e6 / cycles
                        found[name][1] += 1 / cycles
    return {name: (took, number) for name, (took, number) in found.items()}


def advance(ours: Ours, cycles: int) -> float:
    """Seconds of some cycles."""
    program = ours.driver, ChunkSpec(jnp.asarray(ours.step), cycles, True)
    began = time.perf_counter()
    ours.runs, _ = jax.block_until_ready(run_chunk(program, ours.runs))
    ours.step += cycles * INTERVAL
    return time.perf_counter() - began


def origins(text: str) -> dict[str, str]:
    """Where the operations of a compiled program come from, by the names of their kernels."""
    pattern = re.compile(r"%?([\w.\-]+) = .*?metadata=\{[^}]*?op_name=\"([^\"]*)\"")
    return {kernel_name(name): origin for name, origin in pattern.findall(text)}


def kernel_name(name: str) -> str:
    """What the compiler calls the kernel of an operation."""
    return re.sub(r"\W", "_", name)


def part_of(row: dict[str, Any]) -> str:
    """The part of a cycle that a kernel belongs to."""
    for scope, part in PARTS:
        if scope in row["origin"]:
            return part
    return "matrix products of a library" if LIBRARY.search(row["kernel"]) else "other"


def shares(kernels: list[dict[str, Any]]) -> dict[str, tuple[float, float]]:
    """Milliseconds and launches of each part, the largest first."""
    found: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for row in kernels:
        for index, key in enumerate(("ms", "launches")):
            found[part_of(row)][index] += row[key]
    pairs = sorted(found.items(), key=lambda one: -one[1][0])
    return {name: (took, number) for name, (took, number) in pairs}


def profile(runs: int, cycles: int, settings: dict[str, Any], out: Path) -> dict[str, Any]:
    """Time and trace one number of runs."""
    config = TrainConfig.preset("paper-minecart", agent="cn", replay="der", **settings).resolved()
    ours = Ours(config, cycles, runs)
    ours.fill(1_000)
    program = ours.driver, ChunkSpec(jnp.asarray(ours.step), cycles, True)
    began = time.perf_counter()
    compiled = run_chunk.lower(program, ours.runs).compile()  # type: ignore[attr-defined]
    compiling = time.perf_counter() - began
    text = compiled.compiled.as_text()
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{runs}.hlo.txt").write_text(text)
    advance(ours, cycles)
    seconds = [advance(ours, cycles) / cycles for _ in range(5)]
    print(f"{runs} runs: {1e3 * np.median(seconds):.3f} ms per cycle; compiled in "
          f"{compiling:.0f} s", flush=True)  # fmt: skip
    names = origins(text)
    kernels = sorted(trace(ours, cycles).items(), key=lambda one: -one[1][0])
    rows = [
        {"kernel": name, "ms": took, "launches": number,
         "origin": names.get(kernel_name(name), "")}
        for name, (took, number) in kernels
    ]  # fmt: skip
    found = {
        "runs": runs, "seconds_per_cycle": seconds, "compiling": compiling, "jax": jax.__version__,
        "device": jax.devices()[0].device_kind, "kernels": rows, "failed": ours.failed(),
    }  # fmt: skip
    (out / f"{runs}.json").write_text(json.dumps(found, indent=1) + "\n")
    total, launches = (sum(row[key] for row in rows) for key in ("ms", "launches"))
    print(f"{total:.3f} ms in {launches:.0f} kernels", flush=True)
    for part, (took, number) in shares(rows).items():
        print(f"{took:8.3f} {number:6.1f} {part}")
    print("the largest:", flush=True)
    for row in rows[:40]:
        shown = row["origin"].replace("jit(run_chunk)/", "")[-90:]
        print(f"{row['ms']:8.3f} {row['launches']:6.1f} {row['kernel'][:45]:45s} {shown}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, nargs="+", default=[100, 10, 1])
    parser.add_argument("--cycles", type=int, default=20, help="in one compiled call")
    parser.add_argument("--settings", default="{}", help="other settings, as JSON")
    parser.add_argument("--out", type=Path, default=Path("out/profile"))
    arguments = parser.parse_args()
    use_compilation_cache()  # the program is compiled to be read, and again to be run
    for runs in arguments.runs:
        profile(runs, arguments.cycles, json.loads(arguments.settings), arguments.out)


if __name__ == "__main__":
    main()
