"""Borders: whether the sides of boxes tell which cells next to them have trips."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pyarrow as pa

from odkanon.core.arrays import Bools
from odkanon.evidence.attack_context import Case
from odkanon.evidence.finding import EXAMPLES, Finding, does_not_apply
from odkanon.zoning.cells import Floats, cell_to_latlng, str_to_cell

REACH = 0.01
"""How far, in degrees, the two cells next to a border may lie from it."""
EXACT = 1e-9
SIGMAS = 5
"""How many standard deviations above chance are no chance any more."""


def borders(case: Case) -> Finding:
    """Count the sides of boxes that lie exactly half-way between two places of the data.

    A median cut between neighbouring values names both: whoever has a map of all cells looks for the two whose middle
    it is. Sides on a grid that does not depend on the trips tell nothing.

    References
    ----------
    Cohen 2022, "Attacks on deidentification's defenses" (what a minimal generalisation tells of the data).
    """
    release = case.release
    if not release.has_boxes or case.opened.records is None:
        return does_not_apply("The zones are no boxes: their outlines are those of public cells, whatever the trips.")
    lat, lon = cell_to_latlng(str_to_cell(pa.array(case.opened.records.leaves, pa.string())))
    corners = np.array(
        [ring for zones in release.zones.values() for _, shape in zones for ring in shape["coordinates"][0]]
    )
    sides = {"longitude": (np.unique(corners[:, 0]), lon), "latitude": (np.unique(corners[:, 1]), lat)}
    named = {name: between(border, values) for name, (border, values) in sides.items()}
    total = sum(len(border) for border, _ in sides.values())
    found = sum(int(which.sum()) for which in named.values())
    chance = sum(float(chances(border, values).sum()) for border, values in sides.values())
    by_chance = found <= chance + SIGMAS * sqrt(chance) + 3
    said = f"{found:,} of {total:,} borders lie half-way between two places of the data"
    return Finding(
        f"{said}, and about {chance:,.0f} would by chance: they name no place."
        if by_chance
        else f"{said}: whoever knows all cells can name the two, and knows that both have trips.",
        found=0 if by_chance else found,
        tried=total,
        of=total,
        numbers={"borders": total, "half-way": found, "by chance": round(chance, 1)},
        examples=()
        if by_chance
        else tuple(
            f"{name} {value:.6f}" for name, which in named.items() for value in sides[name][0][which][:EXAMPLES]
        ),
    )


def between(border: Floats, values: Floats) -> Bools:
    """Tell for each border whether it is the middle of two values that lie near it."""
    values = np.unique(values.round(9))
    found = np.zeros(len(border), dtype=bool)
    for at, line in enumerate(border.tolist()):
        below = values[(values < line - EXACT) & (values > line - REACH)]
        mirror = 2 * line - below
        near = np.clip(np.searchsorted(values, mirror), 1, len(values) - 1) if len(values) > 1 else None
        if near is not None and len(below):
            off = np.minimum(np.abs(values[near] - mirror), np.abs(values[near - 1] - mirror))
            found[at] = bool((off < EXACT).any())
    return found


def chances(border: Floats, values: Floats) -> Floats:
    """Return for each border how likely it is the middle of two near values if it has nothing to do with them."""
    values = np.unique(values.round(9))
    at = np.searchsorted(values, border)
    below = at - np.searchsorted(values, border - REACH)
    above = np.searchsorted(values, border + REACH) - at
    likely: Floats = 1 - np.exp(-below * above / REACH * 2 * EXACT)
    return likely
