"""ATG-Soft: the origins are cut once, then the destinations of every origin zone separately, within a budget.

Two origin zones may divide the destinations differently, so published destination zones overlap. Choosing the
destinations is an integer programme. A multiplier ``delta`` prices its budget constraint; every subtree can then be
decided by itself, bottom-up, for all origin zones at once.

References
----------
Matet, Côme, Furno, Bonnetain, Oukhellou, El Faouzi: "Adaptative generalisation over a value hierarchy for the
k-anonymisation of Origin-Destination matrices", Transportation Research Part C 2023. ATG-Soft is its faster form.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from odkanon.core.arrays import Codes
from odkanon.core.parsing import check_positive
from odkanon.methods.atg_cuts import Choice, Forest, Masses, cheapest_within
from odkanon.methods.odkanon import refusal
from odkanon.model.assemble import assemble
from odkanon.model.od import ODMatrix
from odkanon.model.release import Release
from odkanon.model.release_spec import Budget, BudgetOf, ReleaseSpec, Structure
from odkanon.model.rule import Rule
from odkanon.zoning.cells import Floats
from odkanon.zoning.hierarchy import Cut, Hierarchy, cut_at
from odkanon.zoning.zones import zones_of_cut, zones_of_tree

log = logging.getLogger(__name__)

TARGET_FACTORS = tuple(2 ** (quarter / 4) for quarter in range(-2, 7))
"""Target volumes to try by default, as multiples of ``sqrt(k * |D|)``: from 0.71 to 2.83."""

SPENT = (1.0, 0.5, 0.25, 0.1, 0.0)
"""Parts of the budget to try under constraints, which may suppress more afterwards."""


def atg_soft(
    od: ODMatrix,
    rule: Rule,
    *,
    budget: float = 0.10,
    budget_of: BudgetOf = "trips",
    target: float | None = None,
) -> Release:
    """Anonymise with ATG-Soft.

    Origins are cut to minimise ``sum (target - |zone|)^2``. For every origin zone ``o``, the destination tree is then
    cut to minimise ``sum (|o| + |d|) |Eq| + delta * suppressed``, with the multiplier ``delta`` at which the suppressed
    amount just fits the budget. ``|Eq|`` is counted in the rule's main measure (trips for a rule on persons alone),
    the suppressed amount in the unit of the budget.

    * ``budget``: share that may be suppressed, in [0, 1).
    * ``budget_of``: share of OD pairs or of trips.
    * ``target``: trips that an origin zone should have, in (0, inf); multiplied by the mean weight if the rule counts
      weight. By default the best, by G, of several around ``sqrt(k * |D|)``: with classes of k trips, an origin zone of
      that volume has about as many leaves as each of its destination zones.

    Returns
    -------
    Release
        Its parameters report ``target``, the multiplier ``delta``, the ``duality_gap`` (an upper bound of the relative
        improvement that other destination cuts for the same origins could bring) and ``origins_coarsened``.
    """
    rule.check_available(od.measures)
    if target is not None:
        check_positive("the target volume of an origin zone", target, whole=False)
    allowed = Budget(budget, budget_of)
    spec = ReleaseSpec(rule, allowed, "atg-soft", {"budget": budget, "budget_of": budget_of})
    everything, _ = od.flows.merge(np.zeros(len(od), dtype=np.int32), np.zeros(len(od), dtype=np.int32))
    if not rule.satisfied(everything).any():
        return Release.empty(od, spec, refusal(od, rule))
    targets = [target] if target is not None else likely_targets(od, rule)
    for part in SPENT[:1] if rule.thresholds_only else SPENT:
        allowance = int(allowed.allowance(od.flows) * part)
        best = min((solve(od, rule, allowed, each, allowance) for each in targets), key=lambda solution: solution.g)
        release = _release(od, spec.with_parameters(**best.report), best)
        if release.refusal is None:
            break
    if best.rounds:
        log.warning("origin zones below %s exceed the budget; merged them upwards in %d rounds", rule, best.rounds)
    return release


def likely_targets(od: ODMatrix, rule: Rule) -> list[float]:
    """Return the target volumes to try, in trips."""
    balanced = sqrt(rule.k_of("trips", od.mean_weight if od.weight_units is not None else None) * od.trips)
    return [float(f"{factor * balanced:.3g}") for factor in TARGET_FACTORS]


@dataclass(frozen=True, eq=False)
class Solution:
    """Cuts of both axes: one of the origins, and a level of the destination tree for each OD pair."""

    target: float
    origins: Cut
    rounds: int
    choice: Choice
    g: float
    destination_level: npt.NDArray[np.int8]

    @property
    def report(self) -> dict[str, Any]:
        """The parameters that a release reports."""
        return {
            "target": self.target,
            "delta": self.choice.delta,
            "duality_gap": self.choice.gap,
            "origins_coarsened": self.rounds,
        }


def solve(od: ODMatrix, rule: Rule, budget: Budget, target: float, allowance: int | None = None) -> Solution:
    """Return the cuts for one target volume; some cut of the origins must meet the rule.

    ``allowance`` is the mass that may be suppressed, by default that of the whole budget.
    """
    masses = Masses.of(od, rule)
    allowance = budget.allowance(od.flows) if allowance is None else allowance
    origins = even_cut(od.origins, masses.of_nodes(od), target)
    origins, rounds = coarsen_within(od, rule, origins, budget, allowance)
    forest = Forest.of(od, rule, origins, budget, masses)
    choice = cheapest_within(forest, allowance)
    return Solution(target, origins, rounds, choice, forest.g(choice), forest.level_of_pairs(choice))


def _release(od: ODMatrix, spec: ReleaseSpec, solution: Solution) -> Release:
    origins, zone_of_origin = zones_of_cut(od.origins, solution.origins)
    destinations, first_of_level = zones_of_tree(od.destinations)
    destination_zone = np.zeros(len(od), dtype=np.int32)
    for level, codes in enumerate(od.destinations.codes):
        here = solution.destination_level == level
        destination_zone[here] = first_of_level[level] + codes[od.flows.destination[here]]
    return assemble(
        od,
        spec,
        origins=origins,
        destinations=destinations,
        origin_zone=zone_of_origin[od.flows.origin],
        destination_zone=destination_zone,
        structure=Structure.OVERLAPPING,
    )


def even_cut(tree: Hierarchy, masses: tuple[Floats, ...], target: float) -> Cut:
    """Return the cut of least ``sum (target - mass)^2`` over zones of positive mass, by dynamic programming.

    A node is split iff its children's best sum is at most its own error; a tie splits.
    """
    best = _error(masses[0], target)
    split = []
    for level in range(1, tree.top + 1):
        own = _error(masses[level], target)
        of_children = np.add.reduceat(best, np.searchsorted(tree.starts[level - 1], tree.starts[level]))
        split.append(of_children <= own)
        best = np.minimum(own, of_children)
    level_of_leaf = np.full(len(tree.leaves), tree.top, dtype=np.int8)
    reached = np.ones(len(tree.leaves), dtype=bool)
    for level in range(tree.top, 0, -1):
        reached &= split[level - 1][tree.codes[level]]
        level_of_leaf[reached] = level - 1
    return cut_at(tree, level_of_leaf)


def _error(mass: Floats, target: float) -> Floats:
    return np.where(mass > 0, (target - mass) ** 2, 0.0)


def coarsen_within(od: ODMatrix, rule: Rule, origins: Cut, budget: Budget, allowance: int) -> tuple[Cut, int]:
    """Return the origin zones, merged until those that fail under every destination cut fit the allowance; and rounds.

    Such a zone fails even with all destinations in one zone, so its trips are lost. In each round in which lost zones
    hold more than the allowance, each of them is replaced by its parent, together with its siblings.
    """
    everywhere = np.zeros(len(od), dtype=np.int32)
    rounds = 0
    while True:
        zones, _ = od.flows.only(rule.required_measures).merge(origins.zone_of_leaf[od.flows.origin], everywhere)
        lost = ~rule.satisfied(zones)
        if budget.mass(zones, lost) <= allowance or len(origins) == 1:
            return origins, rounds
        origins = _lifted(od.origins, origins, zones.origin[lost])
        rounds += 1


def _lifted(tree: Hierarchy, cut: Cut, zones: Codes) -> Cut:
    """Return the cut in which some zones are replaced by their parents."""
    level_of_leaf = cut.level[cut.zone_of_leaf]
    for level in np.unique(cut.level[zones]).tolist():
        if level == tree.top:
            continue
        lifted = zones[cut.level[zones] == level]
        parents = np.unique(tree.codes[level + 1][cut.starts[lifted]])
        below = np.isin(tree.codes[level + 1], parents)
        level_of_leaf = np.where(below, np.maximum(level_of_leaf, level + 1), level_of_leaf)
    return cut_at(tree, level_of_leaf.astype(np.int8))
