"""A recipe is enough to make its release again, and to do the same with another file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from cli.here import run
from cli.runner import odkanon, output
from odkanon import InputError, anonymize, make_survey
from odkanon.methods.method_registry import counting_methods
from odkanon.release_format.recipe import differing_files

FILES = ("release.json", "classes.csv", "classes.parquet", "zones.geojson")


@pytest.fixture(scope="module")
def survey() -> pa.Table:
    return make_survey().slice(0, 2400)


@pytest.fixture
def folder(survey: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for month, begin in (("january", 0), ("february", 1200)):
        pyarrow.parquet.write_table(survey.slice(begin, 1200), tmp_path / f"{month}.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def recipe(name: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(Path(f"{name}.recipe.json").read_text())
    return told


WAYS: dict[str, list[str]] = {
    **{method: ["--method", method] for method in counting_methods()},
    "limits": ["--protect", "population", "--protect", "persons", "--where", "age >= 20", "--column", "weight=weight"],
    "cube": ["--by", "mode", "--by", "hour:0-9,9-17,17-24", "--drop-order", "place:5,hour,mode,place"],
    "segments": ["--segment", "sex", "--segment-budget", "0.3"],
    "duckdb": ["--engine", "duckdb"],
}


QUICK = ("odkanon", "cascade", "limits", "cube", "segments", "duckdb")


@pytest.mark.parametrize("way", [way if way in QUICK else pytest.param(way, marks=pytest.mark.slow) for way in WAYS])
def test_the_same_bytes_again_and_the_same_options_for_next_month(way: str, folder: Path) -> None:
    more = [*WAYS[way], *(("--iterations", "2") if way in ("treecut", "freezones") else ())]
    assert run("anonymize", "january.parquet", "-o", "out/january", "--resolution", 6, *more) == 0
    assert run("rerun", "out/january.recipe.json", "-o", "again") == 0
    assert differing_files(folder / "out/january", folder / "again") == []
    assert run("rerun", "out/january", "--input", "february.parquet", "-o", "february") == 0
    now = recipe("february")["command"]["options"]
    then = recipe("out/january")["command"]["options"]
    assert {**now, "source": 0, "output": 0} == {**then, "source": 0, "output": 0}
    assert now["source"] == ["february.parquet"]
    assert recipe("february")["input"]["sha256"] != recipe("out/january")["input"]["sha256"]


def test_the_zones_of_an_earlier_release_from_another_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("anonymize", "january.parquet", "-o", "january", "--resolution", 6)
    run("anonymize", "february.parquet", "-o", "months/february", "--resolution", 6, "--zones-of", "january")
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    assert run("rerun", "../months/february.recipe.json") == 0
    assert run("rerun", "../months/february.recipe.json", "--input", "../january.parquet", "-o", "third") == 0
    told = recipe("third")["command"]
    assert told["options"]["source"] == ["january.parquet"]
    assert list(told["files"]) == ["january"]
    monkeypatch.chdir(folder)
    run("anonymize", "february.parquet", "-o", "january", "--resolution", 6, "--force", "--k", 30)
    done = odkanon("rerun", "months/february.recipe.json", cwd=folder)
    assert done.returncode == 1
    assert "content of january" in output(done)
    assert "Other bytes than february in: " in output(done)


def test_what_differs_is_said(folder: Path) -> None:
    run("anonymize", "january.parquet", "-o", "january", "--resolution", 6, "--method", "odkanon")
    before = recipe("january")
    done = odkanon("rerun", "january", "--input", "february.parquet", "-o", "february", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)["result"]
    found = {each["what"]: (each["before"], each["after"]) for each in result["differences"]}
    assert found["option source"] == (["january.parquet"], ["february.parquet"])
    after = recipe("february")
    assert found["published trips"] == tuple(each["about"]["published"]["trips"] for each in (before, after))
    assert not any(name.startswith("version of") for name in found)
    old = {**before, "versions": {**before["versions"], "odkanon": "0.0.1"}}
    Path("january.recipe.json").write_text(json.dumps(old))
    done = odkanon("rerun", "january", cwd=folder)
    assert done.returncode == 0
    assert "version of odkanon 0.0.1" in output(done)
    assert "The same bytes as january." in output(done)


def test_a_changed_input_is_noticed(folder: Path) -> None:
    run("anonymize", "january.parquet", "-o", "january", "--resolution", 6)
    Path("february.parquet").replace("january.parquet")
    done = odkanon("rerun", "january", cwd=folder)
    assert done.returncode == 1
    assert "input sha256" in output(done)


def test_what_the_file_of_options_says_by_now_has_no_part(folder: Path) -> None:
    Path("odkanon.toml").write_text("k = 25\nresolution = 6\n")
    run("anonymize", "january.parquet", "-o", "january")
    assert recipe("january")["command"]["options"]["k"] == 25
    Path("odkanon.toml").write_text("k = 11\nresolution = 5\n")
    assert run("rerun", "january") == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"command": None}, "made in Python or in the explorer"),
        ({"command": {"name": "anonymise", "options": {}}}, "did you mean 'anonymize'"),
        ({"command": {"name": "anonymize", "options": {"colour": 1}}}, "does not know"),
        ({"command": {"name": "anonymize", "options": {"source": ["-"]}}}, "standard input"),
        ({"command": {"name": "anonymize", "options": {}, "folder": "gone"}}, "is not there"),
    ],
)
def test_recipes_that_are_not_enough(change: dict[str, Any], said: str, folder: Path) -> None:
    anonymize(folder / "january.parquet", k=10, protect="persons", resolution=6).save(folder / "january")
    Path("january.recipe.json").write_text(json.dumps({**recipe("january"), **change}))
    with pytest.raises(InputError, match=said):
        run("rerun", "january.recipe.json")


def test_a_new_input_needs_a_place(folder: Path) -> None:
    run("anonymize", "january.parquet", "-o", "january", "--resolution", 6)
    with pytest.raises(InputError, match="-o DIR"):
        run("rerun", "january", "--input", "february.parquet")


@pytest.mark.parametrize("method", ["odkanon", "cascade"])
def test_the_next_month_keeps_the_zones_or_it_is_printed_that_it_does_not(method: str, folder: Path) -> None:
    assert run("anonymize", "january.parquet", "-o", "january", "--resolution", 6, "--method", method) == 0
    anew = odkanon("rerun", "january", "--input", "february.parquet", "-o", "anew")
    assert "The zones were made anew for these trips; --keep-zones uses those of january." in output(anew)
    kept = odkanon("rerun", "january", "--input", "february.parquet", "-o", "kept", "--keep-zones")
    assert "The zones are those of january." in output(kept)
    assert run("anonymize", "february.parquet", "-o", "by-hand", "--resolution", 6, "--zones-of", "january") == 0
    assert differing_files(folder / "by-hand", folder / "kept") == []
    once_more = odkanon("rerun", "kept", "--input", "february.parquet", "-o", "third")
    assert "The zones are those of january." in output(once_more)
    refused = odkanon("rerun", "january", "--keep-zones")
    assert "--keep-zones does not apply without --input" in output(refused)


def test_a_file_in_git_holds_all_options_of_a_month(folder: Path) -> None:
    usual = 'resolution = 6\n[anonymize]\nk = 12\nprotect = ["participants"]\ntitle = "Trips"\n'
    usual += 'output = "releases/{input}"\n'
    Path("odkanon.toml").write_text(usual, encoding="utf-8")
    assert run("anonymize", "january.parquet") == 0
    Path("odkanon.toml").write_text(usual + 'zones-of = "releases/january"\n', encoding="utf-8")
    assert run("anonymize", "february.parquet") == 0
    manifests = [json.loads(Path(f"releases/{month}/release.json").read_text()) for month in ("january", "february")]
    assert [each["rule"]["trips"] for each in manifests] == [12, 12]
    zones = [
        {
            each["properties"]["id"]
            for each in json.loads(Path(f"releases/{month}/zones.geojson").read_text())["features"]
        }
        for month in ("january", "february")
    ]
    assert zones[1] <= zones[0]
    assert run("rerun", "releases/february") == 0
