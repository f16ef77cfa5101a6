"""The single result type of every method: a release, which cannot exist with a class below its rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from odkanon.core.arrays import Bools, Codes, Frozen, group_sum
from odkanon.errors import InputError, UnsafeReleaseError
from odkanon.model.assignment import Assignment, Deviation
from odkanon.model.budget import Budget
from odkanon.model.flows import Totals
from odkanon.model.measures import ADDITIVE
from odkanon.model.od import Matrix, ODMatrix
from odkanon.model.provenance import Summary
from odkanon.model.published_flows import Classes
from odkanon.model.residual_suppression import satisfied_jointly
from odkanon.model.rule import Rule
from odkanon.zoning.zones import Zones

if TYPE_CHECKING:
    from odkanon.publish.attribute_view import View
    from odkanon.publish.notebook import Map
    from odkanon.quality.accuracy.result import Accuracy
    from odkanon.quality.lower_bounds.lower_bound import Limit


@dataclass(frozen=True, eq=False)
class Release(Frozen):
    """What may be published of an OD matrix.

    Building one checks it: a class below the rule, a budget overrun or a trip that is neither published nor
    suppressed raises `UnsafeReleaseError`. Nothing downstream has to check again.

    Attributes
    ----------
    input : Summary
        The totals of the input.
    rule : Rule
        What every class meets.
    method, parameters : str, mapping
        How it was made.
    origins, destinations : Zones
        The zones that occur in published classes, sorted by id.
    classes : Classes
        The published classes.
    suppressed : Totals
        What is not published; for accounting, never for publishing.
    budget : Budget or None
        What could be suppressed.
    assignment : Placement or None
        Where each OD pair went; None where the pairs were never in memory.
    deviations : mapping of str to Deviation
        For each measure, how pairs differ from the even spread of their class; where there is no placement.
    stored : Matrix or None
        The input, where its pairs are in a database.
    unlisted : int or None
        The most trips that can be missing, for methods that know better than their budget. It may be published, so it
        has to follow from the classes and from public parameters alone.
    companion : Totals or None
        What would meet the rule, and is suppressed because the rest of what is would be too few; it may go beyond
        the budget. Like ``suppressed``, it is not for publishing.
    refusal : str or None
        Why nothing can be published, where nothing can.
    seconds : float
        How long the method took.
    """

    input: Summary
    rule: Rule
    method: str
    parameters: Mapping[str, Any]
    origins: Zones
    destinations: Zones
    classes: Classes
    suppressed: Totals
    budget: Budget | None = None
    assignment: Assignment | None = None
    deviations: Mapping[str, Deviation] = field(default_factory=dict)
    refusal: str | None = None
    seconds: float = field(default=0.0)
    stored: Matrix | None = None
    unlisted: int | None = None
    companion: Totals | None = None

    def __post_init__(self) -> None:
        below = int(np.count_nonzero(~self.rule.meets_thresholds(self.classes.sure)))
        if below:
            raise UnsafeReleaseError(f"{below} classes are below {self.rule}; nothing was released")
        for measure in ADDITIVE:
            self._check_account(measure)
        if self.assignment is not None:
            self._check_placement(self.assignment)
        if not self.rule.thresholds_only and len(self.classes):
            self._check_constraints()
        if self.refusal is None and self.classes.finest_pairs is None:
            # Nested classes bound what is missing themselves: its total is never told, and may be small.
            self._check_suppressed()
        if self.budget is not None and self.refusal is None:
            extra = 0 if self.companion is None else self.budget.mass(self.companion)
            spent, allowed = self.budget.mass(self.suppressed) - extra, self.budget.allowance(self.input)
            if spent > allowed:
                raise UnsafeReleaseError(f"{spent:,} {self.budget.of} suppressed, but the budget is {allowed:,}")
        if self.unlisted is not None and self.suppressed.trips > self.unlisted:
            raise UnsafeReleaseError(f"{self.suppressed.trips:,} trips suppressed, more than {self.unlisted:,} at most")

    def _check_account(self, measure: str) -> None:
        total, published = getattr(self.input, measure), getattr(self.classes, measure)
        if (total is None) != (published is None):
            raise UnsafeReleaseError(f"the {measure} of input and classes cannot be compared")
        if total is not None and int(published.sum()) + (getattr(self.suppressed, measure) or 0) != total:
            raise UnsafeReleaseError(f"the {measure} published and suppressed are not those of the input")
        compared = self.deviations.get(measure)
        if compared is not None and int(compared.inside.sum()) + compared.outside != total:
            raise UnsafeReleaseError(f"the {measure} compared with the classes are not those of the input")

    def _check_placement(self, assignment: Assignment) -> None:
        flows, published = assignment.od.flows, assignment.published
        excess = assignment.excess or Totals(weight=None if flows.weight is None else 0)
        if flows.totals(~published) + excess != self.suppressed:
            raise UnsafeReleaseError("what is suppressed is not what the unpublished pairs add up to")
        classes = assignment.area_of_pair[published]
        if np.any(classes < 0):
            raise UnsafeReleaseError("a published pair lies in no class")
        for measure in ADDITIVE:
            of_pairs, of_classes = getattr(flows, measure), getattr(self.classes, measure)
            if of_pairs is None:
                continue
            if assignment.excess is not None:
                same = int(of_pairs[published].sum()) - getattr(excess, measure) == of_classes.sum()
            else:
                same = np.array_equal(group_sum(classes, len(self.classes), of_pairs[published]), of_classes)
            if not same:
                raise UnsafeReleaseError(f"the {measure} of a class are not those of its pairs")

    def _check_constraints(self) -> None:
        """Check shares, which takes the pairs of each class, and the number of destinations of each origin."""
        rule, classes, assignment = self.rule, self.classes, self.assignment
        if classes.finest_pairs is not None or assignment is None:
            raise UnsafeReleaseError(f"{rule} can only be checked on flows side by side whose pairs are in memory")
        ends = np.unique(np.stack([classes.origin, classes.destination]), axis=1)[0]
        few = np.count_nonzero(~rule.with_destinations(ends, np.ones(len(ends), dtype=bool)))
        klass = assignment.area_of_pair[assignment.published]
        pairs, _ = assignment.od.flows.take(assignment.published).merge(klass, np.zeros(len(klass), dtype=np.int32))
        if few or not rule.satisfied(pairs).all():
            raise UnsafeReleaseError(f"{few or np.count_nonzero(~rule.satisfied(pairs))} classes break {rule}")

    def check(self) -> None:
        """Check everything again; arrays are read-only, but nothing in Python is so for good."""
        self.__post_init__()

    def _check_suppressed(self) -> None:
        """Check that the suppressed are none, or meet the rule; heads only where the pairs are in memory."""
        gone, rule = self.suppressed, self.rule
        least = {name: rule.units(name, self.classes.scale) for name in ADDITIVE if name in rule.measures}
        few = gone.pairs > 0 and any((getattr(gone, name) or 0) < units for name, units in least.items())
        if self.assignment is not None:
            few |= not satisfied_jointly(self.assignment.od.flows, ~self.assignment.published, rule)
        if few:
            raise UnsafeReleaseError(f"what is suppressed is itself below {rule}; its total would tell of it")

    @classmethod
    def empty(
        cls, od: ODMatrix | Summary, rule: Rule, method: str, parameters: Mapping[str, Any], refusal: str
    ) -> Release:
        """Return the release that publishes nothing, and says why."""
        summary = od if isinstance(od, Summary) else od.summary
        nothing = Zones(np.empty(0, dtype=np.str_), np.empty(0, dtype=np.int64))
        no_codes, no_ints = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64)
        classes = Classes(
            no_codes,
            no_codes,
            no_ints,
            None if summary.weight is None else no_ints,
            dict.fromkeys(summary.contributors, no_ints),
            summary.scale,
        )
        assignment = None
        if isinstance(od, ODMatrix):
            nowhere = np.full(len(od), -1, dtype=np.int32)
            assignment = Assignment(od, nowhere, np.zeros(len(od), dtype=bool))
        everything = Totals(summary.pairs, summary.trips, summary.weight)
        return cls(
            summary,
            rule,
            method,
            parameters,
            nothing,
            nothing,
            classes,
            everything,
            assignment=assignment,
            refusal=refusal,
        )

    @property
    def placement_in_memory(self) -> Assignment:
        """Where each OD pair went; raises where the pairs were never in memory."""
        if self.assignment is None:
            raise InputError("this release was made where its OD pairs are; they were never in memory")
        return self.assignment

    @property
    def od(self) -> ODMatrix:
        """The input, where it is in memory."""
        return self.placement_in_memory.od

    @property
    def matrix(self) -> Matrix | None:
        """The input, wherever its pairs are; None where that is not known any more."""
        return self.stored if self.assignment is None else self.assignment.od

    @property
    def area_of_pair(self) -> Codes:
        """For each OD pair of the input, the class in whose area it lies; -1 for none."""
        return self.placement_in_memory.area_of_pair

    @property
    def published(self) -> Bools:
        """For each OD pair of the input, whether it is counted in that class."""
        return self.placement_in_memory.published

    @cached_property
    def compared(self) -> dict[str, Deviation]:
        """By measure, how pairs differ from the even spread of their class, as far as that was worked out already."""
        return dict(self.deviations)

    @cached_property
    def limit(self) -> Limit | None:
        """What no release over the same hierarchies, with the same rule and budget, can beat; see `odkanon.limit`."""
        from odkanon.quality.lower_bounds.lower_bound import limit_of

        return limit_of(self)

    @cached_property
    def accuracy(self) -> dict[str, Accuracy]:
        """How well it answers what people ask of a matrix, in each measure; see `odkanon.accuracy`."""
        from odkanon.quality.accuracy.accuracy import accuracy

        return accuracy(self)

    def save(self, folder: str | Path, *, force: bool = False) -> Path:
        """Write the release as a folder, all or nothing; see `odkanon.publish.save.save_release`."""
        from odkanon.publish.save import save_release

        return save_release(self, Path(folder), force=force)

    def view(self, where: str | None = None) -> View:
        """Return some of the trips of a cube as a matrix; see `odkanon.view_release`."""
        from odkanon.publish.attribute_view import view_in_memory

        return view_in_memory(self, where)

    def table(self) -> pa.Table:
        """Return the published flows as an Arrow table, which pandas, polars and DuckDB can take over."""
        from odkanon.release_format.names import classes_table

        return classes_table(self)

    def map(self, *, height: int = 800) -> Map:
        """Show the release as a page inside a notebook; see `odkanon.publish.notebook.release_map`."""
        from odkanon.publish.notebook import release_map

        return release_map(self, height=height)

    def _repr_html_(self) -> str:
        from odkanon.publish.notebook import release_html

        return release_html(self)

    def __repr__(self) -> str:
        if self.refusal:
            return f"Release(nothing: {self.refusal})"
        share = self.classes.trips.sum() / max(self.input.trips, 1)
        return (
            f"Release({self.method}, {self.rule}: {len(self.classes):,} classes between {len(self.origins):,} origin "
            f"and {len(self.destinations):,} destination zones, {share:.1%} of trips)"
        )
