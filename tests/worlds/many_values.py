"""Trips with more combinations of attributes than 64 bits can number."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import h3
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import parquet

ORIGINS = ((48.85, 2.35), (45.76, 4.84))
DESTINATIONS = ((43.30, 5.37), (50.63, 3.06))
FEW = 6
"""Trips with the same attributes from each of two origins: twice as many would be a row."""


def many_values(path: Path, attributes: int, values: int) -> Path:
    """Write trips with so many attributes of so many values each, and two small groups that only numbers can confuse.

    The number of a combination is that of its origin, times the destinations, times the values of each attribute. With
    two destinations and seven attributes of 512 values, all origins have the same number in 64 bits.
    """
    names = [f"a{at}" for at in range(attributes)]
    trips = [(ORIGINS[0], DESTINATIONS[at % 2], [at] * attributes) for at in range(values) for _ in range(11)]
    trips += [(origin, DESTINATIONS[0], [7] * attributes) for origin in ORIGINS for _ in range(FEW)]
    columns = {
        "start_lat": [origin[0] for origin, _, _ in trips],
        "start_lon": [origin[1] for origin, _, _ in trips],
        "end_lat": [destination[0] for _, destination, _ in trips],
        "end_lon": [destination[1] for _, destination, _ in trips],
        **{name: [f"v{kinds[at]:04}" for _, _, kinds in trips] for at, name in enumerate(names)},
    }
    parquet.write_table(pa.table(columns), path)
    return path


def overstated(trips: Path, release: Path) -> list[dict[str, object]]:
    """Return the rows of a release that list more trips than there are between their zones with their values."""
    every, rows = parquet.read_table(trips).to_pandas(), parquet.read_table(release / "classes.parquet").to_pandas()
    every["trips"], names = 1, [name for name in every.columns if not name.endswith(("_lat", "_lon"))]
    every = every.groupby([*every.columns[:4], *names[:-1]], as_index=False)["trips"].sum()
    cells = {
        zone: [
            h3.latlng_to_cell(lat, lon, 10) for lat, lon in zip(every[f"{end}_lat"], every[f"{end}_lon"], strict=True)
        ]
        for zone, end in (("origin", "start"), ("destination", "end"))
    }

    @cache
    def within(end: str, zone: str) -> npt.NDArray[np.bool_]:
        return np.array([zone in ("world", h3.cell_to_parent(cell, _resolution(zone))) for cell in cells[end]])

    found = []
    for row in rows.to_dict("records"):
        inside = within("origin", row["origin"]) & within("destination", row["destination"])
        for name in names[:-1]:
            inside &= (row[name] == "any") | (every[name] == row[name]).to_numpy()
        if row["trips"] > every["trips"][inside].sum():
            found.append(row)
    return found


def _resolution(zone: str) -> int:
    return 0 if zone == "world" else h3.get_resolution(zone)
