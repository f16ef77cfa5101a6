"""The input of the explorer, built on first use, and the controls of its page, checked before they reach the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

from odkanon.attributes.spec import MISSING, parse_attributes
from odkanon.core.arrays import Bools
from odkanon.errors import InputError, InvalidValueError
from odkanon.methods.method_registry import CUBE_METHOD, METHODS, Method, counting_methods, words_for
from odkanon.model.measures import MEASURES
from odkanon.model.od import ODMatrix
from odkanon.model.rule import Rule
from odkanon.read.input_spec import InputSpec
from odkanon.read.od_matrix import build_od, make_dimensions
from odkanon.read.od_table import spec_to_matrix
from odkanon.read.tables.column_names import ATTRIBUTES
from odkanon.read.tables.table import SourceTable
from odkanon.read.trips import Trips, spec_to_trips

MAX_BUDGET = 0.3
NAMES = {name: measure.target for name, measure in MEASURES.items()}


@dataclass(frozen=True)
class ExploreRequest:
    """One position of the controls."""

    k: int  # the threshold of every flow
    targets: tuple[str, ...]  # the measures with a threshold: trips, weight, persons
    method: str
    budget: float
    suppress: str
    """As in `odkanon.anonymize`."""
    resolution: int | None  # the H3 resolution of the leaves; None if zones are not H3 cells
    segment: str  # the segment of travellers
    split: bool = False  # show participants and population side by side instead of ``targets``
    versus: str | None = None  # another method, to be shown beside `method`; not with `split`
    by: tuple[str, ...] = ()  # attributes to publish by; with the method of cubes, of everyone

    @property
    def options(self) -> dict[str, Any]:
        """The options of the request that the method takes, as the command line passes them."""
        method = METHODS[self.method]
        applies = {"budget": _has_budget(method), "suppress": "suppress" in method.options}
        return {name: getattr(self, name) for name, taken in applies.items() if taken}

    @property
    def input(self) -> tuple[int | None, str, tuple[str, ...]]:
        """What the release is made of; see `ExplorerData.matrix`."""
        return self.resolution, self.segment, self.by

    @property
    def parts(self) -> tuple[ExploreRequest, ...]:
        """One request for each release on the page."""
        if self.versus is not None:
            return tuple(replace(self, method=method, versus=None) for method in (self.method, self.versus))
        if not self.split:
            return (self,)
        return tuple(replace(self, targets=(measure,), split=False) for measure in ("trips", "weight"))

    def name_of(self, part: ExploreRequest, single: str) -> str:
        """Return the name of one of the `parts` on the page; ``single`` if it is the only one."""
        if self.versus is not None:
            return words_for(part.method)["title"]
        return NAMES[part.targets[0]] if self.split else single

    @property
    def is_slow(self) -> bool:
        """Whether it may be too slow for a slider: it then runs in a separate process and can be stopped."""
        return METHODS[self.method].slow or bool(self.by)

    def for_page(self) -> dict[str, Any]:
        """Return the request as the page sends it."""
        own = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return own | {"targets": list(self.targets), "by": list(self.by)}


@dataclass(frozen=True)
class ControlRanges:
    """The values that the controls may take."""

    max_k: int
    targets: Sequence[str]
    methods: Sequence[str]
    resolutions: Sequence[int | None]
    segments: Sequence[str]
    attributes: Sequence[str]
    first: ExploreRequest

    def for_page(self, token: str) -> dict[str, Any]:
        """Return the ranges as the page reads them."""
        return {
            "token": token,
            "k": {"min": 2, "max": self.max_k},
            "budget": {"max": MAX_BUDGET},
            "targets": list(self.targets),
            "methods": [for_controls(METHODS[name]) for name in self.methods],
            "resolutions": [one for one in self.resolutions if one is not None],
            "segments": list(self.segments),
            "attributes": list(self.attributes),
            "first": self.first.for_page(),
        }

    def check(self, received: Mapping[str, Any]) -> ExploreRequest:
        """Return the request received from the page.

        Raises `InputError` if a value is out of range.
        """
        k, budget, targets = received.get("k"), received.get("budget"), received.get("targets")
        if type(k) is not int or not 2 <= k <= self.max_k:
            raise InvalidValueError.expected("k", f"a whole number from 2 to {self.max_k}", k)
        if isinstance(budget, bool) or not isinstance(budget, int | float) or not 0 <= budget <= MAX_BUDGET:
            raise InvalidValueError.expected("the share that may be suppressed", f"from 0 to {MAX_BUDGET}", budget)
        if not isinstance(targets, list) or not targets or any(one not in self.targets for one in targets):
            raise InvalidValueError.expected("the target", f"a list with some of {', '.join(self.targets)}", targets)
        split = received.get("split", False)
        if not isinstance(split, bool) or (split and "weight" not in self.targets):
            raise InputError("participants and population can be compared only if trips have weights")
        versus = received.get("versus")
        if versus is not None and split:
            raise InputError("compare two methods, or participants with population, not both at once")
        by = received.get("by", [])
        if not isinstance(by, list) or any(one not in self.attributes for one in by):
            raise InvalidValueError.expected("by", f"a list with some of {'; '.join(self.attributes)}", by)
        if by and (received.get("method"), versus, received.get("segment")) != (CUBE_METHOD, None, EVERYONE):
            raise InputError(f"attributes are published with {CUBE_METHOD} alone, of everyone")
        return ExploreRequest(
            k=k,
            targets=tuple(one for one in self.targets if one in targets),
            method=_one_of("method", received.get("method"), self.methods),
            budget=float(budget),
            suppress=_one_of("suppress", received.get("suppress"), ("before", "after")),
            resolution=_one_of("resolution", received.get("resolution"), self.resolutions),
            segment=_one_of("segment", received.get("segment"), self.segments),
            split=split,
            versus=None if versus is None else _one_of("other method", versus, self.methods),
            by=tuple(one for one in self.attributes if one in by),
        )


def _has_budget(method: Method) -> bool:
    """Return whether releases of a method have a budget; for nested flows it only serves to compare methods."""
    return method.takes_budget and not method.nested


def for_controls(method: Method) -> dict[str, Any]:
    """Return the description of a method for the page, and the controls that apply to it."""
    controls = {"slow": method.slow, "budget": _has_budget(method), "suppress": "suppress" in method.options}
    controls |= {"attributes": method.name == CUBE_METHOD}
    return {"name": method.name, **words_for(method.name), **controls}


def _one_of(name: str, value: Any, known: Sequence[Any]) -> Any:
    if isinstance(value, bool | float | list | dict) or value not in known:
        raise InvalidValueError.expected(name, f"one of {', '.join(map(str, known))}", value)
    return value


EVERYONE = "everyone"
MAX_K = 100
COARSER = 3
"""The number of resolutions offered that are coarser than the given one."""

SLOTS = "hour:0-7,7-9,9-17,17-20,20-24"
"""The attribute offered for every input with times."""

Build = Callable[[int | None, str, tuple[str, ...]], ODMatrix]


@dataclass(eq=False)
class ExplorerData:
    """The OD matrices of one input."""

    name: str  # the name of the input on the page
    build: Build  # builds the matrix of a resolution and a segment, by attributes
    resolutions: tuple[int | None, ...]  # the H3 resolutions, finest last; a single None if zones are not H3 cells
    segments: tuple[str, ...] = (EVERYONE,)  # the segments of travellers, ``everyone`` first
    attributes: tuple[str, ...] = ()  # the attributes that it can be published by
    by: tuple[str, ...] = ()  # those that the page begins with
    _built: dict[tuple[int | None, str, tuple[str, ...]], ODMatrix] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def matrix(self, resolution: int | None, segment: str = EVERYONE, by: tuple[str, ...] = ()) -> ODMatrix:
        """Return the matrix of a resolution and a segment, by attributes."""
        key = resolution, segment, by
        with self._lock:
            if key not in self._built:
                self._built[key] = self.build(*key)
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
        method = CUBE_METHOD if self.by else "odkanon"
        first = ExploreRequest(min(10, max_k), ("trips",), method, 0.1, "after", finest, EVERYONE, by=self.by)
        return ControlRanges(max_k, targets, methods, self.resolutions, self.segments, self.attributes, first)


def read_explorer_data(spec: InputSpec, by: Sequence[str] = ()) -> ExplorerData:
    """Read an input once: trips with every segment that they allow, or an OD table as a whole.

    * ``by``: the attributes that the page begins with, and offers instead of those that it finds by itself.
    """
    table = spec.open().kept()
    period = (spec.since, spec.until)
    if by:
        parse_attributes(by, period=period)
    if spec.detect_kind(table) == "trips":
        return _trips_data(spec, table, tuple(by))
    own = spec_to_matrix(spec, table=table)
    finest = own.origins.resolution

    def build(wanted: int | None, segment: str, by: tuple[str, ...]) -> ODMatrix:
        del segment
        return own if wanted == finest and not by else _matrix_by(spec, table, wanted, by)

    return ExplorerData(spec.title, build, _resolutions(finest), attributes=tuple(by), by=tuple(by))


def _matrix_by(spec: InputSpec, table: SourceTable, resolution: int | None, by: tuple[str, ...]) -> ODMatrix:
    attributes = parse_attributes(by, period=(spec.since, spec.until)) if by else ()
    return spec_to_matrix(replace(spec, resolution=resolution), attributes=attributes, table=table)


def _trips_data(spec: InputSpec, table: SourceTable, by: tuple[str, ...]) -> ExplorerData:
    # Without attributes, as `odkanon anonymize` reads them: with attributes, fewer rows are duplicates.
    trips, parts = spec_to_trips(spec, [], table=table), segments_of(spec_to_trips(spec, table=table))

    def build(wanted: int | None, segment: str, by: tuple[str, ...]) -> ODMatrix:
        if by:
            return _matrix_by(spec, table, wanted, by)
        chosen = trips if segment == EVERYONE else part_of(*parts[segment], segment)
        return build_od(chosen, resolution=spec.finest if wanted is None else wanted, within=spec.area)

    finest = spec.finest if trips.zoning is None else None
    names = {part.partition(": ")[0] for part in parts}
    offered = by or (*sorted(names), *([SLOTS] if "start_time" in spec.resolved(table) else []))
    return ExplorerData(spec.title, build, _resolutions(finest), (EVERYONE, *parts), offered, by)


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
