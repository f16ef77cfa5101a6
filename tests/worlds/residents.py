"""Residents by place: one row a person, their municipality, and what is known of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from odkanon.zoning.cells import cell_to_str, latlng_to_cell

EDUCATION = ("none", "school", "trade", "college", "doctor")


def residents(people: int, municipalities: int = 60, seed: int = 0) -> pa.Table:
    """Return residents, more of them in the first municipalities."""
    random = np.random.default_rng(seed)
    share = 1 / np.arange(1, municipalities + 1)
    home = random.choice(municipalities, people, p=share / share.sum())
    lat, lon = np.asarray(48.5 + home // 8 * 0.03, np.float64), np.asarray(2 + home % 8 * 0.04, np.float64)
    columns = {
        "home": [f"m{each:03}" for each in home],
        "home_lat": lat,
        "home_lon": lon,
        "cell": cell_to_str(latlng_to_cell(lat, lon, 8)),
        "age": random.integers(5, 90, people),
        "sex": random.choice(["f", "m"], people),
        "education": random.choice(EDUCATION, people, p=[0.1, 0.4, 0.25, 0.2, 0.05]),
        "weight": random.choice([0.5, 1.25, 2.0], people),
    }
    return pa.table(columns)


def tiers(municipalities: int = 60) -> pa.Table:
    """Return the municipalities with their district and county."""
    numbers = range(municipalities)
    return pa.table(
        {
            "municipality": [f"m{each:03}" for each in numbers],
            "district": [f"d{each // 6:02}" for each in numbers],
            "county": [f"c{each // 30}" for each in numbers],
        }
    )


def counted(table: pa.Table, by: Sequence[str], unit: str) -> pa.Table:
    """Return a table with a row for each combination that occurs, and how many residents it has."""
    found = table.group_by(list(by)).aggregate([([], "count_all")])
    return found.rename_columns([*by, unit])
