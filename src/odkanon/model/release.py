"""The single result type of every method: a release, which cannot exist with a class below its rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from odkanon.core.arrays import Bools, Codes, Frozen, group_sum
from odkanon.core.parsing import check_result
from odkanon.core.registry import LazyModule
from odkanon.errors import InputError, UnsafeReleaseError
from odkanon.model.axes import Subject
from odkanon.model.flows import Totals
from odkanon.model.measures import ADDITIVE, exact_masses
from odkanon.model.od import Axis, Matrix, ODMatrix
from odkanon.model.provenance import Summary
from odkanon.model.published_flows import Assignment, Classes, Deviation
from odkanon.model.release_spec import Budget, BudgetOf, ReleaseSpec, Structure, satisfied_jointly
from odkanon.model.rule import Rule
from odkanon.zoning.zones import Zones

if TYPE_CHECKING:
    from odkanon.pipeline import shorthands
    from odkanon.pipeline.shorthands import (
        Accuracy,
        CubeView,
        FlowEstimates,
        FlowMatrix,
        FlowTable,
        LowerBound,
        NotebookMap,
        ZoneTable,
    )
else:
    shorthands = LazyModule("odkanon.pipeline.shorthands")


@dataclass(frozen=True, eq=False)
class Release(Frozen):
    """Flows of an OD matrix that meet a rule.

    The constructor checks it: a class below the rule, a budget overrun or a trip that is neither published nor
    suppressed raises `UnsafeReleaseError`. Nothing downstream has to check again.

    The object holds the input with every OD pair, and what is suppressed. Only the folder that `save` writes may be
    shared: never pickle a release, or print its parts, for anybody who may not see the trips.

    Attributes
    ----------
    input : Summary
        The totals of the input.
    spec : ReleaseSpec
        What was requested: the rule that every class meets, the budget, the method and its parameters.
    origins, destinations : Zones
        The zones that occur in published classes, sorted by id.
    classes : Classes
        The published classes.
    suppressed : Totals
        Totals of the unpublished trips; for accounting, never for publication.
    structure : Structure
        Whether the zones of an axis are disjoint, may overlap, or are nested.
    assignment : Assignment or None
        The class of each OD pair; None if the pairs were never in memory.
    deviations : mapping of str to Deviation
        By measure, how pairs deviate from the even spread of their class; if there is no assignment.
    stored : Matrix or None
        The input, if its pairs are in a database.
    unlisted : int or None
        The most trips that can be unlisted, for methods with a tighter bound than their budget. It is published, so it
        must follow from the classes and from public parameters only.
    companion : Totals or None
        Complementary suppression: classes that meet the rule and are suppressed because the residual would be below it;
        they may exceed the budget. Like ``suppressed``, not for publication.
    refusal : str or None
        The reason why nothing can be published, if so.
    seconds : float
        Run time of the method.
    """

    input: Summary
    spec: ReleaseSpec
    origins: Zones
    destinations: Zones
    classes: Classes
    suppressed: Totals
    structure: Structure = Structure.PARTITION
    assignment: Assignment | None = None
    deviations: Mapping[str, Deviation] = field(default_factory=dict)
    refusal: str | None = None
    seconds: float = field(default=0.0)
    stored: Matrix | None = None
    unlisted: int | None = None
    companion: Totals | None = None

    def __post_init__(self) -> None:
        below = int(np.count_nonzero(~self.rule.meets_thresholds(self.classes.with_min_contributors)))
        if below:
            raise UnsafeReleaseError(f"{below} classes are below {self.rule}; nothing was released")
        if (self.structure is Structure.NOISY) != (self.classes.standard_error is not None):
            raise UnsafeReleaseError("only estimates from counts with noise have a standard error, and all of them do")
        if not self.is_noisy:
            self._check_counts()

    def _check_counts(self) -> None:
        """Check that classes and suppressed trips add up to the input and keep the budget."""
        for measure in ADDITIVE:
            self._check_totals(measure)
        if self.assignment is not None:
            self._check_assignment(self.assignment)
        if not self.rule.thresholds_only and len(self.classes):
            self._check_constraints()
        if self.is_nested != (self.classes.finest_pairs is not None):
            raise UnsafeReleaseError("finest_pairs is for nested classes only, and each of them needs it")
        if self.refusal is None and not self.is_nested:
            # Nested classes bound the residual themselves; its total is never published and may be small.
            self._check_suppressed()
        if self.budget is not None and self.refusal is None:
            extra = 0 if self.companion is None else self.budget.mass(self.companion)
            spent, allowed = self.budget.mass(self.suppressed) - extra, self.budget.allowance(self.input)
            if spent > allowed:
                raise UnsafeReleaseError(f"{spent:,} {self.budget.of} suppressed, but the budget is {allowed:,}")
        if self.unlisted is not None and self.suppressed.trips > self.unlisted:
            raise UnsafeReleaseError(f"{self.suppressed.trips:,} trips suppressed, more than {self.unlisted:,} at most")

    def _check_totals(self, measure: str) -> None:
        total, published = exact_masses(self.input, measure), exact_masses(self.classes, measure)
        if (total is None) != (published is None):
            raise UnsafeReleaseError(f"the {measure} of input and classes cannot be compared")
        if total is not None and int(published.sum()) + (exact_masses(self.suppressed, measure) or 0) != total:
            raise UnsafeReleaseError(f"the {measure} published and suppressed are not those of the input")
        compared = self.deviations.get(measure)
        if compared is not None and int(compared.inside.sum()) + compared.outside != total:
            raise UnsafeReleaseError(f"the {measure} compared with the classes are not those of the input")

    def _check_assignment(self, assignment: Assignment) -> None:
        flows, published = assignment.od.flows, assignment.published
        excess = assignment.excess or Totals(weight_units=None if flows.weight_units is None else 0)
        if flows.totals(~published) + excess != self.suppressed:
            raise UnsafeReleaseError("the suppressed total is not that of the unpublished pairs")
        classes = assignment.area_of_pair[published]
        if np.any(classes < 0):
            raise UnsafeReleaseError("a published pair lies in no class")
        for measure in ADDITIVE:
            of_pairs, of_classes = exact_masses(flows, measure), exact_masses(self.classes, measure)
            if of_pairs is None:
                continue
            if assignment.excess is not None:
                same = int(of_pairs[published].sum()) - exact_masses(excess, measure) == of_classes.sum()
            else:
                same = np.array_equal(group_sum(classes, len(self.classes), of_pairs[published]), of_classes)
            if not same:
                raise UnsafeReleaseError(f"the {measure} of a class are not those of its pairs")

    def _check_constraints(self) -> None:
        """Check shares, which needs the pairs of each class, and the number of destinations of each origin."""
        rule, classes, assignment = self.rule, self.classes, self.assignment
        if self.is_nested or assignment is None:
            raise UnsafeReleaseError(f"{rule} can only be checked on disjoint flows whose pairs are in memory")
        ends = np.unique(np.stack([classes.origin, classes.destination]), axis=1)[0]
        few = np.count_nonzero(~rule.with_destinations(ends, np.ones(len(ends), dtype=bool)))
        klass = assignment.area_of_pair[assignment.published]
        pairs, _ = assignment.od.flows.take(assignment.published).merge(klass, np.zeros(len(klass), dtype=np.int32))
        if few or not rule.satisfied(pairs).all():
            raise UnsafeReleaseError(f"{few or np.count_nonzero(~rule.satisfied(pairs))} classes break {rule}")

    def check(self) -> None:
        """Repeat all checks; arrays are read-only, but nothing in Python is truly immutable."""
        self.__post_init__()

    def _check_suppressed(self) -> None:
        """Check that the residual is empty or meets the rule; contributors only if the pairs are in memory."""
        gone, rule = self.suppressed, self.rule
        least = {name: rule.units(name, self.classes.scale) for name in ADDITIVE if name in rule.measures}
        few = gone.pairs > 0 and any((exact_masses(gone, name) or 0) < units for name, units in least.items())
        if self.assignment is not None:
            few |= not satisfied_jointly(self.assignment.od.flows, ~self.assignment.published, rule)
        if few:
            raise UnsafeReleaseError(f"the residual is below {rule}; its total would disclose it")

    @classmethod
    def empty(cls, od: ODMatrix | Summary, spec: ReleaseSpec, refusal: str) -> Release:
        """Return the release that publishes nothing, with the reason."""
        summary = od if isinstance(od, Summary) else od.summary
        nothing = Zones(np.empty(0, dtype=np.str_), np.empty(0, dtype=np.int64))
        no_codes, no_ints = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64)
        classes = Classes(
            no_codes,
            no_codes,
            no_ints,
            None if summary.weight_units is None else no_ints,
            dict.fromkeys(summary.contributors, no_ints),
            summary.scale,
        )
        assignment = None
        if isinstance(od, ODMatrix):
            nowhere = np.full(len(od), -1, dtype=np.int32)
            assignment = Assignment(od, nowhere, np.zeros(len(od), dtype=bool))
        everything = Totals(summary.pairs, summary.trips, summary.weight_units)
        spec = replace(spec, budget=None)
        return cls(summary, spec, nothing, nothing, classes, everything, assignment=assignment, refusal=refusal)

    @classmethod
    def from_labels(
        cls,
        od: ODMatrix,
        rule: Rule,
        origin_zone: npt.ArrayLike,
        destination_zone: npt.ArrayLike,
        *,
        budget: float | None = None,
        budget_of: BudgetOf = "trips",
        method: str = "labels",
        parameters: Mapping[str, Any] | None = None,
        structure: Literal["partition", "overlapping"] = "partition",
    ) -> Release:
        """Return the release of zones that are given as labels, as a method of your own does.

        Classes that do not meet the rule are suppressed. If they exceed the budget, or no class is left, the release is
        empty, and ``refusal`` has the reason. If the suppressed trips are so few that their total would disclose a
        group below the rule, the smallest class is suppressed with them, as in every method.

        Parameters
        ----------
        od : ODMatrix
            The input, with its pairs in memory.
        rule : Rule
            What every published class must meet.
        origin_zone, destination_zone : array of str or int
            For each leaf of the axis (``od.origins.leaves``), the label of its zone: the name of a node of the
            hierarchy, at any level, that has just the leaves with this label; or, for all zones of an axis, any other
            name. Only nodes can be drawn on a map. Labels are published: they must not derive from the data.
        budget : float, optional
            Share that may be suppressed, in [0, 1); None for no limit.
        budget_of : {"trips", "rows"}
            What the budget is a share of: trips or OD pairs.
        method : str
            Name of the method.
        parameters : mapping, optional
            Its parameters; those that are options of the method are published.
        structure : {"partition", "overlapping"}
            ``overlapping``: the zones of one end depend on the other one, so there is one label for each OD pair
            (``od.flows``) instead of each leaf.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from odkanon import Release, Rule, read_hierarchy, read_matrix
        >>> flows = {"origin": ["a1", "a1", "a2", "b1"], "destination": ["b1", "b2", "b1", "a1"], "trips": [6, 4, 3, 9]}
        >>> zones = pa.table({"zone": ["a1", "a2", "b1", "b2"], "district": ["a", "a", "b", "b"]})
        >>> od = read_matrix(pa.table(flows), hierarchy=read_hierarchy(zones))
        >>> release = Release.from_labels(od, Rule(trips=5), ["a", "a", "b1"], ["a1", "b", "b"])
        >>> release.origins.ids.tolist(), release.classes.trips.tolist()
        (['a', 'b1'], [13, 9])
        """
        from odkanon.model.zone_labels import release_from_labels

        check_result("the input", od, "in_memory", "read_matrix or build_od")
        allowed = None if budget is None else Budget(budget, budget_of)
        spec = ReleaseSpec(rule, allowed, method, dict(parameters or {}))
        labels: dict[Axis, npt.ArrayLike] = {"origin": origin_zone, "destination": destination_zone}
        return release_from_labels(od, spec, labels, structure)

    @property
    def rule(self) -> Rule:
        """The rule that every class meets."""
        return self.spec.rule

    @property
    def budget(self) -> Budget | None:
        """The share that may be suppressed; None for no limit."""
        return self.spec.budget

    @property
    def method(self) -> str:
        """The name of its method."""
        return self.spec.method

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The options of the method, and what it reports."""
        return self.spec.parameters

    @property
    def subject(self) -> Subject:
        """What is counted, and by which places."""
        return self.input.source.subject

    @property
    def is_nested(self) -> bool:
        """Whether classes may lie inside others."""
        return self.structure is Structure.NESTED

    @property
    def is_noisy(self) -> bool:
        """Whether classes are estimates from counts with noise, which are not compared with the input."""
        return self.structure is Structure.NOISY

    @property
    def assignment_in_memory(self) -> Assignment:
        """The class of each OD pair; raises if the pairs were never in memory."""
        if self.assignment is None:
            raise InputError("the OD pairs of this release were never in memory; read the trips with the memory engine")
        return self.assignment

    @property
    def od(self) -> ODMatrix:
        """The input, if it is in memory."""
        return self.assignment_in_memory.od

    @property
    def matrix(self) -> Matrix | None:
        """The input, wherever its pairs are; None if unknown."""
        return self.stored if self.assignment is None else self.assignment.od

    @property
    def area_of_pair(self) -> Codes:
        """For each OD pair of the input, the class whose area contains it; -1 for none."""
        return self.assignment_in_memory.area_of_pair

    @property
    def published(self) -> Bools:
        """For each OD pair of the input, whether it is counted in that class."""
        return self.assignment_in_memory.published

    @cached_property
    def compared(self) -> dict[str, Deviation]:
        """By measure, how pairs deviate from the even spread of their class, as far as computed so far."""
        return dict(self.deviations)

    @cached_property
    def lower_bound(self) -> LowerBound | None:
        """Lower bounds on the same hierarchies, with the same rule and budget; see `odkanon.lower_bound`."""
        return shorthands.lower_bound(self)

    @cached_property
    def accuracy(self) -> dict[str, Accuracy]:
        """How accurate its flows are between places of interest, by measure; see `odkanon.accuracy`."""
        return shorthands.accuracy_of(self)

    @cached_property
    def cautions(self) -> tuple[str, ...]:
        """What to know before publication, one text each; the command line prints these, Python warns of them."""
        return tuple(shorthands.cautions_of(self))

    @cached_property
    def flows(self) -> FlowTable:
        """The published flows, weights in their own unit; ``to_pandas()``, ``to_polars()``, ``to_matrix()``, ..."""
        return shorthands.flow_table(self)

    @cached_property
    def zones(self) -> ZoneTable:
        """The zones of both axes; ``to_geopandas()`` has their outlines."""
        return shorthands.zone_table(self)

    def to_arrow(self) -> pa.Table:
        """Return the published flows as an Arrow table."""
        return self.flows.to_arrow()

    def to_pandas(self) -> Any:
        """Return the published flows as a pandas DataFrame."""
        return self.flows.to_pandas()

    def to_polars(self) -> Any:
        """Return the published flows as a polars DataFrame."""
        return self.flows.to_polars()

    def to_geopandas(self) -> Any:
        """Return the zones as a GeoDataFrame in EPSG:4326."""
        return self.zones.to_geopandas()

    def to_matrix(self, measure: str = "trips") -> FlowMatrix:
        """Return the published flows as a sparse matrix with the ids of its rows and columns."""
        return self.flows.to_matrix(measure)

    def locate(self, trips: Any) -> pa.Table:
        """Return the flow to which each trip belongs, for those who hold the trips; not for publication.

        Parameters
        ----------
        trips : DataFrame, Arrow table or path
            With coordinates, or with the origin and destination of each trip.

        Returns
        -------
        pyarrow.Table
            A row for each trip, in the same order: ``flow``, the row of `flows`, and its ``origin`` and
            ``destination`` zones; null if the trip is suppressed or not part of the input. In a cascade, some trips of
            a capped row are counted in a coarser one.
        """
        return shorthands.locate(self, trips)

    def estimate(self, **question: Any) -> FlowEstimates:
        """Return estimated flows between areas, and bounds that hold; see `SavedRelease.estimate`."""
        return shorthands.estimate(self, question)

    def save(self, folder: str | Path, *, force: bool = False, matrix: Any = None, texts: Any = None) -> Path:
        """Write the release as a folder, all or nothing; see `odkanon.publish.save.save_release`."""
        return shorthands.save(self, Path(folder), force=force, matrix=matrix, texts=texts)

    def view(self, where: str | None = None) -> CubeView:
        """Return some of the trips of a cube as a matrix; see `odkanon.publish.attribute_view`."""
        return shorthands.view(self, where)

    def map(self, *, height: int = 800) -> NotebookMap:
        """Show the release as a page inside a notebook; see `odkanon.pipeline.shorthands.release_map`."""
        return shorthands.release_map(self, height=height)

    def _repr_html_(self) -> str:
        return shorthands.release_html(self)

    def __repr__(self) -> str:
        if self.refusal:
            return f"Release(nothing: {self.refusal})"
        share = self.classes.trips.sum() / max(self.input.trips, 1)
        cautions = f"; {len(self.cautions)} caution{'s' * (len(self.cautions) > 1)}" if self.cautions else ""
        return (
            f"Release({self.method}, {self.rule}: {len(self.classes):,} flows between {len(self.origins):,} origin "
            f"and {len(self.destinations):,} destination zones, {share:.1%} of trips{cautions})"
        )
