"""The matrix in every release folder: estimates between cells or given polygons, for readers of plain tables.

It is a calculation on the published rows and zones, which anybody can repeat from the folder.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet

from odkanon.core.parsing import parse_json
from odkanon.core.sql import write_csv
from odkanon.errors import InputError
from odkanon.estimate.flow_estimates import LEAST, FlowEstimates, can_estimate, read_flows
from odkanon.estimate.questions import read_areas
from odkanon.estimate.target_areas import Areas, CellAreas, PolygonAreas
from odkanon.release_format.conversions import to_shapes
from odkanon.release_format.folder import SavedRelease
from odkanon.release_format.names import MATRIX, MATRIX_PARQUET, MATRIX_ZONES, guard_text, write_json

_DECIMALS = 2


def write_matrix(
    saved: SavedRelease, folder: Path, onto: Any = None, connection: duckdb.DuckDBPyConnection | None = None
) -> dict[str, Any] | None:
    """Write the matrix of a release into a folder, and return how to repeat it; None where nothing can be estimated.

    Parameters
    ----------
    saved : SavedRelease
        The release.
    folder : Path
        Where ``matrix.csv`` and ``matrix.parquet`` go, and ``matrix_zones.geojson`` where polygons are given.
    onto : int, path, GeoDataFrame or None
        The places; see `SavedRelease.estimate`.
    connection : duckdb.DuckDBPyConnection, optional
        An open connection.
    """
    if not can_estimate(saved):
        return None
    reader = read_flows(saved)
    areas = read_areas(onto, None, reader)
    flows = reader.between(areas, areas)
    _write_tables(matrix_table(flows), folder, connection)
    return {**_describe(areas, folder), "least": LEAST, "trips_in_smaller_flows": _left_out(flows)}


def rewrite_matrix(saved: SavedRelease, source: Path, folder: Path) -> None:
    """Write the matrix of a release folder again, computed from its rows and zones: the same bytes."""
    if "matrix" not in saved.manifest:
        raise InputError(
            f"{saved.name} has no matrix: its zones have no outlines, or it was made by an earlier version"
        )
    _write_tables(repeat_matrix(saved, source), folder)


def _write_tables(table: pa.Table, folder: Path, connection: duckdb.DuckDBPyConnection | None = None) -> None:
    pyarrow.parquet.write_table(table, folder / MATRIX_PARQUET)
    write_csv(guard_text(table), folder / MATRIX, connection)


def matrix_table(flows: FlowEstimates) -> pa.Table:
    """Return estimates as they are published: in hundredths, and the shares that are sure, too."""
    table = flows.table
    for name in ("estimate", "sure"):
        rounded = np.round(table.column(name).to_numpy(), _DECIMALS)
        table = table.set_column(table.column_names.index(name), name, pa.array(rounded))
    return table


def repeat_matrix(saved: SavedRelease, folder: Path) -> pa.Table:
    """Return the matrix as it follows from the rows and zones of a folder."""
    return matrix_table(saved.estimate(onto=matrix_places(saved, folder)))


def matrix_places(saved: SavedRelease, folder: Path) -> int | PolygonAreas:
    """Return the places between which the matrix of a folder is: a resolution, or polygons."""
    about = saved.manifest["matrix"]
    if about["zones"] == "h3":
        return int(about["resolution"])
    features = parse_json((folder / MATRIX_ZONES).read_text(encoding="utf-8"))["features"]
    return PolygonAreas(
        [each["properties"]["id"] for each in features], to_shapes([each["geometry"] for each in features])
    )


def _left_out(flows: FlowEstimates) -> int:
    """Return the trips that are estimated outside of the places, or in flows too small to be listed."""
    return round(flows.total - float(flows.table.column("estimate").to_numpy().sum()))


def _describe(areas: Areas, folder: Path) -> Mapping[str, Any]:
    """Return what the places of a matrix are, and write them where they are polygons."""
    if isinstance(areas, CellAreas):
        return {"zones": "h3", "resolution": areas.resolution}
    assert isinstance(areas, PolygonAreas)
    import shapely

    features = [
        {"type": "Feature", "properties": {"id": code}, "geometry": json.loads(text)}
        for code, text in zip(areas.ids, shapely.to_geojson(areas.shapes), strict=True)
    ]
    write_json(folder / MATRIX_ZONES, {"type": "FeatureCollection", "features": features}, indent=None)
    return {"zones": MATRIX_ZONES}
