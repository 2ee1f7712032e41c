"""Checkpoints: the complete state of all runs in one file, from which they resume bit by bit.

A file is an uncompressed NumPy archive: arrays by number and a JSON header. The archive has a
checksum for every array, and loading never runs code. Written whole or not at all, and the last two
are kept, so that there is always one to go back to.
"""

import io
import json
import re
import warnings
import zipfile
from pathlib import Path
from typing import IO, Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from windvane.errors import InputError, in_one_line
from windvane.files import UNFINISHED, atomic_write, make_folder
from windvane.training.fused_session import from_format_1, to_format_1
from windvane.version import __version__

FORMAT = 2
KEPT = 2
"""Checkpoints that are kept."""

_FOLDER = "checkpoints"
_NAME = re.compile(r"step-(\d+)\.npz")


class Checkpoint(NamedTuple):
    """Runs after `step` steps."""

    step: int
    runs: Any


class NewerFormatError(InputError):
    """A checkpoint of a later version of the package: to go back to an older one would be wrong."""


def save(folder: Path, checkpoint: Checkpoint) -> Path:
    """Write a checkpoint into a run folder and remove all but the last two."""
    arrays = [
        _to_numpy(leaf) for leaf in jax.tree.leaves(eqx.filter(checkpoint.runs, eqx.is_array))
    ]
    header = {
        "format": FORMAT,
        "version": __version__,
        "step": checkpoint.step,
        "arrays": [[list(array.shape), array.dtype.name] for array in arrays],
    }
    path = make_folder(folder / _FOLDER) / f"step-{checkpoint.step:012d}.npz"

    def write(file: IO[bytes]) -> None:
        named: dict[str, Any] = {f"array{i}": array for i, array in enumerate(arrays)}
        np.savez(file, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **named)

    atomic_write(path, write)
    for old in [*saved(folder)[:-KEPT], *path.parent.glob(f"*{UNFINISHED}")]:
        old.unlink()
    return path


def load(folder: Path, like: Any) -> Checkpoint | None:
    """The newest checkpoint that is whole; `like` is runs of the same shapes, or their shapes.

    One that is torn is passed over with a warning. None if there is no other.
    """
    for path in reversed(saved(folder)):
        try:
            return read(path, like)
        except NewerFormatError:
            raise
        except Exception as error:  # a torn file may fail in any way
            warnings.warn(
                f"{path} is damaged and is passed over ({in_one_line(error)})",
                stacklevel=2,
            )
    return None


def read(path: Path, like: Any) -> Checkpoint:
    """One checkpoint; ValueError and others if it is not whole or not of runs as in `like`."""
    data = path.read_bytes()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        damaged = archive.testzip()
        if damaged:
            raise ValueError(f"the checksum of {damaged} is wrong")
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        header = json.loads(arrays["header"].tobytes())
        if header["format"] > FORMAT:
            raise NewerFormatError(
                f"{path} was written by a newer Windvane (version {header['version']}): "
                "install that one"
            )
        first_format = header["format"] == 1
        like = to_format_1(like) if first_format else like
        abstract, static = eqx.partition(like, _is_array)
        wanted, structure = jax.tree.flatten(abstract)
        if len(header["arrays"]) != len(wanted):
            raise ValueError(f"it has {len(header['arrays'])} arrays, not {len(wanted)}")
        leaves = [_from_numpy(arrays[f"array{i}"], leaf) for i, leaf in enumerate(wanted)]
    runs = eqx.combine(jax.tree.unflatten(structure, leaves), static)
    return Checkpoint(header["step"], from_format_1(runs) if first_format else runs)


def saved(folder: Path) -> list[Path]:
    """The checkpoints of a run folder, oldest first."""
    return sorted(p for p in (folder / _FOLDER).glob("step-*.npz") if _NAME.fullmatch(p.name))


def remove(folder: Path) -> None:
    """Remove all checkpoints of a run folder, once there is nothing to resume."""
    for path in [*saved(folder), *(folder / _FOLDER).glob(f"*{UNFINISHED}")]:
        path.unlink()
    if (folder / _FOLDER).exists():
        (folder / _FOLDER).rmdir()


def _is_array(leaf: Any) -> bool:
    return eqx.is_array(leaf) or isinstance(leaf, jax.ShapeDtypeStruct)


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _to_numpy(leaf: Array) -> np.ndarray:
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)


def _from_numpy(array: np.ndarray, like: Any) -> Array:
    # A copy of JAX's own, which can be donated to a compiled program.
    leaf = jnp.array(array)
    leaf = jax.random.wrap_key_data(leaf) if _is_key(like) else leaf
    if leaf.shape != like.shape or leaf.dtype != like.dtype:
        raise ValueError(
            f"an array is {leaf.dtype} of shape {leaf.shape}, not {like.dtype} of {like.shape}"
        )
    return leaf
