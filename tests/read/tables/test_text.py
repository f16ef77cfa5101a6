"""Text files as people have them: every line is counted, and what is not UTF-8 is read as what it is, or refused."""

from __future__ import annotations

import gzip
import io
import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from odkanon import InputSpec, read_trips
from odkanon.engine.dispatch import load
from odkanon.errors import InputError
from odkanon.read.od_table import spec_to_matrix
from odkanon.read.tables import text_files, text_sniffing
from worlds.files import trips_table, trips_text, write

FRENCH = trips_text(sex=("Féminin", "Masculin"))


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-8-sig", "mac_roman", "cp850"])
def test_other_encodings_lose_no_row(tmp_path: Path, encoding: str, caplog: pytest.LogCaptureFixture) -> None:
    """Every second line has a letter that is not ASCII; all women were lost with them."""
    path = write(tmp_path / "t.csv", FRENCH.encode(encoding))
    trips = read_trips(path)
    assert (len(trips), trips.source.rows, trips.source.rejected) == (48, 48, {})
    assert set(trips.table.column("sex").to_pylist()) == {"Féminin", "Masculin"}
    assert load(InputSpec(path), engine="duckdb").summary.trips == 48
    said = "is not UTF-8; it is read as" in caplog.text
    assert said == (encoding not in ("utf-16", "utf-8-sig"))
    assert "p0" not in caplog.text


