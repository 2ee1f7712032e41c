"""Checkpoints: the complete state of all runs in one file, from which they resume bit by bit.

A file is an uncompressed NumPy archive: arrays by number and a JSON header, which says whose it is
and which parts of the records belong to it. The archive has a checksum for every array, and loading
never runs code. Written whole or not at all, and the last two are kept, so that there is always one
to go back to. One that is damaged is set aside; one of another run or configuration is refused.
"""

import errno
import json
import math
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

from windvane.archives import members_of, read_array
from windvane.errors import LARGEST_COUNT, InputError, in_one_line, shown
from windvane.files import (
    atomic_write,
    file_size,
    make_folder,
    own_files,
    remove_files,
    remove_folder,
    set_aside,
    sweep,
)
from windvane.runs.folder import CHECKPOINTS, CONFIG, Owner
from windvane.training.config import RUN_ID, TrainConfig
from windvane.training.fused_session import from_format_1, to_format_1
from windvane.version import __version__

FORMAT = 2
KEPT = 2
"""Checkpoints that are kept."""
MAX_HEADER = 16 * 2**20
"""Bytes of a header."""

_NAME = re.compile(r"step-(\d{1,12})\.npz", re.ASCII)
_ASIDE = re.compile(rf"{_NAME.pattern}\.aside\d+", re.ASCII)
_ARCHIVE = b"PK"
"""What every archive begins with."""


class Part(NamedTuple):
    """A file with the records of the steps after `start` up to `stop`, and its SHA-256 sum."""

    start: int
    stop: int
    sum: str


class Checkpoint(NamedTuple):
    """Runs after `step` steps."""

    step: int
    runs: Any
    owner: Owner | None = None
    """Whose it is; None in files of earlier versions."""
    parts: tuple[Part, ...] | None = None
    """The records up to this step; None in files of earlier versions."""


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
    if checkpoint.owner is not None:
        header |= {RUN_ID: checkpoint.owner.run_id, "config": checkpoint.owner.config.to_json()}
    if checkpoint.parts is not None:
        header["parts"] = checkpoint.parts
    path = make_folder(folder / CHECKPOINTS) / f"step-{checkpoint.step:012d}.npz"

    def write(file: IO[bytes]) -> None:
        named: dict[str, Any] = {f"array{i}": array for i, array in enumerate(arrays)}
        np.savez(file, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **named)

    atomic_write(path, write)
    remove_files(saved(folder)[:-KEPT], _ARCHIVE)
    sweep(path.parent)
    return path


def load(folder: Path, like: Any, owner: Owner | None = None) -> Checkpoint | None:
    """The newest checkpoint that is whole; `like` is runs of the same shapes, or their shapes, and
    `owner` the run that it must be of.

    One that is damaged is set aside with a warning. None if there is no other.
    """
    if (folder / CHECKPOINTS).is_symlink():
        raise InputError(
            f"{folder / CHECKPOINTS} must be a folder of its own, not a link to another"
        )
    for path in reversed(saved(folder)):
        try:
            found = read(path, like, owner)
            if owner is not None and found.step > owner.config.steps:
                raise ValueError(
                    f"it is of step {found.step:,}, and the run has {owner.config.steps:,}"
                )
            return found
        except (InputError, MemoryError):
            raise
        except Exception as error:  # a torn file may fail in any way
            if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
                raise InputError(f"cannot read {path}: {error.strerror}") from error
            kept = set_aside(path)
            warnings.warn(
                f"{path} is damaged and is passed over; it is kept as {kept.name} "
                f"({in_one_line(error)})",
                stacklevel=2,
            )
    return None


def read(path: Path, like: Any, owner: Owner | None = None) -> Checkpoint:
    """One checkpoint; ValueError and others if it is not whole, InputError if it is not of `owner`
    or not of runs as in `like`.

    Nothing is unpacked before its size is known to be that of the array it stands for.
    """
    file_size(path, "the checkpoint")
    with path.open("rb") as file, zipfile.ZipFile(file) as archive:
        members = members_of(archive)
        header = _read_header(archive, members, path)
        theirs = _read_owner(header, path)
        if owner is not None:
            _check_owner(path, theirs, owner)
        first_format = header["format"] == 1
        like = to_format_1(like) if first_format else like
        abstract, static = eqx.partition(like, _is_array)
        wanted, structure = jax.tree.flatten(abstract)
        stored = [_stored(leaf) for leaf in wanted]
        _check_arrays(header.get("arrays"), stored, path)
        leaves = [
            _from_numpy(_read_array(archive, members, i, one), leaf)
            for i, (leaf, one) in enumerate(zip(wanted, stored, strict=True))
        ]
    runs = eqx.combine(jax.tree.unflatten(structure, leaves), static)
    runs = from_format_1(runs) if first_format else runs
    return Checkpoint(header["step"], runs, theirs, _read_parts(header))


