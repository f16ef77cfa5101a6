"""What the reader in memory understands, DuckDB understands in the same way: the same release, or the same words."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyproj")

import pyarrow as pa
import pyarrow.parquet

from cli.runner import odkanon, output
from engine.layouts import UTM, WRITTEN, porto, projected, same_clock, with_times
from engine.same import WAYS, check_same, outcome
from odkanon import Rule, read_recipe, read_trips
from odkanon.core.sql import write_csv
from odkanon.engine.dispatch import load, load_table
from odkanon.engine.duckdb.backend import DuckDb, DuckInput
from odkanon.read.input_spec import InputSpec
from odkanon.read.od_matrix import build_od

RULES = [Rule(trips=5), Rule(trips=3, persons=3)]


def in_duckdb(source: Any, **options: Any) -> Any:
    return load_table(DuckInput(InputSpec(source).open(), DuckDb(fetchable=0)), InputSpec(**options))


def test_the_taxis_of_porto(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_csv(porto(), path := tmp_path / "train.csv")
    with caplog.at_level(logging.ERROR):
        reference = build_od(read_trips(path), resolution=6)
        assert len(reference.summary.source.rejected) >= 5
        check_same(reference, in_duckdb(path, resolution=6), RULES, WAYS[:1])
        where = "TAXI_ID != '20003'"
        check_same(
            build_od(read_trips(path, where=where), resolution=6),
            in_duckdb(path, where=where, resolution=6),
            RULES[:0],
        )


def test_coordinates_in_another_reference_system(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        reference = build_od(read_trips(projected(), crs=UTM), resolution=6)
        assert reference.summary.source.rejected[f"that {UTM} cannot place on the globe"].rows == 5
        check_same(reference, in_duckdb(projected(), crs=UTM, resolution=6), RULES, WAYS[:1])


@pytest.mark.parametrize("crs", [None, "EPSG:1", "EPSG:2154"])
def test_the_same_words_about_reference_systems(crs: str | None, caplog: pytest.LogCaptureFixture) -> None:
    """Metres taken for degrees, an unknown system, and one in which these places lie elsewhere."""
    expected = outcome(lambda: build_od(read_trips(projected(300), crs=crs), resolution=5).summary)
    warned = [record.message for record in caplog.records]
    caplog.clear()
    assert outcome(lambda: in_duckdb(projected(300), crs=crs, resolution=5).summary) == expected
    assert [record.message for record in caplog.records] == warned


@pytest.mark.parametrize("way", WRITTEN)
def test_times_with_and_without_offsets(way: str) -> None:
    table = with_times(WRITTEN[way])
    expected = outcome(lambda: build_od(read_trips(table), resolution=6))
    if isinstance(expected, str):
        assert "mixes times with a UTC offset" in expected
        assert outcome(lambda: in_duckdb(table)) == expected
    else:
        check_same(expected, in_duckdb(table, resolution=6), RULES[1:], WAYS[:1])


def test_copies_go_by_the_clock() -> None:
    reference = build_od(read_trips(same_clock()), resolution=6)
    check_same(reference, in_duckdb(same_clock(), resolution=6), RULES, WAYS[:1])


def test_tables_of_zones_have_no_reference_system() -> None:
    table = pa.table({"origin": ["8a1fb4640017fff"], "destination": ["8a1fb4640017fff"]})
    assert "a reference system applies to coordinates" in outcome(lambda: in_duckdb(table, crs=UTM))


def test_the_command_writes_the_same_files(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(projected(), trips := tmp_path / "trips.parquet")
    written = []
    for engine in ("memory", "duckdb"):
        options = ("--crs", UTM, "--resolution", 6, "--engine", engine)
        folder = tmp_path / engine / "release"
        done = odkanon("anonymize", trips, "-o", folder, *options)
        assert done.returncode == 0, done.stderr
        files = {file.name: file.read_bytes() for file in folder.iterdir()}
        recipe = read_recipe(folder)
        assert recipe is not None
        assert recipe["about"].pop("seconds") > 0
        written.append((recipe["about"], files))
    assert written[0] == written[1]
    assert load(InputSpec(trips, crs=UTM), engine="duckdb").summary.source.sha256 == written[0][0]["input"]["sha256"]


def test_compare_and_segments_take_a_reference_system_too(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(projected(), trips := tmp_path / "trips.parquet")
    options = ("--crs", UTM, "--resolution", 6)
    compared = odkanon("compare", trips, "-o", tmp_path / "tables", "--methods", "oigh", *options)
    assert compared.returncode == 0, compared.stderr
    other = odkanon("compare", trips, "-o", tmp_path / "tables", "--methods", "oigh", "--crs", "EPSG:32632")
    assert other.returncode == 2
    assert "other settings" in output(other)
    split = odkanon("anonymize", trips, "-o", tmp_path / "split", "--segment", "sex", "--segment-budget", 0.5, *options)
    assert split.returncode == 0, split.stderr
    assert f"that {UTM} cannot place on the globe" in output(split)
