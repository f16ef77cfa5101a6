"""Feasibility intervals of suppressed cells, given the sums of a table, and further suppression to widen them.

Rows and columns of a table have known sums, and so have their suppressed cells once the published ones are subtracted.
Whatever fits these sums may be true: a cell lies in an interval. Take the true numbers as a flow from rows to columns.
Any other world differs from them by circulations: what one cell gains, others of its row and of its column lose. So the
most that a cell can gain is the largest flow from its column back to its row, where each suppressed cell passes as much
as it has on the way from column to row, and anything on the way from row to column; the most that it can lose is the
largest flow the other way round. By the theorem of max flow and min cut both are exact: they are what two linear
programmes give, at a fraction of the cost.

Suppressing a cell more makes every interval wider or leaves it. One rectangle is enough: with (r, c) the cell, suppress
(r, c'), (s, c) and (s, c'), and any amount can go around, up to what (r, c') and (s, c) have in one direction, and
(r, c) and (s, c') in the other.

Two ways of splitting that do not refine each other disclose nothing more jointly: any table by sex and any by age that
have the same flows are those of some population. Cells without trips are not published either, and nobody knows that
they have none.

References
----------
Fischetti, Salazar 2001, "Solving the cell suppression problem on tabular data with linear constraints" (what is to be
protected); Gusfield 1988, "A graph theoretic approach to statistical data security" (tables as flows).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

import numpy as np

from odkanon.core.arrays import Bools, Ints

_ENDLESS = 2**30


class Table(NamedTuple):
    """One measure of a table of rows by columns."""

    mass: Ints
    """The true content of each cell, of shape (rows, columns)."""
    open: Bools
    """Which cells are not published; empty ones are not either, and nobody knows it."""

    @property
    def hidden(self) -> Ints:
        """The content of the unpublished cells."""
        return np.where(self.open, self.mass, 0)


@dataclass(frozen=True)
class Slack:
    """By how much a cell can be smaller and larger than it is, given the sums."""

    less: int
    more: int


def slack_of(table: Table, row: int, column: int) -> Slack:
    """Return how far a cell can move, exactly; numbers beyond some thousand millions are rounded down."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow

    hidden = table.hidden
    unit = max(ceil(int(hidden.sum()) / _ENDLESS), 1)
    rows, columns = hidden.shape
    others = table.open.copy()
    others[row, column] = False
    start, end = np.nonzero(others)
    passes = hidden[start, end] // unit
    capacity = np.concatenate([np.full(len(start), _ENDLESS), passes]).astype(np.int32)
    ends = np.concatenate([start, rows + end]), np.concatenate([rows + end, start])
    graph = csr_array((capacity, ends), shape=(rows + columns, rows + columns))
    less = int(maximum_flow(graph, row, rows + column).flow_value)
    more = int(maximum_flow(graph, rows + column, row).flow_value)
    return Slack(min(less * unit, int(hidden[row, column])), more * unit)


def sure_slack(table: Table) -> tuple[Ints, Ints]:
    """Return for every cell at least by how much it can be smaller and larger: what single rectangles allow.

    Those for a smaller one use no cell twice, so that they add up; of those for a larger one the best is taken.
    """
    hidden, is_open = table.hidden, table.open.astype(np.int64)
    crossing = hidden.T @ is_open  # of a column, what it hides in rows where another one is open
    np.fill_diagonal(crossing, 0)
    others = hidden.sum(axis=1, keepdims=True) - hidden
    less = np.minimum(is_open @ crossing - others, hidden)
    more = np.zeros_like(hidden)
    for column in range(hidden.shape[1]):
        there = crossing[column] - hidden[:, column][:, None]
        reach = np.minimum(there, hidden)
        reach[:, column] = 0
        more[:, column] = reach.max(axis=1, initial=0)
    return np.where(table.open, less, 0), np.where(table.open, more, 0)


def narrow_cell(table: Table, small: Bools, width: int) -> tuple[int, int] | None:
    """Return a small cell that is known to exist, or to within less than some width; None where there is none."""
    less, more = sure_slack(table)
    hidden = table.hidden
    for row, column in np.argwhere(small & ((less < hidden) | (hidden + more < width))).tolist():
        mass, slack = int(hidden[row, column]), slack_of(table, row, column)
        if slack.less < mass or mass + slack.more < width:
            return row, column
    return None


def rectangle(table: Table, row: int, column: int, width: int) -> list[tuple[int, int]] | None:
    """Return the published cells whose loss costs least and makes a cell's interval wide enough; None for none."""
    mass, is_open = table.mass, table.open
    own = int(mass[row, column])
    good = (mass >= own) & (mass[row] >= width - own) & (mass[:, [column]] >= width - own)
    good[row] = False
    good[:, column] = False
    lost = np.where(is_open, 0, mass)
    cost = lost + lost[row] + lost[:, [column]]
    good &= cost > 0
    if not good.any():
        return None
    other, across = np.unravel_index(int(np.argmin(np.where(good, cost, cost.max() + 1))), cost.shape)
    corners = ((row, int(across)), (int(other), column), (int(other), int(across)))
    return [corner for corner in corners if not is_open[corner]]
