"""`odkanon.anonymize` does what the command does, from a path, a table or a matrix, and its result converts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pandas")

import numpy as np
import pandas as pd
import pyarrow.parquet

from odkanon.errors import InputError, ReleaseWarning
from odkanon.linked import LinkedReleases
from odkanon.model.release import Release
from odkanon.model.rule import Rule
from odkanon.pipeline.one_call import anonymize
from odkanon.read.input_spec import InputSpec
from odkanon.read.od_matrix import build_od
from odkanon.read.trips import read_trips
from odkanon.release_format.folder import open_release
from odkanon.sample.survey import make_survey

SURVEY = make_survey().slice(0, 6_000)
COARSE = 7


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("survey") / "survey.parquet"
    pyarrow.parquet.write_table(SURVEY, path)
    return path


@pytest.fixture(scope="module")
def release() -> Release:
    return anonymize(SURVEY, protect=["trips", "persons"], resolution=COARSE)


def rows(release: Release) -> list[dict[str, object]]:
    found: list[dict[str, object]] = release.to_arrow().to_pylist()
    return found


def test_the_same_bytes_as_the_command(path: Path, tmp_path: Path) -> None:
    options = ["--protect", "participants", "--protect", "persons", "--resolution", str(COARSE), "--budget", "0.05"]
    command = [sys.executable, "-m", "odkanon", "anonymize", str(path), "-o", str(tmp_path / "a" / "release"), *options]
    subprocess.run(command, check=True, capture_output=True)
    made = anonymize(path, protect=["participants", "persons"], resolution=COARSE, budget=0.05)
    made.save(tmp_path / "b" / "release")
    for file in sorted((tmp_path / "a" / "release").iterdir()):
        assert file.read_bytes() == (tmp_path / "b" / "release" / file.name).read_bytes(), file.name


def test_every_kind_of_input_gives_the_same_rows(path: Path, release: Release) -> None:
    matrix = build_od(read_trips(path), resolution=COARSE)
    spec = InputSpec(path, resolution=COARSE)
    same = [
        anonymize(path, protect=["trips", "persons"], resolution=COARSE),
        anonymize(str(path), protect=("participants", "persons"), resolution=COARSE),
        anonymize(SURVEY.to_pandas(), protect=["trips", "persons"], resolution=COARSE),
        anonymize(spec, protect=["trips", "persons"]),
        anonymize(matrix, protect=["trips", "persons"]),
        anonymize(matrix, Rule(trips=10, persons=10)),
        anonymize(path, protect=["trips", "persons"], resolution=COARSE, engine="duckdb", memory_limit="1GiB"),
    ]
    assert all(rows(each) == rows(release) for each in same)


def test_what_the_terminal_cautions_about_is_a_warning_and_in_the_repr() -> None:
    price = r"With persons protected, 100.0% instead of 99.9% of the trips would be published, in 138 flows\."
    with pytest.warns(ReleaseWarning, match=f"fewer than 10 different persons .* {price}"):
        release = anonymize(SURVEY, resolution=COARSE, protect="participants")
    assert "1 caution)" in repr(release)
    assert len(release.cautions) == 1
    with pytest.warns(ReleaseWarning, match="k = 1 protects nobody"):
        anonymize(SURVEY, k=1, resolution=COARSE)


def test_segments_give_linked_releases(tmp_path: Path) -> None:
    with pytest.warns(ReleaseWarning, match="suppress more individually, sex=Woman the most"):
        linked = anonymize(SURVEY, resolution=6, segment="sex", protect=["trips", "persons"])
    assert isinstance(linked, LinkedReleases)
    assert [part.title for part in linked.parts] == ["sex=Man", "sex=Woman"]
    assert repr(linked) == "LinkedReleases(the whole and 2 of 2 tables by sex; 1 caution)"
    assert "<th>sex=Man</th>" in linked._repr_html_()
    assert sorted(each.name for each in linked.save(tmp_path / "linked").iterdir())[-1] == "whole"


def test_a_cube_has_its_attribute_as_a_column() -> None:
    cube = anonymize(SURVEY, resolution=6, by="mode", protect="persons")
    assert cube.method == "cascade"
    assert cube.to_arrow().column_names == ["origin", "destination", "mode", "trips", "weight", "at_cap"]


def test_weights_are_in_their_own_unit(release: Release) -> None:
    published = float(release.to_pandas()["weight"].sum())
    assert 0.5 * sum(SURVEY["weight"].to_pylist()) < published < 1.001 * sum(SURVEY["weight"].to_pylist())


def test_conversions_agree(release: Release, tmp_path: Path) -> None:
    table = release.to_pandas()
    assert release.to_polars()["trips"].sum() == table["trips"].sum()
    matrix = release.to_matrix()
    assert matrix.values.sum() == table["trips"].sum()
    zones = release.to_geopandas()
    assert set(zones.loc[zones["axis"] == "origin", "id"]) == set(table["origin"])
    assert zones.geometry.dropna().is_valid.all()
    assert zones.crs.to_epsg() == 4326
    saved = open_release(release.save(tmp_path / "release"))
    assert saved.table.equals(release.to_arrow())


def test_each_trip_is_located_in_the_flow_that_counts_it() -> None:
    release = anonymize(SURVEY, protect=["trips", "persons"], resolution=COARSE, method="odkanon")
    found = release.locate(SURVEY.to_pandas()).to_pandas()
    assert len(found) == SURVEY.num_rows
    flows = release.to_pandas()
    counted = found["flow"].dropna().astype(int).value_counts().reindex(range(len(flows)), fill_value=0)
    rejected = sum(part.rows for part in release.input.source.rejected.values())
    assert np.abs(counted.to_numpy() - flows["trips"].to_numpy()).sum() <= rejected
    here = found.dropna().iloc[0]
    assert (here["origin"], here["destination"]) == tuple(flows.loc[int(here["flow"]), ["origin", "destination"]])
    nowhere = pd.DataFrame(
        {"start_lat": [None, 10.0], "start_lon": [2.3, 10], "end_lat": [48.8, 1], "end_lon": [2.3, 1]}
    )
    assert release.locate(nowhere).column("flow").to_pylist() == [None, None]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "odkanno"}, "unknown method 'odkanno' .did you mean 'odkanon'"),
        ({"budget": "10%"}, "budget"),
        ({"k": "10"}, "k must be a whole number"),
        ({"k": True}, "k must be a whole number"),
        ({"protect": ["people"]}, "unknown target 'people'"),
        ({"rule": {"trips": 10}}, "the rule must be an odkanon.Rule"),
        ({"by": [3]}, "by must be a text"),
        ({"by": "mode", "method": "oigh"}, "attributes are published with cascade"),
    ],
)
def test_wrong_arguments_get_a_sentence(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        anonymize(SURVEY, **{"resolution": COARSE, **options})  # type: ignore[call-overload]


def test_a_rule_and_its_parts_exclude_each_other() -> None:
    with pytest.raises(InputError, match="the rule is given"):
        anonymize(SURVEY, Rule(trips=10), k=5)


def test_options_of_reading_do_not_go_with_what_is_read() -> None:
    with pytest.raises(InputError, match="resolution is an option for reading"):
        anonymize(build_od(read_trips(SURVEY), resolution=COARSE), resolution=8)
