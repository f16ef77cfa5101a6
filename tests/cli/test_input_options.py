"""The options of reading, the same for every command; and options that would say nothing, which are errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
import typer
from typer.testing import CliRunner

from odkanon.cli import app
from odkanon.cli.option_rules import CLASHES
from odkanon.cli.request_options import OPTIONS
from odkanon.errors import InputError
from odkanon.sample.survey import CENTRAL_CELLS, make_survey
from worlds.files import trips_text, write

READERS = ("anonymize", "audit", "explore", "evidence", "explain", "compare")
COMMANDS: Any = typer.main.get_command(app)


def run(*arguments: object) -> Any:
    """Run a command in this process, which is a hundred times faster than in one of its own."""
    return CliRunner().invoke(app, [str(each) for each in arguments], catch_exceptions=True)


def refusal(*arguments: object) -> str:
    error = run(*arguments).exception
    assert isinstance(error, InputError), error
    return str(error)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "trips.csv", trips_text())


@pytest.mark.parametrize("command", READERS)
def test_every_command_that_reads_takes_every_option_of_reading(command: str) -> None:
    names = {each.name for each in COMMANDS.commands[command].params}
    assert names >= set(OPTIONS)
    assert "how" not in names


def test_clashes_name_parameters_that_exist() -> None:
    """A misspelt one would never be looked at."""
    names = {each.name for command in COMMANDS.commands.values() for each in command.params}
    assert {name for clash in CLASHES for name in (*clash.others, *clash.options)} <= names


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--zones-of", "january", "--budget", "0.2"], "--budget does not apply with --zones-of"),
        (["--zones-of", "january", "--symmetric"], "--symmetric does not apply with --zones-of"),
        (["--at-level", "7", "--symmetric"], "--symmetric does not apply with --at-level"),
        (["--segment", "sex", "--at-level", "7"], "--at-level does not apply with --segment"),
        (["--by", "sex", "--symmetric"], "--symmetric does not apply with --by"),
        (["--at-level", "7", "--method", "treecut"], "method 'treecut' has no option 'at_level'"),
        (["--zones-of", "january", "--method", "oigh"], "--method does not apply with --zones-of"),
        (["--hierarchy", "z.csv", "--resolution", "8"], "--resolution does not apply with --hierarchy"),
        (["--hierarchy", "z.csv", "--within", CENTRAL_CELLS[0]], "--within does not apply with --hierarchy"),
        (["--boundaries", "z.geojson"], "--boundaries does not apply without --hierarchy"),
        (["--segment-budget", "0.1"], "--segment-budget does not apply without --segment"),
        (["--age-bands", "18,65"], "--age-bands does not apply without --segment"),
        (["--min-trips", "5", "--k", "4"], "--k does not apply with --min-trips"),
    ],
)
def test_options_that_would_say_nothing_are_errors(
    path: Path, tmp_path: Path, options: list[str], message: str
) -> None:
    assert message in refusal("anonymize", path, "-o", tmp_path / "out", *options)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "split", [["--segment", "sex * age"], ["--by", " age"], ["--segment", "sex", "--segment", "age"]]
)
def test_bands_apply_wherever_ages_are_asked_for(path: Path, tmp_path: Path, split: list[str]) -> None:
    assert "does not apply" not in str(run("anonymize", path, "-o", tmp_path, *split, "--age-bands", "18").exception)


def test_two_filters_on_the_command_line_both_hold(path: Path, tmp_path: Path) -> None:
    done = run("anonymize", path, "-o", tmp_path / "out", "--k", 4, "--where", 'sex == "Woman"', "--where", "hour < 12")
    assert done.exit_code == 0, done.output
    assert "12 trips between" in done.output
    assert "Hours are as written: " in done.output
    assert "Woman" not in (tmp_path / "out/release.json").read_text()


def test_segments_by_hour_say_which_clock_they_are_on(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", trips_text(96, time="2024-07-01T{hour:02}:30:00Z"))
    options = ("--k", 4, "--segment", "hour:7-19,19-7", "--timezone", "Europe/Paris")
    done = run("anonymize", path, "-o", tmp_path / "out", *options)
    assert done.exit_code == 0, done.output
    assert "Hours are in the time zone Europe/Paris" in done.output.replace("\n", " ")


@pytest.mark.parametrize(
    ("options", "caution"),
    [
        (["--k", "1"], "k = 1 protects nobody"),
        (
            ["--k", "4", "--protect", "population", "--method", "odkanon", "--metrics"],
            "the rule counts the population only, and 1 of 2 flows have fewer than 4 trips (the smallest has 2)",
        ),
        (["--k", "4"], None),
        (["--k", "4", "--protect", "population", "--protect", "participants"], None),
    ],
)
def test_a_rule_that_protects_little_is_pointed_out(tmp_path: Path, options: list[str], caution: str | None) -> None:
    """Two trips that stand for many, far from twelve of which each stands for few: enough of the population."""
    lines = trips_text(12).replace(",10\n", ",5\n").replace(",11\n", ",5\n").replace(",12\n", ",5\n")
    far = [
        f"q{n},Woman,2024-07-01 08:00:00,-33.45,-70.66,-33.44,-70.65,{weight}\n" for n, weight in enumerate((60, 60))
    ]
    path = write(tmp_path / "t.csv", lines + "".join(far))
    done = run("anonymize", path, "-o", tmp_path / "out", "--resolution", 5, *options)
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert caution in said if caution else "protects nobody" not in said and "population only" not in said


@pytest.mark.parametrize(("options", "told"), [([], True), (["--coarsest", "4"], False)])
def test_what_a_cascade_leaves_out_unasked_is_explained(tmp_path: Path, options: list[str], told: bool) -> None:
    pyarrow.parquet.write_table(make_survey().slice(0, 1_000), tmp_path / "t.parquet")
    given = ("--k", 4, "--method", "cascade", "--protect", "persons", "--protect", "population", "--resolution", 6)
    done = run("anonymize", tmp_path / "t.parquet", "-o", tmp_path / "out", *given, *options)
    assert done.exit_code == 0, done.output
    assert ("of the trips are in no row" in " ".join(done.output.split())) == told


def test_tampered_zones_are_refused(path: Path, tmp_path: Path) -> None:
    assert run("anonymize", path, "-o", tmp_path / "january", "--k", 4).exit_code == 0
    zones = json.loads((tmp_path / "january/zones.geojson").read_text())
    zones["features"].append(zones["features"][0])
    (tmp_path / "january/zones.geojson").write_text(json.dumps(zones))
    assert "twice" in refusal("anonymize", path, "-o", tmp_path / "out", "--zones-of", tmp_path / "january")


def test_polygons_in_metres_are_refused(path: Path, tmp_path: Path) -> None:
    corners = [[652000, 6861000], [653000, 6861000], [653000, 6862000], [652000, 6861000]]
    area = {"type": "Polygon", "coordinates": [corners]}
    outline = write(tmp_path / "area.geojson", json.dumps(area))
    assert "is not in degrees: x ranges from 652000" in refusal(
        "anonymize", path, "-o", tmp_path / "o", "--within", outline
    )
    features = [{"type": "Feature", "id": "a", "geometry": area}]
    polygons = write(tmp_path / "zones.geojson", json.dumps({"type": "FeatureCollection", "features": features}))
    lookup = write(tmp_path / "zones.csv", "leaf,parent\na,x\nb,x\n")
    od = write(tmp_path / "od.csv", "origin,destination,trips\na,b,30\n")
    options = ("--hierarchy", lookup, "--boundaries", polygons)
    assert "is not in degrees" in refusal("anonymize", od, "-o", tmp_path / "o", *options)


def test_the_audit_reads_what_anonymize_reads(tmp_path: Path) -> None:
    """A Porto file, which the audit did not know."""
    track = "[[-8.618643,41.141412],[-8.618499,41.141376],[-8.620326,41.14251]]"
    rows = [f'T{n},{20000 + n},{1372636858 + n},False,"{track}"' for n in range(30)]
    porto = write(tmp_path / "t.csv", "\n".join(["TRIP_ID,TAXI_ID,TIMESTAMP,MISSING_DATA,POLYLINE", *rows]))
    assert run("anonymize", porto, "-o", tmp_path / "out", "--k", 4).exit_code == 0
    done = run("audit", tmp_path / "out", "--trips", porto)
    assert done.exit_code == 0, done.output
    assert "recount" in done.output


def test_the_audit_understands_local_numbers_and_times(tmp_path: Path) -> None:
    content = trips_text(time="25/07/2024 {hour:02}:30").replace(",", ";").replace(".", ",")
    path = write(tmp_path / "t.csv", content)
    assert run("anonymize", path, "-o", tmp_path / "out", "--k", 4, "--where", "hour >= 7").exit_code == 0
    done = run("audit", tmp_path / "out", "--trips", path)
    assert done.exit_code == 0, done.output


def test_compare_takes_zones_with_codes(tmp_path: Path) -> None:
    lookup = write(tmp_path / "zones.csv", "leaf,parent\na,x\nb,x\nc,x\n")
    od = write(tmp_path / "od.csv", "origin,destination,trips\na,b,30\nb,a,20\nc,a,2\n")
    options = ("--hierarchy", lookup, "--methods", "odkanon,oigh")
    done = run("compare", od, "-o", tmp_path / "tables", *options)
    assert done.exit_code == 0, (done.output, done.exception)
    assert (tmp_path / "tables/tables.md").is_file()
