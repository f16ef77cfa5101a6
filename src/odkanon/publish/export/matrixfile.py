"""OMX files, whatever the zones: HDF5 with square matrices, and lookups that name their rows and columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from odkanon.core.arrays import Ints
from odkanon.errors import InputError

_VERSION = b"0.2"
_BLOCK_BYTES = 1 << 24


@contextmanager
def new_matrices(path: Path, size: int, lookups: Mapping[str, npt.NDArray[Any]]) -> Iterator[Any]:
    """Open a new OMX file without matrices; see `new_core`.

    The `openmatrix` package would cut integers of lookups to 32 bits when writing, so that h5py writes the file here.

    Parameters
    ----------
    size : int
        Number of zones.
    lookups : mapping of str to array
        By name, what the zones are called.
    """
    try:
        import h5py
    except ImportError:
        raise InputError("OMX needs h5py: pip install 'odkanon[omx]'") from None
    with h5py.File(path, "w") as file:
        file.attrs["OMX_VERSION"] = np.bytes_(_VERSION)
        file.attrs["SHAPE"] = np.array([size, size], dtype=np.int32)
        file.create_group("data")
        lookup = file.create_group("lookup")
        for name, values in lookups.items():
            lookup.create_dataset(name, data=values)
        yield file


def new_core(file: Any, name: str, size: int, rows: int) -> Any:
    """Return a new matrix of a file, to be filled by blocks of so many rows; those left out are 0 and take no space."""
    packed = {"chunks": (rows, size), "compression": "gzip", "compression_opts": 1}
    return file["data"].create_dataset(name, shape=(size, size), dtype="f8", fillvalue=0, **packed)


def write_matrices(
    path: Path,
    size: int,
    ends: tuple[Ints, Ints],
    cores: Mapping[str, npt.NDArray[np.float64]],
    lookups: Mapping[str, npt.NDArray[Any]],
) -> None:
    """Write flows as an OMX file.

    Parameters
    ----------
    size : int
        Number of zones.
    ends : tuple of array of int
        For each flow, the numbers of its zones.
    cores : mapping of str to array
        By name, what flows; one matrix each.
    lookups : mapping of str to array
        By name, what the zones are called.
    """
    with new_matrices(path, size, lookups) as file:
        for name, values in cores.items():
            _write_core(file, name, size, ends, values)


def _write_core(file: Any, name: str, size: int, ends: tuple[Ints, Ints], values: npt.NDArray[np.float64]) -> None:
    """Write a matrix by blocks of rows, so that it never is in memory as a whole."""
    rows = max(min(_BLOCK_BYTES // (8 * size), size), 1)
    core = new_core(file, name, size, rows)
    order = np.argsort(ends[0], kind="stable")
    sorted_origin = ends[0][order]
    for first in range(0, size, rows):
        here = order[slice(*np.searchsorted(sorted_origin, [first, first + rows]))]
        if len(here):
            block = np.zeros((min(rows, size - first), size))
            np.add.at(block, (ends[0][here] - first, ends[1][here]), values[here])
            core[first : first + len(block)] = block
