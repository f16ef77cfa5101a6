"""Values that everybody knows to be empty, and values that hardly anybody has: what a cube may rely on, from files."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from engine.same import messy
from engine.test_duckdb import in_duckdb
from odkanon import Rule
from odkanon.attributes.spec import parse_attributes
from odkanon.methods.method_registry import anonymize
from odkanon.read.input_spec import InputSpec
from odkanon.read.od_table import spec_to_matrix


def write(path: Path, trips: Sequence[tuple[str, ...]], *names: str) -> Path:
    lines = [",".join(("origin", "destination", *names)), *(",".join(trip) for trip in trips)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def places(folder: Path) -> Path:
    """Two towns of three places each."""
    listed = [f"{town}{at},{town}" for town in "ab" for at in (1, 2, 3)]
    (folder / "places.csv").write_text("\n".join(["place,town", *listed]) + "\n", encoding="utf-8")
    return folder / "places.csv"


def publish(trips: Path, release: Path, *options: str, code: int = 0) -> str:
    release.parent.mkdir(exist_ok=True)
    lookup = places(release.parent)
    protect = [] if "--protect" in options else ["--protect", "participants"]
    command = [
        "anonymize",
        str(trips),
        "--hierarchy",
        str(lookup),
        "--method",
        "cascade",
        "-o",
        str(release),
        "--force",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "odkanon", *command, *protect, *options], capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr + done.stdout
    return done.stderr + done.stdout


def rows(release: Path, *names: str) -> Counter[tuple[str, ...]]:
    found: Counter[tuple[str, ...]] = Counter()
    for row in csv.DictReader((release / "classes.csv").read_text(encoding="utf-8").splitlines()):
        found[tuple(row[name] for name in ("origin", "destination", *names))] += int(row["trips"])
    return found


def contents(release: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in release.iterdir()}


def test_the_open_end_bands_carry_nothing(tmp_path: Path) -> None:
    """Everybody asked is an adult: of 27 trips of three bands, two of nine each would be known to have all of them.

    A reader who knows that "under 16" is empty sees a row of 18 or more of any age as nine of each of two bands.
    """
    ages = [20] * 9 + [50] * 9 + [90] * 9
    trips = [("a1", "b1", str(age)) for age in ages] + [("b2", "b3", str(age)) for age in (20, 50) for _ in range(15)]
    publish(
        write(tmp_path / "trips.csv", trips, "age"),
        tmp_path / "r" / "release",
        "--by",
        "age",
        "--age-bands",
        "16,40,65",
    )
    found = rows(tmp_path / "r" / "release", "age")
    assert found["b2", "b3", "16-39"] == 15
    assert not any(
        trips for (origin, _, age), trips in found.items() if origin == "a1" and age not in ("16-39", "40-64")
    )


@pytest.mark.parametrize(
    "without", ["Wednesday+Thursday+Friday+weekend", "Wednesday + Thursday + Friday+Saturday+Sunday"]
)
def test_values_that_the_user_names_carry_nothing(tmp_path: Path, without: str) -> None:
    """Nine trips on a Monday and nine on a Tuesday: a reader who rules the other days out sees nine of each."""
    trips = [("a1", "b1", f"2024-03-0{4 + at} 08:00") for at in range(2) for _ in range(9)]
    trips += [("b2", "b3", f"2024-03-0{4 + at} 09:00") for at in range(2) for _ in range(12)]
    file = write(tmp_path / "trips.csv", trips, "start_time")
    publish(file, tmp_path / "all" / "release", "--by", "weekday")
    publish(file, tmp_path / "some" / "release", "--by", f"weekday without {without}")
    assert rows(tmp_path / "all" / "release", "weekday")["a", "b", "working days"] == 18
    some = rows(tmp_path / "some" / "release", "weekday")
    assert some["b2", "b3", "Monday"] == 12
    assert not any(origin.startswith("a") for origin, _, _ in some)


def test_a_value_that_is_named_must_be_one(tmp_path: Path) -> None:
    file = write(tmp_path / "trips.csv", [("a1", "b1", "2024-03-04 08:00")] * 20, "start_time")
    text = publish(file, tmp_path / "r" / "release", "--by", "weekday without Sonntag", code=2)
    assert "Sonntag" in text
    assert "Sunday" in text


@pytest.mark.parametrize(
    ("rare", "engine"),
    [
        (["ferry"], "memory"),
        (["ferry"] * 4 + ["horse"] * 5, "memory"),
        (["ferry"] * 9, "duckdb"),
        pytest.param(["ski"] * 8, "memory", marks=pytest.mark.slow),
        pytest.param(["ferry"], "duckdb", marks=pytest.mark.slow),
    ],
)
def test_one_trip_of_a_rare_value_changes_nothing(tmp_path: Path, rare: list[str], engine: str) -> None:
    """One ferry changed ``at_most_trips`` from 9 to 18 while rows stayed the same."""
    modes = ["car"] * 40 + ["bus"] * 30 + ["walk"] * 20
    trips = [("a1", "b1", mode) for mode in modes] + [("a2", "b2", mode) for mode in modes]
    plain = write(tmp_path / "plain.csv", trips, "mode")
    more = write(tmp_path / "more.csv", [*trips, *(("a3", "b3", mode) for mode in rare)], "mode")
    publish(plain, tmp_path / "plain" / "release", "--by", "mode", "--engine", engine)
    publish(more, tmp_path / "more" / "release", "--by", "mode", "--engine", engine)
    assert contents(tmp_path / "more" / "release") == contents(tmp_path / "plain" / "release")


def test_a_heavy_trip_of_a_rare_value_changes_nothing_either(tmp_path: Path) -> None:
    """A ferry trip with more weight than ten others is one trip: cars and buses alone cannot hold a row of 18.

    The row of all modes from town to town would show the third mode to whoever knows the other two.
    """
    trips = [("a1", "b1", mode, "1") for mode in ("car", "bus") for _ in range(9)]
    trips += [("a2", end, mode, "2") for mode, end in (("car", "b2"), ("bus", "b2"), ("car", "b3")) for _ in range(30)]
    for name in ("", "ferry"):
        file = write(tmp_path / f"{name}.csv", [*trips, ("a3", "b3", name, "40")], "mode", "weight")
        publish(file, tmp_path / f"r{name}" / "release", "--by", "mode", "--protect", "population")
    assert contents(tmp_path / "rferry" / "release") == contents(tmp_path / "r" / "release")


def test_rare_values_are_published_as_other(tmp_path: Path) -> None:
    """Nine by ferry and nine by sledge: no row of either, and one of both as ``other``; the audit counts it again."""
    modes = ["car"] * 40 + ["bus"] * 30 + ["walk"] * 20 + ["ferry"] * 9 + ["sledge"] * 9
    file = write(tmp_path / "trips.csv", [("a1", "b1", mode) for mode in modes], "mode")
    for engine in ("memory", "duckdb"):
        release = tmp_path / engine / "release"
        publish(file, release, "--by", "mode", "--engine", engine)
        assert rows(release, "mode")["a1", "b1", "other"] == 18
        audit = ["audit", str(release), "--trips", str(file), "--hierarchy", str(places(tmp_path))]
        done = subprocess.run([sys.executable, "-m", "odkanon", *audit], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
    assert contents(tmp_path / "memory" / "release") == contents(tmp_path / "duckdb" / "release")


@pytest.mark.parametrize(
    "options", [("--protect", "persons"), ("--protect", "participants", "--protect", "population")]
)
def test_rare_values_are_joined_alike_on_every_engine(tmp_path: Path, options: tuple[str, ...]) -> None:
    """With contributors and weights, which a database keeps in tables of their own."""
    modes = ["car"] * 40 + ["bus"] * 30 + ["walk"] * 25 + ["ferry"] * 7 + ["sledge"] * 6 + ["ski"] * 5
    trips = [(f"a{1 + at % 2}", f"b{1 + at % 3}", mode, f"p{at}", str(1 + at % 4)) for at, mode in enumerate(modes * 2)]
    file = write(tmp_path / "trips.csv", trips, "mode", "person", "weight")
    for engine in ("memory", "duckdb"):
        publish(file, tmp_path / engine / "release", "--by", "mode", "--engine", engine, *options)
    assert contents(tmp_path / "memory" / "release") == contents(tmp_path / "duckdb" / "release")
    assert {mode for _, _, mode in rows(tmp_path / "memory" / "release", "mode")} >= {"car", "bus"}


def test_few_persons_with_a_rare_value_are_other_too(tmp_path: Path) -> None:
    """Forty trips of one person by sledge are no value that a reader may know to occur."""
    people = [("a1", "b1", mode, f"{mode}{at}") for mode in ("car", "bus", "walk") for at in range(30)]
    sledge = [("a1", "b1", "sledge", "one")] * 40
    for name, trips in (("with", [*people, *sledge]), ("without", people)):
        file = write(tmp_path / f"{name}.csv", trips, "mode", "person")
        publish(file, tmp_path / name / "release", "--by", "mode", "--protect", "persons")
        listed = json.loads((tmp_path / name / "release" / "release.json").read_text(encoding="utf-8"))
        assert "sledge" not in json.dumps(listed)
        assert {key: value for key, value in rows(tmp_path / name / "release", "mode").items() if key[2] != "any"} == {
            ("a1", "b1", mode): 30 for mode in ("car", "bus", "walk")
        }


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("weekday without Sunday", {"Sunday"}),
        ("age without under 10+70+", {"under 10", "70+"}),
        ("age without 70+ + 60-69", {"70+", "60-69"}),
        ("hour:0-7,7-9 without 00-07", {"00-07"}),
    ],
)
def test_values_are_named_as_they_are_published(text: str, values: set[str]) -> None:
    (spec,) = parse_attributes([text])
    assert spec.impossible == values
    assert spec.name == text.partition(" ")[0].partition(":")[0]


def test_hours_that_clocks_skip_carry_nothing(tmp_path: Path) -> None:
    """On the last Sunday of March there is no 02:00: nine trips at 01:00 and nine at 03:00 are not shown by a row."""
    day = [("a1", "b1", f"2024-03-31 {hour}:30") for hour in ("01", "03", "04") for _ in range(9)]
    other = [("b2", "b3", f"2024-03-31 {hour}:30") for hour in ("08", "09", "10") for _ in range(30)]
    file = write(tmp_path / "trips.csv", [*day, *other], "start_time")
    publish(file, tmp_path / "r" / "release", "--by", "hour", "--since", "2024-03-31", "--until", "2024-04-01")
    found = rows(tmp_path / "r" / "release", "hour")
    assert found["b2", "b3", "09"] == 30
    # Of the seven hours of the night, three that may hold trips are left, 04 to 06: two of them can be known to.
    assert found["a", "b", "00-07"] == 18


def test_rare_values_are_joined_where_the_pairs_stay_in_a_database(tmp_path: Path) -> None:
    """Coarse leaves too, which are compared with the trips between smaller cells."""
    table, random = messy(500), np.random.default_rng(0)
    modes = [f"rare{random.integers(6)}" if random.random() < 0.03 else mode for mode in table["mode"].to_pylist()]
    at = table.column_names.index("mode")
    parquet.write_table(table.set_column(at, "mode", pa.array(modes)), tmp_path / "trips.parquet")
    attributes, file = parse_attributes(["mode"]), tmp_path / "trips.parquet"
    here = spec_to_matrix(InputSpec(file, resolution=5), attributes=attributes)
    there = in_duckdb(file, fetchable=0, attributes=attributes, resolution=5)
    rule = Rule(trips=5, persons=3)
    one, other = (anonymize(od, rule, method="cascade") for od in (here, there))
    assert one.to_arrow().equals(other.to_arrow())
    assert one.suppressed == other.suppressed
    assert not any(mode.startswith("rare") for mode in one.to_arrow()["mode"].to_pylist())
