"""The rows of releases as equations over what they tell apart: places at both ends, and whom each is about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import ceil
from typing import Any

import duckdb
import numpy as np

from odkanon.audit.differencing.equations import ColumnContributors, System
from odkanon.audit.own_counts import MEASURES, Measure
from odkanon.audit.relations import inside_mark
from odkanon.audit.release_reader import AXES, Published
from odkanon.audit.zone_geometry import AREA, Places
from odkanon.core.arrays import Bools, Ints

MOST_CELLS = 20_000_000
"""From how many pairs of places on empty ones are left out, which can only make groups look smaller."""


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of all releases, numbered through: release, origin, destination, trips."""

    release: Ints
    origin: list[str]
    destination: list[str]
    trips: Ints


def number_rows(connection: duckdb.DuckDBPyConnection) -> Rows:
    """Make the table ``numbered`` of all published rows, and return it."""
    connection.execute(
        "CREATE OR REPLACE TABLE numbered AS SELECT row_number() OVER (ORDER BY release, origin, destination) - 1 "
        "AS number, * FROM classes"
    )
    table = connection.sql(
        "SELECT release, origin, destination, coalesce(trips, 0) AS trips FROM numbered ORDER BY number"
    ).to_arrow_table()
    columns = table.to_pydict()
    return Rows(
        np.array(columns["release"], dtype=np.int64),
        columns["origin"],
        columns["destination"],
        np.array(columns["trips"], dtype=np.int64),
    )


def make_system(
    connection: duckdb.DuckDBPyConnection,
    places: Places,
    sides: Sequence[Sequence[Published]],
    atoms: Sequence[frozenset[int]],
) -> System:
    """Return the rows of some releases as a system.

    Parameters
    ----------
    sides : sequence of sequence of Published
        The releases of a side share no trips.
    atoms : sequence of set of int
        Which releases, by number, some trip is about all at once: a place may have such a trip wherever it is.
    """
    releases = [release for side in sides for release in side]
    names = [each.name for each in MEASURES if each.adds_up and _asked(releases, each.name)]
    others = [each for each in MEASURES if not each.adds_up and any(each.name in r.thresholds for r in releases)]
    counted = _counted(connection, sides, names)
    signature = np.column_stack([np.asarray(counted[f"s{at}"], dtype=np.int64) for at in range(len(sides))])
    possible = possible_columns(connection, places, sides, atoms)
    missing = possible[~_contained(possible, signature)] if possible is not None else signature[:0]
    rows = np.concatenate([signature, missing])
    mass = np.zeros((len(rows), len(names)))
    for at, name in enumerate(names):
        mass[: len(signature), at] = counted[name]
    # A hair below a weight is not below it, after sums of floats.
    few = float(max(release.few for release in releases))
    least = [few if name == "trips" else highest(releases, name) * (1 - 1e-12) for name in names]
    contributors = [
        _contributors(connection, sides, each, len(rows), ceil(highest(releases, each.name))) for each in others
    ]
    return System(rows, tuple(names), mass, np.array(least), tuple(contributors))


def _asked(releases: Sequence[Published], name: str) -> bool:
    return name == "trips" or any(name in release.thresholds for release in releases)


def highest(releases: Sequence[Published], name: str) -> float:
    """Return the highest threshold of the releases."""
    return max(release.thresholds.get(name, 0) for release in releases)


def _memberships(sides: Sequence[Sequence[Published]]) -> str:
    """Return, in SQL, for each trip its row on each side: ``trip, s0, s1, ...``, -1 where it is in none."""
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


_TRIPS = "(SELECT DISTINCT ON (trip) * FROM records ORDER BY trip, row)"


def _listed(sides: Sequence[Sequence[Published]]) -> tuple[str, str]:
    """Return, in SQL, the rows that a trip is in as keys, and the trips that are in one."""
    keys = [f"s{at}" for at in range(len(sides))]
    some = " OR ".join(f"{key} >= 0" for key in keys)
    return ", ".join(keys), f"({_memberships(sides)}) JOIN {_TRIPS} r USING (trip) WHERE {some}"


def _counted(
    connection: duckdb.DuckDBPyConnection, sides: Sequence[Sequence[Published]], names: Sequence[str]
) -> dict[str, Any]:
    """Return the trips counted by the rows that they are in, in the order of these."""
    keys, trips = _listed(sides)
    sums = ", ".join(f"CAST(sum({name}) AS DOUBLE) AS {name}" for name in names)
    found: dict[str, Any] = connection.sql(
        f"SELECT {keys}, {sums} FROM {trips} GROUP BY {keys} ORDER BY {keys}"
    ).fetchnumpy()
    return found


