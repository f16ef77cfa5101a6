"""Exports of a release folder to the formats of other programs: all of it or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from odkanon.core.atomic_write import partial_folder, write_text
from odkanon.core.sql import write_csv
from odkanon.errors import InputError, OptionConflictError, UnknownNameError
from odkanon.estimate.drawn_trips import ABOUT, draw_trips
from odkanon.estimate.flat_matrix import rewrite_matrix
from odkanon.estimate.row_combinations import certain_rows
from odkanon.estimate.zone_shares import read_weights
from odkanon.publish.export.flow_map import (
    FLOWS,
    KEPLER,
    LOCATIONS,
    flowmap_files,
    stale_flowmap_file,
    write_flowmap,
    write_kepler,
    write_skmob,
)
from odkanon.publish.export.geo_exports import write_geojson, write_geopackage, write_geoparquet, write_pmtiles
from odkanon.publish.export.omx import new_matrix, new_omx_file, write_matrices, write_omx, zone_lookup
from odkanon.publish.onto.apportionment import rows_at_once
from odkanon.publish.onto.estimated_matrix import EstimatedMatrix, estimates_onto
from odkanon.publish.onto.zone_matrix import MatrixMargins, ZoneMatrix, release_onto
from odkanon.read.tables.geo_files import read_polygons
from odkanon.release_format.folder import SavedRelease, is_linked_folder, linked_folders, open_release, with_zones_from
from odkanon.release_format.names import MATRIX, MATRIX_PARQUET, guard_text
from odkanon.release_format.targets import check_export

FILES: dict[str, tuple[str, ...]] = {
    "omx": (),
    "gpkg": (),
    "geoparquet": ("zones.parquet", "flows.parquet"),
    "geojson": ("zones.geojson", "flows.geojson"),
    "flowmap": (LOCATIONS, FLOWS),
    "kepler": (FLOWS, KEPLER),
    "pmtiles": (),
    "skmob": ("tessellation.geojson", "flows.csv"),
    "matrix": (MATRIX, MATRIX_PARQUET),
    "trips": ("trips.csv", "trips.parquet", "about.txt"),
}
"""The files of each format; none where the format is a single file, which may have any name."""
ONTO_FILES: dict[str, tuple[str, ...]] = {
    "omx": (),
    "csv": ("zones.csv", "flows.csv"),
    "parquet": ("zones.parquet", "flows.parquet"),
}
"""The files of each format of a matrix on given zones."""

_WRITERS: dict[str, Callable[[SavedRelease, str, Path], None]] = {
    "omx": lambda release, measure, path: write_omx(release, path),
    "gpkg": lambda release, measure, path: write_geopackage(release, path),
    "geoparquet": lambda release, measure, path: write_geoparquet(release, path),
    "geojson": lambda release, measure, path: write_geojson(release, path),
    "kepler": write_kepler,
    "pmtiles": lambda release, measure, path: write_pmtiles(release, path),
    "skmob": write_skmob,
    "trips": lambda release, measure, path: write_trips(release, path),
}


@dataclass(frozen=True)
class _Export:
    """What is exported, and how; see `export_release`."""

    to: str
    measure: str
    force: bool
    zones: Sequence[str | Path]
    where: str | None
    coarse_times: bool
    onto: str | Path | None
    code: str | None
    weights: str | Path | None
    even: bool

    def check(self) -> None:
        """Raise unless the options are consistent."""
        if self.onto is not None:
            if self.zones:
                raise OptionConflictError.between("zones", "onto", "all given zones are included anyway")
            if self.to not in ONTO_FILES:
                raise UnknownNameError.among("format of a matrix on given zones", self.to, ONTO_FILES)
        elif (self.code, self.weights) != (None, None) or self.even:
            raise InputError("codes and weights describe zones of your own; give the file of the zones, too")
        elif self.to not in FILES and self.to in ONTO_FILES:
            raise InputError(f"a release is {self.to} already; this format is for a matrix on zones of your own")
        elif self.to not in FILES:
            raise UnknownNameError.among("format", self.to, FILES)
        if self.to == "trips" and self.where is not None:
            raise OptionConflictError.between("where", "to trips", "trips of all rows are drawn; filter their table")
        if self.coarse_times and self.to != "flowmap":
            raise InputError("only flow maps contain times; leave out coarse times")

    @property
    def files(self) -> tuple[str, ...]:
        return FILES[self.to] if self.onto is None else ONTO_FILES[self.to]

    def run(self, folder: Path, output: Path) -> list[Path]:
        if self.onto is not None:
            return self._write(output, self.files, partial(self._write_onto, folder))
        if self.to == "matrix":
            release = open_release(folder)
            release.require_flows("a matrix")
            return self._write(output, self.files, partial(rewrite_matrix, release, folder))
        check_export(output, self.files, force=self.force)
        release = open_release(folder)
        release.require_flows(f"the format {self.to}")
        release = with_zones_from(release, [open_release(each) for each in self.zones])
        if self.where is not None:
            release = replace(release, table=release.table.filter(certain_rows(release, self.where)))
        if self.to == "flowmap":
            write = partial(write_flowmap, release, self.measure, coarse_times=self.coarse_times)
            return self._write(output, flowmap_files(release), write)
        return self._write(output, self.files, partial(_WRITERS[self.to], release, self.measure))

    def _write_onto(self, folder: Path, output: Path) -> None:
        assert self.onto is not None
        weights = None if self.weights is None else read_weights(self.weights)
        polygons = read_polygons(Path(self.onto), self.code)
        if weights is None and not self.even:
            flows = estimates_onto(open_release(folder), polygons, self.where)
            if self.to == "omx":
                write_matrices(
                    output, len(flows.codes), flows.ends, flows.cores, zone_lookup(flows.codes, flows.numbers)
                )
            else:
                write_estimates(flows, self.to, output)
            return
        matrix = release_onto(folder, polygons, weights=weights, where=self.where)
        if self.to == "omx":
            write_onto_omx(matrix, output)
        else:
            write_onto_tables(matrix, self.to, output)

    def _write(self, output: Path, files: Sequence[str], write: Callable[[Path], None]) -> list[Path]:
        """Write the files of a format, all or none."""
        targets = check_export(output, files, force=self.force)
        stale = stale_flowmap_file(output) if FLOWS in files else None
        with partial_folder(output) as made:
            write(made if files else made / output.name)
            if files:
                output.mkdir(exist_ok=True)
            for target in targets:
                (made / target.name).replace(target)
        if stale is not None and stale not in targets:
            stale.unlink()
        return targets


def export_release(
    folder: str | Path,
    to: str,
    output: str | Path,
    *,
    measure: str = "trips",
    force: bool = False,
    zones: Sequence[str | Path] = (),
    where: str | None = None,
    coarse_times: bool = False,
    onto: str | Path | None = None,
    code: str | None = None,
    weights: str | Path | None = None,
    even: bool = False,
) -> list[Path]:
    """Write a saved release in the format of another program, and return the files.

    Parameters
    ----------
    folder : path
        A release folder, or a folder of linked releases.
    to : {"omx", "gpkg", "geoparquet", "geojson", "flowmap", "kepler", "pmtiles", "skmob", "matrix", "trips"}
        The format; "matrix" computes ``matrix.csv`` and ``matrix.parquet`` of the folder again. With ``onto``, one of
        "omx", "csv" and "parquet".
    output : path
        A file for OMX, GeoPackage and PMTiles, a folder for the others. For linked releases always a folder, with a
        file or folder for each of them.
    measure : {"trips", "weight"}
        The measure of flows in formats with a single number: flowmap, kepler and skmob.
    force : bool
        Replace files of the same name. Other files in the folder stay, except the flows without time that an earlier
        flow map left there.
    zones : sequence of path
        Releases whose zones are added even where nothing flows, so that two months have matrices of the same shape.
    where : str, optional
        For a cube: a filter, as in `odkanon.view_release`. Only rows whose trips all match are exported; how many
        trips of other rows might match is logged as a warning.
    coarse_times : bool
        In the flow map of a cube, use parts of the day, working days and weekend, or months. More rows have these than
        have hours or days; see `odkanon.publish.export.flow_map.start_times`.
    onto : path, optional
        A file of polygons between which flows are estimated; see `odkanon.SavedRelease.estimate`.
    code : str, optional
        With ``onto``: the property that has the codes of the polygons.
    weights : path, optional
        With ``onto``: weights to apportion by instead of area; a table ``lat, lon, weight`` or ``cell, weight``.
    even : bool
        With ``onto``: spread every row evenly over its area instead of estimating flows; with weights it always is.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from odkanon import Rule, anonymize, make_survey, read_trips
    >>> from odkanon.read.od_matrix import build_od
    >>> release = anonymize(build_od(read_trips(make_survey().slice(0, 4000)), resolution=7), Rule(trips=10))
    >>> with TemporaryDirectory() as folder:
    ...     saved = release.save(Path(folder) / "release")
    ...     written = export_release(saved, "flowmap", Path(folder) / "flows")
    >>> [path.name for path in written]
    ['locations.csv', 'flows.csv']
    """
    export = _Export(to, measure, force, zones, where, coarse_times, onto, code, weights, even)
    export.check()
    folder, output = Path(folder), Path(output)
    if not is_linked_folder(folder):
        return export.run(folder, output)
    output.mkdir(parents=True, exist_ok=True)
    suffix = "" if export.files else f".{to}"
    return [path for part in linked_folders(folder) for path in export.run(part, output / f"{part.name}{suffix}")]


def write_trips(release: SavedRelease, folder: Path) -> None:
    """Write trips drawn from the estimate, and what is to be known of them."""
    table = draw_trips(release)
    pyarrow.parquet.write_table(table, folder / "trips.parquet")
    write_csv(guard_text(table), folder / "trips.csv")
    write_text(folder / "about.txt", f"{ABOUT}\n")


def write_onto_omx(matrix: ZoneMatrix, path: Path) -> None:
    """Write a matrix on given zones as OMX."""
    size = len(matrix.codes)
    with new_omx_file(path, size, zone_lookup(matrix.codes, matrix.numbers)) as file:
        cores = {name: new_matrix(file, name, size, rows_at_once(size)) for name in matrix.names}
        for block in matrix.blocks():
            for name, values in block.values.items():
                cores[name][block.first : block.first + len(values)] = values


def write_estimates(flows: EstimatedMatrix, to: str, folder: Path) -> None:
    """Write estimated flows between given zones, and their sums for each zone."""
    for name, table in (("flows", flows.table()), ("zones", flows.margins())):
        if to == "csv":
            write_csv(guard_text(table), folder / f"{name}.csv")
        else:
            pyarrow.parquet.write_table(table, folder / f"{name}.parquet")


def write_onto_tables(matrix: ZoneMatrix, to: str, folder: Path) -> None:
    """Write the flows of a matrix on given zones block by block, and their sums for each zone."""
    margins = MatrixMargins(matrix)

    def batches() -> Iterator[pa.RecordBatch]:
        for block in matrix.blocks():
            margins.add(block)
            flows = matrix.flows(block)
            yield from (guard_text(flows) if to == "csv" else flows).to_batches()

    flows = pa.RecordBatchReader.from_batches(matrix.schema, batches())
    if to == "csv":
        write_csv(flows, folder / "flows.csv")
        write_csv(guard_text(margins.table()), folder / "zones.csv")
        return
    with pyarrow.parquet.ParquetWriter(folder / "flows.parquet", matrix.schema) as writer:
        for batch in flows:
            writer.write_batch(batch)
    pyarrow.parquet.write_table(margins.table(), folder / "zones.parquet")
