"""Feasibility intervals of suppressed cells, given the sums of a table, and further suppression to widen them.

Rows and columns of a table have known sums, and after subtracting the published cells so have their suppressed cells.
Any numbers with these sums are feasible: each cell lies in an interval. Take the true numbers as a flow from rows to
columns. All other feasible numbers differ from them by circulations: what one cell gains, others in its row and column
lose. So the most that a cell can gain is the maximum flow from its column back to its row, where each suppressed cell
has its own content as capacity from column to row, and infinite capacity from row to column. The most that it can lose
is the maximum flow in the other direction. By the max-flow min-cut theorem both bounds are exact: they equal the optima
of two linear programmes, at a fraction of the cost.

Suppressing another cell never narrows an interval. One rectangle suffices: for the cell (r, c), suppress (r, c'),
(s, c) and (s, c'). Any amount can then circulate, up to the smaller of (r, c') and (s, c) in one direction, and of
(r, c) and (s, c') in the other.

Two dimensions that do not refine each other disclose nothing more jointly: any table by sex and any by age with the
same flows belong to some population. Cells without trips are not published either, and no reader knows that they are
empty.

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
    """Which cells are not published, including empty ones."""

    @property
    def hidden(self) -> Ints:
        """The content of the unpublished cells."""
        return np.where(self.open, self.mass, 0)


@dataclass(frozen=True)
class Slack:
    """The amounts by which a cell can be smaller and larger than it is, given the sums."""

    less: int
    more: int


def exact_slack(table: Table, row: int, column: int) -> Slack:
    """Return the exact slack of a cell; numbers beyond some thousand millions are rounded down."""
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


def least_slack(table: Table) -> tuple[Ints, Ints]:
    """Return lower bounds of the slack of every cell, downwards and upwards, by rectangles.

    Downwards, rectangles share no cell, so they add up; upwards, the best one counts.
    """
    hidden, is_open = table.hidden, table.open.astype(np.int64)
    crossing = hidden.T @ is_open  # what one column hides in rows in which another one is open
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
    """Return a small cell that must exist, or whose interval is too narrow; None if there is none."""
    less, more = least_slack(table)
    hidden = table.hidden
    for row, column in np.argwhere(small & ((less < hidden) | (hidden + more < width))).tolist():
        mass, slack = int(hidden[row, column]), exact_slack(table, row, column)
        if slack.less < mass or mass + slack.more < width:
            return row, column
    return None


def rectangle(table: Table, row: int, column: int, width: int) -> list[tuple[int, int]] | None:
    """Return the published cells of the cheapest rectangle that makes a cell's interval wide enough, or None."""
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
