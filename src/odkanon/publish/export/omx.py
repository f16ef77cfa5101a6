"""OMX, the matrix files of transport models: HDF5 with one square matrix for each measure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from odkanon.publish.export.matrixfile import write_matrices
from odkanon.release_format.folder import SavedRelease
from odkanon.zoning.cells import WORLD, is_valid_cell, str_to_cell


def write_omx(release: SavedRelease, path: Path) -> None:
    """Write a release as OMX: square over the zones of both axes, with cores ``trips`` and ``weight``.

    A cube has a core for each combination of what its rows say besides, such as ``trips mode=car hour=any``; together
    they add up to ``trips``.

    The lookup ``id`` has the zones' names; ``h3`` has H3 cells as 64-bit integers (0 for the whole world).
    """
    places = release.places
    lookups: dict[str, npt.NDArray[Any]] = {"id": np.char.encode(np.array(places.ids, dtype=np.str_), "utf-8")}
    cells = _cells(places.ids)
    if cells is not None:
        lookups["h3"] = cells
    cores = {measure: release.measure(measure) for measure in release.measures}
    for kind, rows in _attributes(release):
        cores |= {f"{measure} {kind}": np.where(rows, release.measure(measure), 0) for measure in release.measures}
    write_matrices(path, len(places.ids), (places.origin, places.destination), cores, lookups)


def _attributes(release: SavedRelease) -> Iterator[tuple[str, npt.NDArray[np.bool_]]]:
    """Yield the name of each combination that occurs in a cube, and which rows have it."""
    if not release.axes:
        return
    said = [np.array(release.flows.column(axis).to_pylist(), dtype=np.str_) for axis in release.axes]
    for values in sorted(set(zip(*(column.tolist() for column in said), strict=True))):
        # A slash would make a folder inside the file.
        named = (f"{axis}={value}".replace("/", "%2F") for axis, value in zip(release.axes, values, strict=True))
        yield " ".join(named), np.all([column == value for column, value in zip(said, values, strict=True)], axis=0)


def _cells(ids: list[str]) -> npt.NDArray[np.int64] | None:
    """Return zones as H3 cells; None unless all of them are (an index never has its highest bit set)."""
    world = np.array(ids) == "world"
    cells = np.where(world, WORLD, str_to_cell(pa.array(ids, pa.string())))
    return cells.astype(np.int64) if bool((is_valid_cell(cells) | world).all()) else None
