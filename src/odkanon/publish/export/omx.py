"""OMX, the matrix files of transport models: HDF5 with one square matrix for each measure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from odkanon.errors import InputError
from odkanon.publish.saved import SavedRelease
from odkanon.zoning.cells import WORLD, is_valid_cell, str_to_cell

_VERSION = b"0.2"
_BLOCK_BYTES = 1 << 24


def write_omx(release: SavedRelease, path: Path) -> None:
    """Write a release as OMX: square over the zones of both axes, with cores ``trips`` and ``weight``.

    The lookup ``id`` has the zones' names; ``h3`` has H3 cells as 64-bit integers (0 for the whole world). The
    `openmatrix` package would cut these to 32 bits when writing, so that h5py writes the file here.
    """
    try:
        import h5py
    except ImportError:
        raise InputError("OMX needs h5py: pip install 'odkanon[omx]'") from None
    with h5py.File(path, "w") as file:
        size = len(release.places.ids)
        file.attrs["OMX_VERSION"] = np.bytes_(_VERSION)
        file.attrs["SHAPE"] = np.array([size, size], dtype=np.int32)
        data, lookup = file.create_group("data"), file.create_group("lookup")
        for measure in release.measures:
            _write_core(data, measure, release)
        lookup.create_dataset("id", data=np.char.encode(np.array(release.places.ids, dtype=np.str_), "utf-8"))
        cells = _cells(release.places.ids)
        if cells is not None:
            lookup.create_dataset("h3", data=cells)


def _write_core(group: Any, measure: str, release: SavedRelease) -> None:
    """Write a matrix by blocks of rows, so that it never is in memory as a whole; empty blocks take no space."""
    size = len(release.places.ids)
    rows = max(min(_BLOCK_BYTES // (8 * size), size), 1)
    packed = {"chunks": (rows, size), "compression": "gzip", "compression_opts": 1}
    core = group.create_dataset(measure, shape=(size, size), dtype="f8", fillvalue=0, **packed)
    values, order = release.measure(measure), np.argsort(release.places.origin, kind="stable")
    sorted_origin = release.places.origin[order]
    for first in range(0, size, rows):
        here = order[slice(*np.searchsorted(sorted_origin, [first, first + rows]))]
        if len(here):
            block = np.zeros((min(rows, size - first), size))
            np.add.at(block, (release.places.origin[here] - first, release.places.destination[here]), values[here])
            core[first : first + len(block)] = block


def _cells(ids: list[str]) -> npt.NDArray[np.int64] | None:
    """Return zones as H3 cells; None unless all of them are (an index never has its highest bit set)."""
    world = np.array(ids) == "world"
    cells = np.where(world, WORLD, str_to_cell(pa.array(ids, pa.string())))
    return cells.astype(np.int64) if bool((is_valid_cell(cells) | world).all()) else None
