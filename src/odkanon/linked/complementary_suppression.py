"""Complementary suppression: further cells to suppress so that no sum or difference isolates a group below the rule.

Take one dimension, such as age. Its cells are (class, value). The table of the whole gives the sum of each *row* (a
class), the totals of each segment give the sum of each *column* (a value). After subtracting the published cells, an
attacker knows the sum of the suppressed cells of each row and each column. Classes that the whole suppresses count as
one row, because only their sum is known. Every group whose mass follows from these sums is a set ``X`` of suppressed
cells, with coefficients ``a[row] + b[column]`` that are 1 on ``X`` and 0 on all other suppressed cells.

*Rows.* Cells are suppressed until the suppressed cells of each row are none or jointly meet the rule. Every ``X`` made
of complete rows is then safe, since thresholds are monotone.

*Columns.* Otherwise some row has suppressed cells inside and outside of ``X``. In each row ``b`` takes at most two
values, which differ by 1; ``X`` contains the cells with the larger one (or all or none if there is one value). For each
threshold ``t`` let ``B`` be the columns with ``b > t``; ``X`` contains all cells of ``B`` in rows that have suppressed
cells both inside and outside of ``B``. Some ``t`` gives such a row. An arc ``v -> u`` is *strong* if the cells of ``v``
in the rows in which ``u`` is also suppressed jointly meet the rule. If a strong arc leads from inside ``B`` to outside,
``X`` contains a group that meets the rule and is safe. Cells are suppressed until, whenever ``v`` and ``u`` are
suppressed in one row, a path of strong arcs leads from ``v`` to ``u``. A path from inside ``B`` to outside has an arc
that crosses over, so every ``X`` is safe.

*Intervals.* A group that cannot be calculated may still be known within narrow bounds. On request, more cells are
suppressed until every suppressed cell below the rule may be empty, and may have k trips
(`odkanon.linked.feasibility_intervals`).

Nested dimensions (sex and sex*age) are protected from coarse to fine. The published cells of the coarser dimension are
rows of the finer one, and its suppressed cells of a class form one row. Persons are counted exactly in each group
(union, not sum), so groups meet the rule in all measures, whether or not an attacker could add them up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from odkanon.core.arrays import Bools, Ints, number_groups
from odkanon.linked.feasibility_intervals import Table, narrow_cell, rectangle
from odkanon.model.flows import Flows
from odkanon.model.measures import DISTINCT, exact_masses
from odkanon.model.release_spec import satisfied_jointly, smallest_class
from odkanon.model.rule import Rule

Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Partition:
    """The suppressed cells of one dimension."""

    suppressed: Bools
    """For each cell, whether it is suppressed."""
    withheld: Bools
    """For each value, whether it has no table at all."""


def protect_whole(classes: Flows, never: Bools, rule: Rule) -> Bools:
    """Return which classes of the whole are suppressed: those below the rule and, if they jointly are, one more.

    ``never`` marks classes that cannot be published, such as trips outside every zone.
    """
    suppressed = never | ~rule.satisfied(classes)
    published = np.flatnonzero(~suppressed)
    if len(published) and not satisfied_jointly(classes, suppressed, rule):
        suppressed[published[smallest_class(classes.take(~suppressed), rule)]] = True
    return suppressed


def protect_partition(
    cells: Flows, closed: Bools, withheld: Bools, group: Ints, rule: Rule, *, widths: Mapping[str, int] | None = None
) -> Partition:
    """Return the cells of one dimension to suppress; the docstring of this module proves that they suffice.

    * ``cells``: ``origin`` is the row, ``destination`` the value; each combination occurs once.
    * ``closed``: cells in rows of which nothing may be published.
    * ``withheld``: for each value, whether it has no table; only the sum of such values of a group is known.
    * ``group``: for each value, the value of the coarser dimension to which it belongs; all 0 without one.
    * ``widths``: by additive measure, the least width of the feasibility interval of a cell below the rule, in units.
    """
    withheld = withheld.copy()
    suppressed = closed | ~rule.satisfied(cells)
    while True:
        suppressed |= withheld[cells.destination]
        suppressed |= _complements(cells, suppressed, rule)
        if withheld.all():
            return Partition(np.ones(len(cells), dtype=bool), withheld)
        columns = _columns(withheld, group)
        unsafe = _fix_columns(cells, suppressed, columns, rule)
        before = int(suppressed.sum())
        if unsafe is None:
            unsafe = _widen(cells, suppressed, columns, rule, widths or {})
        if unsafe is not None:
            _withhold(cells, withheld, group, unsafe)
        elif int(suppressed.sum()) == before:
            return Partition(suppressed, withheld)


def _columns(withheld: Bools, group: Ints) -> Ints:
    """Return the column of each value: its own if it has a table, else that of its group."""
    values = np.arange(len(withheld))
    return np.where(withheld, len(withheld) + group, values)


def _withhold(cells: Flows, withheld: Bools, group: Ints, pair: tuple[int, int]) -> None:
    """Withhold, in place, the tables of inseparable columns with the smallest other table of a group, or else all."""
    values = len(withheld)
    size = np.bincount(cells.destination, cells.trips, values)
    for column in pair:
        own = int(group[column]) if column < values else column - values
        if column < values:
            withheld[column] = True
        others = np.flatnonzero((group == own) & ~withheld)
        if len(others):
            withheld[others[np.argmin(size[others])]] = True
            return
    withheld[:] = True


def _complements(cells: Flows, suppressed: Bools, rule: Rule) -> Bools:
    """Return further cells to suppress: one in each row whose suppressed cells do not jointly meet the rule.

    The smallest published cell of the row suffices, as it meets the rule by itself.
    """
    extra = np.zeros(len(cells), dtype=bool)
    if not suppressed.any():
        return extra
    hidden = cells.take(suppressed)
    residuals, _ = hidden.merge(hidden.origin, np.zeros(len(hidden), dtype=np.int32))
    lonely = np.isin(cells.origin, residuals.origin[~rule.satisfied(residuals)])
    candidates = np.flatnonzero(lonely & ~suppressed)
    order = candidates[np.lexsort((cells.destination[candidates], cells.trips[candidates], cells.origin[candidates]))]
    first = np.concatenate([[True], np.diff(cells.origin[order]) > 0])[: len(order)]
    extra[order[first]] = True
    return extra


def _fix_columns(cells: Flows, suppressed: Bools, column_of_value: Ints, rule: Rule) -> tuple[int, int] | None:
    """Suppress cells, in place, until suppressed columns are connected; return a pair that cannot be, or None."""
    columns, column = np.unique(column_of_value[cells.destination], return_inverse=True)
    while True:
        joined, strong = _arcs(cells, suppressed, column, len(columns), rule)
        weak = np.argwhere(joined & ~_reachable(strong))
        if len(weak) == 0:
            return None
        for v, u in weak.tolist():
            reach = _reachable(strong)
            if reach[v, u]:
                continue
            arc = _new_arc(cells, suppressed, column, [(v, u)]) or _new_arc(
                cells, suppressed, column, np.argwhere(np.outer(reach[v], reach[:, u])).tolist()
            )
            if arc is None:
                return int(columns[v]), int(columns[u])
            row, v, u = arc
            suppressed[(cells.origin == row) & ((column == v) | (column == u))] = True
            # A publishable cell meets the rule, so this arc is strong from now on.
            strong[v, u] = True


def _widen(
    cells: Flows, suppressed: Bools, column_of_value: Ints, rule: Rule, widths: Mapping[str, int]
) -> tuple[int, int] | None:
    """Suppress cells, in place, until no small cell has a narrow interval; return a column for which none help."""
    columns, column = np.unique(column_of_value[cells.destination], return_inverse=True)
    rows, row = np.unique(cells.origin, return_inverse=True)
    for measure, width in widths.items():
        mass = np.zeros((len(rows), len(columns)), dtype=np.int64)
        np.add.at(mass, (row, column), exact_masses(cells, measure))
        while True:
            published = np.zeros(mass.shape, dtype=bool)
            published[row[~suppressed], column[~suppressed]] = True
            hidden, _ = cells.take(suppressed).merge(
                row[suppressed].astype(np.int32), column[suppressed].astype(np.int32)
            )
            small = np.zeros(mass.shape, dtype=bool)
            small[hidden.origin, hidden.destination] = ~rule.satisfied(hidden)
            table = Table(mass, ~published)
            narrow = narrow_cell(table, small, width)
            if narrow is None:
                break
            corners = rectangle(table, *narrow, width)
            if corners is None:
                at = int(columns[narrow[1]])
                return at, at
            for corner in corners:
                suppressed[(row == corner[0]) & (column == corner[1])] = True
    return None


def _arcs(cells: Flows, suppressed: Bools, column: Ints, columns: int, rule: Rule) -> tuple[Bools, Bools]:
    """Return which columns are suppressed in a common row, and which arcs between them are strong."""
    hidden = np.flatnonzero(suppressed)
    rows, row = np.unique(cells.origin[hidden], return_inverse=True)
    mask = np.zeros((len(rows), columns))
    mask[row, column[hidden]] = 1
    joined = (mask.T @ mask > 0) & ~np.eye(columns, dtype=bool)
    strong = joined.copy()
    for measure in rule.measures:
        least = rule.units(measure, cells.scale)
        if measure in DISTINCT:
            strong &= _contributors(cells, measure, hidden, row, column, mask) >= least
        else:
            # Floats may be off in the last digits; a slightly larger threshold stays on the safe side.
            slack = 1 + 1e-9 if measure == "weight" else 1
            strong &= _spread(exact_masses(cells, measure)[hidden], row, column[hidden], mask) >= least * slack
    return joined, strong


def _spread(mass: Ints, row: Ints, column: Ints, mask: Matrix) -> Matrix:
    """Return, for columns v and u, the mass of v in rows in which u is suppressed."""
    table = np.zeros_like(mask)
    np.add.at(table, (row, column), mass)
    return table.T @ mask


def _contributors(cells: Flows, measure: str, hidden: Ints, row: Ints, column: Ints, mask: Matrix) -> Matrix:
    """Return, for columns v and u, the distinct contributors of v in rows in which u is suppressed."""
    contributions = cells.contributions[measure]
    row_of_cell = np.full(len(cells), -1, dtype=np.int64)
    row_of_cell[hidden] = row
    inside = row_of_cell[contributions.flow] >= 0
    flow, contributor = contributions.flow[inside], contributions.contributor[inside]
    key = column[flow].astype(np.int64) * contributions.people + contributor
    counts = np.zeros((mask.shape[1], mask.shape[1]))
    for u in range(mask.shape[1]):
        here = mask[row_of_cell[flow], u] > 0
        distinct, _ = number_groups(key[here], max(mask.shape[1] * contributions.people, 1))
        counts[:, u] = np.bincount(distinct // contributions.people, minlength=mask.shape[1])
    return counts


def _reachable(arcs: Bools) -> Bools:
    """Return for each node which nodes can be reached from it, by squaring."""
    reach = arcs | np.eye(len(arcs), dtype=bool)
    while True:
        further = (reach.astype(np.float64) @ reach) > 0
        if np.array_equal(further, reach):
            return reach
        reach = further


def _new_arc(cells: Flows, suppressed: Bools, column: Ints, arcs: list[Any]) -> tuple[int, int, int] | None:
    """Return the row and the columns of the arc that is cheapest to make strong, or None.

    The first column needs a published cell in the row, the second one any cell.
    """
    best: tuple[float, int, int, int] | None = None
    rows = int(cells.origin.max(initial=0)) + 1
    for v, u in arcs:
        candidates = np.flatnonzero((column == v) & ~suppressed)
        partners = np.flatnonzero(column == u)
        present = np.bincount(cells.origin[partners], minlength=rows) > 0
        candidates = candidates[present[cells.origin[candidates]]]
        if v == u or len(candidates) == 0:
            continue
        loss = np.bincount(cells.origin[partners], np.where(suppressed[partners], 0, cells.trips[partners]), rows)
        cost = cells.trips[candidates] + loss[cells.origin[candidates]]
        cheapest = int(np.argmin(cost))
        option = (float(cost[cheapest]), int(cells.origin[candidates[cheapest]]), int(v), int(u))
        best = option if best is None else min(best, option)
    return None if best is None else best[1:]
