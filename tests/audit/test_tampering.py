"""Releases that were changed after they were written are caught, each change with its own message."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import h3
import pyarrow as pa
import pyarrow.parquet
import pytest

from audit.tamper import copy_release, edit_json, read_rows, settle_accounts, sign_again, write_rows
from odkanon import InputError, Rule
from odkanon.audit import audit_releases
from odkanon.release_format.recipe import recipe_path
from worlds.people import Trip, audit_with_trips, crowd, findings, places, release, together, write


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("world")
    trips = [Trip(who, 0, 5) for who in crowd(20)]
    trips += [Trip(who, 0, 8) for who in crowd(14, prefix="x")]
    trips += [Trip(who, 5, 8) for who in crowd(12, prefix="y")]
    path = write(trips, folder / "trips.parquet")
    made = release(path, folder / "release", Rule(trips=10, persons=10))
    assert len(made.classes) == 3
    return path, folder / "release"


@pytest.fixture
def forged(world: tuple[Path, Path], tmp_path: Path) -> Path:
    return copy_release(world[1], tmp_path / "release")


def messages(*arguments: Path) -> str:
    """Audit a release, or trips and a release, and return all findings."""
    *trips, folder = arguments
    report = audit_with_trips(trips[0], folder) if trips else audit_releases([folder])
    return "\n".join(each.message for each in findings(report))


def test_an_untouched_release_is_clean(world: tuple[Path, Path]) -> None:
    assert messages(world[1]) == ""
    assert messages(*world) == ""


def test_a_count_lowered_in_one_file(forged: Path) -> None:
    lines = (forged / "classes.csv").read_text().splitlines()
    (forged / "classes.csv").write_text("\n".join(line.replace(",20,", ",19,") for line in lines) + "\n")
    found = messages(forged)
    assert "classes.csv was changed after it was written" in found
    assert "has 19 trips in the one, 20 in the other" in found
    sign_again(forged)
    assert "disagree" in messages(forged)


def test_a_count_lowered_everywhere(world: tuple[Path, Path], forged: Path) -> None:
    rows = read_rows(forged)
    for name in ("trips", "persons"):
        rows[0][name] -= 3
    write_rows(forged, rows)
    assert "but release.json states" in messages(forged)
    settle_accounts(forged)
    assert messages(forged) == ""
    assert "its count was changed" in messages(world[0], forged)


def test_a_count_below_the_rule(forged: Path) -> None:
    rows = read_rows(forged)
    rows[0]["trips"] = 4
    write_rows(forged, rows)
    settle_accounts(forged)
    assert "below the rule of 10 trips" in messages(forged)


def test_a_class_added(world: tuple[Path, Path], forged: Path) -> None:
    rows = read_rows(forged)
    known = {(row["origin"], row["destination"]) for row in rows}
    new = next(
        (o["origin"], d["destination"]) for o in rows for d in rows if (o["origin"], d["destination"]) not in known
    )
    write_rows(forged, [*rows, {**rows[0], "origin": new[0], "destination": new[1]}])
    assert "4 classes in all, but release.json states 3" in messages(forged)
    settle_accounts(forged)
    assert messages(forged) == ""
    assert "none of the trips is in it: it was added" in messages(world[0], forged)


def test_a_class_listed_twice(forged: Path) -> None:
    rows = read_rows(forged)
    write_rows(forged, [*rows, rows[0]])
    settle_accounts(forged)
    assert "is listed 2 times" in messages(forged)


def test_a_zone_drawn_elsewhere(forged: Path) -> None:
    def move(content: dict[str, list[dict[str, dict[str, list[list[list[float]]]]]]]) -> None:
        ring = content["features"][0]["geometry"]["coordinates"][0]
        ring[:] = [[lng + 0.01, lat] for lng, lat in ring]

    edit_json(forged / "zones.geojson", move)
    assert "zones.geojson was changed" in messages(forged)
    sign_again(forged)
    assert "was moved: its outline is not that of its cell" in messages(forged)


def rename_zone(folder: Path, old: str, new: str) -> None:
    """Put another cell in the place of a zone, in every file."""
    rows = [{**row, "origin": new if row["origin"] == old else row["origin"]} for row in read_rows(folder)]
    write_rows(folder, rows)

    def rename(content: dict[str, list[dict[str, dict[str, object]]]]) -> None:
        for feature in content["features"]:
            about = feature["properties"]
            if about["axis"] == "origin" and about["id"] == old:
                about.update(id=new, resolution=h3.get_resolution(new))
                ring = [[lng, lat] for lat, lng in h3.cell_to_boundary(new)]
                feature["geometry"]["coordinates"] = [[*ring, ring[0]]]

    edit_json(folder / "zones.geojson", rename)
    settle_accounts(folder)


def test_a_zone_replaced_by_another_cell(world: tuple[Path, Path], forged: Path) -> None:
    rename_zone(forged, str(read_rows(forged)[0]["origin"]), places()[10])
    assert messages(forged) == ""
    found = messages(world[0], forged)
    assert f"1 origin zones are not where they are stated: {places()[10]} has 0 places of the data, not 1" in found
    assert "none of the trips is in it" in found


def test_a_zone_moved_into_another_one(forged: Path) -> None:
    zones = sorted({str(row["origin"]) for row in read_rows(forged)}, key=h3.get_resolution)
    inside = sorted(h3.cell_to_children(zones[0]))[-1] if h3.get_resolution(zones[0]) < 15 else zones[0]
    rename_zone(forged, zones[1], inside)
    assert "places must be in one zone only" in messages(forged)


def test_a_margin_that_tells_of_suppressed_trips(forged: Path) -> None:
    def add(content: dict[str, list[dict[str, dict[str, int]]]]) -> None:
        content["features"][0]["properties"]["trips"] += 3

    edit_json(forged / "zones.geojson", add)
    sign_again(forged)
    assert "the difference of 3 is what was suppressed there" in messages(forged)


def test_a_margin_of_another_weight(forged: Path) -> None:
    def add(content: dict[str, list[dict[str, dict[str, float]]]]) -> None:
        content["features"][0]["properties"]["weight"] += 3

    edit_json(forged / "zones.geojson", add)
    sign_again(forged)
    assert "another weight than its published flows have" in messages(forged)


def test_a_rule_lowered(forged: Path) -> None:
    edit_json(forged / "release.json", lambda content: content["rule"].update(trips=2))
    assert "does not promise 2 trips" in messages(forged)


def test_an_account_that_does_not_add_up(forged: Path) -> None:
    edit_json(recipe_path(forged), lambda content: content["about"]["suppressed"].update(trips=2))
    assert "is not published 46 + suppressed 2" in messages(forged)


def test_rejected_rows_are_part_of_the_account(forged: Path) -> None:
    def reject(content: Any) -> None:
        account = content["about"]["input"]
        account["rejected"] = {"with no start": {"rows": 5, "trips": 5, "weight": 5.0}}
        account["trips"] += 5
        account["weight"] += 5

    edit_json(recipe_path(forged), reject)
    assert messages(forged) == ""
    edit_json(recipe_path(forged), lambda content: content["about"]["input"].update(trips=46))
    assert "is not published 46 + suppressed 0 + rejected 5" in messages(forged)


@pytest.mark.parametrize("said", [{"below": 1}, {"threshold": 1000}, {"min": 11}, {"min": 13}])
def test_a_claim_about_the_smallest_flow_that_is_not_true(forged: Path, said: dict[str, int]) -> None:
    edit_json(recipe_path(forged), lambda content: content["about"]["privacy"]["trips"].update(said))
    assert "release.json states that the smallest flow has" in messages(forged)


def test_a_table_cut_short(forged: Path) -> None:
    text = (forged / "classes.csv").read_text()
    (forged / "classes.csv").write_text(text[: text.rindex("\n", 0, -1) + 1])
    sign_again(forged)
    assert "classes.csv has 2 flows and classes.parquet 3: one was cut short or added to" in messages(forged)


@pytest.mark.parametrize("name", ["classes.parquet", "zones.geojson", "release.json"])
def test_a_file_that_cannot_be_read_any_more(forged: Path, name: str) -> None:
    content = (forged / name).read_bytes()
    (forged / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match=f"{name}.*truncated or damaged"):
        audit_releases([forged])


def test_a_file_that_is_gone(forged: Path) -> None:
    (forged / "classes.csv").unlink()
    with pytest.raises(InputError, match=r"it has no classes\.csv"):
        audit_releases([forged])


def test_a_threshold_taken_out_of_the_folder(forged: Path) -> None:
    edit_json(forged / "release.json", lambda content: content["rule"].pop("persons"))
    sign_again(forged)
    assert "disagree on rule, persons" in messages(forged)


def test_a_manifest_edited_where_nothing_else_says_the_same(forged: Path) -> None:
    edit_json(forged / "release.json", lambda content: content.update(resolution=9))
    assert "release.json was changed after it was written: the recipe has another sha256" in messages(forged)


def test_segments_and_their_index_are_compared_with_the_recipe(tmp_path: Path) -> None:
    crowds = [Trip(who, 0, 8) for who in crowd(15, "Woman") + crowd(15, "Man")]
    path = write(crowds, tmp_path / "trips.parquet")
    folder = tmp_path / "both"
    together(path, folder, Rule(trips=10), ["sex"])
    assert messages(folder) == ""
    edit_json(folder / "sex=Man" / "datapackage.json", lambda content: content.update(title="Other"))
    assert "datapackage.json was changed after it was written: its sha256 is another one" in messages(folder)
    edit_json(folder / "sex=Man" / "release.json", lambda content: content.update(resolution=9))
    assert "release.json was changed after it was written: index.json has another sha256" in messages(folder)
    edit_json(folder / "index.json", lambda content: content.update(statement="Safe."))
    assert "index.json was changed after it was written: the recipe has another sha256" in messages(folder)
    (folder / "notes.recipe.json").write_text("{}")
    assert "notes.recipe.json is not listed in index.json: it was added" in messages(folder)


DAMAGES: list[tuple[str, dict[str, Any]]] = [
    ("recipe", {"zones": 0}),
    ("recipe", {"input": []}),
    ("recipe", {"input": {"where": ["sex =="]}}),
    ("release", {"unlisted": "nobody"}),
    ("release", {"period": [1]}),
    ("release", {"rule": {"k": 10, "trips": float("nan")}}),
    ("release", {"rule": {"k": 10, "trips": float("inf")}}),
    ("release", {"axes": [{"name": "mode"}]}),
    ("release", {"zones": None, "files": []}),
]


@pytest.mark.parametrize("with_trips", [False, True])
@pytest.mark.parametrize(("where", "what"), DAMAGES)
def test_no_damage_ends_in_a_traceback(
    world: tuple[Path, Path], forged: Path, where: str, what: dict[str, Any], with_trips: bool
) -> None:
    edit_json(
        recipe_path(forged) if where == "recipe" else forged / "release.json", lambda content: content.update(what)
    )
    clean = False
    with suppress(InputError):
        clean = audit_releases([world[1], forged], trips=world[0] if with_trips else None).clean
    # Without trips, nobody looks at the places of the recipe.
    assert not clean or (what == {"zones": 0} and not with_trips)


def test_a_column_added_to_the_table(forged: Path) -> None:
    table = pyarrow.parquet.read_table(forged / "classes.parquet")
    more = table.append_column("who", pa.array(["p1, p2"] * len(table)))
    pyarrow.parquet.write_table(more, forged / "classes.parquet")
    sign_again(forged)
    assert "classes.parquet has the columns who, which are no part of a release" in messages(forged)


@pytest.mark.parametrize("name", ["../release", "x" * 300, "a/b", ""])
def test_an_index_that_names_what_is_not_in_the_folder(world: tuple[Path, Path], tmp_path: Path, name: str) -> None:
    copy_release(world[1], tmp_path / "release")
    folder = tmp_path / "both"
    folder.mkdir()
    (folder / "index.json").write_text(json.dumps({"whole": name, "segments": []}))
    with pytest.raises(InputError):
        audit_releases([folder])
