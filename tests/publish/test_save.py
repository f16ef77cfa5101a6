"""What lies in a release folder, what lies beside it, and what saving refuses."""

from __future__ import annotations

import copy
import csv
import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from odkanon import (
    InputError,
    Release,
    Rule,
    UnsafeReleaseError,
    open_release,
    read_hierarchy,
    read_matrix,
    read_recipe,
    utility,
)
from odkanon.audit import audit_releases
from odkanon.core.atomic_write import pending
from odkanon.methods.method_registry import anonymize
from odkanon.model.release_spec import Budget
from odkanon.publish import save
from odkanon.publish.manifests import public_leaves, public_quality
from odkanon.release_format.contents import at_most_unlisted, classes_table, zones_geojson
from odkanon.release_format.names import FILES, MATRIX_ZONES, PAGE, guard_text
from odkanon.release_format.public_rule import public_rule
from odkanon.release_format.recipe import recipe_path
from odkanon.release_format.targets import ReleaseTarget, check_private
from worlds.matrices import effort, golden_od, random_world

PRIVATE = {"input", "suppressed", "utility", "limit", "privacy", "seconds"}
METHODS = ["odkanon", "oigh", "atg-soft", "mondrian", "treecut", "freezones"]


@pytest.fixture
def made() -> Release:
    return anonymize(golden_od("tiny"), Rule(trips=5))


def public(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "release.json").read_text(encoding="utf-8"))
    return content


