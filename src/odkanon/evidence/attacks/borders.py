"""The borders attack: whether the borders of zones, or the cells that they list, reveal which cells have trips."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt

import numpy as np
import pyarrow as pa

from odkanon.audit.release_reader import WORLD
from odkanon.core.arrays import Bools
from odkanon.evidence.attack import MAX_EXAMPLES, Attack, AttackResult, does_not_apply
from odkanon.evidence.attack_context import AttackContext
from odkanon.methods.freezones.blocks import children_of
from odkanon.model.axes import AXES, Axis
from odkanon.zoning.cells import (
    Cells,
    Floats,
    cell_to_latlng,
    cell_to_parent,
    cell_to_resolution,
    cell_to_str,
    str_to_cell,
)

REACH = 0.01  # maximum distance in degrees between a border and the two cells that it may reveal
TOLERANCE = 1e-9
SIGMAS = 5
"""Standard deviations above the expected count at which coincidence is ruled out."""


OBSERVED, UNOBSERVED = 0.95, 0.5
"""The least share of listed cells, and the most of the siblings left out, with trips where the data chose the lists."""


def borders(context: AttackContext) -> AttackResult:
    """Attack the outlines of zones: the borders of boxes, or the cells that zones list."""
    if context.release.has_boxes:
        return box_borders(context)
    listed: dict[Axis, Cells] = {}
    for axis in AXES:
        cells = [cell for about, _ in context.release.zones[axis] for cell in about.get("cells") or ()]
        listed[axis] = np.unique(str_to_cell(pa.array(cells, pa.string())))
    if any(map(len, listed.values())):
        return listed_cells(context, listed)
    zones = [each for own in context.release.zones.values() for each in own]
    if any(shape is None and about["id"] != WORLD for about, shape in zones):
        return does_not_apply("The zones have no outline: what their names disclose was not examined.")
    return does_not_apply("Zones are single nodes of a public tree (cells or codes), whatever the trips.")


def listed_cells(context: AttackContext, listed: Mapping[Axis, Cells]) -> AttackResult:
    """Test whether zones list only cells that have trips, which names small cells; a complete list discloses nothing.

    Where zones list some children of a cell and leave out others, the data decided if nearly all of the former have
    trips and few of the latter.
    """
    small, known, k = [], 0, int(context.rule.k)
    for axis, cells in listed.items():
        mass = np.bincount(getattr(context.od.flows, axis), context.od.flows.trips).astype(np.float64)
        inside, left_out = _siblings(cells)
        trips = [_trips_below(context.od.tree(axis).leaves, mass, each) for each in (inside, left_out)]
        if not len(left_out) or (trips[0] > 0).mean() < OBSERVED or (trips[1] > 0).mean() > UNOBSERVED:
            continue
        known += len(inside)
        own = _trips_below(context.od.tree(axis).leaves, mass, cells)
        small += [f"{axis} {name}" for name in cell_to_str(cells[(own > 0) & (own < k)]).tolist()]
    number = sum(map(len, listed.values()))
    return AttackResult(
        f"Zones list only cells that have trips: the lists name {len(small):,} cells with 1 to {k - 1:,} trips."
        if known
        else f"Zones list {number:,} cells, with and without trips alike: the lists do not name those that have some.",
        found=len(small),
        tried=number,
        of=number,
        numbers={"listed cells": number, "half-way": len(small)},
        examples=tuple(small[:MAX_EXAMPLES]),
    )


def _siblings(cells: Cells) -> tuple[Cells, Cells]:
    """Return the cells that have a sibling in no zone, and those siblings."""
    inside, left_out = [np.empty(0, dtype=np.uint64)], [np.empty(0, dtype=np.uint64)]
    resolutions = cell_to_resolution(cells)
    for resolution in np.unique(resolutions[resolutions > 0]).tolist():
        here, finer = cells[resolutions == resolution], cells[resolutions >= resolution]
        children = children_of(np.unique(cell_to_parent(here, resolution - 1)))
        missing = children[~np.isin(children, cell_to_parent(finer, resolution))]
        broken = np.isin(cell_to_parent(here, resolution - 1), cell_to_parent(missing, resolution - 1))
        inside.append(here[broken])
        left_out.append(missing)
    return np.concatenate(inside), np.concatenate(left_out)


def _trips_below(leaves: Cells, mass: Floats, cells: Cells) -> Floats:
    """Return the trips of the leaves below each cell."""
    found = np.zeros(len(cells))
    resolutions = cell_to_resolution(cells)
    for resolution in np.unique(resolutions).tolist():
        here = np.flatnonzero(resolutions == resolution)
        if resolution > int(cell_to_resolution(leaves[:1])[0]):
            continue
        order = here[np.argsort(cells[here])]
        above = cell_to_parent(leaves, resolution)
        at = np.minimum(np.searchsorted(cells[order], above), len(order) - 1)
        same = cells[order][at] == above
        np.add.at(found, order[at[same]], mass[: len(leaves)][same])
    return found


def box_borders(context: AttackContext) -> AttackResult:
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
    asks="Do the borders of zones name places that have trips?",
    question="singling out",
    number="half-way",
    breaks=True,
    run=borders,
)
