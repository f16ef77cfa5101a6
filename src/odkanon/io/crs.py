"""Coordinates in other reference systems, as degrees of latitude and longitude."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from odkanon.errors import InputError
from odkanon.io.checks import Checked, drop_rows


def to_degrees(rows: Checked, crs: str) -> Checked:
    """Return rows whose ``start_lon, end_lon`` (x) and ``start_lat, end_lat`` (y) are degrees (WGS 84).

    Rows that the reference system cannot place on the globe are turned away and counted.
    """
    transformer = _transformer(crs)
    table, good = rows.table, np.ones(len(rows.table), dtype=bool)
    for end in ("start", "end"):
        names = (f"{end}_lon", f"{end}_lat")
        lon, lat = transformer.transform(*(table.column(name).to_numpy() for name in names))
        good &= np.isfinite(lon) & np.isfinite(lat) & (np.abs(lat) <= 90) & (np.abs(lon) <= 180)
        for name, values in zip(names, (lon, lat), strict=True):
            table = table.set_column(table.column_names.index(name), name, pa.array(values))
    return drop_rows(replace(rows, table=table), good, f"that {crs} cannot place on the globe")


def _transformer(crs: str) -> Any:
    try:
        import pyproj
    except ImportError:
        raise InputError("coordinates in another reference system need pyproj: pip install 'odkanon[geo]'") from None
    try:
        return pyproj.Transformer.from_crs(crs, "EPSG:4326", always_xy=True)
    except pyproj.exceptions.ProjError:
        raise InputError(f"{crs!r} is no known reference system; give one such as EPSG:32719") from None
