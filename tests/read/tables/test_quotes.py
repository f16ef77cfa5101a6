"""Quotes that are left open, and lines that end in several ways: no line is lost or taken for another in silence."""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odkanon import InputSpec, read_trips
from odkanon.engine.dispatch import load
from odkanon.errors import InputError
from odkanon.read.tables.open_table import open_table
from odkanon.read.zone_hierarchy import read_hierarchy
from worlds.files import trips_text, write

READERS: dict[str, Callable[[Path], int]] = {
    "memory": lambda path: len(read_trips(path)),
    "duckdb": lambda path: load(InputSpec(path), engine="duckdb").summary.trips,
}


def with_note(changes: dict[int, str], count: int = 20, end: str = "\n") -> str:
    """Return trips with one more column, and with something in it in some lines; the header is line 1."""
    first, *lines = trips_text(count).splitlines()
    notes = {line - 2: text for line, text in changes.items()}
    return end.join([f"{first},note", *(f"{line},{notes.get(at, 'x')}" for at, line in enumerate(lines))]) + end


SWALLOWED = {
    "never closed": with_note({7: '"open'}),
    "closed where another opens": with_note({7: '"open', 12: '"fine"'}),
    "closed at a line's end": with_note({7: '"open', 12: '12"'})
    .replace("x\n", "x,\n")
    .replace("note\n", "note,more\n"),
    "even, and yet open": with_note({7: '"open'}).replace("p5,Man", 'p5,M"n'),
    "even, and closed later": with_note({7: '"open', 12: '"fine"'}).replace("p5,Man", 'p5,M"n'),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@pytest.mark.parametrize("case", SWALLOWED)
def test_an_open_quote_is_refused_with_its_line(tmp_path: Path, case: str, read: Callable[[Path], int]) -> None:
    """Each of these was counted as one bad line, and the lines after it as none."""
    path = write(tmp_path / "t.csv", SWALLOWED[case])
    with pytest.raises(InputError, match=r"line 7 of t.csv has an unclosed quote.* close it, or double it"):
        read(path)


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_an_open_quote_in_the_last_line_takes_no_other(tmp_path: Path, read: Callable[[Path], int]) -> None:
    assert read(write(tmp_path / "t.csv", with_note({21: '"open'}))) == 19


def test_lines_that_the_reader_passes_over_are_missed(tmp_path: Path) -> None:
    """Of an open quote in a long file, DuckDB gives up after two megabytes, and goes on somewhere else."""
    count = 60_000
    lines = [f"a{at},b{at},{'c' * 60}" for at in range(count)]
    lines[1_000] = '"' + lines[1_000]
    path = write(tmp_path / "t.csv", "\n".join(["o,d,x", *lines]))
    with pytest.raises(InputError, match=r"60,000 lines below its header, but|line 1,002 .* has an unclosed quote"):
        open_table(path)


def test_hierarchies_too(tmp_path: Path) -> None:
    path = write(tmp_path / "z.csv", 'leaf,town\na,x\nb,"x\nc,y\nd,y\n')
    with pytest.raises(InputError, match=r"line 3 of z.csv has an unclosed quote"):
        read_hierarchy(path)


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_values_on_several_lines_are_read_and_told(
    tmp_path: Path, read: Callable[[Path], int], caplog: pytest.LogCaptureFixture
) -> None:
    text = (
        with_note({5: '"two\nlines"', 9: '"and\n\n\r\nmore"', 12: '"\n"'}).replace("note\n", '"my\nnote"\n', 1) + "\n\n"
    )
    assert read(write(tmp_path / "t.csv", text)) == 20
    assert "t.csv has 3 rows with values that span several lines, the first of them row 4" in caplog.text


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_quotes_inside_of_values_are_letters(
    tmp_path: Path, read: Callable[[Path], int], caplog: pytest.LogCaptureFixture
) -> None:
    text = with_note({5: '12" wide', 6: '"12"" wide"', 9: '3" x 4"', 10: '"all"'})
    assert read(write(tmp_path / "t.csv", text)) == 20
    assert not caplog.text
    assert InputSpec(tmp_path / "t.csv").open().lines == 20


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@pytest.mark.parametrize("packed", [False, True])
def test_line_ends_may_be_mixed(tmp_path: Path, read: Callable[[Path], int], packed: bool) -> None:
    """DuckDB refused them in words of its own."""
    first, *lines = trips_text(20).splitlines()
    text = "".join([f"{first}\n", *(line + ("\n" if at % 3 else "\r\n") for at, line in enumerate(lines))]).encode()
    path = write(tmp_path / "t.csv", gzip.compress(text) if packed else text)
    assert read(path) == 20
    assert InputSpec(path).open().lines == 20


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_line_ends_of_old_macs(tmp_path: Path, encoding: str) -> None:
    path = write(tmp_path / "t.csv", trips_text(20).replace("\n", "\r").encode(encoding))
    assert len(read_trips(path)) == 20
    assert InputSpec(path).open().lines == 20


def test_spreadsheets_break_lines_inside_of_cells_in_another_way(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", with_note({5: '"two\nlines"', 6: '"two\rlines"'}, end="\r\n"))
    assert len(read_trips(path)) == 20


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_return_in_the_middle_of_a_line_is_refused(tmp_path: Path, end: str) -> None:
    path = write(tmp_path / "t.csv", with_note({5: "two\rlines"}, end=end))
    with pytest.raises(InputError, match="stray quote or carriage return, so save it again"):
        read_trips(path)


@given(st.lists(st.sampled_from(['"', '""', "a", ",", "\n", '"b"', '"c\nd"', "\n\n"]), max_size=14))
def test_every_line_is_counted_or_the_file_refused(parts: list[str]) -> None:
    """Whatever quotes do, the lines of all rows read and rejected are those of the file."""
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder) / "t.csv", "x,y\n1,2\n" + "".join(parts))
        lines = sum(line != "" for line in path.read_text().split("\n")[1:])
        try:
            table = open_table(path)
            values = table.fetch({"x": "coalesce(x, '')", "y": "coalesce(y, '')"})
            rejected = table.unreadable_lines()
        except InputError:
            return
        texts = [value for column in values.columns for value in column.to_pylist()]
        inside = sum(sum(part != "" for part in f".{text}.".split("\n")) - 1 for text in texts)
        # Where rows are not as many as lines tell, a file is refused as soon as its account is made.
        assert table.lines != len(values) + rejected or len(values) + rejected + inside == lines
