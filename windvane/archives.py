"""Arrays in NumPy's archives, from files that are not trusted: no stated size is believed.

What may not live here: which arrays a particular kind of file has.
"""

import io
import math
from zipfile import ZipFile, ZipInfo

import numpy as np

HEADER_BYTES = 4096
"""More than NumPy writes before the numbers of an array."""


def members_of(archive: ZipFile) -> dict[str, ZipInfo]:
    """The entries of an archive by the names of their arrays; ValueError if two share a name."""
    listed = archive.infolist()
    members = {member.filename.removesuffix(".npy"): member for member in listed}
    if len(members) != len(listed):
        raise ValueError("it has two arrays of one name")
    return members


def read_array(archive: ZipFile, member: ZipInfo, most: int) -> np.ndarray:
    """One array whose numbers take at most `most` bytes, which is checked before it is unpacked."""
    if member.file_size > most + HEADER_BYTES:
        raise ValueError(f"{member.filename} in it has {member.file_size:,} bytes, not {most:,}")
    return to_array(archive.read(member))


def to_array(data: bytes) -> np.ndarray:
    """An array in NumPy's format; unlike NumPy's own reader this one believes no stated size."""
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0
    if version != (1, 0):
        read = np.lib.format.read_array_header_2_0
    shape, by_columns, dtype = read(stream)
    start = stream.tell()
    if dtype.hasobject or math.prod(shape) * dtype.itemsize != len(data) - start:
        raise ValueError("an array in it has another size than it states")
    flat = np.frombuffer(data, dtype, offset=start)
    return flat.reshape(shape, order="F" if by_columns else "C").copy()
