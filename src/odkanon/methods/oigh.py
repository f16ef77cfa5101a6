"""OIGH: every origin at one level of its hierarchy, every destination at one level of its own.

There are few level pairs (49 for resolutions 10 to 4 on both axes). Thresholds are monotone: the mass below the rule
only shrinks as either level rises, so the feasible pairs form a staircase and the pairs below it need no query.

References
----------
Mahanan, Chaovalitwongse, Natwichai: "Data privacy preservation algorithm with k-anonymity", World Wide Web 2021;
used for OD matrices by Matet et al., Transportation Research Part C 2023.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from odkanon.core.arrays import Bools
from odkanon.engine.dispatch import open_workspace
from odkanon.engine.protocols import Engine
from odkanon.methods.common import Volume, level_number, of_one_height, reaching, sized_total, volume_measure
from odkanon.methods.odkanon import refusal
from odkanon.model.measures import exact_masses
from odkanon.model.od import Matrix
from odkanon.model.release import Release
from odkanon.model.release_spec import Budget, BudgetOf, ReleaseSpec
from odkanon.model.rule import Rule
from odkanon.zoning.hierarchy import level_cut


def oigh(
    od: Matrix,
    rule: Rule,
    *,
    budget: float = 0.10,
    budget_of: BudgetOf = "trips",
    symmetric: bool = False,
    at_level: str | int | None = None,
) -> Release:
    """Anonymise by lifting each axis to one level, the same for all of its zones.

    Of all level pairs whose mass below the rule fits the budget, the one of least
    ``G = sum (|o| + |d|) |Eq| / |D+|`` is published; ties go to the least ``C_DM``, then to the finer pair (least sum
    of levels, then least origin level). ``|Eq|`` is measured in trips, or in weight if that is the rule's main measure.

    * ``budget``: share that may be suppressed, in [0, 1). The published algorithm has 0.
    * ``budget_of``: share of OD pairs or of trips.
    * ``symmetric``: whether both axes are lifted to the same level.
    * ``at_level``: publish at this level only: a column of the lookup table, or an H3 resolution. Flows that
      fail the rule there are suppressed; if they exceed the budget, nothing is published.
    """
    whole = od.summary
    rule.check_available(whole.measures)
    allowed = Budget(budget, budget_of)
    parameters: dict[str, object] = {"budget": budget, "budget_of": budget_of}
    only = None if at_level is None else level_number(od.origins, at_level)
    if only is not None:
        od, parameters["at_level"] = reaching(od, only), at_level
    elif symmetric:
        od, parameters["symmetric"] = of_one_height(od), True
    measure = volume_measure(rule)
    work = open_workspace(od)
    engine = work.engine(rule.required_measures | {measure})
    limits = (rule, allowed, allowed.allowance(whole))
    if only is not None:
        found = same_levels(engine, *limits, [only])
    else:
        found = (same_levels if symmetric else feasible_levels)(engine, *limits)
    best = best_levels(found, rule, measure) if whole.pairs else None
    spec = ReleaseSpec(rule, allowed, "oigh", parameters)
    if best is None:
        why = refusal(work.remaining, rule) if only is None else _refusal(engine, only, limits, parameters)
        return work.refuse(spec, why)
    spec = spec.with_parameters(origin_level=best.origin, destination_level=best.destination)
    cuts = level_cut(od.origins, best.origin), level_cut(od.destinations, best.destination)
    return work.release(spec, best.classes, cuts)


@dataclass(frozen=True, eq=False)
class Levels:
    """A feasible pair of levels and what it publishes."""

    origin: int
    destination: int
    """The levels; 0 is the leaves."""
    g: Fraction
    """Exact mean generalisation error of the classes that meet the rule."""
    classes: Engine
    """The engine over all classes of these levels."""
    good: Bools
    """Which of them meet the rule."""
    measure: Volume
    """The measure in which classes are weighed."""

    @property
    def c_dm(self) -> int:
        """Exact discernibility, ``sum |Eq|^2 + |D| * suppressed``."""
        volumes = exact_masses(self.classes.flows, self.measure)
        published, suppressed = volumes[self.good].tolist(), int(volumes[~self.good].sum())
        return int(sum(volume * volume for volume in published)) + int(volumes.sum()) * suppressed

    def better(self, other: Levels | None) -> bool:
        """Return whether this pair of levels is preferable."""
        if other is None or self.g != other.g:
            return other is None or self.g < other.g
        mine = (self.c_dm, self.origin + self.destination, self.origin)
        return mine < (other.c_dm, other.origin + other.destination, other.origin)


def best_levels(feasible: Iterable[tuple[int, int, Engine]], rule: Rule, measure: Volume) -> Levels | None:
    """Return the best of the feasible level pairs that publish anything, or None.

    A feasible pair can publish nothing if its budget counts rows, or if all weights are zero.
    """
    best: Levels | None = None
    for origin, destination, classes in feasible:
        good = rule.satisfied_jointly(classes.flows)
        if good.any():
            found = _levels(origin, destination, classes, good, measure)
            best = found if found.better(best) else best
    return best


def feasible_levels(engine: Engine, rule: Rule, budget: Budget, allowance: int) -> Iterator[tuple[int, int, Engine]]:
    """Yield every feasible pair of levels with the engine over its classes.

    Origin levels descend from the coarsest. The finest feasible destination level can then only rise, so each row
    starts at that of the previous row, and the first row without a feasible pair ends the search. Within a row, each
    table is aggregated from the next finer one. A rule with constraints is not monotone: every pair is tried.
    """
    origins, destinations = engine.tree("origin"), engine.tree("destination")
    first = 0
    for origin, row in _rows(engine, origins.top):
        feasible = []
        for destination in range(first, destinations.top + 1):
            row = row.coarsen(level_cut(origins, origin), level_cut(destinations, destination))
            if budget.mass(row.totals_below(rule)) <= allowance:
                feasible.append(destination)
                yield origin, destination, row
        if not rule.thresholds_only:
            continue
        if not feasible:
            return
        first = feasible[0]


def same_levels(
    engine: Engine, rule: Rule, budget: Budget, allowance: int, levels: Sequence[int] | None = None
) -> Iterator[tuple[int, int, Engine]]:
    """Yield every feasible level for both ends, or those of some levels, with the engine over its classes."""
    for level in range(engine.tree("origin").top + 1) if levels is None else levels:
        engine = engine.coarsen(level_cut(engine.tree("origin"), level), level_cut(engine.tree("destination"), level))
        if budget.mass(engine.totals_below(rule)) <= allowance:
            yield min(level, engine.tree("origin").top), min(level, engine.tree("destination").top), engine


def _refusal(engine: Engine, level: int, limits: tuple[Rule, Budget, int], parameters: dict[str, object]) -> str:
    """Return the reason why nothing can be published at the requested level."""
    rule, budget, allowance = limits
    cuts = level_cut(engine.tree("origin"), level), level_cut(engine.tree("destination"), level)
    lost = budget.mass(engine.coarsen(*cuts).totals_below(rule))
    return (
        f"at level {parameters['at_level']}, flows with {lost:,} {budget.of} do not meet {rule}, and no more than "
        f"{allowance:,} may be suppressed; raise the budget, lower the thresholds, or choose a coarser level"
    )


def _rows(engine: Engine, top: int) -> Iterator[tuple[int, Engine]]:
    """Yield the origin levels from the coarsest to the finest, each with an engine fine enough for it."""
    rows = [engine]
    leaves = level_cut(engine.tree("destination"), 0)
    for level in range(1, top + 1):
        rows.append(rows[-1].coarsen(level_cut(engine.tree("origin"), level), leaves))
    for level in range(top, -1, -1):
        yield level, rows.pop()


def _levels(origin: int, destination: int, classes: Engine, good: Bools, measure: Volume) -> Levels:
    flows = classes.flows
    sizes = classes.tree("origin").sizes[origin], classes.tree("destination").sizes[destination]
    published = exact_masses(flows, measure)[good]
    total = int(published.sum())
    spread = sized_total(sizes[0][flows.origin[good]] + sizes[1][flows.destination[good]], published)
    return Levels(origin, destination, Fraction(spread, total), classes, good, measure)