def _contributors(
    connection: duckdb.DuckDBPyConnection,
    sides: Sequence[Sequence[Published]],
    measure: Measure,
    columns: int,
    least: int,
) -> ColumnContributors:
    """Return who is in the columns that are counted, in their order; trips of nobody keep a column its number."""
    keys, trips = _listed(sides)
    who = measure.column
    found = connection.sql(
        f"SELECT dense_rank() OVER (ORDER BY {keys}) - 1 AS place, dense_rank() OVER (ORDER BY {who}) AS head, "
        f"{who} IS NOT NULL AS known FROM (SELECT DISTINCT {keys}, {who} FROM {trips}) ORDER BY place, head"
    ).fetchnumpy()
    known = np.asarray(found["known"], dtype=bool)
    at, contributor = (np.asarray(found[name], dtype=np.int64)[known] for name in ("place", "head"))
    return ColumnContributors(measure.name, least, contributor, np.searchsorted(at, np.arange(columns + 1)))


def possible_columns(
    connection: duckdb.DuckDBPyConnection,
    places: Places,
    sides: Sequence[Sequence[Published]],
    atoms: Sequence[frozenset[int]],
    listed: AbstractSet[int] = frozenset(),
) -> Ints | None:
    """Return in which rows a trip between any two places may be; None where places cannot be listed.

    Of releases that say that they list all of their trips, and of those in ``listed``, each trip is in a row. Trips
    that are inside an area, as an atom says of some, are nowhere else.
    """
    releases = [release for side in sides for release in side]
    areas = places.areas_of(each.number for each in releases)
    if areas is None or any(release.has_boxes for release in releases):
        return None
    regions = {axis: places.regions(axis, [each.number for each in releases]) for axis in AXES}
    shape = tuple(len(regions[axis]) for axis in AXES)
    if shape[0] * shape[1] > MOST_CELLS:
        return None
    grids = {each.number: _grid(connection, each, regions, shape) for each in releases}
    nothing = np.full(shape, -1, dtype=np.int64).ravel()
    whole = {each.number for each in releases if each.number in listed or each.lists_all}
    inside = {area: _both_inside(regions, area) for area in areas}
    found = []
    for chosen, within in sorted({_kind_of(sides, atom, inside) for atom in atoms}):
        columns = np.column_stack([nothing if number < 0 else grids[number] for number in chosen])
        there = ((columns >= 0) | ~np.isin(chosen, sorted(whole))).all(axis=1) & (columns >= 0).any(axis=1)
        for area, both in inside.items():
            there &= both if area in within else ~both
        found.append(_distinct(columns[there]))
    return _distinct(np.concatenate(found)) if found else None


def _kind_of(
    sides: Sequence[Sequence[Published]], atom: frozenset[int], areas: Iterable[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return of which release of each side an atom is, -1 for none, and inside which areas."""
    members = (next((release.number for release in side if release.number in atom), -1) for side in sides)
    return tuple(members), tuple(area for area in areas if inside_mark(area) in atom)


def _both_inside(regions: dict[str, list[frozenset[tuple[int, str]]]], area: int) -> Bools:
    """Tell for each two regions whether both are inside an area."""
    ends = [np.array([(area, AREA) in region for region in regions[axis]], dtype=bool) for axis in AXES]
    both: Bools = np.logical_and.outer(*ends).ravel()
    return both


def _grid(
    connection: duckdb.DuckDBPyConnection,
    release: Published,
    regions: dict[str, list[frozenset[tuple[int, str]]]],
    shape: tuple[int, ...],
) -> Ints:
    """Return, for each two regions, the row of the release between them."""
    inside: list[dict[str, Bools]] = []
    for axis in AXES:
        zones = {about["id"] for about, _ in release.zones[axis]}
        inside.append(
            {zone: np.array([(release.number, zone) in region for region in regions[axis]]) for zone in zones}
        )
    grid = np.full(shape, -1, dtype=np.int64)
    listed = connection.execute(
        f"SELECT origin, destination, number FROM numbered WHERE release = {release.number} ORDER BY number"
    ).fetchall()
    where = [{zone: np.flatnonzero(which) for zone, which in axis.items()} for axis in inside]
    for origin, destination, number in listed:
        if origin in where[0] and destination in where[1]:
            grid[np.ix_(where[0][origin], where[1][destination])] = number
    return grid.ravel()


def _keys(*tables: Ints) -> list[Ints]:
    """Return one number for each column of several tables, the same for the same rows."""
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
    """Tell for each column whether it is among the known ones."""
    here, there = _keys(columns, known)
    return np.isin(here, there)
