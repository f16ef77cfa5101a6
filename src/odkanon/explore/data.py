"""The input of the explorer: matrices by resolution and segment, each built once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from threading import Lock

from odkanon.core.arrays import Bools
from odkanon.explore.request import Offer, Request
from odkanon.methods import METHODS
from odkanon.model.measures import MEASURES
from odkanon.model.od import ODMatrix
from odkanon.model.rule import Rule
from odkanon.read.attributes.dimensions import make_dimensions
from odkanon.read.attributes.hierarchies import MISSING
from odkanon.read.input_matrix import matrix_of
from odkanon.read.input_spec import InputSpec
from odkanon.read.tables.column_names import ATTRIBUTES
from odkanon.read.tables.open_table import Table
from odkanon.read.trips import Trips, build_od, trips_of

EVERYONE = "everyone"
MOST_K = 100
COARSER = 3
"""So many coarser resolutions are offered beside the one asked for."""

Build = Callable[[int | None, str], ODMatrix]


@dataclass(eq=False)
class Data:
    """Matrices of one input.

    Attributes
    ----------
    name : str
        What the input is called on the page.
    build : callable
        From a resolution and a segment to a matrix.
    resolutions : tuple of int or None
        Finest last; a single None where zones are not H3 cells.
    segments : tuple of str
        Everyone first.
    """

    name: str
    build: Build
    resolutions: tuple[int | None, ...]
    segments: tuple[str, ...] = (EVERYONE,)
    _built: dict[tuple[int | None, str], ODMatrix] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def matrix(self, resolution: int | None, segment: str = EVERYONE) -> ODMatrix:
        """Return a matrix, built on first use."""
        key = resolution, segment
        with self._lock:
            if key not in self._built:
                self._built[key] = self.build(resolution, segment)
            return self._built[key]

    def rule(self, request: Request) -> Rule:
        """Return the rule of a request; the mean weight of a trip is that of the whole input in every segment."""
        targets = [MEASURES[measure].target for measure in request.targets]
        return Rule.protect(*targets, k=request.k, of=self.matrix(request.resolution))

    def offer(self) -> Offer:
        """Return what the page may ask for, and what it asks first."""
        finest = self.resolutions[-1]
        od = self.matrix(finest)
        targets = [measure for measure in MEASURES if measure in od.measures]
        methods = [each.name for each in METHODS.values() if each.suits(od.origins)]
        most_k = max(2, min(MOST_K, od.trips // 2))
        first = Request(min(10, most_k), ("trips",), "odkanon", 0.1, "after", finest, EVERYONE)
        return Offer(most_k, targets, methods, self.resolutions, self.segments, first)


def data_of_input(reading: InputSpec) -> Data:
    """Read an input once: trips with all segments they allow, or an OD table as it is."""
    table = reading.open().kept()
    if reading.kind_of(table) == "trips":
        return _data_of_trips(reading, table)
    own = matrix_of(reading, table=table)
    finest = own.origins.resolution

    def build(wanted: int | None, segment: str) -> ODMatrix:
        del segment
        return own if wanted == finest else matrix_of(replace(reading, resolution=wanted), table=table)

    return Data(reading.title, build, _resolutions(finest))


def _data_of_trips(reading: InputSpec, table: Table) -> Data:
    # As `odkanon anonymize` reads them; attributes could tell apart rows that are copies without them.
    trips, parts = trips_of(reading, [], table=table), segments_of(trips_of(reading, table=table))

    def build(wanted: int | None, segment: str) -> ODMatrix:
        chosen = trips if segment == EVERYONE else part_of(*parts[segment], segment)
        return build_od(chosen, resolution=reading.finest if wanted is None else wanted, within=reading.area)

    return Data(reading.title, build, _resolutions(reading.finest), (EVERYONE, *parts))


def _resolutions(finest: int | None) -> tuple[int | None, ...]:
    return (None,) if finest is None else tuple(range(max(0, finest - COARSER), finest + 1))


def segments_of(trips: Trips) -> Mapping[str, tuple[Trips, Bools]]:
    """Return every part of the trips by sex, age band and category that is not empty."""
    return {
        f"{by}: {value}": (trips, which)
        for by in ATTRIBUTES
        if by in trips.table.column_names
        for dimension in make_dimensions(trips, [by])
        for number, (value,) in enumerate(dimension.labels)
        for which in [dimension.value == number]
        if value != MISSING
    }


def part_of(trips: Trips, which: Bools, name: str) -> Trips:
    """Return some of the trips; the others count as rejected, so that every row is accounted for."""
    return trips.reject(~which, f"of travellers other than {name}")
