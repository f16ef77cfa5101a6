"""Segmentation of sorted points into trips at pauses, one batch at a time."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from odkanon.core.arrays import Bools

COPY = "that are exact copies of another point of the same person"
SAME_TIME = "at the same time as another point of the same person"

ORDER = ("person", "instant", "lat", "lon", "clock")
"""Sort order of points; place and clock break ties, so the point that is kept does not depend on row order."""

_EARTH_KM = 6371.0088
_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class TripRule:
    """The conditions under which a run of points is a trip.

    Attributes
    ----------
    gap : float
        A pause of more than so many seconds ends a trip, in (0, inf).
    min_points : int
        Minimum number of points, in [1, inf); with 1, an isolated point is a trip that ends where it begins.
    min_duration : float
        Minimum seconds from its first to its last point.
    min_distance : float
        Minimum distance in metres, as the crow flies, from its first to its last point.
    """

    gap: float = 180.0
    min_points: int = 2
    min_duration: float = 0.0
    min_distance: float = 0.0

    def reasons(self) -> tuple[str, str, str]:
        """Return the reasons why a run of points may not be a trip, in the order of their tests."""
        return (
            f"runs of fewer than {self.min_points} points",
            f"runs of less than {self.min_duration:g} s",
            f"runs that end within {self.min_distance:g} m of where they began",
        )


@dataclass
class PauseCutter:
    """Cut points, sorted by `ORDER`, into runs at pauses, in batches of any size.

    Only the last point and its run are kept between batches, so a person may have any number of points.
    """

    rule: TripRule
    copies: int = 0
    same_time: int = 0
    persons: int = 0
    persons_with_trips: int = 0
    trips: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    _last: pa.Table | None = None
    _open: pa.Table | None = None
    _last_kept: pa.Table | None = None

    def feed(self, points: pa.Table) -> pa.Table:
        """Add points with ``person, instant, clock, lat, lon``, and return the trips that are complete."""
        points = self._distinct(points)
        if len(points) == 0:
            return self._kept(_runs(points, self.rule.gap))
        runs = self._joined(_runs(points, self.rule.gap))
        self._open = runs.slice(len(runs) - 1)
        return self._kept(runs.slice(0, len(runs) - 1))

    def finish(self) -> pa.Table | None:
        """Return the last trip, if any; None if there were no points."""
        return None if self._open is None else self._kept(self._open)

    def counts(self) -> dict[str, int]:
        """Return all counts by name; those of several cutters may be added up."""
        names = ("copies", "same_time", "persons", "persons_with_trips", "trips")
        return {name: getattr(self, name) for name in names} | self.dropped

    def _distinct(self, points: pa.Table) -> pa.Table:
        """Drop and count further points of a person at the same time."""
        if len(points) == 0:
            return points
        before = self._last if self._last is not None else points.slice(0, 0)
        both = pa.concat_tables([before, points])
        same = np.zeros(len(both), dtype=bool)
        same[1:] = ~_changes(both.column("person")) & (np.diff(both.column("instant").to_numpy()) == 0)
        place = [both.column(name).to_numpy() for name in ("lat", "lon")]
        copy = same.copy()
        copy[1:] &= (np.diff(place[0]) == 0) & (np.diff(place[1]) == 0)
        self.copies += int(np.count_nonzero(copy))
        self.same_time += int(np.count_nonzero(same & ~copy))
        self._last = both.slice(len(both) - 1)
        same = same[len(before) :]
        return points.filter(pa.array(~same)) if same.any() else points

    def _joined(self, runs: pa.Table) -> pa.Table:
        """Prepend the unfinished run of the last batch, merged with the first one if no pause separates them."""
        if self._open is None:
            self.persons = 1 + int(np.count_nonzero(_changes(runs.column("person"))))
            return runs
        both = pa.concat_tables([self._open, runs])
        self.persons += int(np.count_nonzero(_changes(both.column("person"))))
        last, first = both.slice(0, 2).to_pylist()
        if last["person"] != first["person"] or first["first"] - last["last"] > self.rule.gap * 1e6:
            return both
        ends = {name: first[name] for name in ("last", "end_time", "end_lat", "end_lon")}
        merged = last | ends | {"points": last["points"] + first["points"]}
        return pa.concat_tables([pa.Table.from_pylist([merged], both.schema), both.slice(2)])

    def _kept(self, runs: pa.Table) -> pa.Table:
        """Return the runs that are trips, and count the others by reason."""
        column = {name: runs.column(name).to_numpy() for name in runs.column_names if name != "person"}
        tests = (
            column["points"] < self.rule.min_points,
            column["last"] - column["first"] < self.rule.min_duration * 1e6,
            _metres(column) < self.rule.min_distance,
        )
        keep = np.ones(len(runs), dtype=bool)
        for reason, fails in zip(self.rule.reasons(), tests, strict=True):
            count = int(np.count_nonzero(fails & keep))
            if count:
                self.dropped[reason] = self.dropped.get(reason, 0) + count
            keep &= ~fails
        kept = runs.filter(pa.array(keep))
        self._count_kept(kept)
        return kept.drop_columns(["first", "last", "points"])

    def _count_kept(self, kept: pa.Table) -> None:
        if len(kept) == 0:
            return
        self.trips += len(kept)
        before = self._last_kept if self._last_kept is not None else kept.slice(0, 0)
        people = pa.concat_tables([before, kept]).column("person")
        self.persons_with_trips += int(np.count_nonzero(_changes(people))) + (self._last_kept is None)
        self._last_kept = kept.slice(len(kept) - 1)


def _changes(column: pa.ChunkedArray) -> Bools:
    """Return for each value but the first whether it differs from its predecessor."""
    values = column.combine_chunks()
    return np.asarray(pc.not_equal(values.slice(1), values.slice(0, max(len(values) - 1, 0))))


def _runs(points: pa.Table, gap: float) -> pa.Table:
    """Return the runs of points without a pause."""
    instant = points.column("instant").to_numpy()
    opens = np.ones(len(points), dtype=bool)
    opens[1:] = _changes(points.column("person")) | (np.diff(instant) > gap * 1e6)
    first = np.flatnonzero(opens)
    last = np.append(first[1:], len(points))[: len(first)] - 1
    start, end = points.take(pa.array(first)), points.take(pa.array(last))
    columns = {"person": start.column("person"), "first": start.column("instant"), "last": end.column("instant")}
    for name, side in (("start", start), ("end", end)):
        columns[f"{name}_time"] = side.column("clock").cast(pa.timestamp("us"))
    for name, side in (("start", start), ("end", end)):
        columns |= {f"{name}_lat": side.column("lat"), f"{name}_lon": side.column("lon")}
    return pa.table({**columns, "points": last - first + 1})


def _metres(column: dict[str, npt.NDArray[np.generic]]) -> _Floats:
    """Return the great-circle distance between the ends of each run."""
    lat, lon, other_lat, other_lon = (
        np.radians(column[name].astype(np.float64)) for name in ("start_lat", "start_lon", "end_lat", "end_lon")
    )
    half = np.sin((other_lat - lat) / 2) ** 2 + np.cos(lat) * np.cos(other_lat) * np.sin((other_lon - lon) / 2) ** 2
    return np.asarray(2000 * _EARTH_KM * np.arcsin(np.sqrt(np.minimum(half, 1.0))))
