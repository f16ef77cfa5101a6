"""Releases on zones of the user's own, as files: OMX, CSV or Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet

from odkanon.errors import InputError, nearest
from odkanon.publish.export.matrixfile import write_matrices
from odkanon.publish.files import guard_text
from odkanon.publish.onto.onto import OntoZones, release_onto
from odkanon.publish.onto.shares import read_weights
from odkanon.read.polygons import read_polygons
from odkanon.read.tables.open import write_csv

FILES: dict[str, tuple[str, ...]] = {
    "omx": (),
    "csv": ("zones.csv", "flows.csv"),
    "parquet": ("zones.parquet", "flows.parquet"),
}
"""The files of each format; none where the format is a single file."""


def check_format(to: str) -> None:
    """Raise if a matrix on given zones cannot be written in a format."""
    if to not in FILES:
        raise InputError(f"a matrix on given zones goes to {', '.join(FILES)}, not {to!r}{nearest(to, FILES)}")


def write_onto(
    folder: Path, to: str, output: Path, *, onto: Path, code: str | None = None, weights: Path | None = None
) -> None:
    """Spread a release over the polygons of a file, and write it as the files of a format."""
    known = None if weights is None else read_weights(weights)
    found = release_onto(folder, read_polygons(onto, code), weights=known)
    if to == "omx":
        _write_omx(found, output)
    for name, table in (("zones", found.zones()), ("flows", found.table())):
        if to == "csv":
            write_csv(guard_text(table), output / f"{name}.csv")
        elif to == "parquet":
            pyarrow.parquet.write_table(table, output / f"{name}.parquet")


def _write_omx(found: OntoZones, path: Path) -> None:
    lookups: dict[str, npt.NDArray[Any]] = {"id": np.char.encode(np.array(found.codes, dtype=np.str_), "utf-8")}
    if found.numbers is not None:
        lookups["zone"] = found.numbers
    write_matrices(path, len(found.codes), (found.origin, found.destination), found.values, lookups)
