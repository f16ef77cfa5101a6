"""A small survey: trips with a time, a mode, a sex and an age, for cubes."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

MODES = np.array(["car", "bus", "walk", "bike"])


def survey(rows: int = 1500, seed: int = 0, **more: Any) -> pa.Table:
    """Trips between a few places on a Monday, at any hour, with the mode, sex and age of whoever made them."""
    random = np.random.default_rng(seed)
    places = np.array([(48.85, 2.35), (48.86, 2.36), (48.84, 2.30), (48.90, 2.40), (48.80, 2.20)])
    ends = [places[random.integers(0, 5, rows) * (random.random(rows) < 0.6)] for _ in range(2)]
    ends = [end + random.normal(0, 0.004, (rows, 2)) for end in ends]
    hour = random.choice(24, rows)
    return pa.table(
        {
            "person": [f"p{each}" for each in random.integers(0, rows // 2, rows)],
            "start_time": [datetime(2024, 3, 4) + timedelta(hours=int(at), minutes=7) for at in hour],
            "start_lat": ends[0][:, 0],
            "start_lon": ends[0][:, 1],
            "end_lat": ends[1][:, 0],
            "end_lon": ends[1][:, 1],
            "weight": random.integers(1, 40, rows) / 4,
            "mode": MODES[np.minimum(random.poisson(0.8, rows), 3)],
            "sex": np.array(["f", "m"])[random.integers(0, 2, rows)],
            "age": random.integers(5, 90, rows),
            **more,
        }
    )
