"""A steward's week: the commands of the guides, one after the other, on files as offices have them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("geopandas")
pytest.importorskip("pyogrio")
pytest.importorskip("python_calamine")

import geopandas
import shapely

from cli.here import run
from odkanon import make_survey, open_release
from worlds.files import spreadsheet

SPANISH = {
    "person": "id_persona",
    "start_time": "hora_inicio",
    "start_lat": "lat_origen",
    "start_lon": "lon_origen",
    "end_lat": "lat_destino",
    "end_lon": "lon_destino",
    "weight": "factor",
    "mode": "modo",
}
SETTINGS = """
[anonymize]
zoning = "zonas.gpkg"
id = "ZONA"
parent = ["COMUNA"]
by = ["modo", "hour:6-12,12-21,21-6"]
output = "releases/{input}"
"""


def spanish(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6f}".replace(".", ",")
    return value if isinstance(value, str) else f"{value:%d/%m/%Y %H:%M}"


def write_month(path: Path, rows: list[dict[str, Any]]) -> None:
    lines = [";".join(SPANISH.values()), *(";".join(spanish(row[name]) for name in SPANISH) for row in rows)]
    path.write_text("\r\n".join(lines) + "\r\n", encoding="latin-1")


def write_zones(path: Path) -> None:
    """Write squares in metres, with a gap, an overlap and towns, beside a layer without geometry as QGIS adds it."""
    codes, shapes = [], []
    for column in range(12):
        for row in range(8):
            west, south = 2.1 + 0.045 * column, 48.72 + 0.035 * row
            wide = 1.3 if (column, row) == (2, 2) else 1.0
            if (column, row) != (6, 4):
                codes.append({"ZONA": f"{column:02}{row:02}", "COMUNA": f"C{column // 4}{row // 4}"})
                shapes.append(shapely.box(west, south, west + 0.045 * wide, south + 0.035))
    geopandas.GeoDataFrame(codes, geometry=shapes, crs=4326).to_crs(2154).to_file(path, layer="zonas")
    styles = geopandas.pd.DataFrame({"style": ["red"]})
    import pyogrio

    pyogrio.write_dataframe(styles, path, layer="layer_styles", append=True)


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    survey = make_survey()
    rows = survey.take(np.random.default_rng(0).permutation(survey.num_rows)[:7000]).to_pylist()
    for name, part in (("mayo", rows[:3000]), ("mayo-completo", rows[:3200]), ("junio", rows[3200:])):
        write_month(tmp_path / f"{name}.csv", part)
    write_zones(tmp_path / "zonas.gpkg")
    columns = [f"{ours}={theirs}" for ours, theirs in SPANISH.items() if ours != "mode"]
    (tmp_path / "odkanon.toml").write_text(f"{SETTINGS}column = {json.dumps(columns)}\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.filterwarnings("ignore")
def test_a_week(office: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("anonymize", "mayo.csv") == 0
    assert run("audit", "releases/mayo.recipe.json") == 0
    assert run("check", "--template", "-o", "policy.toml") == 0
    assert run("evidence", "releases/mayo", "-o", "sheet", "--policy", "policy.toml", "--seconds", 2) in (0, 1)
    sheet = json.loads((office / "sheet.json").read_text())
    outcomes = {each["attack"]: each["verdict"] for each in sheet["attacks"]}
    assert outcomes["complement"] == "clean"
    assert outcomes["intervals"] in ("clean", "not settled")  # in two seconds
    assert not sheet["verdict"]["stops"]

    # The next month, with what came late in May.
    assert run("correct", "releases/mayo", "--input", "mayo-completo.csv", "--late", "tarde.csv") == 0
    assert run("anonymize", "junio.csv", "tarde.csv", "-o", "releases/junio") == 0
    recipe = json.loads((office / "releases/junio.recipe.json").read_text())
    assert recipe["about"]["input"]["rows"] == 3800 + len((office / "tarde.csv").read_text().splitlines()) - 1
    assert run("audit", "releases") in (0, 1)

    # For the planners.
    assert run("export", "releases/junio", "--to", "xlsx", "-o", "junio.xlsx") == 0
    assert run("export", "releases/junio", "--to", "omx", "-o", "junio.omx") == 0
    zones = {each["properties"]["id"] for each in open_release(office / "releases/junio").features}
    assert any(len(zone) == 4 and zone.isdigit() for zone in zones)

    # For the person who signs.
    assert run("evidence", "--queue", "releases", "--seconds", 2, "--policy", "policy.toml") in (0, 1)
    assert run("evidence", "releases/junio", "--decide", "approved", "--by", "R. Soto") == 0
    assert "R. Soto" in json.loads((office / "releases/junio.decision.json").read_text())["by"]
    capsys.readouterr()


def test_a_workbook_with_a_code_book(office: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line.split(";") for line in (office / "mayo.csv").read_text(encoding="latin-1").splitlines()[:400]]
    spreadsheet(office / "mayo.xlsx", [["variable", "valor"], ["modo", "car"]], lines)
    assert run("anonymize", "mayo.xlsx", "--k", 3) == 0
    assert run("audit", "releases/mayo.recipe.json") == 0
    assert "Read odkanon.toml: by, column, id, output, parent, zoning" in capsys.readouterr().err
