"""Inputs that need more than reading columns: other reference systems, times in two ways, the taxis of Porto."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyproj

from engine.same import messy, survey
from odkanon.read.tables.column_names import COORDINATES

UTM = "EPSG:32631"


def projected(rows: int = 1_500) -> pa.Table:
    """The messy survey in metres; some rows lie nowhere on earth, two of them twice."""
    table = messy(rows)
    to_metres = pyproj.Transformer.from_crs("EPSG:4326", UTM, always_xy=True)
    lat_lon = [table.column(name).to_numpy().copy() for name in COORDINATES]
    metres = []
    for lat, lon in (lat_lon[:2], lat_lon[2:]):
        x, y = to_metres.transform(lon, lat)
        metres += [np.where(np.isfinite(lat), y, lat), np.where(np.isfinite(lon), x, lon)]
    for values in metres[:2]:
        values[200:205] = 1e12
    for name, values in zip(COORDINATES, metres, strict=True):
        column = pa.array(values, mask=np.asarray(table.column(name).is_null()))
        table = table.set_column(table.column_names.index(name), name, column)
    return pa.concat_tables([table, table.slice(202, 2)])


def with_times(write: Any, rows: int = 600) -> pa.Table:
    """A survey whose times are texts, the way a function of their number writes them; the first rows come twice."""
    table = survey(rows)
    for name in ("start_time", "end_time"):
        plain = [str(time) for time in table.column(name).to_pylist()]
        texts = pa.array([write(number, text) for number, text in enumerate(plain)])
        table = table.set_column(table.column_names.index(name), name, texts)
    return pa.concat_tables([table, table.slice(0, 20)])


WRITTEN = {
    "all with offsets": lambda number, text: text + ("+01:00" if number % 2 else "Z"),
    "none": lambda number, text: text,
    "only some": lambda number, text: text + " +0100" if number % 7 == 0 else text,
    "only some, and some unreadable": lambda number, text: "soon" if number % 3 else text + "Z" * (number % 2),
}


def same_clock() -> pa.Table:
    """Trips of one person that are the same by the clock, but not by the offset, which makes them copies."""
    table = with_times(WRITTEN["all with offsets"], 100)
    other = table
    for name in ("start_time", "end_time"):
        texts = pa.array([text.replace("+01:00", "-03:30") for text in table.column(name).to_pylist()])
        other = other.set_column(other.column_names.index(name), name, texts)
    return pa.concat_tables([table, other])


def porto(rows: int = 300) -> pa.Table:
    """Tracks as the taxis of Porto have them, good and bad ones, some twice."""
    random = np.random.default_rng(6)
    tracks = []
    for _ in range(rows):
        steps = random.normal(0, 0.002, (random.integers(1, 12), 2))
        points = np.array([-8.6186, 41.1414]) + np.cumsum(steps, axis=0)
        tracks.append("[" + ",".join(f"[{lon:.6f},{lat:.6f}]" for lon, lat in points) + "]")
    tracks[:5] = ["[]", "", "[[-8.6,41.1]", "[[-8.6,north],[-8.6,41.1]]", "[[-8.6,95.0],[-8.6,41.1]]"]
    table = pa.table(
        {
            "TRIP_ID": [str(number) for number in range(rows)],
            "TAXI_ID": random.integers(20_000, 20_020, rows),
            "TIMESTAMP": 1_372_636_858 + np.arange(rows),
            "MISSING_DATA": [number % 11 == 0 for number in range(rows)],
            "POLYLINE": tracks,
        }
    )
    return pa.concat_tables([table, table.slice(50, 30)])
