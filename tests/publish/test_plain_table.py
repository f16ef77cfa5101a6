"""The plain table of a release: the estimates of every combination, as a workbook and as matrices."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from cli.runner import odkanon, output
from odkanon import anonymize, make_survey, open_release
from odkanon.publish.export.plain_table import read_plain_table

h5py = pytest.importorskip("h5py")
calamine = pytest.importorskip("python_calamine")


@pytest.fixture(scope="module")
def cube(tmp_path_factory: pytest.TempPathFactory) -> Path:
    survey = make_survey().slice(0, 6_000)
    return anonymize(survey, by=["mode", "hour:0-9,9-24"], resolution=7).save(tmp_path_factory.mktemp("cube") / "cube")


def test_parts_add_up_to_the_whole_and_bounds_hold(cube: Path) -> None:
    """Estimates of all combinations add up to the answer without attributes, but for what is too small to be listed."""
    release = open_release(cube)
    found = read_plain_table(release, onto=5)
    whole = {(row["origin"], row["destination"]): row for row in release.estimate(onto=5).table.to_pylist()}
    parts = found.table.group_by(["origin", "destination"]).aggregate([("estimate", "sum"), ("low", "sum")]).to_pylist()
    for row in parts:
        pair = whole[row["origin"], row["destination"]]
        assert row["estimate_sum"] == pytest.approx(pair["estimate"], abs=0.06 * 12)
        assert row["low_sum"] <= pair["low"]
    assert sum(row["estimate_sum"] for row in parts) == pytest.approx(release.measure("trips").sum(), rel=0.02)
    assert all(row["low"] <= row["estimate"] + 0.005 for row in found.table.to_pylist())
    assert 0 < found.exact < 1


def test_a_workbook_explains_itself_and_is_the_same_in_every_run(cube: Path, tmp_path: Path) -> None:
    for name, more in (("long.xlsx", ()), ("again.xlsx", ()), ("wide.xlsx", ("--wide",))):
        done = odkanon("export", cube, "--to", "xlsx", "--onto", 5, "-o", tmp_path / name, *more)
        assert done.returncode == 0, done.stderr
        assert "of the trips are certain to be where it has them" in output(done)
    assert (tmp_path / "long.xlsx").read_bytes() == (tmp_path / "again.xlsx").read_bytes()
    book = calamine.CalamineWorkbook.from_path(str(tmp_path / "long.xlsx"))
    assert book.sheet_names == ["About", "Flows"]
    explained = {row[0] for row in book.get_sheet_by_name("About").to_python()}
    header, *rows = book.get_sheet_by_name("Flows").to_python()
    assert {f"column {name}" for name in header[2:]} <= explained
    wide = calamine.CalamineWorkbook.from_path(str(tmp_path / "wide.xlsx"))
    assert wide.sheet_names == ["About", "Estimate", "Low", "High"]
    titles, *pairs = wide.get_sheet_by_name("Estimate").to_python()
    total = sum(sum(row[2:]) for row in pairs)
    assert total == pytest.approx(sum(row[header.index("estimate")] for row in rows))
    assert len({tuple(row[:2]) for row in pairs}) == len(pairs)
    assert "car 00-09" in titles


def test_texts_are_neither_xml_nor_formulas(tmp_path: Path) -> None:
    survey = make_survey().slice(0, 3_000).to_pandas()
    survey["mode"] = survey["mode"].map({"car": "=1+1", "walk": "<b>&"}).fillna("rest")
    folder = anonymize(survey, by="mode", resolution=6).save(tmp_path / "odd")
    assert odkanon("export", folder, "--to", "xlsx", "--onto", 4, "-o", tmp_path / "odd.xlsx").returncode == 0
    rows = calamine.CalamineWorkbook.from_path(str(tmp_path / "odd.xlsx")).get_sheet_by_name("Flows").to_python()
    assert {"=1+1", "<b>&"} <= {row[2] for row in rows}
    with zipfile.ZipFile(tmp_path / "odd.xlsx") as book:
        assert b"<f>" not in book.read("xl/worksheets/sheet2.xml")


def test_omx_has_a_matrix_for_each_combination(cube: Path, tmp_path: Path) -> None:
    done = odkanon("export", cube, "--to", "omx", "--onto", 5, "-o", tmp_path / "t.omx")
    assert done.returncode == 0, done.stderr
    assert "of the trips are certain to be where it has them" in output(done)
    with h5py.File(tmp_path / "t.omx") as file:
        parts = [name for name in file["data"] if name != "trips"]
        assert "trips mode=car hour=00-09" in parts
        assert sum(file["data"][name][:] for name in parts) == pytest.approx(file["data"]["trips"][:])
