"""A plain table for planners: zone by zone, by attribute, as a spreadsheet or as matrices, estimated within bounds."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odkanon.attributes.hierarchies import UNLISTED
from odkanon.core.atomic_write import whole_file
from odkanon.core.parsing import format_count
from odkanon.errors import InputError
from odkanon.estimate.flat_matrix import matrix_table
from odkanon.estimate.flow_estimates import can_estimate, read_flows
from odkanon.estimate.questions import read_areas
from odkanon.publish.export.omx import write_matrices, zone_lookup
from odkanon.release_format.folder import SavedRelease
from odkanon.release_format.targets import check_files

MOST_COMBINATIONS = 500
"""Combinations of values above which a table is refused."""
MOST_ROWS = 1_048_575
"""The rows of a sheet, its header excepted."""
NUMBERS = ("estimate", "low", "high", "interval_low", "interval_high")
_NAMESPACE = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_MEANING = {
    "estimate": "trips, estimated from all published rows",
    "low": "certainly at least so many",
    "high": "certainly at most so many; empty where the release sets no bound",
    "interval_low": "in four of five cases at least so many",
    "interval_high": "in four of five cases at most so many",
}


@dataclass(frozen=True, eq=False)
class PlainTable:
    """The estimated flows of a release between places, for every combination of its attributes.

    Attributes
    ----------
    release : SavedRelease
        The release.
    places : list of str
        The codes of the places.
    axes : list of str
        The attributes.
    table : pyarrow.Table
        ``origin, destination``, the attributes, and `NUMBERS`.
    """

    release: SavedRelease
    places: list[str]
    axes: list[str]
    table: pa.Table

    @property
    def exact(self) -> float:
        """The share of the trips in the table that are certain to be where it has them."""
        trips = pc.sum(self.table["estimate"]).as_py() or 0.0
        return float((pc.sum(self.table["low"]).as_py() or 0) / trips) if trips else 0.0

    def wide(self, number: str) -> pa.Table:
        """Return a row for each pair of places, and a column for each combination of attributes."""
        names = [" ".join(each) for each in zip(*(self.table[axis].to_pylist() for axis in self.axes), strict=True)]
        ends = self.table.select(["origin", "destination"])
        if not self.axes:
            return ends.append_column(number, self.table[number])
        pairs = ends.group_by(["origin", "destination"], use_threads=False).aggregate([])
        pairs = pairs.sort_by([("origin", "ascending"), ("destination", "ascending")])
        key = {pair: at for at, pair in enumerate(zip(*(column.to_pylist() for column in pairs.columns), strict=True))}
        at = np.array([key[pair] for pair in zip(*(column.to_pylist() for column in ends.columns), strict=True)])
        columns, name = sorted(set(names)), np.array(names)
        values = self.table[number].to_numpy(zero_copy_only=False).astype(np.float64)
        for each in columns:
            # What is too small to be listed has no trips for certain, but it has an upper bound of its own.
            column, own = np.full(len(pairs), np.nan if number == "high" else 0.0), name == each
            column[at[own]] = values[own]
            pairs = pairs.append_column(each, pa.array(column, from_pandas=True))
        return pairs


def read_plain_table(saved: SavedRelease, onto: Any = None, code: str | None = None) -> PlainTable:
    """Return the flows of a release between places, estimated for every combination of its attributes.

    Parameters
    ----------
    saved : SavedRelease
        The release.
    onto, code
        The places: an H3 resolution, or a file of polygons with the column of their codes.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import odkanon
    >>> release = odkanon.anonymize(odkanon.make_survey().slice(0, 4000), by="mode", resolution=7)
    >>> with TemporaryDirectory() as folder:
    ...     table = read_plain_table(odkanon.open_release(release.save(Path(folder) / "release")), onto=5)
    >>> table.table.column_names[:5]
    ['origin', 'destination', 'mode', 'estimate', 'low']
    """
    if not can_estimate(saved):
        raise InputError(f"the flows of {saved.name} cannot be estimated: its zones have no outlines")
    values = {
        axis["name"]: sorted({str(each) for each in axis["levels"][0]} - {UNLISTED})
        for axis in saved.manifest.get("axes", [])
    }
    combinations = list(product(*values.values()))
    if len(combinations) > MOST_COMBINATIONS:
        raise InputError(
            f"{' x '.join(values)} has {len(combinations):,} combinations, more than {MOST_COMBINATIONS} in one table; "
            "publish by fewer or broader values, or export with a filter",
            option="where",
        )
    reader = read_flows(saved)
    areas, parts = read_areas(onto, code, reader), []
    for combination in combinations:
        where = dict(zip(values, combination, strict=True)) or None
        found = matrix_table(reader.between(areas, areas, where=where)).select(["origin", "destination", *NUMBERS])
        for at, (axis, value) in enumerate(zip(values, combination, strict=True)):
            found = found.add_column(2 + at, axis, pa.array([value] * len(found), pa.string()))
        parts.append(found)
    table = pa.concat_tables(parts)
    order = ["origin", "destination", *values]
    return PlainTable(saved, areas.ids, list(values), table.sort_by([(name, "ascending") for name in order]))


def write_workbook(found: PlainTable, output: Path, *, wide: bool = False, force: bool = False) -> None:
    """Write a table as a workbook: a sheet that explains it, and the flows; with ``wide``, a column a combination."""
    check_files(output, force=force)
    sheets = {"Flows": found.table}
    if wide:
        sheets = {name.capitalize(): found.wide(name) for name in NUMBERS[:3]}
    for name, table in sheets.items():
        if len(table) > MOST_ROWS:
            raise InputError(
                f"{len(table):,} rows do not fit into a sheet ({name}), which has {MOST_ROWS:,}; use larger places",
                option="onto",
            )
    about = pa.table({"what": [key for key, _ in _about(found, wide)], "": [text for _, text in _about(found, wide)]})
    with whole_file(output) as partial, zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as book:
        for name, text in _parts(["About", *sheets]):
            _add(book, name, [text])
        for number, table in enumerate((about, *sheets.values()), 1):
            _add(book, f"xl/worksheets/sheet{number}.xml", _sheet(table))


def write_matrices_by_attribute(found: PlainTable, output: Path, *, force: bool = False) -> None:
    """Write a table as OMX: the matrix ``trips``, and ``trips mode=car hour=07-09`` for each combination."""
    check_files(output, force=force)
    number = {place: at for at, place in enumerate(found.places)}
    ends = [np.array([number[place] for place in found.table[end].to_pylist()]) for end in ("origin", "destination")]
    trips = found.table["estimate"].to_numpy()
    cores = {"trips": trips}
    labels = [np.array(found.table[axis].to_pylist(), dtype=np.str_) for axis in found.axes]
    for values in sorted(set(zip(*(column.tolist() for column in labels), strict=True))):
        name = " ".join(f"{axis}={value}".replace("/", "%2F") for axis, value in zip(found.axes, values, strict=True))
        own = np.all([column == value for column, value in zip(labels, values, strict=True)], axis=0)
        cores[f"trips {name}"] = np.where(own, trips, 0)
    with whole_file(output) as partial:
        write_matrices(Path(partial), len(found.places), (ends[0], ends[1]), cores, zone_lookup(found.places))


def _about(found: PlainTable, wide: bool) -> Iterator[tuple[str, str]]:
    """Yield the lines of the sheet that explains a table."""
    yield "table", f"Trips of {found.release.name} between {format_count(len(found.places), 'places', 'place')}"
    yield "promise", str(found.release.manifest.get("statement", ""))
    yield "how", "Worked out from the published rows and zones alone; anybody can repeat it from the folder."
    yield "certain", f"{found.exact:.1%} of the trips in the table are certain to be where it has them."
    yield "not listed", "Pairs with an estimate below 0.05 trips. Add estimates up; bounds cannot simply be added up."
    for name in NUMBERS[: 3 if wide else None]:
        yield (f"sheet {name.capitalize()}" if wide else f"column {name}"), _MEANING[name]
    for axis in found.axes:
        yield (
            f"column {axis}" if not wide else f"columns by {axis}",
            "as published; rows that do not state it are shared out",
        )


def _add(book: zipfile.ZipFile, name: str, lines: Sequence[str] | Iterator[str]) -> None:
    """Write a part of a workbook, with a fixed date, for the same bytes in every run."""
    info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    info.compress_type = zipfile.ZIP_DEFLATED
    with book.open(info, mode="w") as file:
        for line in lines:
            file.write(line.encode("utf-8"))


def _sheet(table: pa.Table) -> Iterator[str]:
    """Yield the XML of a sheet with a fixed header."""
    yield f'<?xml version="1.0" encoding="UTF-8"?><worksheet xmlns="{_NAMESPACE}">'
    yield '<sheetViews><sheetView workbookViewId="0">'
    yield '<pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews>'
    yield f'<cols><col min="1" max="{len(table.column_names)}" width="18" customWidth="1"/></cols><sheetData><row>'
    yield "".join(f'<c t="inlineStr"><is><t>{escape(name)}</t></is></c>' for name in table.column_names) + "</row>"
    for batch in table.to_batches(max_chunksize=1 << 16):
        cells = [_cells(batch.column(at)) for at in range(batch.num_columns)]
        yield "".join(pc.binary_join_element_wise("<row>", *cells, "</row>", "").to_pylist())
    yield "</sheetData></worksheet>"


def _cells(column: pa.Array) -> pa.Array:
    """Return the cells of a column as XML; a text is never taken for a formula."""
    if not pa.types.is_string(column.type):
        text = pc.fill_null(pc.cast(column, pa.string()), "")
        return pc.binary_join_element_wise("<c><v>", text, "</v></c>", "")
    for sign, escaped in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        column = pc.replace_substring(column, sign, escaped)
    column = pc.replace_substring_regex(column, r"[\x00-\x08\x0b\x0c\x0e-\x1f]", " ")
    return pc.binary_join_element_wise('<c t="inlineStr"><is><t>', pc.fill_null(column, ""), "</t></is></c>", "")


def _parts(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the names and contents of the parts of a workbook that list its sheets."""
    sheets = range(1, len(names) + 1)
    main = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    overrides = "".join(
        f'<Override PartName="/xl/worksheets/sheet{at}.xml" ContentType="{main}.worksheet+xml"/>' for at in sheets
    )
    yield (
        "[Content_Types].xml",
        (
            f'<?xml version="1.0" encoding="UTF-8"?><Types xmlns="{_PACKAGE}/content-types">'
            '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Override PartName="/xl/workbook.xml" ContentType="{main}.sheet.main+xml"/>{overrides}</Types>'
        ),
    )
    yield "_rels/.rels", _related([(f"{_RELATIONS}/officeDocument", "xl/workbook.xml")])
    listed = "".join(
        f'<sheet name="{escape(name)}" sheetId="{at}" r:id="r{at}"/>' for at, name in zip(sheets, names, strict=True)
    )
    yield (
        "xl/workbook.xml",
        (
            f'<?xml version="1.0" encoding="UTF-8"?><workbook xmlns="{_NAMESPACE}" xmlns:r="{_RELATIONS}">'
            f"<sheets>{listed}</sheets></workbook>"
        ),
    )
    yield (
        "xl/_rels/workbook.xml.rels",
        _related([(f"{_RELATIONS}/worksheet", f"worksheets/sheet{at}.xml") for at in sheets]),
    )


def _related(targets: Sequence[tuple[str, str]]) -> str:
    lines = "".join(
        f'<Relationship Id="r{at}" Type="{kind}" Target="{target}"/>' for at, (kind, target) in enumerate(targets, 1)
    )
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><Relationships xmlns="{_PACKAGE}/relationships">{lines}</Relationships>'
    )
