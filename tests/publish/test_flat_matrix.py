"""The matrix of a release folder: it follows from the rows, on cells or polygons, and nothing else fits in."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from audit.tamper import edit_json, sign_again
from cli.runner import odkanon, output
from odkanon import audit_releases, open_release
from odkanon.estimate.flat_matrix import repeat_matrix
from odkanon.methods import anonymize
from odkanon.model.rule import Rule
from odkanon.release_format.names import MATRIX_ZONES
from worlds.matrices import by_mode, town
from worlds.polygons import square_town


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return anonymize(town(1), Rule(trips=10), method="cascade").save(tmp_path / "release")


def matrix(folder: Path) -> pa.Table:
    return pyarrow.parquet.read_table(folder / "matrix.parquet")


def polygons(path: Path) -> Path:
    """Two halves of the town."""
    halves = {"west": (-180, 2.35), "=east": (2.35, 180)}
    features = [
        {
            "type": "Feature",
            "properties": {"CODE": code},
            "geometry": {"type": "Polygon", "coordinates": [[(a, 40), (b, 40), (b, 55), (a, 55), (a, 40)]]},
        }
        for code, (a, b) in halves.items()
    ]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return path


def messages(folder: Path) -> list[str]:
    return [each.message for each in audit_releases([folder]).findings if each.severity == "finding"]


def test_anybody_can_repeat_it_from_the_folder(folder: Path) -> None:
    saved = open_release(folder)
    about = saved.manifest["matrix"]
    assert repeat_matrix(saved, folder).equals(matrix(folder))
    assert about["zones"] == "h3"
    listed = sum(matrix(folder)["estimate"].to_pylist())
    assert listed + about["trips_in_smaller_flows"] == pytest.approx(saved.manifest["published"]["trips"], rel=0.01)


def test_it_is_a_function_of_the_rows_only(folder: Path, tmp_path: Path) -> None:
    """Rows published from different trips, but equal, give the same matrix."""
    saved = open_release(folder)
    other = folder.rename(tmp_path / "another name")
    (tmp_path / "release.recipe.json").unlink()
    edit_json(other / "release.json", lambda content: content.update(statement="x", quality=None))
    assert repeat_matrix(open_release(other), other).equals(repeat_matrix(saved, other))


def test_polygons_of_the_steward_go_into_the_folder(tmp_path: Path) -> None:
    release = anonymize(town(1), Rule(trips=10), method="cascade")
    folder = release.save(tmp_path / "release", matrix=polygons(tmp_path / "halves.geojson"))
    assert {row["origin"] for row in matrix(folder).to_pylist()} <= {"west", "=east"}
    assert (folder / MATRIX_ZONES).is_file()
    assert "'=east" in (folder / "matrix.csv").read_text()  # no spreadsheet runs it
    assert repeat_matrix(open_release(folder), folder).equals(matrix(folder))
    assert not messages(folder)


def test_a_forged_number_is_found_even_with_its_digest(folder: Path) -> None:
    assert not messages(folder)
    table = matrix(folder)
    forged = table.set_column(4, "high", pa.array([value and value + 1 for value in table["high"].to_pylist()]))
    pyarrow.parquet.write_table(forged, folder / "matrix.parquet")
    sign_again(folder)
    assert "matrix.parquet does not follow from the published flows and zones" in messages(folder)


def test_hidden_columns_and_rows_are_found(folder: Path) -> None:
    text = (folder / "matrix.csv").read_text()
    (folder / "matrix.csv").write_text(text + "872830828ffffff,872830828ffffff,3.0,0,9,1,5,0.0,3.0\n")
    sign_again(folder)
    assert "matrix.csv does not follow from the published flows and zones" in messages(folder)
    (folder / "matrix.csv").write_text(text.replace("sure", "truth", 1))
    sign_again(folder)
    assert "matrix.csv does not follow from the published flows and zones" in messages(folder)


def test_zones_without_outlines_have_no_matrix(tmp_path: Path) -> None:
    od = square_town(2, trips=600)
    trees = {axis: replace(getattr(od, axis), outlines=None) for axis in ("origins", "destinations")}
    release = anonymize(replace(od, **trees), Rule(trips=10), method="cascade")
    folder = release.save(tmp_path / "release")
    assert not (folder / "matrix.csv").exists()
    assert "matrix" not in open_release(folder).manifest


def test_export_writes_the_same_bytes_and_estimates_between_zones(folder: Path, tmp_path: Path) -> None:
    done = odkanon("export", folder, "-o", tmp_path / "again")
    assert done.returncode == 0, done
    for name in ("matrix.csv", "matrix.parquet"):
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes()
    halves = polygons(tmp_path / "halves.geojson")
    done = odkanon("export", folder, "--onto", halves, "-o", tmp_path / "halves")
    assert done.returncode == 0, done
    flows = pa.csv.read_csv(tmp_path / "halves" / "flows.csv").to_pylist()
    published = open_release(folder).manifest["published"]["trips"]
    assert sum(row["trips"] for row in flows) == pytest.approx(published, abs=0.01)
    assert all(row["trips_low"] <= row["trips"] + 1e-6 <= row["trips_high"] + 2e-6 for row in flows)
    zones = pa.csv.read_csv(tmp_path / "halves" / "zones.csv").to_pylist()
    assert sum(row["trips_from"] for row in zones) == pytest.approx(published, abs=0.01)
    omx = odkanon("export", folder, "--onto", halves, "--to", "omx", "-o", tmp_path / "halves.omx")
    assert omx.returncode == 0, omx


def test_a_question_is_answered_in_a_sentence(folder: Path, tmp_path: Path) -> None:
    halves = polygons(tmp_path / "halves.geojson")
    done = odkanon("ask", folder, "--from", "west", "--to", "=east", "--onto", halves)
    assert re.fullmatch(r"About [\d,]+ trips \([\d,]+ to [\d,]+\); certainly between [\d,]+ and [\d,]+\.", output(done))
    assert "trips" in output(odkanon("ask", folder, "--from", "48.85,2.35"))
    around = output(odkanon("ask", folder, "--from", "PARIS", "--to", "anywhere"))
    assert re.match(r"From around Paris \(\d+ km2\): about [\d,]+ trips \(", around), around
    for asked, answer in (
        (["--from", "north", "--onto", halves], "unknown place 'north'; choose from west, =east"),
        (["--from", "99,2.35"], "no latitude and longitude"),
        (["--from", "Santiago"], "and no town near its trips"),
        ([], "ask about a place: --from, --to, or both"),
    ):
        done = odkanon("ask", folder, *asked)
        assert (done.returncode, answer in output(done)) == (2, True), output(done)


def test_a_release_by_attributes_is_asked_by_them(tmp_path: Path) -> None:
    release = anonymize(by_mode(town(1)), Rule(trips=10), method="cascade", drop_order="place:6,mode,place")
    folder = release.save(tmp_path / "cube")
    od = release.od
    saved, estimates = open_release(folder), 0.0
    for number, mode in enumerate(("bike", "bus", "car")):
        row = saved.estimate(where=f'mode == "{mode}"', origin="anywhere", destination="anywhere").table.to_pylist()[0]
        true = int(od.flows.trips[od.flows.attributes[0] == number].sum())
        assert row["low"] <= true <= row["high"]
        assert row["low"] <= row["estimate"] <= row["high"]
        assert (
            row == saved.estimate(where={"mode": mode}, origin="anywhere", destination="anywhere").table.to_pylist()[0]
        )
        estimates += row["estimate"]
    assert estimates == pytest.approx(saved.manifest["published"]["trips"], rel=1e-3)
    assert not messages(folder)
