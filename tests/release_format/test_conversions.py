"""Published flows and zones as the tables of other libraries: same rows, same totals, same places."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("geopandas")
pytest.importorskip("pandas")
pytest.importorskip("polars")
pytest.importorskip("shapely")

import duckdb
import geopandas
import numpy as np
import polars as pl
import pyarrow as pa

import odkanon
from odkanon.errors import ColumnNotFoundError
from odkanon.release_format.conversions import FlowTable, ZoneTable

SQUARE = {"type": "Polygon", "coordinates": [[[2, 48], [3, 48], [3, 49], [2, 49], [2, 48]]]}


@pytest.fixture
def table() -> pa.Table:
    return pa.table(
        {
            "origin": ["b", "a", "a", "a"],
            "destination": ["a", "c", "a", "c"],
            "mode": ["car", "car", "any", "bike"],
            "trips": [12, 10, 31, 11],
            "weight": [24.5, 20.25, 60.0, 1.5],
        }
    )


def features() -> list[dict[str, Any]]:
    return [
        {"properties": {"axis": "origin", "id": "a", "trips": 52}, "geometry": SQUARE},
        {"properties": {"axis": "origin", "id": "b", "trips": 12, "level": 1}, "geometry": None},
    ]


def test_every_library_has_the_same_rows(table: pa.Table) -> None:
    flows = FlowTable(table)
    assert len(flows) == 4
    assert flows.to_arrow().equals(table)
    assert flows.to_pandas().to_dict("list") == table.to_pydict()
    assert flows.to_polars().to_dicts() == table.to_pylist()
    assert pl.DataFrame(flows).to_dicts() == table.to_pylist()
    assert pa.table(flows).equals(table)
    with duckdb.connect() as connection:
        assert connection.execute("SELECT sum(trips) FROM flows").fetchall() == [(64,)]


def test_a_matrix_has_the_ids_of_its_rows_and_columns(table: pa.Table) -> None:
    matrix = FlowTable(table).to_matrix()
    assert (matrix.origins, matrix.destinations) == (["a", "b"], ["a", "c"])
    assert matrix.values.format == "csr"
    np.testing.assert_array_equal(matrix.values.toarray(), [[31, 21], [12, 0]])
    weight = FlowTable(table).to_matrix("weight")
    np.testing.assert_array_equal(weight.values.toarray(), [[60, 21.75], [24.5, 0]])
    with pytest.raises(ColumnNotFoundError, match="did you mean 'weight'"):
        FlowTable(table).to_matrix("wieght")


def test_no_flows_are_an_empty_matrix(table: pa.Table) -> None:
    empty = FlowTable(table.slice(0, 0))
    assert len(empty) == 0
    assert empty.to_matrix().values.shape == (0, 0)
    assert "Largest flows" in empty._repr_html_()


def test_a_notebook_shows_the_largest_flows_and_no_markup_of_theirs(table: pa.Table) -> None:
    table = pa.concat_tables([table.set_column(0, "origin", pa.array(["<b>", "a", "a", "a"]))] * 3)
    page = FlowTable(table)._repr_html_()
    assert page.count("<tr>") == 6
    assert page.index("<td>31</td>") < page.index("<td>12</td>")
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert repr(FlowTable(table)) == "FlowTable(12 flows: origin, destination, mode, trips, weight)"


def test_zones_are_a_geodataframe() -> None:
    zones = ZoneTable(features())
    frame = zones.to_geopandas()
    assert isinstance(frame, geopandas.GeoDataFrame)
    assert frame.crs.to_epsg() == 4326
    assert frame.geometry.iloc[0].bounds == (2, 48, 3, 49)
    assert frame.geometry.isna().tolist() == [False, True]
    assert frame["id"].tolist() == ["a", "b"]
    assert zones.to_arrow().to_pylist()[1] == {"axis": "origin", "id": "b", "trips": 12, "level": 1}
    assert zones.to_pandas().columns.tolist() == ["axis", "id", "trips", "level"]
    assert repr(zones) == "ZoneTable(2 zones, 1 with a geometry)"
    assert len(ZoneTable([]).to_geopandas()) == 0


@pytest.mark.parametrize(
    ("conversion", "package"),
    [
        ("FlowTable(table).to_pandas()", "pandas"),
        ("FlowTable(table).to_polars()", "polars"),
        ("ZoneTable([]).to_geopandas()", "geopandas"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(conversion: str, package: str) -> None:
    code = (
        "import sys\n"
        "from importlib.abc import MetaPathFinder\n"
        "class Without(MetaPathFinder):\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {package!r}: raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Without())\n"
        "import pyarrow as pa\n"
        "from odkanon.errors import MissingExtraError\n"
        "from odkanon.release_format.conversions import FlowTable, ZoneTable\n"
        "table = pa.table({'origin': ['a'], 'destination': ['a'], 'trips': [10]})\n"
        f"try: {conversion}\n"
        "except MissingExtraError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"needs {package}: pip install 'odkanon[dataframes]'" in done.stdout


def test_a_release_and_its_estimates_introduce_themselves_in_a_line(tmp_path: Path) -> None:
    release = odkanon.anonymize(odkanon.make_survey().slice(0, 4000), k=10, resolution=7)
    saved = odkanon.open_release(release.save(tmp_path / "release"))
    assert repr(saved).startswith(f"SavedRelease(release, cascade: {len(saved.flows):,} classes, ")
    assert saved.manifest["statement"] in saved._repr_html_()
    estimates = saved.estimate(onto=6)
    published = saved.measure("trips").sum()
    assert repr(estimates) == f"FlowEstimates({len(estimates):,} flows of {published:,.0f} published trips)"
    first_row = estimates._repr_html_().split("<tbody>")[1].split("</tr>")[0]
    assert f"<td>{max(estimates.to_pandas().estimate):,.10g}</td>" in first_row
    assert "None" not in first_row
