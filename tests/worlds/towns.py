"""A town of four zones in two districts, and who goes where in it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import pyarrow as pa

import oracle
from odkanon import (
    Hierarchy,
    read_hierarchy,
    read_matrix,
)
from worlds.records import World, table_of


def four_zones() -> Hierarchy:
    return read_hierarchy(pa.table({"zone": ["a1", "a2", "b1", "b2"], "district": ["a", "a", "b", "b"]}))


def town(*flows: tuple[str, str, Sequence[str | None]]) -> World:
    """Return flows between zones of a small table, each with the persons of its trips."""
    trips = [oracle.Trip(start, end, Fraction(1), who) for start, end, people in flows for who in people]
    table = table_of(trips).set_column(3, "person", pa.array([trip.person for trip in trips], pa.string()))
    return World(trips, read_matrix(table, hierarchy=four_zones(), engine="memory"), lambda leaf: [])


def people(count: int, prefix: str = "p") -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


BUSY = ["boss"] * 30 + people(10)
