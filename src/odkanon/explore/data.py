"""The input of the explorer: OD matrices by resolution and segment, each built on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from threading import Lock

from odkanon.attributes.spec import MISSING
from odkanon.core.arrays import Bools
from odkanon.explore.controls import ControlRanges, ExploreRequest
from odkanon.methods.method_registry import METHODS, counting_methods
from odkanon.model.measures import MEASURES
from odkanon.model.od import ODMatrix
from odkanon.model.rule import Rule
from odkanon.read.input_spec import InputSpec
from odkanon.read.od_matrix import build_od, make_dimensions
from odkanon.read.od_table import spec_to_matrix
from odkanon.read.tables.column_names import ATTRIBUTES
from odkanon.read.tables.table import SourceTable
from odkanon.read.trips import Trips, spec_to_trips

EVERYONE = "everyone"
MAX_K = 100
COARSER = 3
"""The number of resolutions offered that are coarser than the given one."""

Build = Callable[[int | None, str], ODMatrix]


@dataclass(eq=False)
class ExplorerData:
    """The OD matrices of one input."""

    name: str
    """The name of the input on the page."""
    build: Build
    """Builds the matrix of a resolution and a segment."""
    resolutions: tuple[int | None, ...]
    """The H3 resolutions, finest last; a single None if zones are not H3 cells."""
    segments: tuple[str, ...] = (EVERYONE,)
    """The segments of travellers, ``everyone`` first."""
    _built: dict[tuple[int | None, str], ODMatrix] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def matrix(self, resolution: int | None, segment: str = EVERYONE) -> ODMatrix:
        """Return the matrix of a resolution and a segment."""
        key = resolution, segment
        with self._lock:
            if key not in self._built:
                self._built[key] = self.build(resolution, segment)
            return self._built[key]

    def rule(self, request: ExploreRequest) -> Rule:
        """Return the rule of a request; every segment uses the mean weight of the whole input."""
        targets = [MEASURES[measure].target for measure in request.targets]
        return Rule.protect(*targets, k=request.k, of=self.matrix(request.resolution))

    def control_ranges(self) -> ControlRanges:
        """Return the ranges of the controls, with their initial position."""
        finest = self.resolutions[-1]
        od = self.matrix(finest)
        targets = [measure for measure in MEASURES if measure in od.measures]
        methods = [name for name in counting_methods() if METHODS[name].suits(od.origins)]
        max_k = max(2, min(MAX_K, od.trips // 2))
        first = ExploreRequest(min(10, max_k), ("trips",), "odkanon", 0.1, "after", finest, EVERYONE)
        return ControlRanges(max_k, targets, methods, self.resolutions, self.segments, first)


def read_explorer_data(spec: InputSpec) -> ExplorerData:
    """Read an input once: trips with every segment that they allow, or an OD table as a whole."""
    table = spec.open().kept()
    if spec.detect_kind(table) == "trips":
        return _trips_data(spec, table)
    own = spec_to_matrix(spec, table=table)
    finest = own.origins.resolution

    def build(wanted: int | None, segment: str) -> ODMatrix:
        del segment
        return own if wanted == finest else spec_to_matrix(replace(spec, resolution=wanted), table=table)

    return ExplorerData(spec.title, build, _resolutions(finest))


def _trips_data(spec: InputSpec, table: SourceTable) -> ExplorerData:
    # Without attributes, as `odkanon anonymize` reads them: with attributes, fewer rows are duplicates.
    trips, parts = spec_to_trips(spec, [], table=table), segments_of(spec_to_trips(spec, table=table))

    def build(wanted: int | None, segment: str) -> ODMatrix:
        chosen = trips if segment == EVERYONE else part_of(*parts[segment], segment)
        return build_od(chosen, resolution=spec.finest if wanted is None else wanted, within=spec.area)

    finest = spec.finest if trips.zoning is None else None
    return ExplorerData(spec.title, build, _resolutions(finest), (EVERYONE, *parts))


def _resolutions(finest: int | None) -> tuple[int | None, ...]:
    return (None,) if finest is None else tuple(range(max(0, finest - COARSER), finest + 1))


def segments_of(trips: Trips) -> Mapping[str, tuple[Trips, Bools]]:
    """Return every non-empty segment of the trips by sex, age band and category."""
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
    """Return the trips of a segment; all others count as rejected, so that every row is accounted for."""
    return trips.reject(~which, f"of travellers other than {name}")
