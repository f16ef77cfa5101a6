"""Files that are not what they seem: each gives a clear message or a counted rejection, and never a wrong release."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.runner import odkanon, output, told
from odkanon.read.trips import read_trips

HEADER = "person,start_time,end_time,start_lat,start_lon,end_lat,end_lon,weight"
ROW = "p{n},2024-01-01 08:{n:02d}:00,2024-01-01 09:00:00,48.8566,2.3522,48.8600,2.3600,10.5"
LINES = [HEADER, *(ROW.format(n=n) for n in range(12))]


def write(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "trips.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize(
    "text",
    [
        b"\xef\xbb\xbf" + "\n".join(LINES).encode(),
        "\r\n".join(LINES).encode() + b"\r\n",
        "\n".join(LINES).replace(",", ";").encode(),
        "\n".join(LINES).replace(",", "\t").encode(),
        b"\xef\xbb\xbf" + "\r\n".join(LINES).replace(",", ";").encode(),
    ],
    ids=["byte order mark", "Windows line ends", "semicolons", "tabs", "all of Excel"],
)
def test_other_dialects_read_the_same(tmp_path: Path, text: bytes) -> None:
    plain, other = read_trips(write(tmp_path, "\n".join(LINES))), read_trips(write(tmp_path, text))
    assert other.table.equals(plain.table)
    assert not other.source.rejected


def test_a_header_with_another_delimiter_than_the_rows(tmp_path: Path) -> None:
    path = write(tmp_path, "\n".join([HEADER.replace(",", ";"), *LINES[1:]]))
    done = odkanon("anonymize", path, "-o", tmp_path / "out")
    assert done.returncode == 2
    assert "12 lines with a wrong number of columns" in output(done)


def test_a_delimiter_that_nobody_uses(tmp_path: Path) -> None:
    done = odkanon("anonymize", write(tmp_path, "\n".join(LINES).replace(",", "!")), "-o", tmp_path / "out")
    assert done.returncode == 2
    assert "no column called start_lat" in output(done)


def test_decimal_commas(tmp_path: Path) -> None:
    lines = [line.replace(",", ";") for line in LINES]
    lines[1:4] = [line.replace(".", ",") for line in lines[1:4]]
    trips = read_trips(write(tmp_path, "\n".join(lines)))
    ((reason, part),) = trips.source.rejected.items()
    assert "decimal comma" in reason
    assert part.rows == 3
    every = read_trips(write(tmp_path, "\n".join([lines[0], *(line.replace(".", ",") for line in lines[1:])])))
    assert every.table.equals(read_trips(write(tmp_path, "\n".join(LINES))).table)


def test_times_with_offsets_keep_the_clock_on_the_wall(tmp_path: Path) -> None:
    lines = [line.replace(":00,", ":00+01:00,") for line in LINES]
    lines[1] = lines[1].replace("+01:00", "-05:00")
    trips = read_trips(write(tmp_path, "\n".join(lines)))
    plain = read_trips(write(tmp_path, "\n".join(LINES)))
    assert trips.table.equals(plain.table)


def test_times_of_which_only_some_have_an_offset(tmp_path: Path) -> None:
    lines = LINES.copy()
    lines[1] = lines[1].replace("08:00:00", "08:00:00Z")
    done = odkanon("anonymize", write(tmp_path, "\n".join(lines)), "-o", tmp_path / "out")
    assert done.returncode == 2
    told = output(done)
    assert "with a UTC offset (1 rows) and without one (11 rows) in column 'start_time'" in told


def test_a_lookup_with_two_parents(tmp_path: Path) -> None:
    trips = write(tmp_path, "origin,destination\n" + "a,b\n" * 12)
    lookup = tmp_path / "zones.csv"
    lookup.write_text("block,commune,department\na,x,1\nb,x,2\n")
    done = odkanon("anonymize", trips, "-o", tmp_path / "out", "--hierarchy", lookup)
    assert done.returncode == 2
    assert "commune 'x' is in more than one department ('1', '2'), rows 1, 2" in output(done)


def test_what_is_turned_away_stands_in_the_recipe(tmp_path: Path) -> None:
    lines = [*LINES, ROW.format(n=13).replace("48.8566", "48,8566"), "p1,too,short"]
    done = odkanon("anonymize", write(tmp_path, "\n".join(lines)), "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    account = told(tmp_path / "out")["input"]
    assert account["rows"] == 14
    assert {reason: part["rows"] for reason, part in account["rejected"].items()} == {
        "lines with a wrong number of columns or not in UTF-8": 2
    }
