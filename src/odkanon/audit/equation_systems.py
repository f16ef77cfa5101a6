"""Systems of equations from the rows of releases: over trips where these are known, over possible trips otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from duckdb import DuckDBPyConnection as Connection

from odkanon.audit.counting.counted_measures import MEASURES, AuditMeasure
from odkanon.audit.differencing.equations import ColumnContributors, EquationSystem
from odkanon.audit.relations import inside_mark
from odkanon.audit.release_reader import AXES, PublishedRelease
from odkanon.audit.zone_geometry import AREA, ZonePlaces
from odkanon.core.arrays import Bools, Ints

MOST_CELLS = 20_000_000
"""The number of pairs of places above which empty ones are left out; that can only make groups look smaller."""

Sides = Sequence[Sequence[PublishedRelease]]  # releases to compare; those of one side share no trips
Region = frozenset[tuple[int, str]]  # a part of an axis, as the zones ``(release, zone)`` around it


@dataclass(frozen=True, eq=False)
class NumberedRows:
    """The rows of all releases, by their numbers."""

    release: Ints
    origin: list[str]
    destination: list[str]
    trips: Ints


def number_rows(connection: Connection) -> NumberedRows:
    """Create the table ``numbered`` of all published rows, and return it."""
    connection.execute(
        "CREATE OR REPLACE TABLE numbered AS SELECT row_number() OVER (ORDER BY release, origin, destination) - 1 "
        "AS number, * FROM classes"
    )
    table = connection.sql(
        "SELECT release, origin, destination, coalesce(trips, 0) AS trips FROM numbered ORDER BY number"
    ).to_arrow_table()
    columns = table.to_pydict()
    return NumberedRows(
        np.array(columns["release"], dtype=np.int64),
        columns["origin"],
        columns["destination"],
        np.array(columns["trips"], dtype=np.int64),
    )


def make_system(
    connection: Connection, places: ZonePlaces, sides: Sides, atoms: Sequence[frozenset[int]]
) -> EquationSystem:
    """Return the rows of some releases as a system over their trips.

    Any place may have a trip of each atom: a set of releases, by number, to which some trip belongs exactly.
    """
    releases = [release for side in sides for release in side]
    required = {"trips"}.union(*(release.thresholds for release in releases))
    names = [each.name for each in MEASURES if each.adds_up and each.name in required]
    distinct = [each for each in MEASURES if not each.adds_up and each.name in required]
    sums = _sum_by_rows(connection, sides, names)
    signature = np.column_stack([np.asarray(sums[f"s{at}"], dtype=np.int64) for at in range(len(sides))])
    possible = possible_columns(connection, places, sides, atoms)
    missing = possible[~_contained(possible, signature)] if possible is not None else signature[:0]
    rows = np.concatenate([signature, missing])
    mass = np.zeros((len(rows), len(names)))
    for at, name in enumerate(names):
        mass[: len(signature), at] = sums[name]
    min_trips = float(max(release.min_trips for release in releases))
    # Sums of floats may be a hair below the threshold on weight.
    least = [min_trips if name == "trips" else strictest_threshold(releases, name) * (1 - 1e-12) for name in names]
    contributors = [
        _contributors(connection, sides, each, len(rows), ceil(strictest_threshold(releases, each.name)))
        for each in distinct
    ]
    return EquationSystem(rows, tuple(names), mass, np.array(least), tuple(contributors))


def strictest_threshold(releases: Sequence[PublishedRelease], name: str) -> float:
    """Return the highest threshold of the releases on a measure."""
    return max(release.thresholds.get(name, 0) for release in releases)


_TRIPS = "(SELECT DISTINCT ON (trip) * FROM records ORDER BY trip, row)"


def _rows_of_trips(sides: Sides) -> str:
    """Return, in SQL, the row of each trip on each side: ``trip, s0, s1, ...``, -1 for none."""
    tables = []
    for at, side in enumerate(sides):
        members = " UNION ALL ".join(
            f"SELECT m.trip, n.number AS s{at} FROM member{each.number} m LEFT JOIN numbered n "
            f"ON n.release = {each.number} AND n.origin = m.co AND n.destination = m.cd"
            for each in side
        )
        tables.append(f"({members}) t{at}")
    joined = " FULL JOIN ".join([tables[0], *(f"{table} USING (trip)" for table in tables[1:])])
    return f"SELECT trip, {', '.join(f'coalesce(s{at}, -1) AS s{at}' for at in range(len(sides)))} FROM {joined}"


def _listed_trips(sides: Sides) -> tuple[str, str]:
    """Return, in SQL, the columns with the rows of a trip, and the trips that are in at least one row."""
    keys = [f"s{at}" for at in range(len(sides))]
    some = " OR ".join(f"{key} >= 0" for key in keys)
    return ", ".join(keys), f"({_rows_of_trips(sides)}) JOIN {_TRIPS} r USING (trip) WHERE {some}"


def _sum_by_rows(connection: Connection, sides: Sides, names: Sequence[str]) -> dict[str, Any]:
    """Return the sums over the trips in the same rows, ordered by rows."""
    keys, trips = _listed_trips(sides)
    sums = ", ".join(f"CAST(sum({name}) AS DOUBLE) AS {name}" for name in names)
    found: dict[str, Any] = connection.sql(
        f"SELECT {keys}, {sums} FROM {trips} GROUP BY {keys} ORDER BY {keys}"
    ).fetchnumpy()
    return found


def _contributors(
    connection: Connection, sides: Sides, measure: AuditMeasure, columns: int, least: int
) -> ColumnContributors:
    """Return the contributors to each column, in the order of `_sum_by_rows`; unnamed trips have none."""
    keys, trips = _listed_trips(sides)
    who = measure.column
    # Unnamed trips stay in the ranking of columns, which would shift without them.
    found = connection.sql(
        f"SELECT dense_rank() OVER (ORDER BY {keys}) - 1 AS place, dense_rank() OVER (ORDER BY {who}) AS contributor, "
        f"{who} IS NOT NULL AS known FROM (SELECT DISTINCT {keys}, {who} FROM {trips}) ORDER BY place, contributor"
    ).fetchnumpy()
    known = np.asarray(found["known"], dtype=bool)
    at, contributor = (np.asarray(found[name], dtype=np.int64)[known] for name in ("place", "contributor"))
    return ColumnContributors(measure.name, least, contributor, np.searchsorted(at, np.arange(columns + 1)))


def possible_columns(
    connection: Connection,
    places: ZonePlaces,
    sides: Sides,
    atoms: Sequence[frozenset[int]],
    complete: AbstractSet[int] = frozenset(),
) -> Ints | None:
    """Return the combinations of rows that a trip between any two places may be in; None if places cannot be listed.

    Each trip is in a row of a release that lists all trips, as its manifest states or as ``complete`` has it. Trips of
    an atom that is inside a study area are nowhere else.
    """
    releases = [release for side in sides for release in side]
    areas = places.areas_of(each.number for each in releases)
    if areas is None or any(release.has_boxes for release in releases):
        return None
    regions = {axis: places.regions(axis, [each.number for each in releases]) for axis in AXES}
    shape = tuple(len(regions[axis]) for axis in AXES)
    if shape[0] * shape[1] > MOST_CELLS:
        return None
    grids = {each.number: row_grid(connection, each, regions, shape) for each in releases}
    nothing = np.full(shape, -1, dtype=np.int64).ravel()
    whole = {each.number for each in releases if each.number in complete or each.lists_all}
    inside = {area: both_inside(regions, area) for area in areas}
    found = []
    for chosen, within in sorted({atom_members(sides, atom, inside) for atom in atoms}):
        columns = np.column_stack([nothing if number < 0 else grids[number] for number in chosen])
        valid = ((columns >= 0) | ~np.isin(chosen, sorted(whole))).all(axis=1) & (columns >= 0).any(axis=1)
        for area, both in inside.items():
            valid &= both if area in within else ~both
        found.append(_distinct(columns[valid]))
    return _distinct(np.concatenate(found)) if found else None


def atom_members(sides: Sides, atom: frozenset[int], areas: Iterable[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the release of an atom on each side, -1 for none, and the areas that it is inside."""
    members = (next((release.number for release in side if release.number in atom), -1) for side in sides)
    return tuple(members), tuple(area for area in areas if inside_mark(area) in atom)


