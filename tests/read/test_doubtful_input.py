"""What is wrong with an input is said with its number and an example, before anything else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.runner import odkanon, output
from odkanon import InputError, make_survey, read_trips
from odkanon.core.sql import write_csv
from odkanon.estimate.town_names import TOWNS
from odkanon.read.coordinates import warn_of_places
from odkanon.read.tables.filters import FILTERED
from worlds.tries import tries

COORDINATES = ("start_lat", "start_lon", "end_lat", "end_lon")


def survey(rows: int = 2000, **columns: Sequence[object]) -> pa.Table:
    """Return the first trips of the sample, with some columns replaced or added."""
    table = make_survey().slice(0, rows)
    for name, values in columns.items():
        at = table.column_names.index(name) if name in table.column_names else None
        table = table.append_column(name, [values]) if at is None else table.set_column(at, name, [values])
    return table


def moved(table: pa.Table, which: np.ndarray, values: dict[str, np.ndarray]) -> pa.Table:
    """Return a table with other coordinates in some rows."""
    for name, column in values.items():
        old = np.array(table.column(name))
        table = table.set_column(table.column_names.index(name), name, [np.where(which, column, old)])
    return table


def write(table: pa.Table, folder: Path, name: str = "trips.csv") -> Path:
    write_csv(table, folder / name)
    return folder / name


@tries(20)
@given(st.lists(st.sampled_from(["08:00", "12:00", "x", ""]), min_size=5, max_size=30), st.sampled_from(["a", "b"]))
def test_an_unreadable_time_is_no_answer_of_the_filter(times: list[str], wanted: str) -> None:
    days = ["ab"[at % 2] for at in range(len(times))]
    start = [f"2024-03-01 {each}" if each not in ("x", "") else each or None for each in times]
    table = survey(len(times), start_time=start, day=days)
    unread = sum(time == "x" and day == wanted for time, day in zip(times, days, strict=True))
    early = sum(time == "08:00" and day == wanted for time, day in zip(times, days, strict=True))
    where = [f'day == "{wanted}"', "hour < 10"]
    if not early:
        with pytest.raises(InputError, match=f"{unread} whose start_time cannot" if unread else "matches none"):
            read_trips(table, where=where)
        return
    trips = read_trips(table, where=where)
    rejected = {reason: part.rows for reason, part in trips.source.rejected.items()}
    assert len(trips) == early
    assert rejected.get("whose start_time cannot be read", 0) == unread
    assert rejected.get(FILTERED, 0) == len(times) - early - unread


def test_many_rejected_rows_are_in_the_first_line_and_most_are_refused(tmp_path: Path) -> None:
    lat = np.array(survey().column("start_lat")).astype(object)
    few, many = lat.copy(), lat.copy()
    few[:150], many[:1200] = "unknown", "unknown"
    file = write(survey(start_lat=few.astype(str).tolist()), tmp_path)
    done = odkanon("anonymize", file, "-o", "release", "--resolution", "7", cwd=tmp_path)
    assert done.returncode == 0
    assert output(done).startswith("Read 2,000 rows, 8% of which cannot be used: ")
    assert " for instance line 2: start_lat = 'unknown', " in output(done)
    file = write(survey(start_lat=many.astype(str).tolist()), tmp_path)
    for folder, accepted in (("refused", False), ("accepted", True)):
        done = odkanon("anonymize", file, "-o", folder, *["--accept-rejected"] * accepted, cwd=tmp_path)
        assert done.returncode == (0 if accepted else 2)
        assert (tmp_path / folder).exists() == accepted
        if not accepted:
            message = done.stderr.splitlines()[-1]
            rows = f"1,200 of 2,000 rows of {file} cannot be used (1,200 with coordinates that are not numbers)"
            assert message.startswith(f"error: {rows}; for instance in line 2: start_lat = 'unknown', ")
            assert message.endswith("Correct them, or accept that they are lost (option --accept-rejected)")
    again = odkanon("rerun", "accepted.recipe.json", "-o", "again", cwd=tmp_path)
    assert again.returncode == 0, again.stderr


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_the_share_of_lost_rows_is_that_of_rows_that_were_wanted(engine: str, tmp_path: Path) -> None:
    """A share in the first line is one of all rows, and one that is refused leaves out what a filter does."""
    weight = ["n/a" if at % 3 == 0 else "2.5" for at in range(2000)]
    file = write(survey(weight=weight, day=["ab"[at % 4 == 1] for at in range(2000)]), tmp_path)
    for wanted in "ab":
        options = ("--where", f'day == "{wanted}"', "--resolution", "7", "--engine", engine, "--k", "2")
        done = odkanon("anonymize", file, "-o", wanted, *options, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        rows = 1500 if wanted == "a" else 500
        unusable = sum(each == "n/a" and (at % 4 == 1) == (wanted == "b") for at, each in enumerate(weight))
        share = f"{unusable / 2000:.0%} of which cannot be used"
        assert done.stdout.startswith(f"Read 2,000 rows, {share}: {rows - unusable:,} trips")
        assert "for instance line 2: weight = 'n/a'" in done.stdout or wanted == "b"
    weight = ["n/a" if at % 4 == 1 and at % 3 else "2.5" for at in range(2000)]
    file = write(survey(weight=weight, day=["ab"[at % 4 == 1] for at in range(2000)]), tmp_path)
    done = odkanon("anonymize", file, "-o", "r", "--where", 'day == "b"', "--engine", engine, cwd=tmp_path)
    assert done.returncode == 2
    assert "334 of 500 rows of " in done.stderr
    assert "that no filter or area leaves out cannot be used (334 with a weight that is not a finite" in done.stderr
    assert "for instance in line 3: weight = 'n/a'" in done.stderr


def test_a_filter_does_not_count_as_rejection(tmp_path: Path) -> None:
    file = write(survey(), tmp_path)
    done = odkanon("anonymize", file, "-o", "r", "--resolution", "7", "--where", 'sex == "Woman"', cwd=tmp_path)
    assert done.returncode == 0
    assert "cannot be used" not in done.stdout


def test_places_that_are_probably_wrong_are_named(caplog: pytest.LogCaptureFixture) -> None:
    table = survey()
    ends = [np.array(table.column(name)) for name in COORDINATES]
    tenth = np.arange(len(ends[0])) % 10 == 3
    warn_of_places(ends)
    assert not caplog.messages
    swapped = [np.where(tenth, ends[1], ends[0]), np.where(tenth, ends[0], ends[1]), *ends[2:]]
    warn_of_places(swapped)
    assert len(caplog.messages) == 1
    assert "200 of 2,000 trips start or end more than 122 km away from the middle of the others" in caplog.messages[0]
    assert f"at start_lat = {ends[1][3]:.5f}, start_lon = {ends[0][3]:.5f}; with latitude" in caplog.messages[0]
    caplog.clear()
    lyon = [*ends[:2], np.where(tenth, ends[2] - 3.1, ends[2]), np.where(tenth, ends[3] + 2.5, ends[3])]
    warn_of_places(lyon)
    assert "200 of 2,000 trips start or end more than 122 km away" in caplog.messages[0]
    assert "at end_lat = " in caplog.messages[0]
    assert "if they do not belong there, leave them out" in caplog.messages[0]
    caplog.clear()
    caplog.clear()
    few = np.arange(len(ends[0])) % 400 == 3
    warn_of_places([np.where(few, ends[1], ends[0]), np.where(few, ends[0], ends[1]), *ends[2:]], first=True)
    assert "5 of the first 2,000 trips start or end" in caplog.messages[0]
    assert "with latitude and longitude swapped they are among them" in caplog.messages[0]
    caplog.clear()
    half = np.arange(len(ends[0])) % 2 == 0
    warn_of_places([np.where(half, end - (8.4, 6)[at % 2], end) for at, end in enumerate(ends)])
    assert "1,000 of 2,000 trips start or end more than" in caplog.messages[0]
    assert "at start_lat = " in caplog.messages[0]
    caplog.clear()
    warn_of_places([ends[0] - 82.3, ends[1] - 79, ends[2] - 82.3, ends[3] - 79])  # Santiago in the next zone of UTM
    assert "most trips are in the sea" in caplog.messages[0]


@tries(30)
@given(st.integers(0, 10**6), st.floats(-60, 60), st.floats(-170, 170), st.sampled_from([0.01, 0.1, 1.0, 4.0]))
def test_a_few_trips_that_are_far_away_are_nothing_to_warn_of(seed: int, lat: float, lon: float, spread: float) -> None:
    """Neither are cities of any size, nor a country."""
    random = np.random.default_rng(seed)
    ends = [random.normal(middle, spread, 600) for middle in (lat, lon, lat, lon)]
    for side in ends:
        side[:2] += 30
    records: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("odkanon.read.coordinates.log.warning", lambda text, *rest, **more: records.append(text))
        warn_of_places(ends)
    assert not [text for text in records if "away from the middle" in text]


def test_degrees_are_not_taken_for_metres(tmp_path: Path) -> None:
    file = write(survey(), tmp_path)
    for engine in ("memory", "duckdb"):
        done = odkanon("anonymize", file, "-o", "r", "--crs", "EPSG:32631", "--engine", engine, cwd=tmp_path)
        assert done.returncode == 2
        assert "the coordinates are degrees already (start_lat = 48." in done.stderr
        assert "leave out the reference system (option --crs)" in done.stderr
        assert not (tmp_path / "r").exists()


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_another_reference_system_is_noticed(engine: str, tmp_path: Path) -> None:
    """Numbers of the next UTM zone look alike, so the place is named; others leave the area of their system."""
    pyproj = pytest.importorskip("pyproj")
    table = survey()
    to_zone_31 = pyproj.Transformer.from_crs(4326, 32631, always_xy=True).transform
    for end in ("start", "end"):
        x, y = to_zone_31(np.array(table.column(f"{end}_lon")), np.array(table.column(f"{end}_lat")))
        table = moved(table, np.ones(len(table), dtype=bool), {f"{end}_lat": y, f"{end}_lon": x})
    file = write(table, tmp_path)
    for crs, place, others in (("32631", "Paris", "-3.6 8.3"), ("32632", "Karlsruhe", "2.3 14.3")):
        done = odkanon("anonymize", file, "-o", crs, "--crs", f"EPSG:{crs}", "--engine", engine, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        text = " ".join(done.stdout.split())
        assert (f"near {place} (" in text) == TOWNS.exists()
        west, east = others.split()
        assert re.search(rf"numbers are at longitude {west}\d and {east}\d; is .* EPSG:{crs} the right one", text)
        assert "outside the area" not in done.stderr
    done = odkanon("anonymize", file, "-o", "r", "--crs", "EPSG:2154", "--engine", engine, cwd=tmp_path)
    assert "most trips start outside the area that EPSG:2154 is made for" in done.stderr
    assert re.search(r"start_lat = 54\d{5}\.\d, start_lon = 45\d{4}\.\d, which is latitude 35", done.stderr)


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_columns_that_others_are_computed_from_are_used(tmp_path: Path, engine: str) -> None:
    people = pa.table({"home": ["a", "b"] * 30, "colour": ["red"] * 60})
    file = write(people, tmp_path)
    (tmp_path / "zones.csv").write_text("town,region\na,r\nb,r\n")
    place = ("--place", "home", "--hierarchy", "zones.csv", "--engine", engine)
    done = odkanon("anonymize", file, "-o", "r", *place, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Not used: colour." in done.stdout


def test_columns_that_nothing_refers_to_are_named(tmp_path: Path) -> None:
    table = survey().drop_columns(["weight", "person"] if "person" in survey().column_names else ["weight"])
    count = len(table)
    table = table.append_column("FactorViaje", [np.ones(count)]).append_column("IdPersona", [np.arange(count) // 3])
    file = write(table, tmp_path)
    done = odkanon("anonymize", file, "-o", "r", "--resolution", "7", "--where", 'sex == "Woman"', cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    unused = next(line for line in done.stdout.splitlines() if line.startswith("Not used: "))
    assert "FactorViaje" in unused
    assert "IdPersona" in unused
    assert "sex" not in unused
    assert "start_lat" not in unused
    assert "column 'FactorViaje' looks like the weight of a trip and is not used" in done.stdout
    assert "--column person=IdPersona" in done.stdout
    named = ["--column", "person=IdPersona", "--column", "weight=FactorViaje"]
    done = odkanon("anonymize", file, "-o", "named", "--resolution", "7", *named, cwd=tmp_path)
    assert "looks like" not in done.stdout


@pytest.mark.parametrize("unit", [1, 10**3, 10**6, 10**9])
@pytest.mark.parametrize("as_text", [False, True])
def test_times_since_1970_are_read(unit: int, as_text: bool, tmp_path: Path) -> None:
    seconds = [1_710_000_000 + 60 * at for at in range(200)]
    numbers = [second * unit for second in seconds]
    table = survey(200, start_time=list(map(str, numbers)) if as_text else numbers)
    trips = read_trips(table, where="hour < 17")
    expected = sum((second // 3600) % 24 < 17 for second in seconds)
    assert 0 < expected < 200
    assert len(trips) == expected
    local = read_trips(table, where="hour < 15", timezone="America/Santiago")
    assert len(local) == sum((second // 3600 - 3) % 24 < 15 for second in seconds)


def test_dates_in_digits_are_not_times_since_1970() -> None:
    table = survey(100, start_time=[202401310800 + at % 50 for at in range(100)])
    with pytest.raises(InputError, match="whose start_time cannot be read"):
        read_trips(table, where="hour < 17")


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_a_filter_that_matches_nothing_names_the_values(engine: str, tmp_path: Path) -> None:
    file = write(survey(), tmp_path)
    for where, message in (
        ('sex == "woman"', "sex is never 'woman' (did you mean 'Woman'?), but Man, Woman"),
        ('mode in ["coche", "tren"]', "mode is never 'coche', but bike, car, motorcycle, transit, walk"),
        ("age > 500", "check its values"),
    ):
        done = odkanon("anonymize", file, "-o", "r", "--where", where, "--engine", engine, cwd=tmp_path)
        assert done.returncode == 2
        assert f"the filter matches none of the 2,000 rows of {file}; {message}" in done.stderr


def test_a_value_that_a_cube_does_not_have_is_an_error(tmp_path: Path) -> None:
    file = write(survey(), tmp_path)
    assert odkanon("anonymize", file, "-o", "cube", "--by", "sex", "--resolution", "7", cwd=tmp_path).returncode == 0
    done = odkanon("export", "cube", "--where", 'sex == "woman"', "-o", "view", cwd=tmp_path)
    assert done.returncode == 2
    assert "unknown value of sex 'woman' (did you mean 'Woman'?); choose from " in done.stderr
    assert not (tmp_path / "view").exists()


def test_a_code_of_two_zones_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "zones.csv").write_text("zone,district,city\na,d1,all\nb,d1,all\nall,all,all\n")
    (tmp_path / "od.csv").write_text("origin,destination,trips\na,b,20\nb,all,30\n")
    done = odkanon("anonymize", "od.csv", "-o", "r", "--hierarchy", "zones.csv", cwd=tmp_path)
    assert done.returncode == 2
    assert "the code 'all' names both a zone and a larger city (rows 1, 2); make codes unique" in done.stderr


@pytest.mark.parametrize("larger", ["{zone}", "d{district}"])
def test_a_zone_may_repeat_on_every_level(larger: str, tmp_path: Path) -> None:
    """Then it is one zone in every row, whichever level the cascade lists it on."""
    zones = [f"z{at}" for at in range(12)]
    parents = [larger.format(zone=zone, district=at // 4) for at, zone in enumerate(zones)]
    tops = ["all" if larger == "{zone}" else parent for parent in parents]
    lines = [",".join(each) for each in zip(zones, parents, tops, strict=True)]
    (tmp_path / "zones.csv").write_text("\n".join(["zone,district,city", *lines]) + "\n")
    trips = np.random.default_rng(3).integers(0, 25, 144)
    flows = [f"{zones[at // 12]},{zones[at % 12]},{count}" for at, count in enumerate(trips.tolist())]
    (tmp_path / "od.csv").write_text("\n".join(["origin,destination,trips", *flows]) + "\n")
    reading = ("--hierarchy", "zones.csv")
    done = odkanon("anonymize", "od.csv", "-o", "r", "--method", "cascade", *reading, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = (tmp_path / "r" / "classes.csv").read_text().splitlines()[1:]
    pairs = [tuple(row.split(",")[:2]) for row in rows]
    assert len(set(pairs)) == len(pairs)
    assert any(code[0] != "z" for pair in pairs for code in pair)  # rows of larger zones, too
    assert odkanon("audit", "r", "--trips", "od.csv", *reading, cwd=tmp_path).returncode == 0
    sheet = odkanon("evidence", "r", "--trips", "od.csv", *reading, "-o", "e", "--seconds", "2", cwd=tmp_path)
    assert sheet.returncode == 0, sheet.stderr
    assert f"compared {len(rows)} of {len(rows)} rows" in sheet.stdout
