"""Files of policies: a JSON header and arrays in the form of safetensors, with checksums of both.

What may not live here: what a header says (see `policy`).
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from windvane.errors import InputError, in_one_line
from windvane.files import atomic_write, file_size, read_bytes

FORMAT = 2
MAX_POLICY_BYTES = 4 * 2**30
MAX_HEADER_BYTES = 16 * 2**20
_NAME = "windvane"
"""Of the header, among the metadata."""
_HEADER_SUM = "header_checksum"


def write_policy(path: Path, header: dict[str, Any], arrays: list[np.ndarray]) -> None:
    """Write a header, to which the format and both checksums are added, and arrays."""
    from safetensors.numpy import save

    whole = {"format": FORMAT} | header | {"checksum": checksum(arrays)}
    whole[_HEADER_SUM] = header_checksum(whole)
    named = {f"array{i:04d}": array for i, array in enumerate(arrays)}
    data = save(named, {_NAME: json.dumps(whole)})
    atomic_write(path, lambda file: file.write(data))


def read_policy(path: Path) -> tuple[dict[str, Any], list[np.ndarray]]:
    """The header and the arrays of a file; InputError for one that is something else, or damaged.

    Files of earlier versions lack one of the checksums or both.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    # Through memory: not every name of a file can be handed to another library.
    data = read_bytes(path, "the policy", MAX_POLICY_BYTES)
    try:
        tensors = load(data)
        header = json.loads(_metadata(data).get(_NAME, "null"))
    except (SafetensorError, ValueError, TypeError, LookupError, RecursionError) as error:
        raise InputError(f"{path} is not a policy: {in_one_line(error)}") from error
    return _checked(path, header), [tensors[name] for name in sorted(tensors)]


def read_header(path: Path) -> dict[str, Any]:
    """The header alone, checked as `read_policy` does, of a file that may be large."""
    size = file_size(path, "the policy")
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if not 0 < length <= min(size, MAX_HEADER_BYTES):
                raise ValueError("it does not begin with a header")
            text = file.read(length)
        header = json.loads((json.loads(text).get("__metadata__") or {}).get(_NAME, "null"))
    except OSError as error:
        raise InputError(f"cannot read the policy {path}: {error.strerror or error}") from error
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise InputError(f"{path} is not a policy: {in_one_line(error)}") from error
    return _checked(path, header)


def _checked(path: Path, header: Any) -> dict[str, Any]:
    form = header.get("format") if isinstance(header, dict) else None
    if not isinstance(header, dict) or type(form) is not int or form < 1:
        raise InputError(f"{path} is not a policy: it has no header of Windvane's")
    if form > FORMAT:
        raise InputError(
            f"{path} was written by a newer Windvane (format {form}, and this one reads up to "
            f"{FORMAT}): install a newer one"
        )
    if header.get(_HEADER_SUM, header_checksum(header)) != header_checksum(header):
        raise InputError(f"the policy {path} is damaged: its header's checksum is wrong")
    return header


def checksum(arrays: list[np.ndarray]) -> str:
    """SHA-256 sum of the numbers of a network."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def header_checksum(header: dict[str, Any]) -> str:
    """SHA-256 sum of all values of a header but this one, whatever their order."""
    values = {name: value for name, value in header.items() if name != _HEADER_SUM}
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _metadata(data: bytes) -> dict[str, str]:
    size = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + size]).get("__metadata__") or {}
