"""Real Spark, in local mode, gives the same release as memory, byte for byte."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyproj")

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from engine.layouts import UTM, WRITTEN, porto, projected, same_clock, with_times
from engine.needs import ON_SPARK, on_spark
from engine.same import CASCADES, CUBE_WAYS, CUBES, EVERY_RULE, FINE, RULES, WAYS, check_same, homes, messy, outcome
from odkanon import InputError, Rule, lower_bound, read_hierarchy, read_matrix, read_trips
from odkanon.attributes.spec import parse_attributes
from odkanon.engine.spark.backend import _java_home
from odkanon.methods.noise.mechanism import NoisePromise, count_queries
from odkanon.methods.noise.method import NoiseDomain, query_shares
from odkanon.read.area import PARIS_CENTRE, Area, read_area
from odkanon.read.input_spec import InputSpec
from odkanon.read.od_matrix import build_od
from odkanon.read.od_table import spec_to_matrix
from odkanon.read.tables.column_names import COORDINATES
from odkanon.sample.crowd import write_crowd
from odkanon.sample.survey import CENTRAL_CELLS
from odkanon.zoning.cells import str_to_cell
from worlds.many_values import many_values
from worlds.polygons import patchwork, write_zones

GOLDEN = Path(__file__).parent.parent / "golden"
pytestmark = ON_SPARK


def saved(table: pa.Table, path: Path) -> Path:
    pyarrow.parquet.write_table(table, path)
    return path


@pytest.mark.parametrize(
    ("rules", "ways"), [(RULES[3:], [WAYS[0], WAYS[5]]), pytest.param(RULES, WAYS, marks=pytest.mark.slow)]
)
def test_methods_and_rules_on_a_messy_survey(
    session: Any, rules: list[Rule], ways: list[dict[str, Any]], tmp_path: Path
) -> None:
    path = saved(messy(), tmp_path / "messy.parquet")
    check_same(build_od(read_trips(path), resolution=7), on_spark(session, path, resolution=7), rules, ways)


STATEMENTS: list[tuple[list[Rule], list[dict[str, Any]]]] = [
    ([Rule(trips=5)], WAYS[:1]),
]
MORE_STATEMENTS: list[tuple[list[Rule], list[dict[str, Any]]]] = [
    ([Rule(trips=5)], WAYS[3:4]),
    ([Rule(trips=5, persons=3)], [{"method": "cascade", "coarsest": 5}]),
    ([Rule(weight=60, persons=3)], WAYS[:1]),
    ([Rule(persons=4)], [{"method": "oigh"}]),
    ([Rule(trips=5)], [{"method": "cascade", "coarsest": 5}, {**FINE[2], "coarsest": 6}]),
]


@pytest.mark.parametrize(
    "statements", [STATEMENTS, pytest.param(MORE_STATEMENTS, marks=pytest.mark.slow)], ids=["some", "others"]
)
def test_every_statement_runs_on_spark(
    session: Any, statements: list[tuple[list[Rule], list[dict[str, Any]]]], tmp_path: Path
) -> None:
    """Nothing is fetched here that the engine could leave where it is."""
    table = pa.table({**_golden("tiny"), "person": np.arange(len(_golden("tiny")["origin"])) % 23})
    path = saved(table, tmp_path / "tiny.parquet")
    # Few levels, since Spark takes its time over each statement.
    reference, other = (
        read_matrix(path, resolution=6, engine="memory"),
        on_spark(session, path, fetchable=0, resolution=6),
    )
    for rules, ways in statements:
        check_same(reference, other, rules, ways)
    rule = Rule(trips=5, persons=3)
    assert lower_bound(other, rule) == lower_bound(reference, rule)


@pytest.mark.parametrize("way", [CASCADES[0], pytest.param(CASCADES[1], marks=pytest.mark.slow)], ids=["plain", "fine"])
def test_cascades_under_every_rule(session: Any, way: dict[str, Any], tmp_path: Path) -> None:
    path = saved(homes(), tmp_path / "homes.parquet")
    reference = build_od(read_trips(path), resolution=8)
    stored = on_spark(session, path, resolution=8)
    check_same(reference, stored, EVERY_RULE, [way])


@pytest.mark.slow
def test_cubes_under_other_rules(session: Any, tmp_path: Path) -> None:
    path = saved(messy(700), tmp_path / "messy.parquet")
    attributes = parse_attributes(["mode", "hour:0-7,7-9,9-17,17-24", "age"])
    reference = spec_to_matrix(InputSpec(path, resolution=7), attributes=attributes)
    rules = [rules[-1] for _, rules in CUBES]
    check_same(reference, on_spark(session, path, attributes=attributes, resolution=7), rules, CUBE_WAYS)


def test_cubes(session: Any, tmp_path: Path) -> None:
    path = saved(messy(700), tmp_path / "messy.parquet")
    attributes, way = parse_attributes(["weekday"]), {"method": "cascade", "coarsest": 4}
    reference = spec_to_matrix(InputSpec(path, resolution=5), attributes=attributes)
    on_cluster = on_spark(session, path, fetchable=0, attributes=attributes, resolution=5)
    check_same(reference, on_cluster, [Rule(trips=5, persons=3)], [way])


@pytest.mark.slow
def test_more_combinations_of_attributes_than_64_bits_number(session: Any, tmp_path: Path) -> None:
    path = many_values(tmp_path / "trips.parquet", 7, 512)
    attributes = parse_attributes([f"a{at}" for at in range(7)])
    reference = spec_to_matrix(InputSpec(path, resolution=5), attributes=attributes)
    on_cluster = on_spark(session, path, attributes=attributes, resolution=5)
    check_same(reference, on_cluster, [Rule(trips=10)], [{"method": "cascade"}])


@pytest.mark.slow
@pytest.mark.parametrize("case", ["tiny", "few-destinations", "paris-28k", "turin-3k"])
def test_golden_cases(session: Any, case: str, tmp_path: Path) -> None:
    path = saved(pa.table(_golden(case)), tmp_path / "od.parquet")
    check_same(
        read_matrix(GOLDEN / case / "od.csv", engine="memory"),
        on_spark(session, path),
        [Rule(trips=10), Rule(weight=100, k=5)],
    )


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_random_trips_in_any_order(session: Any, seed: int, tmp_path: Path) -> None:
    random = np.random.default_rng(seed)
    places = np.column_stack([48.8 + 0.1 * random.random(40), 2.3 + 0.1 * random.random(40)])
    ends = places[(40 * random.random((2, 600)) ** 2).astype(int)]
    table = pa.table(
        {
            **{name: ends[at // 2, :, at % 2] for at, name in enumerate(COORDINATES)},
            "weight": random.integers(1, 999, 600) / 7,
            "person": random.integers(0, 90, 600),
        }
    )
    path = saved(table.take(pa.array(random.permutation(600))), tmp_path / "trips.parquet")
    check_same(build_od(read_trips(table)), on_spark(session, path), [Rule(trips=6, weight=300), Rule(persons=4)])


def _golden(case: str) -> dict[str, Any]:
    table = pa.csv.read_csv(GOLDEN / case / "od.csv")
    return {name: table.column(name) for name in table.column_names}


@pytest.mark.slow
def test_datasets_areas_filters_and_other_zonings(session: Any, tmp_path: Path) -> None:
    write_crowd(1_500, tmp_path / "crowd")
    area = Area(cells=np.unique(str_to_cell(pa.array(CENTRAL_CELLS))))
    where = "weight > 0.5 and part in [0, 1]"
    options: dict[str, Any] = {"within": area}
    check_same(
        build_od(read_trips(tmp_path / "crowd", where=where), **options),
        on_spark(session, tmp_path / "crowd", where=where, **options),
        RULES[:1],
        WAYS[:1],
    )
    tree = read_hierarchy(pa.table({"zone": list("abcd"), "town": ["it's", "it's", 'q"', 'q"']}))
    path = saved(
        pa.table({"origin": list("abcdzabc") * 9, "destination": list("ddccbaab") * 9}), tmp_path / "od.parquet"
    )
    check_same(
        read_matrix(path, hierarchy=tree, engine="memory"),
        on_spark(session, path, hierarchy=tree),
        [Rule(trips=10)],
        WAYS[:1],
    )


def test_what_spark_cannot_read_is_one_clear_error(session: Any, tmp_path: Path) -> None:
    for content in (b"PK\x03\x04\0\0", b'{"type": "FeatureCollection"}'):
        (tmp_path / "trips").write_bytes(content)
        with pytest.raises(InputError, match="neither CSV nor Parquet"):
            on_spark(session, tmp_path / "trips")
    (tmp_path / "trips").write_bytes(b"PAR1 and no more")
    with pytest.raises(InputError, match="cannot be read by Spark as Parquet files"):
        on_spark(session, tmp_path / "trips")
    with pytest.raises(InputError, match="there is no file"):
        on_spark(session, tmp_path / "nothing.csv")


def test_polygons_as_in_memory(session: Any, tmp_path: Path) -> None:
    """Metres, copies, and trips outside all zones; the workers find the zones."""
    pytest.importorskip("pyogrio")
    shapes = patchwork(3, 40, 2.2, 48.8, 2.5, 48.92)
    zones = write_zones(tmp_path / "zones.gpkg", shapes, code=[f"Z{at:02}" for at in range(40)])
    path = saved(projected(), tmp_path / "metres.parquet")
    options: dict[str, Any] = {"crs": UTM, "zoning": zones, "zone_id": "code"}
    check_same(build_od(read_trips(path, **options)), on_spark(session, path, **options), RULES[:1], WAYS[5:6])


@pytest.mark.slow
def test_reference_systems_and_offsets_as_in_memory(session: Any, tmp_path: Path) -> None:
    path = saved(projected(), tmp_path / "metres.parquet")
    check_same(
        build_od(read_trips(path, crs=UTM), resolution=8),
        on_spark(session, path, crs=UTM, resolution=8),
        RULES[:1],
        WAYS[:1],
    )
    path = saved(with_times(WRITTEN["only some, and some unreadable"]), tmp_path / "mixed.parquet")
    expected = outcome(lambda: build_od(read_trips(path)))
    assert "mixes times with a UTC offset" in expected
    assert outcome(lambda: on_spark(session, path)) == expected
    path = saved(same_clock(), tmp_path / "clock.parquet")
    check_same(build_od(read_trips(path)), on_spark(session, path), RULES[:0])


@pytest.mark.slow
def test_the_taxis_of_porto(session: Any, tmp_path: Path) -> None:
    path = saved(porto(), tmp_path / "train.parquet")
    check_same(
        build_od(read_trips(path), resolution=8), on_spark(session, path, resolution=8), [Rule(trips=5)], WAYS[:1]
    )


def test_a_java_without_all_modules_can_be_started(tmp_path: Path) -> None:
    (tmp_path / "release").write_text('MODULES="java.base"')
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/java").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / "bin/java").chmod(0o755)
    given = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "Main", "$x"]
    done = subprocess.run([_java_home(tmp_path) / "bin/java", *given], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["-cp", "a b", "Main", "$x"]
    (tmp_path / "release").write_text('MODULES="java.base jdk.incubator.vector"')
    assert _java_home(tmp_path) == tmp_path


@pytest.mark.parametrize("name", ["t[12].parquet", "{t1,t2}.parquet", "t[12].csv"])
def test_names_are_names_not_patterns(session: Any, tmp_path: Path, name: str) -> None:
    """Spark takes ``t[12].parquet`` for a pattern, too, and read t1.parquet under the other's digest."""
    for file, rows in ((name, 40), (f"t1.{name.rpartition('.')[2]}", 20)):
        if name.endswith("csv"):
            pyarrow.csv.write_csv(messy().slice(0, rows), tmp_path / file)
        else:
            saved(messy().slice(0, rows), tmp_path / file)
    assert on_spark(session, tmp_path / name, resolution=7).summary.source.rows == 40


