"""The borders attack: whether the borders of boxes reveal which cells next to them have trips."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pyarrow as pa

from odkanon.core.arrays import Bools
from odkanon.evidence.attack import MAX_EXAMPLES, Attack, AttackResult
from odkanon.evidence.attack_context import AttackContext
from odkanon.zoning.cells import Floats, cell_to_latlng, str_to_cell

REACH = 0.01
"""Maximum distance in degrees between a border and the two cells that it may reveal."""
TOLERANCE = 1e-9
SIGMAS = 5
"""Standard deviations above the expected count at which coincidence is ruled out."""


def borders(context: AttackContext) -> AttackResult:
    """Count the borders of boxes that lie exactly midway between two places of the data.

    A median cut between neighbouring values reveals both: an attacker with a map of all cells looks for the pair whose
    midpoint it is. Borders on a fixed grid reveal nothing, as they do not depend on the trips.

    References
    ----------
    Cohen 2022, "Attacks on deidentification's defenses" (on minimal generalisation).
    """
    release, records = context.release, context.opened.records
    assert records is not None
    lat, lon = cell_to_latlng(str_to_cell(pa.array(records.leaves, pa.string())))
    corners = np.array(
        [ring for zones in release.zones.values() for _, shape in zones for ring in shape["coordinates"][0]]
    )
    sides = {"longitude": (np.unique(corners[:, 0]), lon), "latitude": (np.unique(corners[:, 1]), lat)}
    midway = {name: is_midpoint(border, values) for name, (border, values) in sides.items()}
    total = sum(len(border) for border, _ in sides.values())
    found = sum(int(which.sum()) for which in midway.values())
    expected = sum(float(midpoint_probability(border, values).sum()) for border, values in sides.values())
    by_chance = found <= expected + SIGMAS * sqrt(expected) + 3
    message = f"{found:,} of {total:,} borders lie half-way between two places of the data"
    return AttackResult(
        f"{message}, and about {expected:,.0f} would by chance: they name no place."
        if by_chance
        else f"{message}: whoever knows all cells can name the two, and knows that both have trips.",
        found=0 if by_chance else found,
        tried=total,
        of=total,
        numbers={"borders": total, "half-way": found, "by chance": round(expected, 1)},
        examples=()
        if by_chance
        else tuple(
            f"{name} {value:.6f}" for name, which in midway.items() for value in sides[name][0][which][:MAX_EXAMPLES]
        ),
    )


def is_midpoint(border: Floats, values: Floats) -> Bools:
    """Return for each border whether it is the midpoint of two values near it."""
    values = np.unique(values.round(9))
    found = np.zeros(len(border), dtype=bool)
    for at, line in enumerate(border.tolist()):
        below = values[(values < line - TOLERANCE) & (values > line - REACH)]
        mirror = 2 * line - below
        near = np.clip(np.searchsorted(values, mirror), 1, len(values) - 1) if len(values) > 1 else None
        if near is not None and len(below):
            off = np.minimum(np.abs(values[near] - mirror), np.abs(values[near - 1] - mirror))
            found[at] = bool((off < TOLERANCE).any())
    return found


def midpoint_probability(border: Floats, values: Floats) -> Floats:
    """Return for each border the probability that it is a midpoint if it does not depend on the values."""
    values = np.unique(values.round(9))
    at = np.searchsorted(values, border)
    below = at - np.searchsorted(values, border - REACH)
    above = np.searchsorted(values, border + REACH) - at
    likely: Floats = 1 - np.exp(-below * above / REACH * 2 * TOLERANCE)
    return likely


BORDERS = Attack(
    "borders",
    "Borders",
    asks="Do the sides of boxes name places that have trips?",
    question="singling out",
    number="half-way",
    breaks=True,
    run=borders,
    needs={"boxes": "The zones are no boxes: their outlines are those of public cells, whatever the trips."},
)
