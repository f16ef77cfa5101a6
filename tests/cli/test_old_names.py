"""Names of the previous version: commands and options that have moved, on the command line, in files and in recipes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.here import run
from cli.runner import odkanon
from odkanon import make_survey
from odkanon.cli.commands import every_command
from odkanon.cli.common_options import CONFIG
from odkanon.cli.old_names import OLD_COMMANDS, OLD_OPTIONS, translate_command, translate_options
from odkanon.core.sql import write_csv
from odkanon.errors import InvalidValueError
from odkanon.release_format.recipe import read_recipe

GOLDEN = Path(__file__).parent.parent / "golden/tiny/od.csv"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_csv(make_survey().slice(0, 1500), tmp_path / "trips.csv")
    return tmp_path


def test_present_names_exist() -> None:
    commands = every_command()
    assert {old.name for old in OLD_COMMANDS.values()} <= set(commands)
    spellings = {text for each in commands.values() for option in each.params for text in option.opts}
    assert {f"--{name}" for name in OLD_OPTIONS.values()} <= spellings
    assert not {f"--{name}" for name in OLD_OPTIONS} & spellings


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("policy -o policy.toml", "check --template -o policy.toml"),
        ("picture r s -o x.png --km 3", "report r s --picture x.png --km 3"),
        ("picture r -ox.png", "report r --picture=x.png"),
        ("picture r --output=x.png", "report r --picture=x.png"),
        ("view cube --where a -o x", "export cube --where a -o x"),
        ("tradeoff t -o x.png", "compare t -o x.png"),
        ("catalogue r s -o x", "export --to dcat r s -o x"),
        ("netmob25 f --tables t", "trips --layout netmob25 f --tables t"),
        ("anonymize policy -o view", "anonymize policy -o view"),
    ],
)
def test_old_commands(old: str, new: str) -> None:
    assert translate_command(old.split()) == new.split()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("--filter a --filter=b", "--where a --where=b"),
        ("--implications allowed --steps fine", "--allow-inference --substeps"),
        ("--implications=safe --steps plain t", "t"),
        ("--level 7 --levels 2 --unknown 3", "--at-level 7 --max-levels 2 --unknown 3"),
        ("-o x -- --filter", "-o x -- --filter"),
    ],
)
def test_old_options(old: str, new: str) -> None:
    known = [f"--{name}" for name in OLD_OPTIONS.values()]
    assert translate_options(old.split(), known) == new.split()
    with pytest.raises(InvalidValueError, match="safe or allowed"):
        translate_options(["--implications", "maybe"], known)


def test_an_option_that_a_command_lacks_is_not_translated() -> None:
    assert translate_options(["--filter", "a"], ["--basemap"]) == ["--filter", "a"]
    assert odkanon("series", "a", "-o", "b", "--filter", "c").returncode == 2


def test_old_names_warn_and_give_the_same_bytes(folder: Path) -> None:
    common = ("anonymize", "trips.csv", "--method", "cascade", "--resolution", 6)
    old = odkanon(*common, "-o", "old", "--filter", "age > 20", "--steps", "fine", cwd=folder)
    new = odkanon(*common, "-o", "new", "--where", "age > 20", "--substeps", cwd=folder)
    assert (old.returncode, new.returncode) == (0, 0), (old.stderr, new.stderr)
    assert old.stderr.count("is now") == 2
    assert "'--filter' is now '--where'" in old.stderr
    assert new.stderr == ""
    for file in ("release.json", "classes.csv", "zones.geojson"):
        assert (folder / "old" / file).read_bytes() == (folder / "new" / file).read_bytes()
    options = [
        json.loads((folder / f"{name}.recipe.json").read_text())["command"]["options"] for name in ("old", "new")
    ]
    assert options[0] == options[1] | {"output": "old"}
    assert options[0]["substeps"] is True
    assert odkanon("rerun", "old", cwd=folder).returncode == 0


def test_recipes_of_the_previous_version_rerun(folder: Path) -> None:
    """They have values for what are flags now."""
    for flags in ({"implications": "safe", "steps": "plain"}, {"implications": "allowed", "steps": "fine"}):
        words = ("--allow-inference", "--substeps") if flags["steps"] == "fine" else ()
        run("anonymize", "trips.csv", "-o", "made", "--method", "cascade", "--resolution", 6, "--force", *words)
        path = folder / "made.recipe.json"
        recipe = json.loads(path.read_text())
        recipe["command"]["options"] |= flags
        path.write_text(json.dumps(recipe))
        assert run("rerun", "made") == 0


def test_old_names_in_a_configuration_file(folder: Path) -> None:
    Path(CONFIG).write_text(
        'filter = "age > 20"\nsteps = "fine"\n[anonymize]\nmethod = "cascade"\nresolution = 6\n'
        'implications = "safe"\n[policy]\noutput = "policy.toml"\n[tradeoff]\nmethods = "oigh"\n'
    )
    assert run("anonymize", "trips.csv", "-o", "made") == 0
    recipe = read_recipe(folder / "made")
    assert recipe is not None
    options = recipe["command"]["options"]
    assert (options["where"], options["substeps"], options["method"]) == (["age > 20"], True, "cascade")
    assert not options.get("allow_inference")
    assert run("policy") == 0
    assert (folder / "policy.toml").is_file()
