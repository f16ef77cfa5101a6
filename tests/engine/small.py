"""Small tables of trips that name persons and households, and their matrices in a database."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from odkanon.engine.dispatch import load_table
from odkanon.engine.duckdb.backend import DuckDb, DuckInput
from odkanon.model.od import Matrix
from odkanon.read.input_spec import InputSpec
from odkanon.read.tables.open_table import open_table
from worlds.people import places


def table(seed: int, trips: int = 90) -> pa.Table:
    """Trips between eleven places of three families and one far away, of persons in households; some name nobody."""
    random = np.random.default_rng(seed)
    busy = random.dirichlet(np.full(len(places()), 0.7))
    person = random.integers(0, 25, trips)
    named = random.random(trips) > 0.1
    return pa.table(
        {
            "origin": random.choice(places(), trips, p=busy),
            "destination": random.choice(places(), trips, p=busy[::-1]),
            "weight": random.integers(1, 9, trips) / 2,
            "person": pa.array([f"p{who}" for who in person], mask=~named),
            "household": pa.array([f"h{who // 3}" for who in person], mask=~named),
        }
    )


def in_duckdb(trips: pa.Table, fetchable: int = 0) -> Matrix:
    """Return the matrix of some trips in a database, where it stays unless it is small enough to be fetched."""
    return load_table(DuckInput(open_table(trips), DuckDb(fetchable=fetchable)), InputSpec())
