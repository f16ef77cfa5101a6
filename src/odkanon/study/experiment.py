"""The paper's experiment: methods x protection targets x segments, each evaluated on trips and on weight."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, get_args

from odkanon.errors import InputError, OdkanonError
from odkanon.methods import METHODS, anonymize
from odkanon.model.budget import Budget
from odkanon.model.od import ODMatrix
from odkanon.model.release import Release
from odkanon.model.rule import Rule
from odkanon.quality.lower_bounds.lower_bound import binds, limit_within, spending
from odkanon.quality.privacy import privacy
from odkanon.quality.utility import UtilityMeasure, utility
from odkanon.read.area import Area
from odkanon.read.attributes.dimensions import make_dimensions
from odkanon.read.attributes.hierarchies import AGE_BANDS, MISSING
from odkanon.read.trips import Trips, build_od
from odkanon.study.participants import People, people_in

WHOLE = "whole"
TARGETS = ("participants", "population")
"""Whom the paper protects; any combination is written as ``participants+persons``."""


@dataclass(frozen=True)
class MethodRow:
    """A row of the tables: a method with its options."""

    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    remark: str = ""

    @property
    def title(self) -> str:
        """As the tables call it."""
        title = METHODS[self.method].title
        return f"{title} ({self.remark})" if self.remark else title

    @property
    def takes_budget(self) -> bool:
        """Whether the budget of the experiment applies."""
        return METHODS[self.method].takes_budget and "budget" not in self.options


METHOD_ROWS: dict[str, MethodRow] = {name: MethodRow(name) for name in METHODS} | {
    "odkanon-published": MethodRow("odkanon", {"suppress": "before"}, "published"),
    "odkanon": MethodRow("odkanon", {"suppress": "after"}, "budget at the end"),
    "oigh-no-budget": MethodRow("oigh", {"budget": 0.0}, "no suppression"),
    "cascade": MethodRow("cascade", {"budget": None}),
    "cascade-budget": MethodRow("cascade", {}, "coarsest rows left out"),
}
"""Every row that can be asked for: each method as it is, and some with options."""

PAPER_ROWS = ("odkanon-published", "odkanon", "atg-soft", "oigh", "oigh-no-budget", "mondrian")
"""The paper's methods. It gives OIGH no budget, unlike the others; which of the two beats ODkAnon depends on that."""

ALL_ROWS = (*PAPER_ROWS, *(name for name in METHODS if name not in PAPER_ROWS))
"""Every method, each as one would publish it."""


@dataclass(frozen=True)
class Cell:
    """One run of the grid: what is run on what."""

    dimension: str
    segment: str
    target: str
    row: str


