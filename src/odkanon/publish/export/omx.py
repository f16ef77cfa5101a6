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
from odkanon.core.registry import import_extra
from odkanon.release_format.folder import SavedRelease
from odkanon.zoning.cells import WORLD, is_valid_cell, str_to_cell

_VERSION = b"0.2"
_BLOCK_BYTES = 1 << 20


def write_omx(release: SavedRelease, path: Path) -> None:
    """Write a release as OMX: square over the zones of both axes, with the matrices ``trips`` and ``weight``.

    A cube also has a matrix for each combination of attributes, such as ``trips mode=car hour=any``; they add up to
    ``trips``. See `zone_lookup` for the numbers of the zones.
    """
    index = release.zone_index
    cores = {measure: release.measure(measure) for measure in release.measures}
    for name, rows in _attribute_rows(release):
        cores |= {f"{measure} {name}": np.where(rows, release.measure(measure), 0) for measure in release.measures}
    cells = _cells(index.ids)
    lookup = zone_lookup(index.ids) if cells is None else {"h3": cells}
    write_matrices(path, len(index.ids), (index.origin, index.destination), cores, lookup)


def zone_lookup(ids: list[str], numbers: Ints | None = None) -> dict[str, npt.NDArray[Any]]:
    """Return the lookup of zones: ``zone`` with their codes as numbers if they have some, else ``id`` with their names.

    There is never a second one: ActivitySim refuses files in which lookups differ. The world is 0, or -1 where a zone
    has that number.
    """
    if numbers is None and all(_is_number(code) or code == "world" for code in ids):
        world = -1 if "0" in ids else 0
        numbers = np.array([world if code == "world" else int(code) for code in ids], dtype=np.int64)
    return {"id": np.char.encode(np.array(ids, dtype=np.str_), "utf-8")} if numbers is None else {"zone": numbers}


def _is_number(code: str) -> bool:
    """Return whether a code is a whole number of 64 bits, written as such."""
    return code.isascii() and code.isdigit() and len(code) < 19 and str(int(code)) == code


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
    packed = {"chunks": (rows, size), "compression": "gzip", "compression_opts": 1, "shuffle": True}
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
