"""Random small worlds for hypothesis: trips between H3 cells or between zones of a lookup table."""

from __future__ import annotations

import atexit
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from typing import Any

import h3
import pyarrow as pa
from hypothesis import strategies as st

import oracle
from odkanon import InputSpec, ODMatrix, Rule, read_hierarchy
from odkanon.core.sql import connect
from odkanon.read.od_table import spec_to_matrix
from odkanon.read.tables.table import SourceTable
from odkanon.zoning.hierarchy import Hierarchy

PLACES = {
    "Paris": (48.8566, 2.3522),
    "Turin": (45.0703, 7.6869),
    "New York": (40.7128, -74.0060),
    "Sydney": (-33.87, 151.2),
}


@cache
def cells(place: str, resolution: int) -> list[str]:
    """Cells near and not so near to each other: siblings, cousins, and a few far away."""
    centre = h3.latlng_to_cell(*PLACES[place], resolution)
    near = sorted(h3.grid_disk(centre, 2))
    far = [h3.latlng_to_cell(PLACES[place][0] + step, PLACES[place][1] + step, resolution) for step in (0.02, 0.1, 0.7)]
    return near[:14] + far


@dataclass(frozen=True)
class World:
    """Trips, with what the product makes of them and how the oracle climbs their tree."""

    trips: list[oracle.Trip]
    od: ODMatrix
    path: oracle.Path

    @property
    def pairs(self) -> oracle.Pairs:
        return oracle.pairs_of(self.trips)


@st.composite
def trips_between(draw: st.DrawFn, ids: list[str]) -> list[oracle.Trip]:
    origins = draw(st.lists(st.sampled_from(ids), min_size=1, max_size=8, unique=True))
    destinations = draw(st.lists(st.sampled_from(ids), min_size=1, max_size=8, unique=True))
    quarter = st.integers(1, 40).map(lambda n: Fraction(n, 4))
    trip = st.builds(
        oracle.Trip, st.sampled_from(origins), st.sampled_from(destinations), quarter, st.integers(0, 9).map(str)
    )
    return draw(st.lists(trip, min_size=1, max_size=60))


def table_of(trips: list[oracle.Trip]) -> pa.Table:
    return pa.table(
        {
            "origin": pa.array([trip.origin for trip in trips], pa.string()),
            "destination": pa.array([trip.destination for trip in trips], pa.string()),
            "weight": pa.array([float(trip.weight) for trip in trips], pa.float64()),
            "person": pa.array([str(trip.person) for trip in trips], pa.string()),
        }
    )


@cache
def shared() -> Any:
    """Return one database for all worlds: to make one takes longer than to read so few trips."""
    atexit.register(shared.cache_clear)
    return connect()


def od_of_trips(trips: list[oracle.Trip], hierarchy: Hierarchy | None = None) -> ODMatrix:
    """Read trips as `read_matrix` does, but without a database of their own."""
    table = table_of(trips)
    reading = InputSpec(table, hierarchy=hierarchy)
    shared().register("source", table)
    opened = SourceTable(shared(), "source", tuple(table.column_names), "the table")
    return spec_to_matrix(reading, table=reading.standardize(opened))


@st.composite
def h3_worlds(draw: st.DrawFn) -> World:
    resolution = draw(st.sampled_from([3, 8, 10, 15]))
    places = draw(st.sampled_from([["Paris"], ["Paris", "Turin"], ["New York", "Sydney"]]))
    ids = [cell for place in places for cell in cells(place, resolution)]
    trips = draw(trips_between(ids))
    return World(trips, od_of_trips(trips), partial(path_to_root, resolution=resolution))


def path_to_root(leaf: Any, *, resolution: int) -> list[oracle.Node]:
    """The ancestors of a cell, from itself to the world."""
    own = [(level, h3.str_to_int(h3.cell_to_parent(leaf, resolution - level))) for level in range(resolution + 1)]
    return [*own, (resolution + 1, 0)]


@st.composite
def lookup_worlds(draw: st.DrawFn) -> World:
    names = draw(st.permutations([f"z{n:02}" for n in range(12)]))
    parents = draw(st.lists(st.sampled_from("pqrst"), min_size=12, max_size=12))
    regions = dict(zip("pqrst", draw(st.lists(st.sampled_from("XYZ"), min_size=5, max_size=5)), strict=True))
    parent_of = dict(zip(names, parents, strict=True))
    table = pa.table({"zone": names, "town": parents, "region": [regions[parent] for parent in parents]})
    trips = draw(trips_between(sorted(names)))

    def path(leaf: Any) -> list[oracle.Node]:
        return [(0, leaf), (1, parent_of[leaf]), (2, regions[parent_of[leaf]]), (3, "world")]

    return World(trips, od_of_trips(trips, read_hierarchy(table)), path)


worlds = st.one_of(h3_worlds(), lookup_worlds())


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    """One threshold or several, from trivial to unreachable."""
    measures = draw(st.sets(st.sampled_from(["trips", "weight", "persons"]), min_size=1))
    top = {"trips": 70, "weight": 400, "persons": 11}
    thresholds: dict[str, Any] = {
        measure: draw(st.integers(1, top[measure]) | st.integers(1, 6)) for measure in sorted(measures)
    }
    return Rule(**thresholds)


def limits_of(rule: Rule) -> oracle.Limits:
    return oracle.Limits(
        *(None if value is None else Fraction(value) for value in (rule.trips, rule.weight, rule.persons))
    )


budgets = st.sampled_from([0.0, 0.05, 0.1, 0.25, 0.6])