@dataclass(frozen=True)
class Outcome:
    """What came out of one run; ``refusal`` says why where there is nothing.

    Attributes
    ----------
    trips, pairs : int
        Size of the segment.
    origins, destinations, classes : int
        What is published.
    suppressed : float
        Share of trips that is not.
    seconds : float
        How long the method took.
    utility, privacy : dict
        By measure, as in ``release.json``.
    limit_g : dict
        By measure, the G that no method over the hierarchies can beat with the budget of this very run; empty where
        the limit does not hold for it.
    usefulness : dict
        By measure, as `odkanon.Accuracy.as_dict` returns it; empty where it is not known where zones lie.
    """

    cell: Cell
    trips: int
    pairs: int
    origins: int
    destinations: int
    classes: int
    suppressed: float
    seconds: float
    utility: dict[str, dict[str, float | None]]
    privacy: dict[str, dict[str, float | None]]
    limit_g: dict[str, float | None] = field(default_factory=dict)
    refusal: str | None = None
    usefulness: dict[str, dict[str, Any]] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return the outcome as one line of JSON."""
        return json.dumps(asdict(self), allow_nan=False)

    @classmethod
    def from_json(cls, line: str) -> Outcome:
        """Read back what `to_json` wrote."""
        told = json.loads(line)
        return cls(**told | {"cell": Cell(**told["cell"])})


@dataclass(frozen=True, eq=False)
class Experiment:
    """A grid of runs over one input.

    Attributes
    ----------
    trips : Trips or ODMatrix
        The input, with the attributes to segment by; a matrix can be looked at as a whole only.
    k, budget : int, float
        The same for every run; k stays the same for every segment, and so does the mean weight of a trip.
    dimensions : tuple of str
        What to segment by, besides the whole.
    rows : tuple of str
        Keys of `METHOD_ROWS`.
    targets : tuple of str, optional
        Whom to protect; both of `TARGETS` by default, as far as there are weights.
    """

    trips: Trips | ODMatrix
    k: int = 10
    budget: float = 0.10
    dimensions: tuple[str, ...] = ()
    rows: tuple[str, ...] = PAPER_ROWS
    resolution: int = 10
    within: Area | None = None
    age_bands: Sequence[int] = AGE_BANDS
    targets: tuple[str, ...] | None = None

    def people(self) -> list[People]:
        """Return whom the whole and every segment stand for; nothing for a matrix, whose persons are not known."""
        if isinstance(self.trips, ODMatrix):
            return []
        parts = [(WHOLE, WHOLE, self.trips), *self._parts()]
        return [people_in(trips, dimension, label, self.resolution, self.within) for dimension, label, trips in parts]

    def _parts(self) -> Iterator[tuple[str, str, Trips]]:
        """Yield the trips of every segment; those without the attribute are in none."""
        assert isinstance(self.trips, Trips)
        for dimension in make_dimensions(self.trips, self.dimensions, age_bands=self.age_bands):
            for value, labels in enumerate(dimension.labels):
                if MISSING not in labels:
                    yield dimension.name, ", ".join(labels), self.trips.select(dimension.value == value)

    def segments(self) -> dict[tuple[str, str], ODMatrix | str]:
        """Return the matrix of the whole and of every segment, or why there is none.

        Trips without the attribute are in no segment.
        """
        matrices: dict[tuple[str, str], ODMatrix | str] = {(WHOLE, WHOLE): self.whole}
        if isinstance(self.trips, ODMatrix):
            return matrices
        for dimension, label, trips in self._parts():
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

    def run(self, done: Mapping[Cell, Outcome]) -> Iterator[tuple[Cell, Callable[[], Outcome]]]:
        """Yield every run of the grid with the work to do for it; what is done already costs nothing."""
        matrices = self.segments()
        rules = self.rules()
        for (dimension, segment), od in matrices.items():
            for target, rule in rules.items():
                for row in self.rows:
                    cell = Cell(dimension, segment, target, row)
                    yield cell, lambda cell=cell, od=od, rule=rule: done.get(cell) or self._outcome(cell, od, rule)  # type: ignore[misc]

    def rules(self) -> dict[str, Rule]:
        """Return the rule of each target, with the mean weight of the whole."""
        targets = self.targets or (TARGETS if self.whole.weight is not None else TARGETS[:1])
        return {target: Rule.protect(*target.split("+"), k=self.k, of=self.whole) for target in targets}

    def _outcome(self, cell: Cell, od: ODMatrix | str, rule: Rule) -> Outcome:
        if isinstance(od, str):
            return Outcome(cell, 0, 0, 0, 0, 0, 0.0, 0.0, {}, {}, refusal=od)
        row = METHOD_ROWS[cell.row]
        options = {"budget": self.budget} if row.takes_budget else {}
        try:
            release = anonymize(od, rule, method=row.method, **row.options, **options)
        except OdkanonError as error:
            return Outcome(cell, od.trips, len(od), 0, 0, 0, 1.0, 0.0, {}, {}, refusal=str(error))
        measures: list[UtilityMeasure] = [measure for measure in get_args(UtilityMeasure) if measure in od.measures]
        bound = [measure for measure in measures if binds(release, measure)]
        limits: dict[str, float | None] = {
            measure: self._limit(od, rule, *spending(release), measure) for measure in bound
        }
        return _describe(cell, release, measures, limits)

    @cache  # noqa: B019 - an experiment lives as long as its command
    def _limit(self, od: ODMatrix, rule: Rule, budget: Budget, allowance: int, measure: UtilityMeasure) -> float | None:
        return limit_within(od, rule, budget, allowance, measure).g


def _describe(
    cell: Cell, release: Release, measures: Sequence[UtilityMeasure], limits: dict[str, float | None]
) -> Outcome:
    od = release.od
    return Outcome(
        cell,
        trips=od.trips,
        pairs=len(od),
        origins=len(release.origins),
        destinations=len(release.destinations),
        classes=len(release.classes),
        suppressed=1 - int(release.classes.trips.sum()) / od.trips,
        seconds=release.seconds,
        utility={measure: asdict(utility(od, release, measure=measure)) for measure in measures},
        privacy={measure: asdict(report) for measure, report in privacy(release).items()},
        limit_g=limits,
        refusal=release.refusal,
        usefulness={measure: found.as_dict() for measure, found in release.accuracy.items()},
    )


def read_outcomes(path: Path, fingerprint: Mapping[str, Any]) -> dict[Cell, Outcome]:
    """Return what an earlier, stopped run of the same grid has finished.

    The file's first line tells the settings of the grid; a file of other settings is refused. A last line that was
    cut off in the middle is dropped.
    """
    if not path.is_file():
        return {}
    first, *lines = path.read_text(encoding="utf-8").splitlines(keepends=True) or [""]
    if not first.endswith("\n") or json.loads(first) != fingerprint:
        raise InputError(
            f"{path.parent} holds a grid with other settings or input; choose another folder", option="force"
        )
    outcomes = [Outcome.from_json(line) for line in lines if line.endswith("\n")]
    return {outcome.cell: outcome for outcome in outcomes}
