"""An experiment as in the paper: methods x targets x segments, each release evaluated on trips and on weight."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property
from itertools import islice, product
from pathlib import Path
from typing import Any, get_args

from odkanon.attributes.spec import AGE_BANDS, MISSING
from odkanon.errors import InputError, OdkanonError, UnknownNameError
from odkanon.methods.method_registry import METHODS, anonymize, counting_methods
from odkanon.methods.noise.mechanism import NoisePromise
from odkanon.model.od import ODMatrix
from odkanon.model.release import Release
from odkanon.model.release_spec import Budget
from odkanon.model.rule import NO_RULE, Rule
from odkanon.quality.accuracy.accuracy import accuracy
from odkanon.quality.lower_bound import bound_applies, bound_within, used_budget
from odkanon.quality.privacy import steward_privacy
from odkanon.quality.utility import UtilityMeasure, evaluate_extra_metrics, utility
from odkanon.read.area import Area
from odkanon.read.od_matrix import build_od, make_dimensions
from odkanon.read.trips import Trips

WHOLE = "whole"
TARGETS = ("participants", "population")
"""The paper's protection targets; a combination is written as ``participants+persons``."""


@dataclass(frozen=True)
class MethodRow:
    """A row of the tables: a method with options."""

    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    remark: str = ""

    @property
    def title(self) -> str:
        """The title in tables."""
        title = METHODS[self.method].title
        return f"{title} ({self.remark})" if self.remark else title

    @property
    def takes_budget(self) -> bool:
        """Whether the budget of the experiment applies."""
        return METHODS[self.method].takes_budget and "budget" not in self.options


_VARIANTS = {
    "odkanon-published": MethodRow("odkanon", {"suppress": "before"}, "published"),
    "odkanon": MethodRow("odkanon", {"suppress": "after"}, "budget at the end"),
    "oigh-no-budget": MethodRow("oigh", {"budget": 0.0}, "no suppression"),
    "cascade": MethodRow("cascade", {"budget": None}),
    "cascade-budget": MethodRow("cascade", {}, "coarsest rows left out"),
}

PAPER_ROWS = ("odkanon-published", "odkanon", "atg-soft", "oigh", "oigh-no-budget", "mondrian")
"""The paper's methods. Unlike the others, its OIGH has no budget, which decides whether OIGH or ODkAnon is better."""


def method_rows() -> dict[str, MethodRow]:
    """Return every row that can be compared: each registered method, and variants of some."""
    return {name: MethodRow(name) for name in METHODS} | _VARIANTS


def find_row(name: str) -> MethodRow:
    """Return a row by its name."""
    if name not in _VARIANTS and name not in METHODS:
        raise UnknownNameError.among("method", name, method_rows())
    return _VARIANTS.get(name) or MethodRow(name)


def all_rows() -> tuple[str, ...]:
    """Return the rows of the paper, and every other method as it would be published."""
    return (*PAPER_ROWS, *(name for name in counting_methods() if name not in PAPER_ROWS))


@dataclass(frozen=True)
class GridCell:
    """The coordinates of one run in the grid."""

    dimension: str
    segment: str
    target: str
    row: str


