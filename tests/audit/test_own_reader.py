"""The audit reads trips by itself: an error in the reader of the program shows, whatever the format of the file."""

from __future__ import annotations

import csv
import json
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from cli.runner import odkanon
from odkanon import Rule, audit_releases
from odkanon.audit import Report
from odkanon.methods.method_registry import anonymize
from odkanon.read.input_spec import InputSpec
from odkanon.read.od_table import spec_to_matrix
from odkanon.read.tables.table import SourceTable
from test_layers import SOURCE, imports_of
from worlds.people import findings

Row = dict[str, Any]

MAY_IMPORT = {
    "core": "arrays, SQL quoting, JSON, paths",
    "errors": "what is raised",
    "model/measures": "the names of measures",
    "model/axes": "the words of tables by one place",
    "zoning/cells": "points to H3 cells, which the h3 library decides",
    "estimate/flat_matrix": "the public calculation that the matrix of a folder is compared with",
    "release_format/folder": "the rows and zones for that calculation",
    "zoning/hierarchy": "the lookup table that the auditor gives",
    "zoning/spherical_geometry": "the size of a study area, to refuse long lists of cells",
    "read/area": "the study area that the auditor gives",
    "read/input_spec": "the options with which the auditor describes a file, and formats that only the program reads",
    "read/polygon_zoning": "the polygons that the auditor gives; which point lies in which, the audit decides",
    "read/tables/column_names": "which column is which",
    "read/tables/filters": "the name of one reason for rejection",
    "release_format/names": "what the files of a release are called, and the digest of a file",
    "release_format/recipe": "where the recipe of a folder is",
    "methods/method_registry": "which methods have overlapping zones, by name",
}
"""What the audit may take from the rest of the program, and why that does not hide an error of it."""


def test_the_audit_imports_little_of_what_it_checks() -> None:
    used = {
        each.target
        for path in (SOURCE / "audit").rglob("*.py")
        for each in imports_of(path)
        if not each.target.startswith("audit")
    }
    assert {name if name in MAY_IMPORT else name.split("/")[0] for name in used} == set(MAY_IMPORT)


def trips() -> list[Row]:
    """Twelve trips between each of two pairs of places."""
    ends = [((48.85, 2.25), (48.95, 2.45)), ((48.8, 2.4), (48.85, 2.25))]
    return [
        {
            "person": f"p{at}",
            "start_time": f"2024-01-{13 + at % 2} 08:{at:02}:00",
            "start_lat": start[0],
            "start_lon": start[1],
            "end_lat": end[0],
            "end_lon": end[1],
            "weight": 1.5,
        }
        for at in range(12)
        for start, end in ends
    ]


def write(rows: Sequence[Row], path: Path, delimiter: str = ",") -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return path


def plain(folder: Path) -> Path:
    return write(trips(), folder / "trips.csv")


def commas(folder: Path) -> Path:
    rows = [{name: str(value).replace(".", ",") for name, value in row.items()} for row in trips()]
    return write(rows, folder / "trips.csv", ";")


def local_times(folder: Path) -> Path:
    def local(text: str) -> str:
        return f"{text[8:10]}/{text[5:7]}/{text[:4]} {text[11:16]}"

    return write([{**row, "start_time": local(row["start_time"])} for row in trips()], folder / "trips.csv")


def parquet(folder: Path) -> Path:
    pyarrow.parquet.write_table(pa.Table.from_pylist(trips()), folder / "trips.parquet")
    return folder / "trips.parquet"


def utf16(folder: Path) -> Path:
    path = plain(folder)
    path.write_bytes(path.read_text().encode("utf-16"))
    return path


def archive(folder: Path) -> Path:
    with zipfile.ZipFile(folder / "trips.zip", "w") as packed:
        packed.write(commas(folder), "inside/trips.csv")
    return folder / "trips.zip"