def test_a_name_with_two_accents_is_not_korean(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write(tmp_path / "t.csv", trips_text(sex=("Frédéric", "Frédéric")).encode("latin-1"))
    assert set(read_trips(path).table.column("sex").to_pylist()) == {"Frédéric"}
    assert "read as cp1252" in caplog.text


def test_two_encodings_in_one_file_are_refused(tmp_path: Path) -> None:
    """Read in either, one of the two lines would be something else, and a person in both of them two."""
    lines = [*FRENCH.encode("latin-1").splitlines(), *FRENCH.encode("utf-8").splitlines()[1:]]
    path = write(tmp_path / "t.csv", b"\n".join(lines) + b"\n")
    with pytest.raises(InputError, match="is in two encodings") as said:
        read_trips(path)
    assert "p0" not in str(said.value)


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_columns_without_a_name_are_no_matter(tmp_path: Path, engine: Any) -> None:
    """The first column that pandas writes is one; it was a traceback."""
    rows = trips_text(sex=("a", "b")).splitlines()
    text = "\n".join(f"{'' if at == 0 else at},{row}," for at, row in enumerate(rows))
    path = write(tmp_path / "t.csv", text.encode())
    assert load(InputSpec(path), engine=engine).summary.trips == 48


def test_gzipped_files_too(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv.gz", gzip.compress(FRENCH.encode("latin-1")))
    assert set(read_trips(path).table.column("sex").to_pylist()) == {"Féminin", "Masculin"}


@pytest.mark.parametrize(
    ("encoding", "letters"),
    [("cp1251", ("Женский", "Мужской")), ("shift_jis", ("女性", "男性")), ("cp1252", ("5 €", "l’été"))],
)
def test_other_alphabets(tmp_path: Path, encoding: str, letters: tuple[str, str]) -> None:
    """Two words may be too little to tell an alphabet by; it can be said."""
    path = write(tmp_path / "t.csv", trips_text(sex=letters).encode(encoding))
    assert len(read_trips(path)) == 48
    assert set(read_trips(path, encoding=encoding).table.column("sex").to_pylist()) == set(letters)


def test_a_declared_encoding_is_believed_or_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write(tmp_path / "t.csv", FRENCH.encode("latin-1"))
    assert "Féminin" in read_trips(path, encoding="latin-1").table.column("sex").to_pylist()
    assert not caplog.text
    with pytest.raises(InputError, match="is not UTF-8 text"):
        read_trips(path, encoding="utf-8")
    with pytest.raises(InputError, match="unknown encoding 'latin-11'"):
        read_trips(path, encoding="latin-11")


def test_a_letter_at_the_border_of_two_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "_CHUNK", 101)
    assert len(read_trips(write(tmp_path / "t.csv", FRENCH))) == 48
    cut = FRENCH.encode()[: -len(FRENCH.splitlines()[-1].encode())] + "é".encode()[:1]
    with pytest.raises(InputError, match="not UTF-8"):
        read_trips(write(tmp_path / "cut.csv", cut), encoding="utf-8")


def test_lines_that_get_lost_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Should the reader ever pass over a line, no release is made."""
    path = write(tmp_path / "t.csv", trips_text())
    reading = InputSpec(path)
    table = reading.open()
    assert table.lines == 48
    shorter = write(tmp_path / "t.csv", trips_text(47))
    assert shorter == path
    with pytest.raises(InputError, match="48 lines below its header, but 47 rows were read"):
        spec_to_matrix(reading, table=table)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False])
def test_lines_are_counted_whatever_they_end_with(tmp_path: Path, end: str, last: bool) -> None:
    content = trips_text(5).replace("\n", end)
    path = write(tmp_path / "t.csv", content if last else content.removesuffix(end))
    assert InputSpec(path).open().lines == 5
    assert len(read_trips(path)) == 5


@given(st.lists(st.sampled_from(["a", "b,c", "\n", "\r\n", "\r", '"', "é"]), max_size=12), st.integers(1, 5))
@example(["a", "\r\n", "b", "\r\n"], 2)
@example(["a", "\r", "\r\n", "b"], 2)
def test_lines_are_counted_in_pieces_as_in_one(parts: list[str], piece: int) -> None:
    """A line end, an empty line or a letter may lie across two pieces."""
    content = "".join(parts).encode()
    every = content.split(b"\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_sniffing, "_PIECE", piece)
        found = text_sniffing.count_lines(io.BytesIO(content))
    assert found == text_sniffing.LineCount(
        below=sum(line not in (b"", b"\r") for line in every[:-1]) + (every[-1] != b"") - 1,
        ends=content.count(b"\n"),
        windows=content.count(b"\r\n"),
        returns=content.count(b"\r") - content.count(b"\r\n"),
        odd=sum(line.count(b'"') % 2 for line in every),
        utf8=True,
    )


def test_a_delimiter_between_quotes_is_part_of_a_name(tmp_path: Path) -> None:
    content = (
        trips_text(6).replace(",", ";").replace("weight", '"weight, as of 2024, in kg, or so, roughly, if at all,"', 1)
    )
    trips = read_trips(write(tmp_path / "t.csv", content))
    assert len(trips) == 6
    assert trips.weight is None


def test_a_declared_delimiter(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", trips_text(6).replace(",", "^"))
    assert len(read_trips(path, delimiter="^")) == 6
    with pytest.raises(InputError, match="delimiter must be one character"):
        InputSpec(path, delimiter=";;")


@pytest.mark.parametrize("name", ["t[12].csv", "t*.csv", "t?.csv"])
def test_names_are_names_not_patterns(tmp_path: Path, name: str) -> None:
    """DuckDB takes ``t[12].csv`` for a pattern, and read t1.csv under the other's digest."""
    write(tmp_path / "t1.csv", trips_text(30))
    path = write(tmp_path / name, trips_text(7))
    assert len(read_trips(path)) == 7
    pyarrow.parquet.write_table(trips_table(30), tmp_path / "t1.parquet")
    pyarrow.parquet.write_table(trips_table(7), parquet := tmp_path / name.replace("csv", "parquet"))
    assert len(read_trips(parquet)) == 7


def test_the_folder_of_a_file_says_nothing_about_it(tmp_path: Path) -> None:
    path = write(tmp_path / "weight=1000" / "t.csv", trips_text(3))
    assert read_trips(path).weight is not None
    pyarrow.parquet.write_table(trips_table(3), parquet := tmp_path / "weight=1000" / "t.parquet")
    for each in (path, parquet):
        trips = read_trips(each)
        assert trips.weight is not None
        assert (trips.weight / trips.scale).tolist() == [10, 11, 12]


def test_a_partition_never_replaces_a_column(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "set"
    write(folder / "weight=1000" / "nothing", "")
    pyarrow.parquet.write_table(trips_table(3), folder / "weight=1000" / "t.parquet")
    with pytest.raises(InputError, match="has a column 'weight', which folder 'weight=1000' would replace"):
        read_trips(folder)
    caplog.set_level(logging.WARNING)
    other = tmp_path / "other"
    write(other / "month=5" / "weight_class=2" / "nothing", "")
    pyarrow.parquet.write_table(pa.table(trips_table(3)), other / "month=5" / "weight_class=2" / "t.parquet")
    assert len(read_trips(other, where="month == 5")) == 3
    assert "read as columns (weight_class=2)" in caplog.text
