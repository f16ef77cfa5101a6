"""Folders and recipes of somebody else: whatever they say, they are read, and nothing else happens."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.runner import odkanon, output
from odkanon import InputError, Rule, anonymize, audit_releases, export_release, open_release
from odkanon.explore.worker_process import WorkerProcess
from odkanon.release_format.recipe import open_full
from worlds.matrices import golden_od


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return anonymize(golden_od("tiny"), Rule(trips=5)).save(tmp_path / "release")


def change(path: Path, how: Callable[[dict[str, Any]], object]) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    how(content)
    path.write_text(json.dumps(content), encoding="utf-8")


def test_the_audit_runs_no_sql_of_a_release(folder: Path) -> None:
    """What release.json said of its rule became part of a query: it could read and write any file of the auditor."""
    mark = folder.parent / "mark"
    statement = f"0; COPY (SELECT 1) TO '{mark}'; SELECT 'a' AS origin, 1 AS destinations WHERE 1 < 0"
    change(folder / "release.json", lambda told: told["rule"].update(min_destinations=statement))
    with pytest.raises(InputError, match="is not a number"):
        audit_releases([folder])
    assert not mark.exists()


@pytest.mark.parametrize("value", ["10", None, True, [10], {"a": 1}])
@pytest.mark.parametrize("name", ["trips", "k", "max_share", "min_destinations", "w"])
def test_a_rule_of_no_numbers_is_damaged(folder: Path, name: str, value: object) -> None:
    change(folder / "release.json", lambda told: told["rule"].update({name: value}))
    with pytest.raises(InputError, match="damaged or edited"):
        audit_releases([folder])


def test_the_audit_runs_no_sql_of_an_account(folder: Path) -> None:
    mark, recipe = folder.parent / "mark", folder.parent / "release.recipe.json"
    statement = f"0) AS below FROM classes; COPY (SELECT 1) TO '{mark}'; SELECT 1 AS least, (2"
    account = json.loads(recipe.read_text(encoding="utf-8"))["about"]
    account["privacy"]["trips"]["threshold"] = statement
    recipe.unlink()
    change(folder / "release.json", lambda told: told.update(account))
    with pytest.raises(InputError, match="is not a number"):
        audit_releases([folder])
    assert not mark.exists()


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, '{"rule": NaN}'], ids=["lists", "objects", "NaN"])
@pytest.mark.parametrize("name", ["release/release.json", "release/zones.geojson", "release.recipe.json"])
def test_documents_that_are_none_are_said(folder: Path, name: str, text: str) -> None:
    (folder.parent / name).write_text(text)
    with pytest.raises(InputError, match=r"nested too deep|NaN is not a number"):
        audit_releases([folder])
    with pytest.raises(InputError, match=r"nested too deep|NaN is not a number"):
        open_full(folder)


def test_a_manifest_that_cannot_be_read_is_not_replaced(folder: Path) -> None:
    (folder / "release.json").write_text("[" * 100_000)
    with pytest.raises(InputError, match="exists and is not a release"):
        anonymize(golden_od("tiny"), Rule(trips=5)).save(folder, force=True)


RING = [[2.0, 48.0], [2.1, 48.0], [2.1, 48.1], [2.0, 48.0]]
OUTLINES: list[Any] = [
    {"type": "Polygon", "coordinates": [[*RING[:3], -1]]},
    {"type": "Polygon", "coordinates": [[*RING[:3], [2.0]]]},
    {"type": "Polygon", "coordinates": [RING[:3]]},
    {"type": "Polygon", "coordinates": [[*RING, [3.0, 48.0]]]},
    {"type": "Polygon", "coordinates": [[["a", "b"]] * 4]},
    {"type": "Polygon", "coordinates": [[[1e308, 0]] * 4]},
    {"type": "Point", "coordinates": [2.0, 48.0]},
    {"type": "Polygon"},
    "x",
    [],
]


@pytest.mark.parametrize("outline", OUTLINES, ids=range(len(OUTLINES)))
def test_an_outline_that_is_none_is_said(folder: Path, outline: object) -> None:
    change(folder / "zones.geojson", lambda told: told["features"][0].update(geometry=outline))
    with pytest.raises(InputError, match=r"has an invalid zone"):
        open_release(folder)


@pytest.mark.parametrize("release", ["/elsewhere", "../elsewhere", "..", "", 7])
def test_a_recipe_does_not_say_where_a_rerun_writes(tmp_path: Path, release: object) -> None:
    """Without -o nothing is written, wherever the recipe says that the release was."""
    odkanon("sample", "-o", "trips.csv", cwd=tmp_path)
    odkanon("anonymize", "trips.csv", "-o", "made", "--resolution", "6", cwd=tmp_path)
    if release == "/elsewhere":
        release = str(tmp_path / "elsewhere")
    change(tmp_path / "made.recipe.json", lambda told: told.update(release=release))
    shutil.rmtree(tmp_path / "made")
    done = odkanon("rerun", "made.recipe.json", cwd=tmp_path)
    assert done.returncode == 2
    assert "it was damaged or edited" in output(done)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["made.recipe.json", "trips.csv"]


@pytest.mark.parametrize("command", ["x", {"name": "sample", "options": {"output": "x.csv"}}, {"options": 1}])
def test_a_recipe_runs_no_other_command(folder: Path, command: object) -> None:
    change(folder.parent / "release.recipe.json", lambda told: told.update(command=command))
    done = odkanon("rerun", "release.recipe.json", cwd=folder.parent)
    assert done.returncode == 2
    assert sorted(path.name for path in folder.parent.iterdir()) == ["release", "release.recipe.json"]


def test_what_goes_wrong_in_a_worker_is_one_line() -> None:
    worker = WorkerProcess()
    with pytest.raises(Exception, match="this was not expected: TypeError"):
        worker.run(len, object())  # type: ignore[arg-type]
    worker.stop()


@pytest.mark.parametrize(("to", "name"), [("geojson", ""), ("omx", "x.omx")])
def test_an_export_does_not_go_into_a_release(folder: Path, to: str, name: str) -> None:
    """With --force it took the place of zones.geojson, and what it adds would be published with the release."""
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(InputError, match="is a release, in which an export would be published"):
        export_release(folder, to, folder / name, force=True)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sample", "-o", "x", "--trips", "9", "--as", "netmob25"], "--as does not apply with --trips"),
        (["explain", "r", "--trips", "t", "-o", "x.html", "--id", "a"], "--id does not apply without --zoning"),
        (
            ["explain", "r", "--trips", "t", "-o", "x.html", "--km", "3", "--onto", "o"],
            "--km does not apply with --onto",
        ),
        (["check", "--template", "--force"], "--force does not apply without --output"),
        (["rerun", "r", "--force"], "--force does not apply without --output"),
        (["audit", "r", "--force"], "--force does not apply without --output"),
        (["report", "r", "--force"], "--force does not apply without --output"),
        (["sample", "-o", "x", "--trips", "9", "--force"], "--force does not apply with --trips"),
        (["compare", "t", "-o", "x", "--by", "sex"], "--by does not apply without --drop-order"),
        (
            ["compare", "t", "-o", "x", "--by", "sex", "--drop-order", "sex", "--budget", "0.2"],
            "--budget does not apply with --drop-order",
        ),
        (
            ["compare", "t", "-o", "x", "--by", "sex", "--drop-order", "sex", "--methods", "oigh"],
            "--methods does not apply with --drop-order",
        ),
        (
            ["anonymize", "t", "-o", "x", "--segment", "sex", "--age-bands", "18"],
            "--age-bands does not apply without --segment age",
        ),
        (["anonymize", "t", "-o", "x", "--by", "sex", "--age-bands", "18"], "does not apply without --by age"),
        (["report", "r", "--picture", "x.png", "--km", "3"], "--km does not apply without --near"),
        (
            ["report", "r", "s", "--picture", "x.png", "--measure", "weight"],
            "does not apply with two releases",
        ),
        (["report", "r", "--near", "Lyon"], "--near does not apply without --picture"),
        (["check", "r", "--policy", "p", "-o", "x"], "--output does not apply without --template"),
        (["check", "r", "--template"], "RELEASE does not apply with --template"),
        (["export", "r", "-o", "x", "--licence", "l"], "--licence does not apply without --to dcat"),
        (["export", "r", "-o", "x", "--to", "dcat", "--where", "a"], "--where does not apply with --to dcat"),
        (["export", "r", "-o", "x", "--even"], "--even does not apply without --onto"),
        (["export", "r", "s", "-o", "x", "--to", "omx"], "one release at a time"),
        (["export", "r", "-o", "x", "--to", "dcat"], "--to dcat needs --publisher, --homepage"),
        (["trips", "p", "-o", "x.csv", "--tables", "t"], "--tables does not apply without --layout netmob25"),
        (["compare", "t", "-o", "x.png", "--k", "5,x"], "--k must be numbers separated by commas"),
        (["compare", "t", "-o", "x", "--k", "5,10"], "should end in .png"),
        (["compare", "t", "-o", "x.png", "--segment", "sex"], "--segment does not apply with several --k"),
        (["export", "r", "-o", "x", "--to", "omx", "--measure", "weight"], "--measure does not apply with --to omx"),
        (["anonymize", "t", "-o", "x", "--k", "20", "--k", "2"], "--k is given more than once"),
        (["anonymize", "t", "-o", "x", "--output", "y"], "--output is given more than once"),
        (["audit", "r", "--show", "-1"], "Invalid value for"),
    ],
)
def test_an_option_that_says_nothing_is_an_error(tmp_path: Path, arguments: list[str], said: str) -> None:
    done = odkanon(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert said in output(done)
    assert not any(tmp_path.iterdir())


def test_whoever_asks_for_help_gets_it(tmp_path: Path) -> None:
    done = odkanon("anonymize", "--k", "20", "--k", "2", "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert "Usage" in output(done)


@pytest.mark.parametrize(
    ("number", "command"),
    [
        ("NaN", ["export", "r", "--onto", "zones.geojson", "--to", "csv", "-o", "x"]),
        ("9" * 400, ["anonymize", "od.csv", "--hierarchy", "tree.csv", "--boundaries", "zones.geojson", "-o", "x"]),
    ],
)
def test_polygons_of_no_numbers_are_said(tmp_path: Path, number: str, command: list[str]) -> None:
    anonymize(golden_od("tiny"), Rule(trips=5)).save(tmp_path / "r")
    (tmp_path / "od.csv").write_text("origin,destination,trips\na,b,20\n")
    (tmp_path / "tree.csv").write_text("zone,all\na,x\nb,x\n")
    ring = f"[[2.0,48.0],[{number},48.0],[2.5,48.5],[2.0,48.0]]"
    feature = f'{{"type":"Feature","properties":{{"id":"a"}},"geometry":{{"type":"Polygon","coordinates":[{ring}]}}}}'
    (tmp_path / "zones.geojson").write_text(f'{{"type":"FeatureCollection","features":[{feature}]}}')
    done = odkanon(*command, cwd=tmp_path)
    assert done.returncode == 2
    assert "an invalid polygon" in output(done)
    assert not (tmp_path / "x").exists()
