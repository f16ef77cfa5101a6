"""Section 3 of the specification in the plainest possible way: one person at a time, one point at a time."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple


class Point(NamedTuple):
    person: Any
    seconds: float
    lat: float
    lon: float


def naive_trips(points: list[Point], gap: float = 180.0, min_points: int = 2) -> list[tuple[Any, ...]]:
    """Return (person, start, end, start_lat, start_lon, end_lat, end_lon), sorted."""
    by_person: dict[Any, dict[float, Point]] = defaultdict(dict)
    for point in points:
        seen = by_person[point.person].get(point.seconds)
        if seen is None or point < seen:
            by_person[point.person][point.seconds] = point
    trips = []
    for person, fixes in by_person.items():
        run: list[Point] = []
        for seconds in [*sorted(fixes), None]:
            if run and (seconds is None or seconds - run[-1].seconds > gap):
                if len(run) >= min_points:
                    first, last = run[0], run[-1]
                    trips.append((person, first.seconds, last.seconds, *first[2:], *last[2:]))
                run = []
            if seconds is not None:
                run.append(fixes[seconds])
    return sorted(trips)
