"""The whole and its segments, written and audited."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st

from odkanon import InputError, RefusedError, Rule, open_release, read_trips
from odkanon.audit import audit_releases
from odkanon.linked import make_dimensions, release_linked
from odkanon.linked.fixed_zoning import zoning_of
from odkanon.publish.save import save_linked
from worlds.people import Trip, audit_with_trips, crowd, findings, populations, small_rules, together, write
from worlds.tries import tries

specs = st.sampled_from(
    [["sex"], ["age"], ["sex", "age"], ["hour:6-9,9-19,19-6", "sex"], ["sex", "sex*age"], ["hour", "hour:6-12"]]
)


@pytest.mark.slow
@tries(8, phases=(Phase.explicit, Phase.generate))
@given(populations(), small_rules(), specs, st.sampled_from([0.0, 0.3, 0.9]))
def test_the_audit_of_segments_released_together_is_clean(
    trips: list[Trip], rule: Rule, segments: list[str], budget: float
) -> None:
    with TemporaryDirectory() as name:
        path, folder = write(trips, Path(name) / "trips.parquet"), Path(name) / "releases"
        try:
            made = together(path, folder, rule, segments, budget)
        except RefusedError:
            return
        assert findings(audit_releases([folder])) == []
        report = audit_with_trips(path, folder)
        found = findings(report) if rule.persons else [each for each in findings(report) if each.check != "persons"]
        assert found == []
        total = made.whole.input.trips
        for dimension in segments:
            parts = [part for part in made.parts if part.dimension == dimension]
            if all(part.release is not None for part in parts):
                assert sum(part.release.input.trips for part in parts if part.release is not None) == total


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Three flows; two have fewer women than ten."""
    trips = [Trip(who, 0, 5) for who in crowd(30, "Woman") + crowd(30, "Man")]
    trips += [Trip(who, 1, 8) for who in crowd(7, "Woman", prefix="x") + crowd(30, "Man", prefix="x")]
    trips += [Trip(who, 2, 9) for who in crowd(6, "Woman", prefix="y") + crowd(30, "Man", prefix="y")]
    return write(trips, tmp_path / "trips.parquet")


def test_where_one_segment_fails_its_complement_goes_too(path: Path, tmp_path: Path) -> None:
    made = together(path, tmp_path / "releases", Rule(trips=10), ["sex"], segment_budget=0.9)
    assert [len(part.release.classes) for part in made.parts if part.release] == [1, 1]
    assert len(made.whole.classes) == 3
    assert made.suppressed["sex"] == pytest.approx(73 / 133)


def test_totals_of_segments_do_not_tell_what_one_flow_suppresses(tmp_path: Path) -> None:
    """All women less the published ones would be the seven of the other flow, so that one has to go, too."""
    trips = [Trip(who, 0, 5) for who in crowd(30, "Woman") + crowd(30, "Man")]
    trips += [Trip(who, 1, 8) for who in crowd(7, "Woman", prefix="x") + crowd(30, "Man", prefix="x")]
    path = write(trips, tmp_path / "trips.parquet")
    made = together(path, tmp_path / "releases", Rule(trips=10), ["sex"], segment_budget=0.9)
    assert len(made.whole.classes) == 1
    assert [part.release.classes.trips.tolist() for part in made.parts if part.release] == [[60], [37]]


def test_all_releases_share_the_zones_of_the_whole(path: Path, tmp_path: Path) -> None:
    together(path, tmp_path / "releases", Rule(trips=10), ["sex"])
    index = json.loads((tmp_path / "releases" / "index.json").read_text())
    whole = set(zoning_of(open_release(tmp_path / "releases" / "whole")).origins.ids.tolist())
    for part in index["segments"]:
        assert set(zoning_of(open_release(tmp_path / "releases" / part["folder"])).origins.ids.tolist()) <= whole


def test_rare_values_leave_the_whole_as_well(path: Path, tmp_path: Path) -> None:
    trips = [Trip(who, 0, 5) for who in crowd(30, "Woman") + crowd(30, "Man") + crowd(3, "Other")]
    made = together(write(trips, path), tmp_path / "releases", Rule(trips=10), ["sex"])
    assert made.whole.input.trips == 60
    assert made.whole.parameters["left_out"] == [{"sex": "Other"}]
    assert findings(audit_with_trips(path, tmp_path / "releases")) == []


def test_rare_values_that_are_enough_together_have_a_table_together(path: Path, tmp_path: Path) -> None:
    few = [person for number in range(4) for person in crowd(4, f"rare {number}")]
    trips = [Trip(who, 0, 5) for who in crowd(30, "Woman") + crowd(30, "Man") + few]
    made = together(write(trips, path), tmp_path / "releases", Rule(trips=10), ["sex"])
    assert made.whole.input.trips == 76
    assert {part.title: part.release is not None for part in made.parts} == dict.fromkeys(
        ["sex=Man", "sex=Woman", "sex=other"], True
    )
    other = made.parts[-1]
    assert other.joined == [{"sex": f"rare {number}"} for number in range(4)]
    assert other.release is not None
    assert other.release.input.trips == 16
    assert other.release.parameters["joined"] == other.joined
    assert findings(audit_with_trips(path, tmp_path / "releases")) == []


def test_a_folder_is_replaced_only_when_asked_and_only_if_it_is_ours(path: Path, tmp_path: Path) -> None:
    made = together(path, tmp_path / "releases", Rule(trips=10), ["sex"])
    with pytest.raises(InputError, match="have it replaced"):
        save_linked(made, tmp_path / "releases")
    save_linked(made, tmp_path / "releases", force=True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="does not hold linked releases"):
        save_linked(made, tmp_path / "mine", force=True)
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "mine",
        "releases",
        "releases.recipe.json",
        "trips.parquet",
    ]


def test_segments_on_given_zones(path: Path, tmp_path: Path) -> None:
    together(path, tmp_path / "january", Rule(trips=10), ["sex"])
    trips = read_trips(path)
    zoning = zoning_of(open_release(tmp_path / "january" / "whole"))
    made = release_linked(trips, Rule(trips=10), make_dimensions(trips, ["sex"]), zoning=zoning)
    assert made.whole.origins.ids.tolist() == zoning.origins.ids.tolist()


def test_nothing_to_publish_is_refused(path: Path, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="nothing can be published"):
        together(path, tmp_path / "releases", Rule(trips=1000), ["sex"])
    assert not (tmp_path / "releases").exists()