def test_a_partition_never_replaces_a_column(session: Any, tmp_path: Path) -> None:
    (tmp_path / "weight=1000").mkdir()
    path = saved(messy(), tmp_path / "weight=1000" / "a.parquet")
    with pytest.raises(InputError, match="has a column 'weight', which folder 'weight=1000' would replace"):
        on_spark(session, tmp_path, resolution=7)
    assert (
        on_spark(session, path, resolution=7).summary.weight_units
        == build_od(read_trips(path), resolution=7).summary.weight_units
    )


def test_a_file_that_spark_skips_is_refused(session: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="skips files whose names begin with '_'"):
        on_spark(session, saved(messy(), tmp_path / "_t.parquet"), resolution=7)


def test_noise_counts_the_same_before_it_is_drawn(session: Any, tmp_path: Path) -> None:
    path = saved(messy(), tmp_path / "messy.parquet")
    by, within = ["sex:woman=Woman,man=Man", "hour"], read_area(",".join(PARIS_CENTRE))
    options: dict[str, Any] = {"resolution": 9, "within": within}
    matrices = [
        read_matrix(path, engine="memory", by=by, **options),
        on_spark(session, path, attributes=parse_attributes(by), **options),
    ]
    for promise in (NoisePromise(1.0), NoisePromise(1.0, unit="trip", trips_per_person=1)):
        found = []
        for matrix in matrices:
            domain = NoiseDomain.of(matrix.in_memory())
            keys, trips = domain.counted(promise)
            assert query_shares(matrix, promise)
            found.append(count_queries(domain.queries(keys), trips))
        assert found[0].keys() == found[1].keys()
        assert all(np.array_equal(counts, found[1][name]) for name, counts in found[0].items())
        assert found[0]["origins"].sum() > 100
