"""Which method to choose: the runs of a comparison, the most useful first, and the best of them for each use."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from odkanon.methods import METHODS
from odkanon.study.experiment import METHOD_ROWS, WHOLE, Outcome

USES: tuple[tuple[str, float, Callable[[Outcome], bool]], ...] = (
    ("flows across the whole area", 8, lambda outcome: True),
    ("flows between its parts", 4, lambda outcome: True),
    ("single quarters", 1, lambda outcome: True),
    ("one zone a place, the same for all partners", 4, lambda outcome: not METHODS[_method(outcome)].overlaps),
    ("all trips but one in a thousand", 4, lambda outcome: outcome.suppressed <= 0.001),
)
"""What a matrix is used for: in words, the squares to judge it by, and which releases will do."""


def ranked(outcomes: Sequence[Outcome], target: str) -> list[Outcome]:
    """Return the runs on the whole input that protect a target, the most useful first and those refused last.

    Useful is what is right on squares of 4 km; where that is not known, a small G.
    """

    def merit(outcome: Outcome) -> tuple[bool, float, float]:
        right = cpc(outcome, "trips", 4)
        g = outcome.utility.get("trips", {}).get("g")
        return outcome.refusal is not None, -1.0 if right is None else -right, float("inf") if g is None else g

    return sorted((o for o in outcomes if (o.cell.dimension, o.cell.target) == (WHOLE, target)), key=merit)


def choices(outcomes: Sequence[Outcome], target: str) -> list[tuple[str, Outcome, float, float]]:
    """Return for each use the best of the runs that will do, the side of the squares, and how far it is right there."""
    runs = [outcome for outcome in ranked(outcomes, target) if outcome.refusal is None]
    found = []
    for use, km, will_do in USES:
        rated = [(right, outcome) for outcome in runs if will_do(outcome) if (right := cpc(outcome, "trips", km))]
        if rated:
            right, best = max(rated, key=lambda pair: pair[0])
            found.append((use, best, km, right))
    return found


def _method(outcome: Outcome) -> str:
    return METHOD_ROWS[outcome.cell.row].method


def cpc(outcome: Outcome, measure: str, km: float) -> float | None:
    """Return how far flows between squares of a side are right; None where it is not known."""
    squares = outcome.usefulness.get(measure, {}).get("squares", ())
    return next((square["cpc"] for square in squares if square["km"] == km), None)