def _read_header(
    archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo], path: Path
) -> dict[str, Any]:
    if "header" not in members:
        raise ValueError("it has no header")
    header = json.loads(read_array(archive, members["header"], MAX_HEADER).tobytes())
    if not isinstance(header, dict):
        raise ValueError("its header is not an object")
    form, step = header.get("format"), header.get("step")
    if type(form) is not int or form < 1:
        raise ValueError(f"its format is {shown(form)}")
    if form > FORMAT:
        raise InputError(
            f"{path} was written by a newer Windvane (version {shown(header.get('version'))}): "
            "install that one"
        )
    named = _NAME.fullmatch(path.name)
    if type(step) is not int or not 0 <= step <= LARGEST_COUNT:
        raise ValueError(f"its step is {shown(step)}")
    if named is not None and int(named[1]) != step:
        raise ValueError(f"it is of step {step:,}, not of {int(named[1]):,} as its name says")
    return header


def _read_owner(header: dict[str, Any], path: Path) -> Owner | None:
    """Whose a checkpoint is; None where it does not say so."""
    if "config" not in header:
        return None
    return Owner(TrainConfig.from_json(header["config"], str(path)), header.get(RUN_ID))


def _check_owner(path: Path, found: Owner | None, owner: Owner) -> None:
    """Refuse the checkpoint of another run, or of another configuration of this one."""
    if (found.run_id if found else None) != owner.run_id:
        raise InputError(
            f"{path} is of another training run than the {CONFIG} of its folder: put back what "
            "belongs together, or train into another folder"
        )
    apart = found and found.difference(owner.config)
    if apart:
        raise InputError(
            f"the {CONFIG} of this run has been changed since {path} was written ({apart}): change "
            "it back, or train with these settings into another folder"
        )


def _read_parts(header: dict[str, Any]) -> tuple[Part, ...] | None:
    listed = header.get("parts")
    if listed is None:
        return None
    good = isinstance(listed, list) and all(
        isinstance(entry, list) and [type(value) for value in entry] == [int, int, str]
        for entry in listed
    )
    if not good:
        raise ValueError(f"its parts of the records are {shown(listed)}")
    return tuple(Part(*entry) for entry in listed)


def _check_arrays(listed: Any, stored: list[jax.ShapeDtypeStruct], path: Path) -> None:
    """Compare what a header says of its arrays with what they must be."""
    if not isinstance(listed, list) or len(listed) != len(stored):
        number = len(listed) if isinstance(listed, list) else "no"
        what = f"it has {number} arrays, not {len(stored)}"
    else:
        pairs = zip(listed, stored, strict=True)
        wrong = [(entry, one) for entry, one in pairs if entry != [list(one.shape), one.dtype.name]]
        what = _other_array(*wrong[0]) if wrong else None
    if what is not None:
        raise InputError(
            f"{path} does not fit the {CONFIG} of its folder: {what}; put back what belongs "
            "together, or train into another folder"
        )


def _read_array(
    archive: zipfile.ZipFile,
    members: dict[str, zipfile.ZipInfo],
    index: int,
    like: jax.ShapeDtypeStruct,
) -> np.ndarray:
    if f"array{index}" not in members:
        raise ValueError(f"it has no array {index}")
    size = math.prod(like.shape) * like.dtype.itemsize
    array = read_array(archive, members[f"array{index}"], size)
    if array.shape != like.shape or array.dtype != like.dtype:
        raise ValueError(_other_array([list(array.shape), array.dtype.name], like))
    return array


def _other_array(entry: Any, like: jax.ShapeDtypeStruct) -> str:
    described = isinstance(entry, list) and len(entry) == 2
    what = f"{entry[1]} of shape {entry[0]}" if described else shown(entry)
    return f"an array is {what:.80}, not {like.dtype.name} of {list(like.shape)}"


def saved(folder: Path) -> list[Path]:
    """The checkpoints of a run folder, oldest first."""
    return own_files(folder / CHECKPOINTS, _NAME)


def remove(folder: Path) -> None:
    """Remove all checkpoints of a run folder, once there is nothing to resume."""
    remove_files(saved(folder), _ARCHIVE)
    remove_files(own_files(folder / CHECKPOINTS, _ASIDE))
    remove_folder(folder / CHECKPOINTS)


def _is_array(leaf: Any) -> bool:
    return eqx.is_array(leaf) or isinstance(leaf, jax.ShapeDtypeStruct)


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _to_numpy(leaf: Array) -> np.ndarray:
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)


def _from_numpy(array: np.ndarray, like: Any) -> Array:
    # A copy of JAX's own, which can be donated to a compiled program.
    leaf = jnp.array(array)
    return jax.random.wrap_key_data(leaf) if _is_key(like) else leaf


def _stored(leaf: Any) -> jax.ShapeDtypeStruct:
    """Shape and type of an array in a file."""
    data = jax.eval_shape(jax.random.key_data, leaf) if _is_key(leaf) else leaf
    return jax.ShapeDtypeStruct(data.shape, data.dtype)
