"""treecut: one cut per hierarchy, chosen to make an objective as small as the tree allows.

For a fixed destination cut, dynamic programming over the origin tree finds the origin cut that minimises
``G_total + l * suppressed`` exactly, and the same table of node values gives the best l for the budget. The axes
alternate until neither improves, with exchanges of merges and splits that fit the budget exactly. The result is a local
optimum. The search therefore starts from several points (among them ODkAnon's answer and all pairs of uniform levels,
hence it is never worse than either), restarts from slightly perturbed problems, and finally moves both axes at once.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from math import inf
from typing import Any

from odkanon.core.parsing import check_choice, check_not_negative, is_number
from odkanon.engine.memory.workspace import MemoryEngine
from odkanon.errors import InvalidValueError
from odkanon.methods.common import of_one_height
from odkanon.methods.merging import MergePath, SquarePath
from odkanon.methods.odkanon import refusal
from odkanon.methods.treecut.dp import Goal, Objective, Problem
from odkanon.methods.treecut.search import Cuts, SquareSearch, TreeSearch
from odkanon.model.assemble import release_of_cuts
from odkanon.model.od import ODMatrix
from odkanon.model.release import Release
from odkanon.model.release_spec import Budget, BudgetOf, ReleaseSpec
from odkanon.model.rule import Rule
from odkanon.quality.utility import UtilityMeasure, utility
from odkanon.zoning.hierarchy import Cut
from odkanon.zoning.zones import JointTree

ITERATIONS = 30
"""Restarts by default; on surveys of the paper's size, later ones rarely improve the result."""


def treecut(
    od: ODMatrix,
    rule: Rule,
    *,
    budget: float = 0.10,
    budget_of: BudgetOf = "trips",
    objective: Objective = "g",
    measure: UtilityMeasure = "trips",
    iterations: int = ITERATIONS,
    time_limit: float | None = None,
    symmetric: bool = False,
) -> Release:
    """Anonymise with the best pair of cuts that can be found.

    * ``budget``: share that may be suppressed, in [0, 1).
    * ``budget_of``: share of OD pairs or of trips.
    * ``objective``: what to minimise. For ``e`` and ``c_avg``, G may not exceed the larger of those of ODkAnon and of
      the best uniform levels.
    * ``measure``: what the objective counts.
    * ``iterations``: restarts from perturbed problems, in [0, inf). The result depends on nothing else.
    * ``time_limit``: seconds after which the best result so far is returned, in (0, inf); at least ODkAnon's answer.
    * ``symmetric``: whether both ends share one zoning.
    """
    check_choice("objective", objective, Objective)
    check_effort(iterations, time_limit)
    rule.check_available(od.measures)
    allowed = Budget(budget, budget_of)
    parameters: dict[str, Any] = {
        "budget": budget,
        "budget_of": budget_of,
        "objective": objective,
        "measure": measure,
        "iterations": iterations,
    }
    if symmetric:
        od, parameters["symmetric"] = of_one_height(od).in_memory(), True
        problem, joint = Problem.square(od, rule, allowed, measure, objective == "e")
    else:
        problem, joint = Problem(od, rule, allowed, measure, objective == "e"), None
    spec = ReleaseSpec(rule, allowed, "treecut", parameters)
    found = best_cuts(problem, objective, iterations, time_limit)
    if found is None:
        return Release.empty(od, spec, refusal(od, rule))
    return release_of_first((found,), problem, joint, od, spec)


def release_of_first(
    found: Sequence[Cuts], problem: Problem, joint: JointTree | None, od: ODMatrix, spec: ReleaseSpec
) -> Release:
    """Return the release of the first acceptable cuts, or that of ODkAnon's cuts if it has the smaller G.

    Searches consider thresholds and shares, but neither destinations nor complementary suppression.
    """
    last = (odkanon_cuts(problem, allowance) for allowance in (problem.allowance, 0))
    made = [
        release_of_cuts(od, spec, *(cuts if joint is None else joint.cuts(cuts[0])))
        for cuts in (*found, *last)
        if cuts is not None
    ]
    kept = [release for release in made if release.refusal is None]
    if len(kept) < 2 or spec.parameters.get("objective", "g") != "g":
        return (kept or made)[0]
    return min(kept, key=lambda release: utility(od, release).g or inf)


def check_effort(iterations: int, time_limit: float | None) -> None:
    """Raise unless the numbers of iterations and seconds are valid."""
    check_not_negative("iterations", iterations)
    if time_limit is not None and (not is_number(time_limit) or not time_limit > 0):
        raise InvalidValueError.expected("the time limit", "a positive number of seconds", time_limit)


def best_cuts(
    problem: Problem, objective: Objective, iterations: int, time_limit: float | None, *, joint: bool = True
) -> Cuts | None:
    """Return the best pair of cuts found; None if not even the roots meet the rule within the budget.

    ``joint=False`` omits the moves on both axes at once, for starting points that need not be optimal.
    """
    deadline = inf if time_limit is None else time.monotonic() + time_limit
    start = odkanon_cuts(problem) if len(problem.od) else None
    if start is None:
        return None
    kind = TreeSearch if problem.counts is None else SquareSearch
    search = kind(problem, Goal("g", problem.allowance), deadline)
    g = search.offer(start)
    uniform = search.uniform()
    if objective != "g":
        search = kind(problem, Goal(objective, problem.allowance, max(g, uniform[0][0])), deadline)
        search.offer(start)
    search.run([start, *(cuts for _, cuts in uniform)], iterations)
    if joint:
        search.improve_jointly()
    return search.best


def odkanon_cuts(problem: Problem, allowance: int | None = None) -> tuple[Cut, Cut] | None:
    """Return the cuts at which ODkAnon suppresses at most an allowance, by default that of the problem's budget."""
    rule, budget = problem.rule, problem.budget
    kind = MergePath if problem.counts is None else SquarePath
    path = kind.of(MemoryEngine.from_matrix(problem.od, rule.required_measures), rule)
    found = next(path.steps_within(rule, budget, problem.allowance if allowance is None else allowance), None)
    return None if found is None else found.cuts
