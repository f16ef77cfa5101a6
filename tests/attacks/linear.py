"""An attacker who reads several tables as linear equations and knows nothing of the program.

Unknown are the trips between any two public places, for each group of people that the tables tell apart. Each published
row is one equation. Shown is what all non-negative solutions agree on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """A published number: the trips of some people between two sets of places."""

    table: int
    origins: frozenset[str]
    destinations: frozenset[str]
    trips: int


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What the attacker has: cells (place, place, people), the rows over them, and for scoring only, the truth.

    That is how many trips each cell has, and whether each person has one there.
    """

    cells: Sequence[tuple[str, str, frozenset[int]]]
    rows: Sequence[Row]
    truth: Floats
    persons: Bools

    @property
    def equations(self) -> Floats:
        return np.array(
            [
                [
                    float(o in row.origins and d in row.destinations and row.table in people)
                    for o, d, people in self.cells
                ]
                for row in self.rows
            ]
        ).reshape(len(self.rows), len(self.cells))


def bounds(knowledge: Knowledge, group: Bools) -> tuple[float, float]:
    """Return the least and the most trips that a group can have."""
    known = {"A_eq": knowledge.equations, "b_eq": [row.trips for row in knowledge.rows], "bounds": (0, None)}
    low = linprog(group.astype(float), method="highs", **known)
    high = linprog(-group.astype(float), method="highs", **known)
    most = np.inf if high.status == 3 else -high.fun
    return float(low.fun), float(most)


def empty_cells(knowledge: Knowledge) -> Bools:
    """Return which cells cannot have a trip."""
    empty: Bools = np.equal(knowledge.truth, 0)
    for at in np.flatnonzero(empty):
        one = np.arange(len(empty)) == at
        empty[at] = bounds(knowledge, one)[1] < 1e-7
    return empty


def shown_groups(knowledge: Knowledge, k: int, k_persons: int = 0) -> list[Bools]:
    """Return the smallest groups of few trips or persons that combinations of rows show, other than rows themselves."""
    matrix = knowledge.equations
    possible = ~empty_cells(knowledge)
    columns, number = np.unique(matrix[:, possible], axis=1, return_inverse=True)
    mass = np.bincount(number.ravel(), weights=knowledge.truth[possible], minlength=columns.shape[1])
    who = np.array([np.bincount(number.ravel(), inside[possible], columns.shape[1]) for inside in knowledge.persons])
    found: list[Bools] = []
    for weights in np.array_split(np.array(list(product((-1, 0, 1), repeat=len(matrix)))), 64):
        values = weights @ columns
        good = ((values == 0) | (values == 1)).all(axis=1)
        values = values[good]
        size, contributors = values @ mass, (values @ who.T > 0).sum(axis=1)
        found += [value == 1 for value in values[(size > 0) & ((size < k) | (contributors < k_persons))]]
    found = [group for group in found if not _is_published(knowledge, columns, group)]
    smallest = [
        group for group in found if not any((other < group).any() and (other <= group).all() for other in found)
    ]
    groups = {tuple(group) for group in smallest}
    result = []
    for group in sorted(groups):
        whole = np.zeros(len(possible), dtype=bool)
        whole[np.flatnonzero(possible)] = np.array(group)[number.ravel()]
        result.append(whole)
    return result


def _is_published(knowledge: Knowledge, columns: Floats, group: Bools) -> bool:
    """Tell whether a group is made of rows of one table."""
    tables = np.array([row.table for row in knowledge.rows])
    for table in np.unique(tables):
        inside = (columns[tables == table] <= group).all(axis=1)
        if ((columns[tables == table][inside].sum(axis=0) > 0) == group).all():
            return True
    return False
