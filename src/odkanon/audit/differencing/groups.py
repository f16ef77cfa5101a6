"""The groups that rows show, component by component."""

from __future__ import annotations

from odkanon.audit.differencing import enumeration
from odkanon.audit.differencing.equations import Group, System, components
from odkanon.audit.differencing.min_cut import least_cuts

MOST_WORK = 1 << 30
"""How many values combinations may have in all, before the rest is left undecided."""


def small_groups(system: System) -> tuple[list[Group], int]:
    """Return the smallest groups that can be too small, and in how many components not all were tried."""
    found: list[Group] = []
    undecided = 0
    work = 0
    for columns in components(system.rows):
        part = system.take(columns)
        filled = part.mass[:, 0] > 0
        if not part.maybe_small(part.mass[filled], part.counts()[filled]).any():
            continue
        work += len(part.rows) * enumeration.MOST_STATES if len(part.rows) > enumeration.MOST_ROWS else 0
        groups = enumeration.smallest_groups(part) if work < MOST_WORK else None
        if groups is None:
            groups, decided = least_cuts(part) if part.rows.shape[1] == 2 else ([], False)
            undecided += not decided
        found += [Group(columns[group.columns], group.plus, group.minus) for group in groups]
    return found, undecided
