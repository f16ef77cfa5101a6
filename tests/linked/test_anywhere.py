"""Segments of zone codes, of counted tables, and on an engine that keeps trips where they are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st
from pyarrow import csv

from cli.runner import odkanon, output
from odkanon import InputError, InputSpec, RefusedError, Rule
from odkanon.attributes.spec import parse_attributes, segment_attributes
from odkanon.audit import audit_releases
from odkanon.engine.dispatch import EngineName, load
from odkanon.linked import LinkedReleases, make_dimensions, release_linked
from odkanon.methods.method_registry import anonymize
from odkanon.publish.export.formats import export_release
from odkanon.publish.report.pictures import write_picture
from odkanon.publish.report.report_page import render
from odkanon.publish.save import save_linked
from odkanon.release_format.folder import open_linked
from worlds.people import Trip, crowd, findings, places, populations, small_rules, table_of, write
from worlds.tries import tries

TOWNS = dict(zip("abcd", (range(4), range(4, 7), range(7, 10), [10]), strict=True))
COORDINATES = [f"{end}_{degrees}" for end in ("start", "end") for degrees in ("lat", "lon")]


def write_zones(trips: Sequence[Trip], folder: Path, **more: pa.Array) -> dict[str, Any]:
    """Write trips between zones with codes, and the table of the zones; return how to read them."""
    table = table_of(trips).drop_columns(COORDINATES)
    for end in ("origin", "destination"):
        table = table.append_column(end, pa.array([f"zone {getattr(trip, end)}" for trip in trips]))
    for name, column in more.items():
        table = table.append_column(name, column)
    csv.write_csv(table, folder / "trips.csv")
    towns = [(f"zone {number}", town, "ab" if town in "ab" else "cd") for town, own in TOWNS.items() for number in own]
    assert len(towns) == len(places())
    columns = dict(zip(("zone", "town", "county"), map(list, zip(*towns, strict=True)), strict=True))
    csv.write_csv(pa.table(columns), folder / "zones.csv")
    return {"source": folder / "trips.csv", "hierarchy": folder / "zones.csv"}


def released(
    reading: InputSpec,
    folder: Path,
    rule: Rule,
    specs: Sequence[str],
    *,
    engine: EngineName = "memory",
    budget: float = 0.3,
) -> LinkedReleases:
    od = load(reading, engine=engine, attributes=segment_attributes(specs)).in_memory()
    made = release_linked(od, rule, make_dimensions(od, specs), segment_budget=budget)
    save_linked(made, folder)
    return made


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


specs = st.sampled_from([["sex"], ["sex", "age"], ["hour:6-9,9-19,19-6", "sex"], ["sex", "sex*age"]])


@tries(2, phases=(Phase.explicit, Phase.generate))
@given(populations(), small_rules(), specs, st.booleans())
def test_segments_are_the_same_bytes_wherever_trips_are(
    trips: list[Trip], rule: Rule, segments: list[str], zoned: bool
) -> None:
    with TemporaryDirectory() as name:
        here = Path(name)
        how = write_zones(trips, here) if zoned else {"source": write(trips, here / "trips.parquet")}
        made = []
        for engine in ("memory", "duckdb"):
            try:
                released(InputSpec(**how), here / engine, rule, segments, engine=engine)
                made.append(contents(here / engine))
            except RefusedError as refusal:
                made.append({"refusal": str(refusal).encode()})
        assert made[0] == made[1]


@tries(2, phases=(Phase.explicit, Phase.generate))
@given(populations(), small_rules(), specs, st.sampled_from([0.0, 0.3, 0.9]))
def test_segments_of_zone_codes_add_up_and_give_nothing_away(
    trips: list[Trip], rule: Rule, segments: list[str], budget: float
) -> None:
    with TemporaryDirectory() as name:
        reading, folder = InputSpec(**write_zones(trips, Path(name))), Path(name) / "releases"
        try:
            made = released(reading, folder, rule, segments, budget=budget)
        except RefusedError:
            return
        report = audit_releases([folder], trips=reading)
        assert [each for each in findings(report) if rule.persons or each.check != "persons"] == []
        assert findings(audit_releases([folder], hierarchy=reading.tree)) == []
        for release in (made.whole, *(part.release for part in made.parts if part.release)):
            assert release.input.trips == int(release.classes.trips.sum()) + release.suppressed.trips
        for dimension in segments:
            parts = [part.release for part in made.parts if part.dimension == dimension]
            known = [release.input.trips for release in parts if release is not None]
            assert len(known) < len(parts) or sum(known) == made.whole.input.trips


def with_rare_values() -> list[Trip]:
    few = [person for number in range(4) for person in crowd(4, f"rare {number}")]
    return [Trip(who, 0, 5) for who in crowd(30, "Woman") + crowd(30, "Man") + few]


def test_a_folder_of_zone_codes_is_one_product(tmp_path: Path) -> None:
    """Released on DuckDB, with rare values joined and named; audited, exported, reported on, and not drawn."""
    write_zones(with_rare_values(), tmp_path)
    trips, zones, folder = tmp_path / "trips.csv", tmp_path / "zones.csv", tmp_path / "parts"
    done = odkanon(
        "anonymize", trips, "--hierarchy", zones, "--segment", "sex", "--engine", "duckdb", "--k", "10", "-o", folder
    )
    assert done.returncode == 0, output(done)
    assert (
        "sex=other consists of rare 0, rare 1, rare 2, rare 3, which are too rare for tables of their own."
        in output(done)
    )
    reading = InputSpec(trips, hierarchy=zones)
    assert findings(audit_releases([folder], trips=reading)) == []
    assert [each.name for each in open_linked(folder)] == ["whole", "sex: Man", "sex: Woman", "sex: other"]
    assert render([folder]).startswith("<!doctype html>")
    written = export_release(folder, "omx", tmp_path / "exported")
    assert {path.stem for path in written} == {path.name for path in folder.iterdir() if path.is_dir()}
    with pytest.raises(InputError, match="these zones have no shapes to draw"):
        write_picture([folder], tmp_path / "map.png")


COUNTED = [
    (origin, destination, sex, count)
    for origin, destination, count in (("zone 0", "zone 5", 12), ("zone 1", "zone 8", 15), ("zone 9", "zone 2", 11))
    for sex in ("Man", "Woman")
]


def counted(folder: Path, rows: Sequence[tuple[str, str, str, int]]) -> dict[str, Any]:
    how = write_zones(with_rare_values(), folder)
    columns = dict(zip(("origin", "destination", "sex", "trips"), map(list, zip(*rows, strict=True)), strict=True))
    csv.write_csv(pa.table(columns), folder / "trips.csv")
    return how


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_a_table_of_counts_is_split_by_its_own_columns(tmp_path: Path, engine: EngineName) -> None:
    made = released(InputSpec(**counted(tmp_path, COUNTED)), tmp_path / "made", Rule(trips=10), ["sex"], engine=engine)
    assert made.whole.input.trips == 76
    assert [part.release.input.trips for part in made.parts if part.release] == [38, 38]
    twice = counted(tmp_path, [*COUNTED, COUNTED[0]])
    with pytest.raises(InputError, match="1 origin-destination pairs more than once"):
        released(InputSpec(**twice), tmp_path / "twice", Rule(trips=10), ["sex"], engine=engine)


def test_a_cube_of_zone_codes_is_the_same_on_both_engines_and_clean(tmp_path: Path) -> None:
    trips = [Trip(who, at % 3, 4 + at % 5, 7 + at % 2) for at, who in enumerate(crowd(90, "Woman") + crowd(90, "Man"))]
    reading, rule = InputSpec(**write_zones(trips, tmp_path)), Rule(trips=5, persons=4)
    cubes = [
        load(reading, engine=engine, attributes=parse_attributes(["sex", "hour:7-8,8-9"]))
        for engine in ("memory", "duckdb")
    ]
    made = [anonymize(cube, rule, method="cascade") for cube in cubes]
    assert [str(release.to_arrow().to_pylist()) for release in made[:1]] == [str(made[1].to_arrow().to_pylist())]
    assert {"Man", "Woman"} <= set(made[0].classes.attributes["sex"].tolist())
    assert findings(audit_releases([made[0].save(tmp_path / "cube")], trips=reading)) == []


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_hours_of_zone_codes_are_on_one_clock(tmp_path: Path, engine: EngineName) -> None:
    trips = with_rare_values()
    times = pa.array([f"2024-01-01T08:00:{at % 60:02}{'Z' if at % 2 else ''}" for at in range(len(trips))])
    how = write_zones(trips, tmp_path, departure=times)
    with pytest.raises(InputError, match="offset"):
        released(
            InputSpec(**how, columns={"start_time": "departure"}),
            tmp_path / "made",
            Rule(trips=10),
            ["hour"],
            engine=engine,
        )