def workbook(folder: Path) -> Path:
    """A workbook of shared and inline texts, numbers, and days since 1900 in a style that is a date."""
    rows = trips()
    texts = list(rows[0])
    main_ns = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'

    def cell(name: str, value: Any) -> str:
        if name == "start_time":
            day, clock = value.split()
            hours = sum(float(part) / 60**at for at, part in enumerate(clock.split(":")))
            return f'<c s="1"><v>{45_291 + int(day[-2:]) + hours / 24!r}</v></c>'
        return f"<c><v>{value}</v></c>" if name != "person" else f'<c t="inlineStr"><is><t>{value}</t></is></c>'

    head = "".join(f'<c t="s"><v>{at}</v></c>' for at in range(len(texts)))
    body = "".join(f"<row>{''.join(cell(*each) for each in row.items())}</row>" for row in rows)
    office, package = (
        f"http://schemas.openxmlformats.org/{name}/2006/relationships" for name in ("officeDocument", "package")
    )

    def relation(kind: str, target: str) -> str:
        one = f'<Relationship Id="r1" Type="{office}/{kind}" Target="{target}"/>'
        return f'<Relationships xmlns="{package}">{one}</Relationships>'

    dates = '<numFmts><numFmt numFmtId="164" formatCode="dd/mm/yyyy hh:mm"/></numFmts>'
    styles = '<cellXfs><xf numFmtId="0"/><xf numFmtId="164"/></cellXfs>'
    sheet = '<sheets><sheet name="trips" sheetId="1" r:id="r1"/></sheets>'
    parts = {
        "_rels/.rels": relation("officeDocument", "xl/workbook.xml"),
        "xl/_rels/workbook.xml.rels": relation("worksheet", "worksheets/sheet1.xml"),
        "xl/workbook.xml": f'<workbook {main_ns} xmlns:r="{office}">{sheet}</workbook>',
        "xl/sharedStrings.xml": f"<sst {main_ns}>{''.join(f'<si><t>{text}</t></si>' for text in texts)}</sst>",
        "xl/styles.xml": f"<styleSheet {main_ns}>{dates}{styles}</styleSheet>",
        "xl/worksheets/sheet1.xml": f"<worksheet {main_ns}><sheetData><row>{head}</row>{body}</sheetData></worksheet>",
    }
    with zipfile.ZipFile(folder / "trips.xlsx", "w") as packed:
        for name, text in parts.items():
            packed.writestr(name, text)
    return folder / "trips.xlsx"


FORMATS = [plain, commas, local_times, parquet, utf16, archive, workbook]


def release(spec: InputSpec, folder: Path) -> Path:
    return anonymize(spec_to_matrix(spec), Rule(trips=10)).save(folder)


def audited(folder: Path, spec: InputSpec) -> Report:
    return audit_releases([folder], trips=spec)


def half_a_degree_off(monkeypatch: pytest.MonkeyPatch) -> None:
    right = InputSpec.standardize

    def wrong(self: InputSpec, table: SourceTable) -> SourceTable:
        table = right(self, table)
        moved = "CAST(start_lat AS DOUBLE) + CASE WHEN person < 'p5' THEN 0.5 ELSE 0 END AS start_lat"
        return replace(table, scan=f"(SELECT * REPLACE ({moved}) FROM {table.scan})")

    monkeypatch.setattr(InputSpec, "standardize", wrong)


@pytest.mark.parametrize("make", FORMATS)
def test_a_release_of_these_trips_is_clean(make: Callable[[Path], Path], tmp_path: Path) -> None:
    spec = InputSpec(make(tmp_path), resolution=6)
    report = audited(release(spec, tmp_path / "release"), spec)
    assert findings(report) == []
    assert report.reading is None


@pytest.mark.parametrize("make", FORMATS)
def test_a_reader_that_is_wrong_is_found(
    make: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = InputSpec(make(tmp_path), resolution=6)
    half_a_degree_off(monkeypatch)
    report = audited(release(spec, tmp_path / "release"), spec)
    assert {"recount", "zones"} & {each.check for each in findings(report)}


@pytest.mark.parametrize("given", ["several", "pattern"])
def test_several_files_are_read_together(given: str, tmp_path: Path) -> None:
    rows = trips()
    files = [write(rows[at::2], tmp_path / f"month{at}.csv") for at in range(2)]
    spec = InputSpec(files if given == "several" else str(tmp_path / "month*.csv"), resolution=6)
    report = audited(release(spec, tmp_path / "release"), spec)
    assert findings(report) == []
    assert [each for each in report.findings if "another file" in each.message] == []


def test_the_first_line_says_what_only_the_program_reads(tmp_path: Path) -> None:
    path = tmp_path / "trips.json"
    path.write_text("\n".join(map(json.dumps, trips())))
    folder = release(InputSpec(path, resolution=6), tmp_path / "release")
    done = odkanon("audit", folder, "--trips", path, "--resolution", 6)
    assert done.returncode == 0
    assert "trips.json was read by the program's own reader" in done.stdout.splitlines()[0]
