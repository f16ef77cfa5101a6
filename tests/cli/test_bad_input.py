"""Bad input through the real command: one clear message and exit 2, or a counted rejection; never a traceback."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from cli.runner import odkanon, output, told

HEADER = "person,start_time,end_time,start_lat,start_lon,end_lat,end_lon,weight"
GOOD = "p{n},2024-01-01 08:00:00,2024-01-01 08:30:00,48.8566,2.3522,48.8600,2.3600,10.5"
ROWS = "\n".join(GOOD.format(n=n) for n in range(12))
FROM, TO = "8a1fb4640017fff", "8a1fb466ed0ffff"
OD = f"origin,destination,trips,weight\n{FROM},{TO},30,300\n"


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def fails(tmp_path: Path, source: object, *options: object) -> str:
    done = odkanon("anonymize", source, "-o", tmp_path / "out", *options)
    assert done.returncode == 2, done
    assert not (tmp_path / "out").exists()
    assert len(done.stderr.strip()) > 10
    return output(done)


def test_missing_file(tmp_path: Path) -> None:
    assert "there is no file" in fails(tmp_path, tmp_path / "nothing.csv")


def test_directory(tmp_path: Path) -> None:
    assert "is a folder without Parquet files" in fails(tmp_path, tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (HEADER.encode() + b"\n", "no usable row (there are no rows below the header)"),
        (bytes(range(256)) * 8, "binary file"),
        (b"PAR1" + b"x" * 100, "truncated"),
        (gzip.compress(HEADER.encode() * 50)[:40], "cannot be"),
        (b"caf\xe9,b\n1,2\n", "not UTF-8"),
        (b"a,a\n1,2\n", "has column 'a' twice"),
        (b"a,b,A\n1,2,3\n", "has column 'A' twice, as 'a'"),
    ],
    ids=[
        "empty",
        "header only",
        "binary",
        "broken parquet",
        "truncated gzip",
        "latin-1",
        "repeated column",
        "column in two cases",
    ],
)
def test_unreadable_files(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "input.csv"
    path.write_bytes(content)
    assert message in fails(tmp_path, path)


def test_truncated_parquet(tmp_path: Path) -> None:
    path = tmp_path / "trips.parquet"
    pyarrow.parquet.write_table(pa.table({"start_lat": list(range(9999))}), path)
    path.write_bytes(path.read_bytes()[:-500])
    assert "truncated" in fails(tmp_path, path)


def test_wrong_columns_suggest_the_nearest(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", f"{HEADER.replace('start_lat', 'strat_lat')}\n{ROWS}\n")
    message = fails(tmp_path, path)
    assert "no column for start_lat (did you mean 'strat_lat'?)" in message
    assert "--column start_lat=" in message


def test_ambiguous_columns(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", f"{HEADER.replace('person', 'person_id')},user_id\n{ROWS}\n")
    assert "person could be 'person_id' or 'user_id'" in fails(tmp_path, path)


def test_trips_and_zones_in_one_table(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", f"{HEADER},origin,destination\n{GOOD.format(n=1)},{FROM},{TO}\n")
    assert "--read-as" in fails(tmp_path, path)


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("start_lat", "95", "with a latitude out of range"),
        ("end_lon", "181", "with coordinates out of range"),
        ("start_lat", "NaN", "with NaN or infinite coordinates"),
        ("end_lat", "inf", "with NaN or infinite coordinates"),
        ("start_lon", "", "with missing coordinates"),
        ("start_lon", "east", "with coordinates that are not numbers"),
        ("start_lon", '"2,35"', "with coordinates that are not numbers"),
        ("weight", "-3", "with a weight of zero or less"),
        ("weight", "0", "with a weight of zero or less"),
        ("weight", "nan", "with a weight that is not a finite number"),
        ("weight", "heavy", "with a weight that is not a finite number"),
        ("weight", "", "without a weight"),
        ("start_time", "yesterday", "whose start_time cannot be read"),
        ("end_time", "2024-13-01 08:00", "whose end_time cannot be read"),
        (None, f"{GOOD.format(n=1)},extra", "lines with a wrong number of columns"),
        (None, GOOD.format(n=1), "that are exact copies of another row of the same person"),
    ],
)
def test_bad_rows_are_counted(tmp_path: Path, column: str | None, value: str, reason: str) -> None:
    cells = GOOD.format(n=99).split(",")
    if column:
        cells[HEADER.split(",").index(column)] = value
    bad = ",".join(cells) if column else value
    path = write(tmp_path / "t.csv", f"{HEADER}\n{ROWS}\n{bad}\n")
    done = odkanon("anonymize", path, "-o", tmp_path / "out")
    assert done.returncode == 0, done
    account = told(tmp_path / "out")
    (got,) = account["input"]["rejected"]
    assert reason in got
    assert account["input"]["rejected"][got]["rows"] == 1
    assert f"rejected 1 row {got}" in output(done)
    assert account["input"]["rows"] == account["input"]["trips"] == 13
    assert account["published"]["trips"] == 12


def test_only_bad_rows(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", f"{HEADER}\n{GOOD.format(n=1).replace('48.8566', '95')}\n")
    assert "no usable row (1 with a latitude out of range" in fails(tmp_path, path)


def test_swapped_coordinates_are_warned_about(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", f"{HEADER}\n{ROWS}\n")
    swap = ("start_lat=start_lon", "start_lon=start_lat", "end_lat=end_lon", "end_lon=end_lat")
    done = odkanon("anonymize", path, "-o", tmp_path / "out", *(word for pair in swap for word in ("--column", pair)))
    assert done.returncode == 0
    assert "swap lat and lon?" in done.stderr


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (f"8a1fb4640017ff,{TO},3,30", "no H3 cell"),
        (f"hello,{TO},3,30", "no H3 cell"),
        (f"{FROM},,3,30", "without origin or destination"),
        (f"{FROM},{FROM},2.5,30", "not a whole number"),
        (f"{FROM},{FROM},1e19,30", "more trips than can be counted"),
        (f"{FROM},{FROM},0,30", "with zero or fewer trips"),
        (f"{FROM},{FROM},-4,30", "with zero or fewer trips"),
        (f"{FROM},{FROM},many,30", "not a number"),
    ],
)
def test_bad_rows_of_an_od_table_are_counted(tmp_path: Path, row: str, reason: str) -> None:
    done = odkanon("anonymize", write(tmp_path / "od.csv", OD + row + "\n"), "-o", tmp_path / "out")
    assert done.returncode == 0, done
    account = told(tmp_path / "out")
    (got,) = account["input"]["rejected"]
    assert reason in got
    parts = [account["published"], account["suppressed"], account["input"]["rejected"][got]]
    assert sum(part["trips"] for part in parts) == account["input"]["trips"]
    assert sum(part["weight"] for part in parts) == account["input"]["weight"]


def test_mixed_resolutions(tmp_path: Path) -> None:
    path = write(tmp_path / "od.csv", f"{OD}861fb4667ffffff,{TO},5,50\n")
    assert "mixes cells of several resolutions" in fails(tmp_path, path)
    assert odkanon("anonymize", path, "-o", tmp_path / "out", "--resolution", "6").returncode == 0


def test_duplicate_pairs(tmp_path: Path) -> None:
    path = write(tmp_path / "od.csv", f"{OD}{FROM},{TO},5,50\n")
    assert f"more than once (first: {FROM} -> {TO}, 2 times)" in fails(tmp_path, path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--k", "0"], "k must be a whole number of at least 1"),
        (["--k", "-1"], "k must be a whole number of at least 1"),
        (["--k", "ten"], "--k"),
        (["--budget", "1.5"], "from 0 to below 1"),
        (["--budget", "-0.1"], "from 0 to below 1"),
        (["--budget", "nan"], "from 0 to below 1"),
        (["--resolution", "16"], "H3 has 0 (coarsest) to 15"),
        (["--resolution", "12"], "coarser than the requested 12"),
        (["--max-levels", "2"], "--max-levels does not apply without --suppress before"),
        (["--engine", "duckdb", "--spark-master", "local"], "a Spark master does not apply with the engine 'duckdb'"),
        (["--engine", "memory", "--memory-limit", "1GB"], "a memory limit applies only to DuckDB"),
        (["--max-levels", "-1", "--suppress", "before"], "levels must be a whole number of at least 0"),
        (["--protect", "persons"], "no person column"),
        (["--min-trips", "5", "--protect", "population"], "--protect does not apply with --min-trips"),
        (["--min-weight", "inf"], "positive number"),
        (["--method", "odkannon"], "did you mean 'odkanon'?"),
        (["--column", "person"], "OURS=THEIRS"),
        (["--column", "trips=tripz"], "no column 'tripz' (did you mean 'trips'?)"),
        (["--where", "import os"], "is not understood"),
        (["--where", "mode == 3"], "no column 'mode' to filter by"),
        (["--within", "atlantis"], "neither a file nor an H3 cell"),
        (["--within", "851fa433fffffff"], "no trip has both ends inside"),
        (["--nonsense"], "No such option"),
    ],
    ids=lambda value: "_".join(value) if isinstance(value, list) else "",
)
def test_bad_options(tmp_path: Path, options: list[str], message: str) -> None:
    assert message in fails(tmp_path, write(tmp_path / "od.csv", OD), *options)


def test_no_weight_no_population(tmp_path: Path) -> None:
    path = write(tmp_path / "od.csv", f"origin,destination,trips\n{FROM},{TO},30\n")
    assert "weight" in fails(tmp_path, path, "--protect", "population")


def test_existing_output(tmp_path: Path) -> None:
    path = write(tmp_path / "od.csv", OD)
    assert odkanon("anonymize", path, "-o", tmp_path / "out").returncode == 0
    again = odkanon("anonymize", path, "-o", tmp_path / "out")
    assert again.returncode == 2
    assert "--force" in again.stderr
    assert odkanon("anonymize", path, "-o", tmp_path / "out", "--force", "--k", "5").returncode == 0
    assert json.loads((tmp_path / "out/release.json").read_text())["rule"] == {"k": 5, "trips": 5}


def test_force_never_replaces_what_is_not_a_release(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    precious = write(tmp_path / "out/thesis.txt", "precious")
    done = odkanon("anonymize", write(tmp_path / "od.csv", OD), "-o", tmp_path / "out", "--force")
    assert done.returncode == 2
    assert "not a release" in done.stderr
    assert precious.read_text() == "precious"


def test_unreachable_k_is_refused(tmp_path: Path) -> None:
    done = odkanon("anonymize", write(tmp_path / "od.csv", OD), "-o", tmp_path / "out", "--k", "31")
    assert done.returncode == 1
    assert "nothing can be published" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["od.csv"]


def test_one_trip(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", f"{HEADER}\n{GOOD.format(n=1)}\n")
    assert odkanon("anonymize", path, "-o", tmp_path / "out").returncode == 1
    assert odkanon("anonymize", path, "-o", tmp_path / "out", "--k", "1").returncode == 0


@pytest.mark.parametrize(
    "command",
    [
        ["anonymize", "od.csv", "-o", "out/more"],
        ["compare", "od.csv", "-o", "out/tables"],
        ["compare", "od.csv", "-o", "out/cost.png"],
        ["trips", "od.csv", "-o", "out/trips.csv"],
        ["trips", ".", "--layout=netmob25", "-o", "out/trips.csv"],
        ["audit", "out", "-o", "out/audit.json"],
    ],
    ids=" ".join,
)
def test_nothing_private_is_written_into_a_release(tmp_path: Path, command: list[str]) -> None:
    write(tmp_path / "od.csv", OD)
    (tmp_path / "out").mkdir()
    for name, text in (("release.json", "{}"), ("zones.geojson", "{}")):
        write(tmp_path / "out" / name, text)
    is_path = [word == "out" or "." in word or "/" in word for word in command]
    done = odkanon(*(tmp_path / word if path else word for word, path in zip(command, is_path, strict=True)))
    assert done.returncode == 2
    assert "lies in the release" in done.stderr
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"release.json", "zones.geojson"}
