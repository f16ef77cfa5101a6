"""Releases on zones of the user's own, as files: OMX, CSV or Parquet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet

from odkanon.core.sql import write_csv
from odkanon.errors import InputError, nearest
from odkanon.publish.export.matrixfile import new_core, new_matrices
from odkanon.publish.onto.apportionment import rows_at_once
from odkanon.publish.onto.shares import read_weights
from odkanon.publish.onto.zone_matrix import Margins, OntoZones, release_onto
from odkanon.read.tables.geo_files import read_polygons
from odkanon.release_format.names import guard_text

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
    folder: Path,
    to: str,
    output: Path,
    *,
    onto: Path,
    code: str | None = None,
    weights: Path | None = None,
    where: str | None = None,
) -> None:
    """Spread a release over the polygons of a file, and write it as the files of a format."""
    known = None if weights is None else read_weights(weights)
    found = release_onto(folder, read_polygons(onto, code), weights=known, where=where)
    if to == "omx":
        _write_omx(found, output)
    else:
        _write_tables(found, to, output)


def _write_omx(found: OntoZones, path: Path) -> None:
    lookups: dict[str, npt.NDArray[Any]] = {"id": np.char.encode(np.array(found.codes, dtype=np.str_), "utf-8")}
    if found.numbers is not None:
        lookups["zone"] = found.numbers
    size = len(found.codes)
    with new_matrices(path, size, lookups) as file:
        cores = {name: new_core(file, name, size, rows_at_once(size)) for name in found.names}
        for block in found.blocks():
            for name, values in block.values.items():
                cores[name][block.first : block.first + len(values)] = values


def _write_tables(found: OntoZones, to: str, folder: Path) -> None:
    """Write flows block by block, so that they never are in memory as a whole, and what they add up to in each zone."""
    margins = Margins(found)

    def batches() -> Iterator[pa.RecordBatch]:
        for block in found.blocks():
            margins.add(block)
            yield from guard(found.flows(block)).to_batches()

    guard: Callable[[pa.Table], pa.Table] = guard_text if to == "csv" else lambda table: table
    flows = pa.RecordBatchReader.from_batches(found.schema, batches())
    if to == "csv":
        write_csv(flows, folder / "flows.csv")
        write_csv(guard(margins.table()), folder / "zones.csv")
        return
    with pyarrow.parquet.ParquetWriter(folder / "flows.parquet", found.schema) as writer:
        for batch in flows:
            writer.write_batch(batch)
    pyarrow.parquet.write_table(margins.table(), folder / "zones.parquet")
