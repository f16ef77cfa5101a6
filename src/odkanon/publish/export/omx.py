"""OMX, the matrix files of transport models: HDF5 with square matrices, and lookups that label rows and columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from odkanon.core.arrays import Ints
from odkanon.core.extras import import_extra
from odkanon.release_format.folder import SavedRelease
from odkanon.zoning.cells import WORLD, is_valid_cell, str_to_cell

_VERSION = b"0.2"
_BLOCK_BYTES = 1 << 24


def write_omx(release: SavedRelease, path: Path) -> None:
    """Write a release as OMX: square over the zones of both axes, with the matrices ``trips`` and ``weight``.

    A cube also has a matrix for each combination of attributes, such as ``trips mode=car hour=any``; they add up to
    ``trips``. The lookup ``id`` has the ids of the zones; ``h3`` has H3 cells as 64-bit integers (0 for the world).
    """
    index = release.zone_index
    lookups = {"id": encoded_ids(index.ids)}
    cells = _cells(index.ids)
    if cells is not None:
        lookups["h3"] = cells
    cores = {measure: release.measure(measure) for measure in release.measures}
    for name, rows in _attribute_rows(release):
        cores |= {f"{measure} {name}": np.where(rows, release.measure(measure), 0) for measure in release.measures}
    write_matrices(path, len(index.ids), (index.origin, index.destination), cores, lookups)


def encoded_ids(ids: list[str]) -> npt.NDArray[Any]:
    """Return ids of zones as the bytes of an OMX lookup."""
    return np.char.encode(np.array(ids, dtype=np.str_), "utf-8")


def _attribute_rows(release: SavedRelease) -> Iterator[tuple[str, npt.NDArray[np.bool_]]]:
    """Yield the name of each combination of attributes of a cube, and the rows that have it."""
    if not release.axes:
        return
    labels = [np.array(release.table.column(axis).to_pylist(), dtype=np.str_) for axis in release.axes]
    for values in sorted(set(zip(*(column.tolist() for column in labels), strict=True))):
        # A slash would make a group inside the HDF5 file.
        named = (f"{axis}={value}".replace("/", "%2F") for axis, value in zip(release.axes, values, strict=True))
        yield " ".join(named), np.all([column == value for column, value in zip(labels, values, strict=True)], axis=0)


def _cells(ids: list[str]) -> npt.NDArray[np.int64] | None:
    """Return zones as H3 cells; None unless all of them are (the highest bit of a cell is never set)."""
    world = np.array(ids) == "world"
    cells = np.where(world, WORLD, str_to_cell(pa.array(ids, pa.string())))
    return cells.astype(np.int64) if bool((is_valid_cell(cells) | world).all()) else None


@contextmanager
def new_omx_file(path: Path, size: int, lookups: Mapping[str, npt.NDArray[Any]]) -> Iterator[Any]:
    """Open a new OMX file without matrices; see `new_matrix`.

    It is written with h5py, because the `openmatrix` package truncates the integers of lookups to 32 bits.

    * ``size``: number of zones.
    * ``lookups``: by name, the labels of the zones.
    """
    h5py = import_extra("h5py", purpose="OMX", extra="omx")
    with h5py.File(path, "w") as file:
        file.attrs["OMX_VERSION"] = np.bytes_(_VERSION)
        file.attrs["SHAPE"] = np.array([size, size], dtype=np.int32)
        file.create_group("data")
        lookup = file.create_group("lookup")
        for name, values in lookups.items():
            lookup.create_dataset(name, data=values)
        yield file


def new_matrix(file: Any, name: str, size: int, rows: int) -> Any:
    """Return a new matrix, to be filled in blocks of rows; blocks that are left out are 0 and take no space."""
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

    * ``size``: number of zones.
    * ``ends``: for each flow, the positions of its zones.
    * ``cores``: by the name of its matrix, a value for each flow.
    * ``lookups``: by name, the labels of the zones.
    """
    with new_omx_file(path, size, lookups) as file:
        for name, values in cores.items():
            _write_matrix(file, name, size, ends, values)


def _write_matrix(file: Any, name: str, size: int, ends: tuple[Ints, Ints], values: npt.NDArray[np.float64]) -> None:
    """Write a matrix in blocks of rows, so that it is never in memory as a whole."""
    rows = max(min(_BLOCK_BYTES // (8 * size), size), 1)
    matrix = new_matrix(file, name, size, rows)
    order = np.argsort(ends[0], kind="stable")
    sorted_origin = ends[0][order]
    for first in range(0, size, rows):
        here = order[slice(*np.searchsorted(sorted_origin, [first, first + rows]))]
        if len(here):
            block = np.zeros((min(rows, size - first), size))
            np.add.at(block, (ends[0][here] - first, ends[1][here]), values[here])
            matrix[first : first + len(block)] = block
