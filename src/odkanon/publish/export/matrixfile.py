"""OMX files, whatever the zones: HDF5 with square matrices, and lookups that name their rows and columns."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from odkanon.core.arrays import Ints
from odkanon.errors import InputError

_VERSION = b"0.2"
_BLOCK_BYTES = 1 << 24


def write_matrices(
    path: Path,
    size: int,
    ends: tuple[Ints, Ints],
    cores: Mapping[str, npt.NDArray[np.float64]],
    lookups: Mapping[str, npt.NDArray[Any]],
) -> None:
    """Write an OMX file.

    The `openmatrix` package would cut integers of lookups to 32 bits when writing, so that h5py writes the file here.

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
    try:
        import h5py
    except ImportError:
        raise InputError("OMX needs h5py: pip install 'odkanon[omx]'") from None
    with h5py.File(path, "w") as file:
        file.attrs["OMX_VERSION"] = np.bytes_(_VERSION)
        file.attrs["SHAPE"] = np.array([size, size], dtype=np.int32)
        data, lookup = file.create_group("data"), file.create_group("lookup")
        for name, values in cores.items():
            _write_core(data, name, size, ends, values)
        for name, values in lookups.items():
            lookup.create_dataset(name, data=values)


def _write_core(group: Any, name: str, size: int, ends: tuple[Ints, Ints], values: npt.NDArray[np.float64]) -> None:
    """Write a matrix by blocks of rows, so that it never is in memory as a whole; empty blocks take no space."""
    rows = max(min(_BLOCK_BYTES // (8 * size), size), 1)
    packed = {"chunks": (rows, size), "compression": "gzip", "compression_opts": 1}
    core = group.create_dataset(name, shape=(size, size), dtype="f8", fillvalue=0, **packed)
    order = np.argsort(ends[0], kind="stable")
    sorted_origin = ends[0][order]
    for first in range(0, size, rows):
        here = order[slice(*np.searchsorted(sorted_origin, [first, first + rows]))]
        if len(here):
            block = np.zeros((min(rows, size - first), size))
            np.add.at(block, (ends[0][here] - first, ends[1][here]), values[here])
            core[first : first + len(block)] = block
