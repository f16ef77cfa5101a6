"""The command, as a steward runs it: on the sample survey, and on what cannot be read."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet
import pytest

from cli.runner import odkanon, output
from odkanon.sample.survey import CENTRAL_CELLS, make_survey

WITHIN = ("--within", ",".join(CENTRAL_CELLS))
PARTICIPANTS = ("--protect", "participants", "--method", "odkanon")
BOTH = ("--protect", "participants", "--protect", "persons")


TRIPS = 24_000


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("survey") / "survey.parquet"
    pyarrow.parquet.write_table(make_survey().slice(0, TRIPS), path)
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whole") / "survey.parquet"
    pyarrow.parquet.write_table(make_survey(), path)
    return path


def test_participants_alone_leave_flows_of_few_persons(survey: Path, tmp_path: Path) -> None:
    made = odkanon("anonymize", survey, "-o", tmp_path / "r", *PARTICIPANTS, *WITHIN)
    assert "With persons protected, " in output(made)
    done = odkanon("audit", tmp_path / "r", "--trips", survey, *WITHIN, "-o", tmp_path / "audit.json")
    assert done.returncode == 1
    assert "flows have fewer than 10 different persons" in output(done)
    report = json.loads((tmp_path / "audit.json").read_text())
    (persons,) = [each for each in report["findings"] if each["severity"] == "finding"]
    said = json.loads((tmp_path / "r.recipe.json").read_text())["about"]["privacy"]["persons"]
    assert len(persons["details"]) == said["below"] > 0
    assert min(flow["persons"] for flow in persons["details"]) == said["min"]


def test_participants_and_persons_are_clean(survey: Path, tmp_path: Path) -> None:
    odkanon("anonymize", survey, "-o", tmp_path / "r", *BOTH, *WITHIN)
    before = sorted(path.name for path in (tmp_path / "r").iterdir())
    done = odkanon("audit", tmp_path / "r", "--trips", survey, *WITHIN)
    assert done.returncode == 0, output(done)
    assert "clean." in output(done)
    assert sorted(path.name for path in (tmp_path / "r").iterdir()) == before


def test_separate_segments_can_be_subtracted_and_linked_segments_cannot(survey: Path, tmp_path: Path) -> None:
    odkanon("anonymize", survey, "-o", tmp_path / "everyone", *PARTICIPANTS, *WITHIN)
    odkanon("anonymize", survey, "-o", tmp_path / "women", *PARTICIPANTS, *WITHIN, "--where", 'sex == "Woman"')
    done = odkanon("audit", tmp_path / "everyone", tmp_path / "women")
    assert done.returncode == 1
    assert "of somebody else" in output(done)
    made = odkanon("anonymize", survey, "-o", tmp_path / "linked", "--segment", "sex", *WITHIN)
    assert "sums and differences" in output(made)
    done = odkanon("audit", tmp_path / "linked")
    assert done.returncode == 0, output(done)


@pytest.mark.slow
def test_segments_with_persons_are_clean_with_the_trips_too(whole: Path, tmp_path: Path) -> None:
    arguments = ("--segment", "sex", "--segment", "hour:6-9,9-16,16-19,19-6")
    assert odkanon("anonymize", whole, "-o", tmp_path / "t", *arguments, *BOTH, *WITHIN).returncode == 0
    done = odkanon("audit", tmp_path / "t", "--trips", whole, *WITHIN)
    assert done.returncode == 0, output(done)


def test_other_trips_are_reported(survey: Path, tmp_path: Path) -> None:
    odkanon("anonymize", survey, "-o", tmp_path / "r", *WITHIN)
    pyarrow.parquet.write_table(make_survey().slice(1000, TRIPS - 1000), tmp_path / "fewer.parquet")
    done = odkanon("audit", tmp_path / "r", "--trips", tmp_path / "fewer.parquet")
    assert done.returncode == 1
    assert "give the file, filter, area and resolution" in output(done)


@pytest.mark.slow
def test_the_same_zones_again(whole: Path, tmp_path: Path) -> None:
    odkanon("anonymize", whole, "-o", tmp_path / "january", *WITHIN, "--where", 'sex == "Man"')
    done = odkanon("anonymize", whole, "-o", tmp_path / "february", *WITHIN, "--zones-of", tmp_path / "january")
    assert done.returncode == 0
    assert "outside the zones" in output(done)
    zones = [
        {f["properties"]["id"] for f in json.loads((tmp_path / name / "zones.geojson").read_text())["features"]}
        for name in ("january", "february")
    ]
    assert zones[1] <= zones[0]


def test_unreadable_input_has_exit_code_2(tmp_path: Path) -> None:
    done = odkanon("audit", tmp_path / "nowhere")
    assert done.returncode == 2
    assert "there is no folder" in output(done)
    (tmp_path / "empty").mkdir()
    done = odkanon("audit", tmp_path / "empty")
    assert done.returncode == 2
    assert "not a complete release" in output(done)


@pytest.mark.slow
@pytest.mark.parametrize("more", [(), ("--by", "mode")])
def test_the_cascade_of_the_whole_survey_is_clean(whole: Path, more: tuple[str, ...], tmp_path: Path) -> None:
    """Its rows are many, and from one end alone a pair lies in most of them: joined in that order, memory ran out."""
    made = odkanon("anonymize", whole, "-o", tmp_path / "r", "--method", "cascade", *BOTH, *more)
    assert made.returncode == 0, output(made)
    done = odkanon("audit", tmp_path / "r", "--trips", whole)
    assert done.returncode == 0, output(done)
    assert "clean." in output(done)
