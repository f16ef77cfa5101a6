"""The commands as a newcomer runs them, and their files read back by another tool."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pyarrow.parquet
import pytest

from cli.runner import odkanon, output, told
from odkanon.core.sql import write_csv
from odkanon.sample.survey import make_survey

GOLDEN = Path(__file__).parent.parent / "golden"


def test_help_and_version() -> None:
    for arguments in (["--help"], ["anonymize", "--help"], ["sample", "--help"], ["demo", "--help"]):
        done = odkanon(*arguments)
        assert done.returncode == 0
        assert "Usage" in done.stdout
    assert odkanon("--version").stdout.startswith("odkanon 0.")


def test_golden_through_the_command(tmp_path: Path) -> None:
    expected = json.loads((GOLDEN / "turin-3k/expected-trips-k4.json").read_text())
    done = odkanon(
        "anonymize", GOLDEN / "turin-3k/od.csv", "-o", tmp_path / "out", "--suppress", "before", "--budget-of", "rows",
        "--k", expected["k"], "--max-levels", expected["max_levels"], "--budget", expected["budget"],
    )  # fmt: skip
    assert done.returncode == 0, done
    reader = duckdb.connect()
    rows = reader.execute(f"SELECT * FROM '{tmp_path}/out/classes.parquet'").fetchall()
    assert rows == reader.execute(f"SELECT * FROM '{tmp_path}/out/classes.csv'").fetchall()
    assert {(o, d): t for o, d, t, _ in rows} == {
        (row["origin"], row["destination"]): row["trips"] for row in expected["classes"]
    }
    zones = json.loads((tmp_path / "out/zones.geojson").read_text())["features"]
    assert [zone["properties"]["id"] for zone in zones] == expected["origins"] + expected["destinations"]
    assert all(zone["geometry"]["type"] == "Polygon" for zone in zones)
    origins = [zone["properties"] for zone in zones if zone["properties"]["axis"] == "origin"]
    assert sum(zone["trips"] for zone in origins) == sum(row["trips"] for row in expected["classes"])


@pytest.mark.parametrize(
    "suffix", [".csv", *(pytest.param(name, marks=pytest.mark.slow) for name in (".csv.gz", ".parquet"))]
)
def test_file_format_does_not_change_the_release(tmp_path: Path, suffix: str) -> None:
    survey = make_survey().slice(0, 8_000)
    pyarrow.parquet.write_table(survey, tmp_path / "reference.parquet")
    write = pyarrow.parquet.write_table if suffix == ".parquet" else write_csv
    write(survey, tmp_path / f"survey{suffix}")
    for name in ("reference.parquet", f"survey{suffix}"):
        done = odkanon("anonymize", tmp_path / name, "-o", tmp_path / Path(name).stem.split(".")[0])
        assert done.returncode == 0, done
    for file in ("classes.csv", "classes.parquet", "zones.geojson"):
        assert (tmp_path / "reference" / file).read_bytes() == (tmp_path / "survey" / file).read_bytes()


def test_demo(tmp_path: Path) -> None:
    for _ in range(2):
        done = odkanon("demo", "-o", tmp_path / "demo")
        assert done.returncode == 0, done
    text = output(done)
    assert text.index("Privacy: ") < text.index("A trip is in at most one row")
    assert text.endswith(f"in a browser: {tmp_path / 'demo' / 'cascade' / 'report.html'}")
    releases = {path.name: told(path) for path in (tmp_path / "demo").iterdir() if path.is_dir()}
    cascade = releases.pop("cascade")
    assert cascade["method"] == "cascade"
    assert cascade["published"]["share"] > 0.98
    assert set(releases) == {f"{who}-{when}" for who in ("participants", "population") for when in ("before", "after")}
    for name, account in releases.items():
        covered = "trips" if name.startswith("participants") else "weight"
        assert account["privacy"][covered]["below"] == 0
        assert account["published"]["share"] >= 0.89
    assert "different persons" in output(done)


def test_lookup_hierarchy(tmp_path: Path) -> None:
    (tmp_path / "zones.csv").write_text("commune,department\na,X\nb,X\nc,Y\nd,Y\n")
    (tmp_path / "trips.csv").write_text("origin,destination,person\n" + "a,c,1\nb,d,2\na,d,3\n" * 4)
    options = ["--hierarchy", tmp_path / "zones.csv", "--protect", "participants", "--method", "odkanon"]
    done = odkanon("anonymize", tmp_path / "trips.csv", "-o", tmp_path / "out", *options)
    assert done.returncode == 0, done
    assert (tmp_path / "out/classes.csv").read_text() == "origin,destination,trips,persons\nX,Y,12,3\n"
    zones = (*options[:4], "--at-level")
    at = odkanon("anonymize", tmp_path / "trips.csv", "-o", tmp_path / "at", *zones, "department")
    assert at.returncode == 0, at
    assert told(tmp_path / "at")["method"] == "oigh"
    assert told(tmp_path / "at")["parameters"]["at_level"] == "department"
    fine = odkanon("anonymize", tmp_path / "trips.csv", "-o", tmp_path / "fine", *zones, "commune")
    assert fine.returncode == 1, fine
    assert "at level commune, flows with 12 trips do not meet" in output(fine)
    assert not (tmp_path / "fine").exists()


def test_within_a_geojson_outline(tmp_path: Path) -> None:
    ring = [[2.2, 48.8], [2.45, 48.8], [2.45, 48.92], [2.2, 48.92], [2.2, 48.8]]
    (tmp_path / "area.geojson").write_text(json.dumps({"type": "Polygon", "coordinates": [ring]}))
    odkanon("sample", "-o", tmp_path / "s.parquet")
    done = odkanon("anonymize", tmp_path / "s.parquet", "-o", tmp_path / "out", "--within", tmp_path / "area.geojson")
    assert done.returncode == 0, done
    assert 20_000 < told(tmp_path / "out")["input"]["rejected"]["outside the area"]["trips"] < 70_000
