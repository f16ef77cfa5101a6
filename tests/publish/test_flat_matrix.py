"""The matrix of a release folder: it follows from the rows, on cells or polygons, and nothing else fits in."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from audit.tamper import edit_json, sign_again
from odkanon import audit_releases, open_release
from odkanon.estimate.flat_matrix import repeat_matrix
from odkanon.methods import anonymize
from odkanon.model.rule import Rule
from odkanon.release_format.names import MATRIX_ZONES
from worlds.matrices import town
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
