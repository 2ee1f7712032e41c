"""Files as the first formats of Windvane had them, written by hand."""

import json
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from safetensors.numpy import save_file

from windvane.training.fused import RunState
from windvane.training.fused_session import to_format_1

OLD: dict[str, Any] = {
    "format": 1, "env": "dst", "observation": "features", "agent": "cn", "replay": "der",
    "weights": "sparse", "weights_every": None, "steps": 480, "seeds": [3, 5], "gamma": 0.95,
    "learning_rate": 0.005, "momentum": 0.9, "clip_norm": 1.0, "epsilon_start": 0.1,
    "epsilon_end": 0.001, "epsilon_steps": 10000, "batch_size": 8, "update_interval": 4,
    "target_interval": 150, "learning_starts": 80, "reward_scale": 0.01, "encountered": 4096,
    "kappa": 0.01, "reuse": "full", "room": 24, "width": 8, "depth": 2, "encoder_depth": 1,
    "precision": "float32", "capacity": 200, "priority_exponent": 2.0, "priority_offset": 0.01,
    "trajectories": None, "chunk": 80, "checkpoint_seconds": 0.0,
}  # fmt: skip
"""All that a configuration of the first format holds."""


def write_policy(path: Path, network: Any, config: dict[str, Any], seed: int, **rest: int) -> None:
    """A policy; of a set of them, `policies` is their number."""
    header = {"format": 1, "seed": seed, "config": config} | rest
    leaves = jax.tree.leaves(eqx.filter(network, eqx.is_array))
    arrays = {f"array{i:04d}": np.asarray(leaf) for i, leaf in enumerate(leaves)}
    save_file(arrays, path, {"windvane": json.dumps(header)})


def write_checkpoint(path: Path, step: int, runs: RunState) -> None:
    """The complete state of all runs."""
    parts = list(to_format_1(runs))
    # Of these it knows the shape alone.
    parts = [
        runs.learner.active_weights[:, 0] if isinstance(part, jax.ShapeDtypeStruct) else part
        for part in parts
    ]
    arrays = [
        np.asarray(
            jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf
        )
        for leaf in jax.tree.leaves(eqx.filter(parts, eqx.is_array))
    ]
    header = {
        "format": 1,
        "version": "0.1.0",
        "step": step,
        "arrays": [[list(array.shape), array.dtype.name] for array in arrays],
    }
    named: dict[str, Any] = {f"array{i}": array for i, array in enumerate(arrays)}
    with path.open("wb") as file:
        np.savez(file, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **named)
