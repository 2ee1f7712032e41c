"""Expected utility over 1,000 weight vectors against seconds of training, beside morl-baselines.

    python -m benchmarks.time_to_utility run --env minecart-v0 --agent fast --seed 0 --minutes 20 \
        --core 3 --out results/time-to-utility/minecart-v0-fast-0.json
    python -m benchmarks.time_to_utility all --minutes 20 --cores 0 1    # all that is missing
    python -m benchmarks.time_to_utility page    # what results/time-to-utility holds

`run` trains one contender on one core. Its clock counts the processor's seconds and stands still
while the greedy policy is looked at; compilation is timed by itself. `morl-envelope` and
`morl-gpi-ls` need what `make bench-utility` installs, and its Python.
"""

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

ENVS = ("minecart-v0", "deep-sea-treasure-v0", "four-room-v0", "fruit-tree-v0")
OURS = ("fast", "cn-der", "envelope", "gpi-ls")
PEERS = ("morl-envelope", "morl-gpi-ls")
FOLDER = Path("results/time-to-utility")


def use_one_core(core: int | None) -> None:
    """Stay on one core, with one thread of everything; before numpy and jax are imported."""
    if core is not None:
        os.sched_setaffinity(0, {core})
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flags}".strip()
    os.environ.setdefault("JAX_PLATFORMS", "cpu")


def run(arguments: argparse.Namespace) -> None:
    """Train one contender with looks on the way."""
    use_one_core(arguments.core)
    from benchmarks.utility_looks import Looks

    about = {"agent": arguments.agent, "seed": arguments.seed, "core": arguments.core}
    looks = Looks(arguments.env, arguments.minutes, arguments.out, about)
    if arguments.agent in PEERS:
        from benchmarks import utility_peers

        settings = utility_peers.train(looks, arguments.agent, arguments.seed)
    else:
        from benchmarks import utility_ours

        changes = json.loads(arguments.settings)
        settings = utility_ours.train(looks, arguments.agent, arguments.seed, changes)
    report = json.loads(arguments.out.read_text()) | {"settings": settings}
    arguments.out.write_text(json.dumps(report, indent=1) + "\n")


def run_all(arguments: argparse.Namespace) -> None:
    """Every contender that has no result yet, one at a time on each core."""
    free: Queue[int] = Queue()
    for core in arguments.cores:
        free.put(core)

    def one(env: str, agent: str, seed: int) -> int:
        out = arguments.source / f"{env}-{agent}-{seed}.json"
        if out.exists() and json.loads(out.read_text())["finished"]:
            return 0
        core = free.get()
        try:
            command = [sys.executable, "-m", "benchmarks.time_to_utility", "run", "--env", env]
            command += ["--agent", agent, "--seed", str(seed), "--core", str(core)]
            command += ["--minutes", str(arguments.minutes), "--out", str(out)]
            return subprocess.run(command, check=False).returncode
        finally:
            free.put(core)

    jobs = [(e, a, s) for s in arguments.seeds for a in arguments.agents for e in arguments.envs]
    with ThreadPoolExecutor(len(arguments.cores)) as pool:
        codes = list(pool.map(lambda job: one(*job), jobs))
    sys.exit(max(codes))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("run")
    one.add_argument("--env", choices=ENVS, required=True)
    one.add_argument("--agent", choices=(*OURS, *PEERS), required=True)
    one.add_argument("--seed", type=int, default=0)
    one.add_argument("--minutes", type=float, default=20.0)
    one.add_argument("--core", type=int, help="the core to stay on")
    one.add_argument("--settings", default="{}", help="other settings of ours, as JSON")
    one.add_argument("--out", type=Path, required=True)
    two = commands.add_parser("all")
    two.add_argument("--seeds", type=int, nargs="+", default=[0])
    two.add_argument("--envs", nargs="+", choices=ENVS, default=list(ENVS))
    two.add_argument("--agents", nargs="+", choices=(*OURS, *PEERS), default=[*OURS, *PEERS])
    two.add_argument("--minutes", type=float, default=20.0)
    two.add_argument("--cores", type=int, nargs="+", default=[0])
    two.add_argument("--into", dest="source", type=Path, default=FOLDER)
    three = commands.add_parser("page")
    three.add_argument("--from", dest="source", type=Path, default=FOLDER)
    three.add_argument("--out", type=Path, default=FOLDER.with_suffix(".md"))
    arguments = parser.parse_args()
    if arguments.command == "page":
        from benchmarks.utility_page import write_page

        return write_page(arguments.source, arguments.out)
    return run(arguments) if arguments.command == "run" else run_all(arguments)


if __name__ == "__main__":
    main()
