"""ODkAnon: greedy merging of siblings on both axes, as a sorted order plus a bisection.

The marginals determine the whole sequence of merges; see `odkanon.methods.merging`.

References
----------
Armenante, Huang, Jha, Vassio: "Protecting participants or population? Comparison of k-anonymous
Origin-Destination matrices", arXiv:2509.12950, 2025, Algorithm 3.
"""

from __future__ import annotations

from typing import Any, Literal

from odkanon.core.parsing import check_choice
from odkanon.engine.dispatch import open_workspace
from odkanon.engine.protocols import Workspace
from odkanon.methods.common import of_one_height
from odkanon.methods.merging import MergePath, SquarePath
from odkanon.model.assemble import over_budget
from odkanon.model.flows import Totals
from odkanon.model.od import Matrix, ODMatrix
from odkanon.model.provenance import Summary
from odkanon.model.release import Release
from odkanon.model.release_spec import Budget, BudgetOf, ReleaseSpec
from odkanon.model.rule import Rule

Suppress = Literal["before", "after"]


def odkanon(
    od: Matrix,
    rule: Rule,
    *,
    suppress: Suppress = "after",
    budget: float = 0.10,
    budget_of: BudgetOf | None = None,
    max_levels: int = 3,
    symmetric: bool = False,
) -> Release:
    """Anonymise with ODkAnon.

    * ``suppress``: ``before``, as published: pairs that cannot meet the rule within ``max_levels`` levels are
      suppressed first (Algorithm 1), and every remaining class must meet it. ``after``: merge in the same order, stop
      at the first step whose classes below the rule fit the budget, and suppress exactly those.
    * ``budget``: share that may be suppressed, in [0, 1).
    * ``budget_of``: what the share refers to; by default rows for ``before`` (as published) and trips for ``after``.
    * ``max_levels``: for ``before``: how many levels a pair may be lifted before it counts as problematic, in [0, inf).
    * ``symmetric``: whether both ends share one zoning. A node of the joint tree then counts its departures and
      arrivals.
      begins and ends in them.
    """
    check_choice("suppress", suppress, Suppress)
    whole = od.summary
    rule.check_available(whole.measures)
    allowed = Budget(budget, budget_of or ("rows" if suppress == "before" else "trips"))
    parameters: dict[str, Any] = {"suppress": suppress, "budget": budget, "budget_of": allowed.of}
    if symmetric:
        od, parameters["symmetric"] = of_one_height(od), True
    work, allowance = open_workspace(od), allowed.allowance(whole)
    if suppress == "before":
        parameters["max_levels"] = max_levels
        work, allowance = work.presuppress(rule, levels=max_levels, budget=allowed), 0
    spec = ReleaseSpec(rule, allowed, "odkanon", parameters)
    release = _merged(work, spec, allowance, whole)
    if release.refusal is not None and budget > 0:
        # The suppressed trips alone may be below the rule, hence derivable: merge until nothing is suppressed.
        entire = _merged(open_workspace(od), spec, 0, whole)
        return entire if entire.refusal is None else release
    return release


def _merged(work: Workspace, spec: ReleaseSpec, allowance: int, whole: Summary) -> Release:
    """Merge zones of the remaining pairs until the classes below the rule fit the allowance."""
    left, rule, allowed = work.remaining, spec.rule, spec.budget
    assert allowed is not None
    guess = left.trips / float(rule.k_of("trips", whole.mean_weight if whole.weight_units is not None else None))
    path = (SquarePath if "symmetric" in spec.parameters else MergePath).of(work.engine(rule.required_measures), rule)
    release = None
    for step in path.steps_within(rule, allowed, allowance, guess) if left.pairs else ():
        release = work.release(spec.with_parameters(merges=step.number), step.classes, step.cuts)
        if release.refusal is None:
            break
    if release is not None:
        return release
    why = refusal(left, rule)
    if not rule.thresholds_only and spec.parameters["suppress"] == "after" and left.pairs:
        why = over_budget(rule, allowed, whole, path.least_below(rule, allowed))
    return work.refuse(spec, why)


def refusal(left: Totals | ODMatrix, rule: Rule) -> str:
    """Return the reason why none of the remaining trips can be published."""
    return (
        f"even with all {left.trips:,} remaining trips in one class, {rule} cannot be met within the budget; "
        "lower the thresholds, raise the budget, or bring more data"
    )
