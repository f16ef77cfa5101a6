"""CSV on Spark is understood as in memory: every line counts, whatever it holds and wherever it was split."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyproj")

import pyarrow as pa

from engine.layouts import WRITTEN, with_times
from engine.needs import ON_SPARK, on_spark, with_settings
from engine.same import check_same, said
from odkanon import InputError, Rule
from odkanon.attributes.spec import parse_attributes
from odkanon.engine.spark.backend import task_connection
from odkanon.engine.spark.csv_lines import Lines, _scan
from odkanon.read.input_spec import InputSpec
from odkanon.read.od_table import spec_to_matrix
from odkanon.read.tables.column_names import COORDINATES
from odkanon.read.tables.text_files import TextFormat
from worlds.files import trips_text

pytestmark = ON_SPARK

WAY = [{"method": "cascade", "coarsest": 5}]
ODD = {
    "start_lat": ["48.8d", "0x1p5", "48,8", " 48.81 ", "", "4.88e1"],
    "weight": ["3f", "1_000", "", "inf", "12"],
    "start_time": ["2022", "2022-11", "2022-11-14T25:00:00Z", "", "14.11.2022", "2022/11/14 08:00:00Z"],
    "person": ["01", "1.0", "1", "  ", "NULL", "G1", "g1", "anna@x.org", "ANNA@X.ORG"],
}
"""Texts that databases do not read alike."""


@pytest.fixture
def split(session: Any) -> Iterator[Any]:
    """Return the session, in which small files are split among tasks."""
    settings = {"spark.sql.files.maxPartitionBytes": "20000", "spark.sql.files.openCostInBytes": "0"}
    with with_settings(session, settings):
        yield session


def rows_of(table: pa.Table, *, odd: bool = True) -> list[list[str]]:
    """Return a table as texts, some of them odd; each row of the odd ones comes twice."""
    columns = {
        name: ["" if value is None else str(value) for value in table[name].to_pylist()] for name in table.column_names
    }
    for at, (name, texts) in enumerate(ODD.items() if odd else ()):
        columns[name][40 * at : 40 * at + len(texts)] = texts
    rows = [list(row) for row in zip(*columns.values(), strict=True)]
    return [list(columns), *rows, *rows[:200]]


def written(rows: list[list[str]], delimiter: str = ",", end: str = "\n") -> str:
    return "".join(delimiter.join(row) + end for row in rows)


@pytest.mark.slow
def test_a_split_file_by_hour_on_a_time_zone(split: Any, tmp_path: Path) -> None:
    """Short and long lines, empty ones, quotes and odd texts: the same rows, reasons and bytes as in memory."""
    rows = rows_of(with_times(WRITTEN["all with offsets"], 400))
    rows[7:7] = [["too", "short"], [*rows[1], "too", "long"], rows[0], []]
    rows[300] = [f'"{value}"' for value in rows[300]]
    path = tmp_path / "trips.csv"
    path.write_text(written(rows, end="\r\n"), newline="")
    options: dict[str, Any] = {"resolution": 7, "timezone": "America/Santiago"}
    attributes = parse_attributes(["hour:0-4,4-8,8-24"])
    reference = spec_to_matrix(InputSpec(path, **options), attributes=attributes)
    assert "lines with a wrong number of columns or not in UTF-8" in dict(reference.source.rejected)
    check_same(reference, on_spark(split, path, attributes=attributes, **options), [Rule(trips=4)], WAY)
    elsewhere = spec_to_matrix(InputSpec(path, resolution=7), attributes=attributes)
    assert said(elsewhere, Rule(trips=4), WAY[0]) != said(reference, Rule(trips=4), WAY[0])


@pytest.mark.slow
def test_semicolons_decimal_commas_and_local_times_in_latin_1(split: Any, tmp_path: Path) -> None:
    table = with_times(lambda _, text: f"{text[8:10]}/{text[5:7]}/{text[:4]} {text[11:16]}", 300)
    names, *rows = rows_of(table, odd=False)
    numbers = [names.index(name) for name in (*COORDINATES, "weight")]
    for row in rows:
        for at in numbers:
            row[at] = row[at].replace(".", ",")
    rows = [[*names, "größe"], *([*row, "Straße" if at % 2 else "Älmhult"] for at, row in enumerate(rows))]
    path = tmp_path / "trips.csv"
    path.write_bytes(written(rows, ";").encode("latin-1"))
    check_same(spec_to_matrix(InputSpec(path, resolution=7)), on_spark(split, path, resolution=7), [Rule(trips=4)], WAY)
    declared: dict[str, Any] = {"encoding": "latin-1", "decimal": ",", "where": 'größe == "Straße" and hour < 18'}
    check_same(spec_to_matrix(InputSpec(path, **declared)), on_spark(split, path, **declared), [])


@pytest.mark.slow
def test_several_files_with_a_header_each(split: Any, tmp_path: Path) -> None:
    rows = rows_of(with_times(WRITTEN["none"], 100), odd=False)
    (tmp_path / "a.csv").write_text(written(rows[:60]))
    (tmp_path / "b.csv").write_text("\ufeff" + written([rows[0], *rows[60:]]))
    pattern = f"{tmp_path}/*.csv"
    check_same(spec_to_matrix(InputSpec(pattern)), on_spark(split, pattern), [])
    (tmp_path / "b.csv").write_text(written([rows[0][::-1], *rows[60:]]))
    with pytest.raises(InputError, match="different headers"):
        on_spark(split, pattern)


REFUSED: dict[str, tuple[bytes, dict[str, Any], str]] = {
    "utf-16": ("a,b\n1,2\n".encode("utf-16"), {}, "utf-16, which Spark cannot split into lines"),
    "said to be utf-16": (b"a,b\n", {"encoding": "utf-16-le"}, "utf-16-le, which Spark cannot split into lines"),
    "a value on two lines": (b'a,b\n1,"two\nlines"\n', {}, "a quote that does not end on its line"),
    "a return in a line": (b"a,b\n1,two\rlines\n", {}, "a carriage return in the middle of a line"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_read_line_by_line_is_for_duckdb(session: Any, case: str, tmp_path: Path) -> None:
    content, options, message = REFUSED[case]
    path = tmp_path / "trips.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"{message}.* use DuckDB"):
        on_spark(session, path, **options)


def test_a_quote_that_is_left_open_loses_no_line_in_silence(session: Any, tmp_path: Path) -> None:
    """Its line has an even number of quotes, so that only the count of lines tells."""
    first, *lines = trips_text(20).splitlines()
    notes = {7: '"open', 12: '"fine"'}
    text = "\n".join([f"{first},note", *(f"{line},{notes.get(at, 'x')}" for at, line in enumerate(lines))])
    text = text.replace("p7,Man", 'p7,M"n')
    (path := tmp_path / "trips.csv").write_text(text)
    with pytest.raises(InputError, match="has 20 lines below its header, but 15 rows were read"):
        on_spark(session, path)


def batch(lines: list[bytes], block: list[int], opening: list[bool]) -> pa.RecordBatch:
    return pa.record_batch({"line": pa.array(lines, pa.binary()), "block": block, "opening": opening})


def test_only_the_first_line_of_a_file_is_a_header() -> None:
    """A header that comes again is a row, in its file's first part and elsewhere."""
    batches = [
        batch([b"a,b", b"1,2"], [7, 7], [True, True]),
        batch([b"a,b", b"a,b", b"3,4"], [7, 8, 8], [True, False, False]),
        batch([], [], []),
        batch([b"a,b", b"5,6"], [9, 9], [True, True]),
    ]
    seen = next(iter(_scan(iter(batches)))).to_pylist()
    assert [each["line"] for each in seen if each["what"] == "header"] == [b"a,b", b"a,b"]
    assert [each["number"] for each in seen if each["what"] == "lines"] == [5]
    connection = task_connection()
    lines = Lines(b"a,b", TextFormat("utf-8", ","), "it", 5)
    keeper = lines(connection, iter(batches))
    assert connection.sql("SELECT a FROM source").fetchall() == [(each,) for each in ("1", "a", "a", "3", "5")]
    del keeper
