"""DuckDB gives the same release as memory, byte for byte; and says clearly when it cannot."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.same import (
    CASCADES,
    CUBE_WAYS,
    CUBES,
    EVERY_RULE,
    FINE,
    RULES,
    WAYS,
    check_same,
    homes,
    messy,
    outcome,
    said,
    survey,
)
from odkanon import InputError, Rule, read_hierarchy, read_matrix, read_trips
from odkanon.attributes.spec import AttributeSpec, parse_attributes
from odkanon.engine.dispatch import choose_engine, load_table, parse_bytes
from odkanon.engine.duckdb.backend import DuckDb, DuckInput, clear_errors
from odkanon.engine.sql.cell_workers import Placement, place_batch, place_batches
from odkanon.engine.sql.matrix import SqlMatrix
from odkanon.methods.method_registry import anonymize
from odkanon.read.area import Area
from odkanon.read.input_spec import InputSpec
from odkanon.read.od_matrix import build_od
from odkanon.read.od_table import spec_to_matrix
from odkanon.read.tables.open_table import open_table
from odkanon.sample.crowd import crowd, write_crowd
from odkanon.sample.survey import CENTRAL_CELLS
from odkanon.zoning.cells import str_to_cell
from odkanon.zoning.point_location import CellFinder
from worlds.records import World, budgets, h3_worlds, rules, table_of
from worlds.tries import tries

GOLDEN = Path(__file__).parent.parent / "golden"
LARGE = ("paris-28k", "turin-3k")


def in_duckdb(
    source: Any, *, fetchable: int | None = None, attributes: Sequence[AttributeSpec] = (), **options: Any
) -> SqlMatrix:
    od = load_table(DuckInput(open_table(source), DuckDb(fetchable=fetchable)), InputSpec(**options), attributes)
    assert isinstance(od, SqlMatrix)
    return od


@pytest.mark.parametrize("fetchable", [pytest.param(0, marks=pytest.mark.slow), None])
def test_the_survey_in_any_order(fetchable: int | None) -> None:
    reference = build_od(read_trips(survey()))
    check_same(reference, in_duckdb(survey(), fetchable=fetchable), RULES[: 2 if fetchable is None else 4])
    assert said(reference, RULES[0], WAYS[0]) == said(in_duckdb(survey().slice(0)), RULES[0], WAYS[0])


@pytest.mark.parametrize(
    ("fetchable", "ways", "resolution"),
    [(0, WAYS[:1], 6), *(pytest.param(many, WAYS[:3], 10, marks=pytest.mark.slow) for many in (0, None))],
)
def test_rows_are_rejected_for_the_same_reasons(
    fetchable: int | None, ways: list[dict[str, Any]], resolution: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        reference = build_od(read_trips(messy()), resolution=resolution)
        check_same(reference, in_duckdb(messy(), fetchable=fetchable, resolution=resolution), RULES[3:], ways)
        where = "age >= 30 and sex == 'Woman'"
        check_same(
            build_od(read_trips(messy(), where=where), resolution=6),
            in_duckdb(messy(), fetchable=fetchable, where=where, resolution=6),
            RULES[:1],
            WAYS[:1],
        )


def test_trips_inside_an_area() -> None:
    area = Area(cells=np.unique(str_to_cell(pa.array(CENTRAL_CELLS))))
    table = pa.concat_tables([survey(), survey().slice(0, 500)])
    check_same(
        build_od(read_trips(table), within=area),
        in_duckdb(table, fetchable=0, within=area),
        RULES[:1],
        [*WAYS[:2], {"method": "cascade"}],
    )
    nowhere = Area(cells=str_to_cell(pa.array(["8009fffffffffff"])))
    assert outcome(lambda: build_od(read_trips(table), within=nowhere)) == outcome(
        lambda: in_duckdb(table, within=nowhere)
    )


@pytest.mark.parametrize(
    "case", ["few-destinations", "tiny", *(pytest.param(name, marks=pytest.mark.slow) for name in LARGE)]
)
def test_golden_cases(case: str) -> None:
    path = GOLDEN / case / "od.csv"
    large = case == "paris-28k"
    stored = in_duckdb(path, fetchable=3_000 if large else 0)
    check_same(
        read_matrix(path, engine="memory"),
        stored,
        [Rule(trips=10), Rule(weight=100, k=5)][: 1 if large else 2],
        WAYS[::2],
    )


@tries(10)
@given(h3_worlds(), rules(), st.sampled_from(WAYS), budgets, st.sampled_from([0, 5, None]))
def test_random_worlds(world: World, rule: Rule, way: dict[str, Any], budget: float, fetchable: int | None) -> None:
    other = in_duckdb(table_of(world.trips[::-1]), fetchable=fetchable)
    check_same(world.od, other, [rule], [{**way, "budget": budget}])


@pytest.mark.parametrize(
    "ways", [CASCADES[:1], pytest.param(CASCADES[1:], marks=pytest.mark.slow)], ids=["plain", "fine"]
)
def test_cascades_under_every_rule(ways: list[dict[str, Any]]) -> None:
    reference = build_od(read_trips(homes()), resolution=7)
    assert set(reference.measures) == {"trips", "weight", "persons", "households"}
    stored = in_duckdb(homes(), fetchable=0, resolution=7)
    check_same(reference, stored, EVERY_RULE, ways)


@pytest.mark.parametrize("ways", [FINE[:4], pytest.param(FINE[4:], marks=pytest.mark.slow)], ids=["some", "others"])
def test_finer_steps(ways: list[dict[str, Any]]) -> None:
    reference = build_od(read_trips(survey(600)), resolution=6)
    check_same(reference, in_duckdb(survey(600), fetchable=0, resolution=6), [Rule(trips=5)], ways)


@pytest.mark.parametrize("fetchable", [0, pytest.param(None, marks=pytest.mark.slow)])
def test_cubes(fetchable: int | None) -> None:
    """The same rows of places and kinds under every rule, and copies are taken off the kind that they are of."""
    for by, under in CUBES:
        attributes, area = parse_attributes(by, (25, 50)), Area(cells=np.unique(str_to_cell(pa.array(CENTRAL_CELLS))))
        how: dict[str, Any] = {"resolution": 6, "within": area if "sex" in by else None}
        reference = spec_to_matrix(InputSpec(messy(), **how), attributes=attributes)
        assert reference.axes
        check_same(reference, in_duckdb(messy(), fetchable=fetchable, attributes=attributes, **how), under, CUBE_WAYS)


@pytest.mark.parametrize("fetchable", [0, pytest.param(None, marks=pytest.mark.slow)])
def test_other_zonings(fetchable: int | None) -> None:
    zones = [f"z{number}" for number in range(9)]
    tree = read_hierarchy(pa.table({"zone": zones[::-1], "town": list("aabbccdde"), "region": list("XXXXXXYYY")}))
    random = np.random.default_rng(3)
    table = pa.table(
        {
            "origin": [zones[n] for n in random.integers(0, 7, 300)] + ["elsewhere", None],
            "destination": [zones[n] for n in random.integers(0, 9, 300)] + ["z1", "z1"],
            "weight": random.random(302),
            "person": random.integers(0, 40, 302),
        }
    )
    rules = [Rule(trips=4), Rule(persons=4, weight=2.5)]
    check_same(
        read_matrix(table, hierarchy=tree, engine="memory"),
        in_duckdb(table, fetchable=fetchable, hierarchy=tree),
        rules,
    )


def test_methods_that_need_the_pairs() -> None:
    check_same(
        build_od(read_trips(survey(600))),
        in_duckdb(survey(600), fetchable=0),
        [Rule(trips=5)],
        [{"method": "atg-soft"}, {"method": "mondrian"}],
    )


@pytest.mark.parametrize(
    "table",
    [
        {"origin": ["8a1fb4640017fff"] * 2, "destination": ["8a1fb4640017fff"] * 2, "trips": [1, 2]},
        {"origin": ["8a1fb4640017fff", "861fb4667ffffff"], "destination": ["8a1fb4640017fff"] * 2},
        {"origin": ["nonsense"], "destination": ["8a1fb4640017fff"]},
        {"origin": ["8a1fb4640017fff"], "destination": ["8a1fb4640017fff"], "trips": [1.5]},
        {"start_lat": [None], "start_lon": [1.0], "end_lat": [1.0], "end_lon": [1.0]},
        {"origin": ["8a1fb4640017fff"], "end_lon": [1.0]},
    ],
)
def test_refuses_with_the_same_words(table: dict[str, list[Any]]) -> None:
    source = pa.table(table)
    read = (
        (lambda: build_od(read_trips(source)))
        if "start_lat" in table
        else (lambda: read_matrix(source, engine="memory"))
    )
    expected, got = outcome(read), outcome(lambda: in_duckdb(source))
    assert isinstance(got, str)
    if "end_lon" not in table or "start_lat" in table:
        assert got == expected


def test_cells_may_be_lifted() -> None:
    path = GOLDEN / "tiny/od.csv"
    check_same(
        read_matrix(path, resolution=8, engine="memory"),
        in_duckdb(path, fetchable=0, resolution=8),
        [Rule(trips=3)],
        WAYS[:1],
    )


@pytest.mark.slow
def test_datasets(tmp_path: Path) -> None:
    write_crowd(3_000, tmp_path / "crowd", seed=1)
    table = pa.parquet.read_table(tmp_path / "crowd/part=0/trips.parquet", partitioning=None)
    other = tmp_path / "crowd/part=1/more.parquet"
    other.parent.mkdir()
    pa.parquet.write_table(table.slice(0, 100), other)
    whole = build_od(read_trips(pa.concat_tables([table, table.slice(0, 100)])))
    for source in (tmp_path / "crowd", str(tmp_path / "crowd/*/*.parquet"), str(tmp_path / "crowd/part=*")):
        check_same(whole, build_od(read_trips(source)), RULES[:1], WAYS[:1])
        check_same(whole, in_duckdb(source, fetchable=0), RULES[:1], WAYS[:1])
    with pytest.raises(InputError, match="no file that matches"):
        open_table(str(tmp_path / "*.nothing"))
    with pytest.raises(InputError, match="object store"):
        open_table("s3a://bucket/trips")


def test_the_crowd_is_the_same_for_a_seed_and_can_be_cut_anywhere(tmp_path: Path) -> None:
    first, again = (next(iter(crowd(1_500, seed=7))) for _ in range(2))
    assert first.equals(again)
    assert not first.equals(next(iter(crowd(1_500, seed=8))))
    with pytest.raises(InputError, match="1 or more"):
        write_crowd(0, tmp_path / "none")


def test_helpers_place_trips_as_one_process_does() -> None:
    batches = [batch.slice(n * 100, 100) for batch in crowd(1_000) for n in range(10)]
    batches = [
        batch.append_column("reason", pa.array(np.arange(100) % 7 == 0, pa.bool_()).cast(pa.int32()))
        for batch in batches
    ]
    alone, together = ([*place_batches(batches, Placement(CellFinder(9)), helpers)] for helpers in (0, 2))
    assert alone == together == [place_batch(batch, Placement(CellFinder(9))) for batch in batches]


def test_too_little_memory_is_one_clear_error() -> None:
    od = load_table(DuckInput(open_table(survey()), DuckDb(memory_limit=parse_bytes("6GiB"), fetchable=0)))
    assert isinstance(od, SqlMatrix)
    od.backend.limit = 1000  # type: ignore[attr-defined]
    with pytest.raises(InputError, match=r"needs the OD pairs in memory: 1,[0-9]{3} of them"):
        anonymize(od, Rule(trips=5), method="mondrian")
    with pytest.raises(InputError, match="memory limit of 1 GiB is too small"), clear_errors(2**30):
        raise duckdb.OutOfMemoryException("could not allocate block")
    with pytest.raises(InputError, match="no disk space left"), clear_errors(2**30):
        raise duckdb.IOException("Could not write: No space left on device")


def test_the_engine_follows_the_size(tmp_path: Path) -> None:
    write_crowd(2_000, tmp_path / "crowd")
    assert choose_engine(tmp_path / "crowd") == "memory"
    assert choose_engine(tmp_path / "crowd", memory_limit=1000) == "duckdb"
    assert choose_engine("s3a://bucket/trips") == "spark"
    assert choose_engine(GOLDEN / "tiny/od.csv") == "memory"


@pytest.mark.parametrize(("text", "size"), [("8GiB", 2**33), ("8g", 2**33), ("500MB", 5 * 10**8), ("1.5K", 1536)])
def test_sizes(text: str, size: int) -> None:
    assert parse_bytes(text) == size


def test_a_size_that_is_none() -> None:
    with pytest.raises(InputError, match="not an amount of memory"):
        parse_bytes("much")
