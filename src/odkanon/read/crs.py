"""Coordinates in other reference systems, as degrees of latitude and longitude."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from odkanon.core.arrays import Bools
from odkanon.errors import InputError
from odkanon.read.tables.column_names import COORDINATES
from odkanon.read.trip_checks import Checked, drop_rows
from odkanon.zoning.cells import Floats


def to_degrees(rows: Checked, crs: str) -> Checked:
    """Return rows whose ``start_lon, end_lon`` (x) and ``start_lat, end_lat`` (y) are degrees (WGS 84).

    Rows that the reference system cannot place on the globe are turned away and counted.
    """
    table = rows.table
    degrees, good = ends_in_degrees([table.column(name).to_numpy() for name in COORDINATES], crs)
    for name, values in zip(COORDINATES, degrees, strict=True):
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    return drop_rows(replace(rows, table=table), good, nowhere(crs))


def ends_in_degrees(ends: list[Floats], crs: str) -> tuple[list[Floats], Bools]:
    """Return ``start_lat, start_lon, end_lat, end_lon`` in degrees, and which rows lie on the globe."""
    transformer = _transformer(crs)
    degrees, good = [], np.ones(len(ends[0]), dtype=bool)
    for y, x in (ends[:2], ends[2:]):
        lon, lat = transformer.transform(x, y)
        good &= np.isfinite(lon) & np.isfinite(lat) & (np.abs(lat) <= 90) & (np.abs(lon) <= 180)
        degrees += [lat, lon]
    return degrees, good


def nowhere(crs: str) -> str:
    """Return the reason for which rows are turned away that a reference system cannot place."""
    return f"that {crs} cannot place on the globe"


def check_crs(crs: str) -> None:
    """Raise if a reference system is not known; worth asking before the work begins."""
    _transformer(crs)


def _transformer(crs: str) -> Any:
    try:
        import pyproj
    except ImportError:
        raise InputError("coordinates in another reference system need pyproj: pip install 'odkanon[geo]'") from None
    try:
        return pyproj.Transformer.from_crs(crs, "EPSG:4326", always_xy=True)
    except pyproj.exceptions.ProjError:
        raise InputError(f"{crs!r} is no known reference system; give one such as EPSG:32719") from None
