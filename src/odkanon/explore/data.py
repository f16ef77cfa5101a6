"""The input of the explorer, built on first use, and the controls of its page, checked before they reach the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

from odkanon.attributes.spec import MISSING
from odkanon.core.arrays import Bools
from odkanon.errors import InputError, InvalidValueError
from odkanon.methods.method_registry import METHODS, Method, counting_methods, words_for
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
    segment: str  # the travellers
    split: bool = False  # show participants and population side by side instead of ``targets``
    versus: str | None = None  # another method, to be shown beside `method`; not with `split`

    @property
    def options(self) -> dict[str, Any]:
        """The options of the request that the method takes, as the command line passes them."""
        method = METHODS[self.method]
        applies = {"budget": _has_budget(method), "suppress": "suppress" in method.options}
        return {name: getattr(self, name) for name, taken in applies.items() if taken}

    @property
    def parts(self) -> tuple[ExploreRequest, ...]:
        """One request for each release on the page."""
        if self.versus is not None:
            return tuple(replace(self, method=method, versus=None) for method in (self.method, self.versus))
        if not self.split:
            return (self,)
        return tuple(replace(self, targets=(measure,), split=False) for measure in ("trips", "weight"))

    def name_of(self, part: ExploreRequest, single: str) -> str:
        """Return what one of the `parts` is called on the page; `single` if it is the only one."""
        if self.versus is not None:
            return words_for(part.method)["title"]
        return NAMES[part.targets[0]] if self.split else single

    @property
    def is_slow(self) -> bool:
        """Whether it may be too slow for a slider: it then runs in a separate process and can be stopped."""
        return METHODS[self.method].slow

    def for_page(self) -> dict[str, Any]:
        """Return the request as the page sends it."""
        own = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return own | {"targets": list(self.targets)}


@dataclass(frozen=True)
class ControlRanges:
    """The values that the controls may take."""

    max_k: int
    targets: Sequence[str]
    methods: Sequence[str]
    resolutions: Sequence[int | None]
    segments: Sequence[str]
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
        )


def _has_budget(method: Method) -> bool:
    """Return whether releases of a method have a budget; for nested flows it only serves to compare methods."""
    return method.takes_budget and not method.nested


def for_controls(method: Method) -> dict[str, Any]:
    """Return the description of a method for the page, and the controls that apply to it."""
    controls = {"slow": method.slow, "budget": _has_budget(method), "suppress": "suppress" in method.options}
    return {"name": method.name, **words_for(method.name), **controls}


def _one_of(name: str, value: Any, known: Sequence[Any]) -> Any:
    if isinstance(value, bool | float | list | dict) or value not in known:
        raise InvalidValueError.expected(name, f"one of {', '.join(map(str, known))}", value)
    return value


EVERYONE = "everyone"
MAX_K = 100
COARSER = 3
"""The number of resolutions offered that are coarser than the given one."""

Build = Callable[[int | None, str], ODMatrix]


@dataclass(eq=False)
class ExplorerData:
    """The OD matrices of one input."""

    name: str  # the name of the input on the page
    build: Build  # builds the matrix of a resolution and a segment
    resolutions: tuple[int | None, ...]  # the H3 resolutions, finest last; a single None if zones are not H3 cells
    segments: tuple[str, ...] = (EVERYONE,)  # the segments of travellers, ``everyone`` first
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