def force_writeable(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = True
    return array


@pytest.mark.parametrize("method", METHODS)
def test_the_folder_says_what_may_be_said_and_the_recipe_the_rest(tmp_path: Path, method: str) -> None:
    od = golden_od("turin-3k")
    release = anonymize(od, Rule(trips=10), method=method, **effort(method))
    folder = release.save(tmp_path / "release")
    assert {path.name for path in folder.iterdir()} - {PAGE} == {*FILES} - {PAGE, MATRIX_ZONES}
    told, recipe = public(folder), read_recipe(folder)
    assert recipe is not None
    assert not PRIVATE & told.keys()
    assert "share" not in told["published"]
    assert not {"merges", "target", "delta", "duality_gap", "origin_level"} & told["parameters"].keys()
    assert recipe["about"].keys() >= PRIVATE
    assert recipe["about"]["suppressed"]["trips"] == release.suppressed.trips
    assert recipe["about"]["utility"]["trips"]["g"] == utility(od, release).g
    assert recipe["about"]["files"].items() > told["files"].items()
    zones = json.loads((folder / "zones.geojson").read_text(encoding="utf-8"))["features"]
    for axis, own in (("origin", release.origins), ("destination", release.destinations)):
        here = [zone["properties"] for zone in zones if zone["properties"]["axis"] == axis]
        assert [zone["id"] for zone in here] == own.ids.tolist()
        assert recipe["zones"][axis]["leaves"] == (None if own.leaves is None else own.leaves.tolist())
        assert not any("leaves" in zone for zone in here)
        assert all(zone["area_km2"] > 0 for zone in here)
        assert {zone["kind"] for zone in here} == set(told["zones"][axis])
        assert (method == "mondrian") == ("box" in told["zones"][axis])


@pytest.mark.parametrize("share", [0.0, 0.1, 0.29, 0.5])
def test_at_most_so_many_trips_are_missing(share: float) -> None:
    for seed in range(6):
        release = anonymize(random_world(seed), Rule(trips=8), budget=share)
        if release.refusal:
            continue
        published, smallest = int(release.classes.trips.sum()), int(release.classes.trips.min())
        most = at_most_unlisted(release)
        assert most is not None
        assert most >= release.suppressed.trips
        # One more could not have been suppressed within the budget and with the smallest flow.
        beyond = smallest if share else 0
        assert most + 1 - beyond > Budget(share, "trips").allowance(_Mass(published + most + 1))


def test_a_flow_that_goes_with_the_suppressed_counts_as_missing() -> None:
    tree = read_hierarchy(pa.table({"zone": [f"z{number}" for number in range(12)], "district": ["a"] * 12}))
    trips = [30] * 9 + [5]
    flows = {"origin": ["z0"] * 10, "destination": [f"z{number}" for number in range(1, 11)], "trips": trips}
    od = read_matrix(pa.table(flows), hierarchy=tree, engine="memory")
    release = anonymize(od, Rule(trips=10), method="oigh", at_level="zone", budget=0.05)
    assert release.companion is not None
    most = at_most_unlisted(release)
    assert most is not None
    assert release.suppressed.trips == 35 <= most


class _Mass:
    def __init__(self, trips: int) -> None:
        self.pairs = self.trips = trips


def test_a_share_of_pairs_bounds_no_trips() -> None:
    od = golden_od("tiny")
    assert at_most_unlisted(anonymize(od, Rule(trips=5), suppress="before", budget=0.3)) is None
    assert at_most_unlisted(anonymize(od, Rule(trips=2), suppress="before", budget=0.0)) == 0


def test_quality_is_told_in_two_digits_and_of_large_inputs_only() -> None:
    small, large = (anonymize(golden_od(name), Rule(trips=10)) for name in ("turin-3k", "paris-28k"))
    assert small.input.trips < 10_000
    assert public_quality(small) is None
    told = public_quality(large)
    assert told is not None
    values = [value for numbers in told.values() for value in numbers.values() if isinstance(value, float)]
    values += [value for numbers in told.values() for value in numbers.get("cpc", {}).values()]
    assert len(values) == 11
    assert told["weight"]["e"] is None  # a few trips that are not listed may weigh as much as many
    population = public_quality(anonymize(large.od, Rule.protect("population", k=10, of=large.od)))
    assert population is not None
    assert {"e", "cpc"} <= population["weight"].keys()
    assert all(float(f"{value:.2g}") == value for value in values)
    observed = utility(large.od, large).g
    assert observed is not None
    assert told["trips"]["g"] > observed  # there are more cells in a zone than are seen in the data


def test_a_threshold_that_comes_from_the_data_is_told_in_three_digits() -> None:
    od = golden_od("turin-3k")
    assert public_rule(Rule.protect("participants", k=10, of=od)) == {"k": 10, "trips": 10}
    rule = Rule.protect("population", k=10, of=od)
    told = public_rule(rule)
    assert told["k"] == 10
    assert told["weight"] == float(f"{told['weight']:.3g}") <= rule.thresholds["weight"] < told["weight"] * 1.01
    assert "mean_weight" not in told
    assert public_rule(Rule(weight=5)) == {"weight": 5.0}
    for more in ({}, {"persons": 3}):
        asked = public_rule(Rule(weight=5, mean_weight=od.mean_weight, **more))
        assert asked == {"weight": 5.0, **more}, "the k that a weight comes to tells the mean weight"
    assert public_rule(Rule(trips=4, weight=5, mean_weight=od.mean_weight))["k"] == 4


def test_leaves_of_a_lookup_table_are_all_that_it_lists() -> None:
    lookup = pa.table({"block": ["a", "b", "c", "d", "e"], "town": ["T", "T", "T", "U", "U"], "land": ["L"] * 5})
    tree = read_hierarchy(lookup)
    table = pa.table({"origin": ["a", "b"] * 3, "destination": ["d"] * 6})
    release = anonymize(read_matrix(table, hierarchy=tree, engine="memory"), Rule(trips=5), budget=0.0)
    leaves = {axis: public_leaves(release, axis) for axis in ("origin", "destination")}
    assert release.origins.ids.tolist() == ["T"]
    assert leaves["origin"] is not None
    assert leaves["origin"].tolist() == [3]
    assert release.origins.leaves is not None
    assert release.origins.leaves.tolist() == [2]


def test_arrays_of_a_release_cannot_be_written_to(made: Release) -> None:
    arrays = [
        made.classes.trips,
        made.classes.weight_units,
        made.classes.origin,
        made.origins.ids,
        made.origins.leaves,
        made.published,
        made.area_of_pair,
    ]
    for array in arrays:
        assert array is not None
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[-1]
        assert array.base is None


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))])
def test_nor_can_those_of_a_copy(made: Release, again: Callable[[Release], Release]) -> None:
    """A copy had arrays that could be written to: flows with other ends were saved."""
    copied = again(made)
    for array in (copied.classes.trips, copied.classes.origin, copied.origins.ids, copied.published):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[-1]
    force_writeable(made.classes.trips)[0] -= made.classes.trips[0]
    with pytest.raises(UnsafeReleaseError):
        again(made)