def both_inside(regions: dict[str, list[Region]], area: int) -> Bools:
    """Return, for each two regions, whether both are inside an area."""
    ends = [np.array([(area, AREA) in region for region in regions[axis]], dtype=bool) for axis in AXES]
    both: Bools = np.logical_and.outer(*ends).ravel()
    return both


def row_grid(
    connection: Connection, release: PublishedRelease, regions: dict[str, list[Region]], shape: tuple[int, ...]
) -> Ints:
    """Return, for each two regions, the row of the release between them; -1 for none."""
    inside: list[dict[str, Ints]] = []
    for axis in AXES:
        zones = {properties["id"] for properties, _ in release.zones[axis]}
        found = {zone: [(release.number, zone) in region for region in regions[axis]] for zone in zones}
        inside.append({zone: np.flatnonzero(which) for zone, which in found.items()})
    grid = np.full(shape, -1, dtype=np.int64)
    listed = connection.execute(
        f"SELECT origin, destination, number FROM numbered WHERE release = {release.number} ORDER BY number"
    ).fetchall()
    for origin, destination, number in listed:
        if origin in inside[0] and destination in inside[1]:
            grid[np.ix_(inside[0][origin], inside[1][destination])] = number
    return grid.ravel()


def _keys(*tables: Ints) -> list[Ints]:
    """Return a number for each line of several tables, equal for equal lines."""
    width = max(int(table.max(initial=-1)) for table in tables) + 2
    if width ** tables[0].shape[1] < 2**62:
        powers = width ** np.arange(tables[0].shape[1], dtype=np.int64)
        return [(table + 1) @ powers for table in tables]
    _, number = np.unique(np.concatenate(tables), axis=0, return_inverse=True)
    return np.split(number.ravel(), np.cumsum([len(table) for table in tables])[:-1])


def _distinct(columns: Ints) -> Ints:
    _, first = np.unique(_keys(columns)[0], return_index=True)
    return columns[first]


def _contained(columns: Ints, known: Ints) -> Bools:
    """Return, for each column, whether it is among the known ones."""
    here, there = _keys(columns, known)
    return np.isin(here, there)
