"""Tables of an audit that are written by hand: flows between a few places, of releases that say little."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb

from odkanon.audit.release_reader import PublishedRelease

Flows = dict[tuple[str, str], tuple[float, ...]]
"""Trips, weight, persons and households of each flow, as far as they are said."""
ABOVE = {"A": ("a1", "a2"), "B": ("b1", "b2")}
"""Two districts of two places each."""


def release(
    number: int,
    total: int | None = None,
    suppressed: int = 0,
    measures: tuple[str, ...] = ("trips",),
    rule: dict[str, float] | None = None,
    **parameters: Any,
) -> PublishedRelease:
    """A release of which the steward knows how many trips it has, where ``total`` is given."""
    about: dict[str, Any] = {
        "input": {"trips": total, "rejected": {}},
        "suppressed": {"trips": suppressed},
        "parameters": parameters,
    }
    zones = {axis: [({"id": zone, "level": 0}, None) for zone in zones_of()] for axis in ("origin", "destination")}
    manifest = {"rule": {"trips": 10} if rule is None else rule, "parameters": parameters}
    return PublishedRelease(
        number, f"r{number}", Path(f"r{number}"), manifest, None if total is None else about, {}, zones, measures
    )


def zones_of() -> list[str]:
    return [zone for district, places in ABOVE.items() for zone in (district, *places)]


def tables(*releases: Flows) -> duckdb.DuckDBPyConnection:
    """Return a database with the flows of some releases, numbered from 0, and where all zones lie."""
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE classes (release INTEGER, origin VARCHAR, destination VARCHAR, attributes VARCHAR, trips BIGINT, "
        "weight DOUBLE, persons BIGINT, households BIGINT)"
    )
    connection.execute("CREATE TABLE nodes (release INTEGER, axis VARCHAR, zone VARCHAR, node VARCHAR, size INTEGER)")
    connection.execute("CREATE TABLE above (node VARCHAR, ancestor VARCHAR)")
    for district, places in ABOVE.items():
        inside = [(district, district), *((place, up) for place in places for up in (place, district))]
        connection.executemany("INSERT INTO above VALUES (?, ?)", inside)
    for number, flows in enumerate(releases):
        for (origin, destination), counted in flows.items():
            values = [*counted, None, None, None][:4]
            connection.execute(
                "INSERT INTO classes VALUES (?, ?, ?, '', ?, ?, ?, ?)", [number, origin, destination, *values]
            )
        for axis, at in (("origin", 0), ("destination", 1)):
            for zone in {flow[at] for flow in flows}:
                connection.execute("INSERT INTO nodes VALUES (?, ?, ?, ?, 1)", [number, axis, zone, zone])
    return connection


class Known:
    """Every place by the zones that it lies in, of releases that all know the same zones."""

    def __init__(self, *releases: Flows) -> None:
        self._zones = [
            {axis: {flow[at] for flow in flows} for axis, at in (("origin", 0), ("destination", 1))}
            for flows in releases
        ]

    def areas_of(self, numbers: Iterable[int]) -> dict[int, set[int]]:
        return {}

    def regions(self, axis: str, numbers: list[int]) -> list[frozenset[tuple[int, str]]]:
        found = {
            frozenset(
                (number, zone) for number in numbers for zone in (district, place) if zone in self._zones[number][axis]
            )
            for district, places in ABOVE.items()
            for place in places
        }
        return sorted((each for each in found if each), key=sorted)