def test_nor_what_rows_say_of_persons_and_of_kinds_of_trips(made: Release) -> None:
    """``release.classes.kinds["sex"][0] = "Woman"`` was saved, and so were other numbers of persons."""
    attributes = {"sex": np.array(["any"] * len(made.classes))}
    classes = replace(
        made.classes, attributes=attributes, min_contributors={"persons": made.classes.trips + 0}, finest_pairs=None
    )
    for mapping in (classes.attributes, classes.min_contributors, classes.contributors):
        for name, array in mapping.items():
            with pytest.raises(ValueError, match="read-only"):
                array[0] = array[-1]
            with pytest.raises(TypeError, match="read-only"):
                mapping[name] = array  # type: ignore[index]
    counted = replace(made.classes, finest_pairs=made.classes.trips + 0).finest_pairs
    assert counted is not None
    with pytest.raises(ValueError, match="read-only"):
        counted[0] = 1


@pytest.mark.parametrize("change", [-1, 1])
def test_a_release_that_was_tampered_with_is_not_saved(made: Release, tmp_path: Path, change: int) -> None:
    force_writeable(made.classes.trips)[0] += change
    with pytest.raises(UnsafeReleaseError):
        made.save(tmp_path / "release")
    assert not any(tmp_path.iterdir())


def test_trips_moved_from_one_class_to_another_are_noticed(tmp_path: Path) -> None:
    made = anonymize(golden_od("turin-3k"), Rule(trips=10))
    trips = force_writeable(made.classes.trips)
    most = int(np.argmax(trips))
    assert trips[most] > 10
    trips[most] -= 1
    trips[most - 1] += 1
    with pytest.raises(UnsafeReleaseError, match="not those of its pairs"):
        made.save(tmp_path / "release")