@dataclass(frozen=True)
class Outcome:
    """The outcome of one run; ``refusal`` has the reason if there is no release."""

    cell: GridCell
    trips: int
    pairs: int
    """The size of the segment."""
    origins: int
    destinations: int
    classes: int
    """The number of zones and classes published."""
    suppressed: float | None  # the share of trips suppressed; None for noise, which estimates all
    seconds: float  # the running time of the method
    utility: dict[str, dict[str, float | None]]
    privacy: dict[str, dict[str, float | None]]
    """By measure, as in ``release.json``."""
    limit_g: dict[str, float | None] = field(default_factory=dict)
    """By measure, the lower bound of G for methods over the hierarchies with the budget of this run; empty if the bound
    does not apply."""
    refusal: str | None = None
    usefulness: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By measure, as `odkanon.Accuracy.as_dict` returns it; empty if the location of zones is unknown."""
    promise: str = ""
    """What noise promises instead of the target."""

    @property
    def title(self) -> str:
        """The title of the method in tables."""
        title = find_row(self.cell.row).title
        return f"{title} (no k: another promise)" if self.promise else title

    def cpc(self, measure: str, km: float) -> float | None:
        """Return the CPC of flows between squares of a given side; None if unknown."""
        square = self._square(measure, km)
        if square is None:
            return None
        # Even spreading, where nothing was estimated.
        return float(square["cpc"] if square.get("estimated") is None else square["estimated"])

    def limit(self, name: str, km: float) -> float | None:
        """Return the CPC of totals and distances alone, or of one half of the input against the other, in trips."""
        found: float | None = (self._square("trips", km) or {}).get(name)
        return found

    def _square(self, measure: str, km: float) -> dict[str, Any] | None:
        squares = self.usefulness.get(measure, {}).get("squares", ())
        return next((square for square in squares if square["km"] == km), None)

    def to_json(self) -> str:
        """Return the outcome as one line of JSON."""
        return json.dumps(asdict(self), allow_nan=False)

    @classmethod
    def from_json(cls, line: str) -> Outcome:
        """Return the outcome that `to_json` wrote."""
        content = json.loads(line)
        return cls(**content | {"cell": GridCell(**content["cell"])})


@dataclass(frozen=True, eq=False)
class Experiment:
    """A grid of runs over one input."""

    trips: Trips | ODMatrix
    """The input, with the attributes to segment by; a matrix cannot be segmented."""
    k: int = 10
    budget: float = 0.10
    """The threshold and the share that may be suppressed. All runs share them, and the mean weight of a trip."""
    dimensions: tuple[str, ...] = ()
    """Attributes to segment by, in addition to the whole."""
    rows: tuple[str, ...] = PAPER_ROWS
    """Names of methods, or of variants such as ``oigh-no-budget``."""
    resolution: int = 10
    within: Area | None = None
    age_bands: Sequence[int] = AGE_BANDS
    targets: tuple[str, ...] | None = None
    """Protection targets; by default both of the paper, or participants only without weights."""
    noise: NoisePromise | None = None
    """What noise promises, if it is among the rows."""

    def parts(self) -> Iterator[tuple[str, str, Trips]]:
        """Yield the trips of the whole and of each segment; those without the attribute are in no segment."""
        assert isinstance(self.trips, Trips)
        yield WHOLE, WHOLE, self.trips
        for dimension in make_dimensions(self.trips, self.dimensions, age_bands=self.age_bands):
            for value, labels in enumerate(dimension.labels):
                if MISSING not in labels:
                    yield dimension.name, ", ".join(labels), self.trips.select(dimension.value == value)

    def segments(self) -> dict[tuple[str, str], ODMatrix | str]:
        """Return the matrix of the whole and of each segment, or the reason why it has none."""
        matrices: dict[tuple[str, str], ODMatrix | str] = {(WHOLE, WHOLE): self.whole}
        if isinstance(self.trips, ODMatrix):
            return matrices
        for dimension, label, trips in islice(self.parts(), 1, None):
            try:
                matrices[dimension, label] = self._matrix(trips)
            except InputError as error:
                matrices[dimension, label] = str(error)
        return matrices

    @cached_property
    def whole(self) -> ODMatrix:
        """The matrix of the whole input."""
        return self.trips if isinstance(self.trips, ODMatrix) else self._matrix(self.trips)

    def _matrix(self, trips: Trips) -> ODMatrix:
        return build_od(trips, resolution=self.resolution, within=self.within)

    def run(self, done: Mapping[GridCell, Outcome]) -> Iterator[tuple[GridCell, Callable[[], Outcome]]]:
        """Yield every cell of the grid with a function that runs it; outcomes that are done are reused."""
        for (part, od), (target, rule), row in product(self.segments().items(), self.rules().items(), self.rows):
            cell = GridCell(*part, target, row)
            yield cell, lambda cell=cell, od=od, rule=rule: done.get(cell) or self._outcome(cell, od, rule)  # type: ignore[misc]

    def rules(self) -> dict[str, Rule]:
        """Return the rule of each target, with the mean weight of the whole input."""
        targets = self.targets or (TARGETS if self.whole.weight_units is not None else TARGETS[:1])
        return {target: Rule.protect(*target.split("+"), k=self.k, of=self.whole) for target in targets}

    def _outcome(self, cell: GridCell, od: ODMatrix | str, rule: Rule) -> Outcome:
        if isinstance(od, str):
            return Outcome(cell, 0, 0, 0, 0, 0, 0.0, 0.0, {}, {}, refusal=od)
        row = find_row(cell.row)
        options: dict[str, Any] = {"budget": self.budget} if row.takes_budget else {}
        if METHODS[row.method].noisy:
            rule, options = NO_RULE, {} if self.noise is None else vars(self.noise)
        try:
            release = anonymize(od, rule, method=row.method, **row.options, **options)
        except OdkanonError as error:
            return Outcome(cell, od.trips, len(od), 0, 0, 0, 1.0, 0.0, {}, {}, refusal=str(error))
        asked = () if release.is_noisy else od.measures
        measures: list[UtilityMeasure] = [measure for measure in get_args(UtilityMeasure) if measure in asked]
        bounded = [measure for measure in measures if bound_applies(release, measure)]
        limits: dict[str, float | None] = {
            measure: self._limit(od, rule, *used_budget(release), measure) for measure in bounded
        }
        return _describe(cell, od, release, measures, limits)

    @cache  # noqa: B019 - an experiment lives as long as its command
    def _limit(self, od: ODMatrix, rule: Rule, budget: Budget, allowance: int, measure: UtilityMeasure) -> float | None:
        return bound_within(od, rule, budget, allowance, measure).g


def _describe(
    cell: GridCell,
    od: ODMatrix,
    release: Release,
    measures: Sequence[UtilityMeasure],
    limits: dict[str, float | None],
) -> Outcome:
    """Return an outcome; the rows of noise are no classes, so only their accuracy is compared."""
    asked = release.parameters if release.is_noisy else None
    return Outcome(
        cell,
        trips=od.trips,
        pairs=len(od),
        origins=len(release.origins),
        destinations=len(release.destinations),
        classes=len(release.classes),
        suppressed=None if asked else 1 - int(release.classes.trips.sum()) / od.trips,
        seconds=release.seconds,
        utility={
            measure: asdict(utility(od, release, measure=measure)) | evaluate_extra_metrics(release, measure)
            for measure in measures
        }
        or {"trips": {}},
        privacy={} if asked else {measure: asdict(report) for measure, report in steward_privacy(release).items()},
        limit_g=limits,
        refusal=release.refusal,
        # Segments are many, and compared by the paper's metrics.
        usefulness={
            measure: found.as_dict() for measure, found in accuracy(release, estimate=cell.dimension == WHOLE).items()
        },
        promise="" if asked is None else _noise_in_words(asked),
    )


def _noise_in_words(asked: Mapping[str, Any]) -> str:
    most = f" with at most {asked['trips_per_person']} trips" if asked["unit"] == "person" else ""
    return f"each {asked['unit']}{most}, by epsilon = {asked['epsilon']:g} and delta = {asked['delta']:g}"


def read_outcomes(path: Path, settings: Mapping[str, Any]) -> dict[GridCell, Outcome]:
    """Return the outcomes of an interrupted run of the same grid.

    The first line of the file has the settings of the grid, which must be the same. An incomplete last line is dropped.
    """
    if not path.is_file():
        return {}
    first, *lines = path.read_text(encoding="utf-8").splitlines(keepends=True) or [""]
    if not first.endswith("\n") or json.loads(first) != settings:
        raise InputError(
            f"{path.parent} holds a grid with other settings or input; choose another folder", option="force"
        )
    outcomes = [Outcome.from_json(line) for line in lines if line.endswith("\n")]
    return {outcome.cell: outcome for outcome in outcomes}
