"""Coverage sets: value vectors of policies of which one is optimal for every weight vector."""

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile
from zlib import error as ZlibError  # noqa: N812

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from windvane.archives import members_of, read_array
from windvane.envs.plans import Plan
from windvane.errors import in_one_line, is_number
from windvane.files import as_input_error, atomic_write, read_bytes

FORMAT = 1
MAX_BYTES = 64 * 2**20
"""Largest coverage set that is read, as a file and unpacked."""

Weights = Float[Array, "*batch objectives"] | Float[np.ndarray, "*batch objectives"]


@dataclass(frozen=True)
class CoverageSet:
    """Entries of a (near-)convex coverage set, each with a plan that earns its value.

    `values` has a row per entry, discounted and in the environment's own units; `plans` is one plan
    whose arrays have a leading axis of entries; `behaviours` describes each entry in words, and
    entries that differ in details only share a name in `groups`; `errors` bounds the distance to
    the true optimum, in units of scalarised return unless it says otherwise (see
    `docs/oracle.md`).
    """

    gamma: float
    values: np.ndarray
    plans: Plan
    behaviours: tuple[str, ...]
    groups: tuple[str, ...]
    errors: dict[str, float] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.values)

    def optimal_value(self, weights: Weights) -> Float[Array, "*batch"]:
        """Largest scalarised value over the entries. Pure JAX: use it inside compiled loops."""
        values = jnp.asarray(self.values, jnp.result_type(float))
        return (jnp.asarray(weights, values.dtype) @ values.T).max(-1)

    def best(self, weights: Weights) -> Int[Array, "*batch"]:
        """Index of the entry that is optimal for `weights`."""
        values = jnp.asarray(self.values, jnp.result_type(float))
        return (jnp.asarray(weights, values.dtype) @ values.T).argmax(-1)

    def plan(self, index: int) -> Plan:
        """The plan of one entry."""
        return jax.tree.map(lambda leaf: leaf[index], self.plans)

    def save(self, path: str | Path) -> None:
        """Write the set to one file that `load` reads back."""
        header = {
            "format": FORMAT,
            "gamma": self.gamma,
            "behaviours": self.behaviours,
            "groups": self.groups,
            "errors": self.errors,
        }
        leaves: dict[str, Any] = {
            f"leaf{i}": np.asarray(a) for i, a in enumerate(jax.tree.leaves(self.plans))
        }
        buffer = io.BytesIO()
        np.savez_compressed(buffer, header=json.dumps(header), values=self.values, **leaves)
        path = Path(path)
        with as_input_error(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(path, lambda file: file.write(buffer.getvalue()))

    @staticmethod
    def load(path: str | Path, like: Plan) -> "CoverageSet":
        """Read a set whose plans are built like `like`.

        Nothing in the file is trusted: ValueError is raised if it cannot be read, is damaged, too
        large or of another form.
        """
        try:
            arrays = _read_arrays(Path(path))
            header = json.loads(str(arrays["header"]))
            _check_header(header)
            templates, structure = jax.tree.flatten(like)
            leaves = [arrays[f"leaf{i}"] for i in range(len(templates))]
            values = arrays["values"]
            _check_arrays(header, values, leaves, templates)
        except (BadZipFile, EOFError, LookupError, RuntimeError, TypeError, ZlibError) as error:
            raise ValueError(f"it is not a coverage set: {in_one_line(error)}") from error
        return CoverageSet(
            header["gamma"],
            values,
            jax.tree.unflatten(structure, [jnp.asarray(leaf) for leaf in leaves]),
            tuple(header["behaviours"]),
            tuple(header["groups"]),
            header["errors"],
        )


def _read_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an archive, whose sizes are checked before anything is unpacked."""
    # Through memory, since ZipFile leaves a file that is no archive open.
    with ZipFile(io.BytesIO(read_bytes(path, "the coverage set", MAX_BYTES))) as archive:
        members = members_of(archive)
        if sum(member.file_size for member in members.values()) > MAX_BYTES:
            raise ValueError(f"it would unpack to more than {MAX_BYTES:,} bytes")
        return {name: read_array(archive, member, MAX_BYTES) for name, member in members.items()}


def _check_header(header: Any) -> None:
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        got = header.get("format") if isinstance(header, dict) else None
        raise ValueError(f"it has format {got}, not {FORMAT}")
    if not (is_number(header["gamma"]) and 0 < header["gamma"] <= 1):
        raise ValueError("its discount factor is not valid")
    for name in ("behaviours", "groups"):
        listed = isinstance(header[name], list)
        if not (listed and all(isinstance(text, str) for text in header[name])):
            raise ValueError(f"its {name} are not texts")
    errors = header["errors"]
    if not (isinstance(errors, dict) and all(is_number(error) for error in errors.values())):
        raise ValueError("its errors are not numbers")


def _check_arrays(
    header: dict[str, Any],
    values: np.ndarray,
    leaves: Sequence[np.ndarray],
    templates: Sequence[Any],
) -> None:
    if values.ndim != 2 or values.size == 0 or values.dtype.kind != "f":
        raise ValueError(f"its values are {values.dtype} of shape {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError("its values are not finite")
    entries = len(values)
    if not len(header["behaviours"]) == len(header["groups"]) == entries:
        raise ValueError(f"it has {entries} values and another number of behaviours or groups")
    for leaf, template in zip(leaves, templates, strict=True):
        alike = leaf.ndim == template.ndim + 1 and leaf.dtype.kind == template.dtype.kind
        if not alike or len(leaf) != entries or leaf.size == 0 or np.isnan(leaf).any():
            raise ValueError("its plans have another form")


def stack_plans(plans: Sequence[Plan]) -> Plan:
    """One plan with a leading axis, from plans of equal shapes."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *plans)


def cover(values: np.ndarray, weights: np.ndarray, tolerance: float) -> list[int]:
    """Rows of `values` such that none of `weights` loses more than `tolerance` by using only them.

    Greedy: add the best row for the weight vector that loses most until none loses too much.
    """
    scores = weights @ values.T
    best = scores.max(1)
    chosen: list[int] = []
    reached = np.full(len(weights), -np.inf)
    while (gap := best - reached).max() > tolerance:
        row = int(scores[gap.argmax()].argmax())
        if row in chosen:
            break
        chosen.append(row)
        reached = np.maximum(reached, scores[:, row])
    return chosen