@pytest.mark.parametrize("name", ["classes.csv", "classes.parquet", "zones.geojson"])
def test_what_is_written_is_read_back(
    made: Release, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that gets one number wrong: nothing takes its place."""
    table, zones = classes_table(made), zones_geojson(made)
    if name == "zones.geojson":
        zones["features"][0]["properties"]["trips"] += 1
        monkeypatch.setattr(save, "published_tables", lambda release: (table, zones))
    else:
        wrong = table.set_column(2, "trips", pa.array([trips + 1 for trips in table.column("trips").to_pylist()]))
        if name == "classes.csv":
            monkeypatch.setattr(save, "guard_text", lambda rows: wrong)
        else:
            monkeypatch.setattr(save, "published_tables", lambda release: (wrong, zones))
    with pytest.raises(UnsafeReleaseError, match=name):
        made.save(tmp_path / "release")
    assert not any(tmp_path.iterdir())


def test_force_removes_what_the_program_wrote_and_nothing_else(made: Release, tmp_path: Path) -> None:
    folder = made.save(tmp_path / "release")
    with pytest.raises(InputError, match="exists already"):
        made.save(folder)
    made.save(folder, force=True)
    (folder / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match=r"has thesis\.txt in it"):
        made.save(folder, force=True)
    assert (folder / "thesis.txt").read_text() == "years of work"
    (folder / "thesis.txt").unlink()
    recipe_path(folder).write_text("my own notes")
    with pytest.raises(InputError, match="recipe"):
        made.save(folder, force=True)
    assert recipe_path(folder).read_text() == "my own notes"


def test_a_recipe_without_its_folder_is_not_replaced_unasked(made: Release, tmp_path: Path) -> None:
    made.save(tmp_path / "release").rename(tmp_path / "published")
    with pytest.raises(InputError, match=r"release\.recipe\.json exists already"):
        made.save(tmp_path / "release")
    made.save(tmp_path / "release", force=True)


def test_a_recipe_that_a_killed_run_left_waiting_is_found_and_put_in_place(made: Release, tmp_path: Path) -> None:
    folder = made.save(tmp_path / "release")
    new = read_recipe(folder)
    old = {**(new or {}), "public_sha256": "of an earlier release"}
    recipe_path(folder).rename(pending(folder))
    recipe_path(folder).write_text(json.dumps(old))
    assert read_recipe(folder) == new
    ReleaseTarget(folder, force=True).check()
    assert read_recipe(folder) == new
    assert {path.name for path in tmp_path.iterdir()} == {"release", "release.recipe.json"}


def test_signs_of_a_formula_behind_spaces_are_guarded() -> None:
    codes = pa.table({"origin": [" =2", "\u00a0+2", "\r@", "\x00-2", "a=1", " b"]})
    assert [text[0] == "'" for text in guard_text(codes)["origin"].to_pylist()] == [True] * 4 + [False] * 2


def test_codes_that_look_like_formulas_are_not_left_live(tmp_path: Path) -> None:
    codes = ["=1+1", "+1", "-1", "@a", "\tb", "'c", "two\nlines", "plain", '=HYPERLINK("x")']
    codes += [
        "\ufeff@b",
        "\u200b-2",
        "\uff1d3",
        "\uff0b3",
        "\uff0d3",
        "\uff203",
        "a;=4",
        "b\t=5",
        "c;'6;'=7",
        ";;\t +8",
    ]
    lookup = pa.table({"zone": codes})
    table = pa.table({"origin": [code for code in codes for _ in range(3)], "destination": codes * 3})
    table = table.set_column(1, "destination", table.column("origin"))
    release = anonymize(read_matrix(table, hierarchy=read_hierarchy(lookup), engine="memory"), Rule(trips=2))
    folder = release.save(tmp_path / "release")
    with (folder / "classes.csv").open(newline="", encoding="utf-8") as file:
        text = file.read()
        rows = list(csv.reader(text.splitlines(keepends=True)))[1:]
    assert len(rows) == len(codes)
    signs = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
    invisible = " \t\u00a0\ufeff\u200b"
    for delimiter in ",;\t":  # what parts cells differs from language to language
        read = csv.reader(text.splitlines(keepends=True), delimiter=delimiter)
        assert not any(field.lstrip(invisible).startswith(signs) for row in read for field in row)
    assert [each for each in audit_releases([folder]).findings if each.check == "files"] == []
    by_parquet = open_release(folder).table
    (folder / "classes.parquet").unlink()
    assert open_release(folder).table.equals(by_parquet)
    assert set(by_parquet.column("origin").to_pylist()) == set(codes)


def test_a_folder_of_somebody_else_with_our_names_is_not_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "release"
    folder.mkdir()
    for name, text in (("release.json", '{"precious": 1}'), ("classes.csv", "my,own\n")):
        (folder / name).write_text(text)
    release = anonymize(golden_od("tiny"), Rule(trips=2))
    with pytest.raises(InputError, match="is not a release"):
        release.save(folder, force=True)
    assert (folder / "classes.csv").read_text() == "my,own\n"


def test_what_the_steward_keeps_goes_into_no_release(tmp_path: Path) -> None:
    release = anonymize(golden_od("tiny"), Rule(trips=2))
    folder = release.save(tmp_path / "release")
    for inside in (folder / "more", folder / "deep/er"):
        with pytest.raises(InputError, match="lies in the release"):
            release.save(inside)
    segments = tmp_path / "segments"
    segments.mkdir()
    (segments / "index.json").write_text('{"whole": "whole", "segments": []}')
    with pytest.raises(InputError, match="lies in the release"):
        release.save(segments / "women")
    with pytest.raises(InputError, match="lies in the release"):
        check_private(folder / "page.html")
    (tmp_path / "site").mkdir()
    (tmp_path / "site/index.json").write_text('["a site of somebody"]')
    assert read_recipe(release.save(tmp_path / "site/release")) is not None
    assert {path.name for path in folder.iterdir()} <= set(FILES)
