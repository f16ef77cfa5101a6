"""Some masses of columns that add up to what the rows say.

What a group that is shown has is the same for all of them, so any will do where the true ones are not known.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from odkanon.audit.differencing.equations import incidence_of, parts
from odkanon.core.arrays import Ints

Floats = npt.NDArray[np.float64]
CLOSE = 1e-7
"""What share of the rows may be left over by rounding."""
MOST_VALUES = 40_000
"""From how many rows times columns on three and more sides are too much to solve."""
_ELSEWHERE = -1


class DoNotFitError(Exception):
    """Rows that contradict each other."""


def some_masses(rows: Ints, totals: Floats) -> Floats | None:
    """Return masses, none below zero, that add up to the totals; None where it is too much to try.

    Parameters
    ----------
    rows : array of int
        For each column and each side, the row in which it is; -1 for none.
    totals : array of float
        For each row, by its number, what it says.

    Raises
    ------
    DoNotFitError
        Where there are none.
    """
    said = totals[rows[rows >= 0]]
    if not (np.isfinite(said) & (said >= 0)).all():
        raise DoNotFitError
    if rows.shape[1] == 2:
        return _Transport(rows, totals).solve()
    masses = np.zeros(len(rows))
    for columns in parts(rows):
        numbers, incidence = incidence_of(rows[columns])
        if incidence.size > MOST_VALUES:
            return None
        masses[columns] = found = _least_squares(incidence.astype(np.float64), totals[numbers])
        if np.abs(incidence @ found - totals[numbers]).max() > CLOSE * totals[numbers].sum():
            raise DoNotFitError
    return masses


def _least_squares(matrix: Floats, totals: Floats) -> Floats:
    """Return the masses, none below zero, that come nearest to the totals (Lawson, Hanson 1974)."""
    columns = matrix.shape[1]
    found, free = np.zeros(columns), np.zeros(columns, dtype=bool)
    close = CLOSE * totals.max()
    tiny = 1e-3 * close
    for _ in range(3 * columns):
        gradient = np.where(free, -np.inf, matrix.T @ (totals - matrix @ found))
        if gradient.max() <= close:
            break
        free[int(gradient.argmax())] = True
        while True:
            tried = np.zeros(columns)
            tried[free] = np.linalg.lstsq(matrix[:, free], totals, rcond=None)[0]
            low = free & (tried <= tiny)
            if not low.any():
                break
            step = np.min(found[low] / np.maximum(found[low] - tried[low], 1e-300))
            found = found + min(step, 1.0) * (tried - found)
            free &= found > tiny
            found[~free] = 0
        found = tried
    return found


class _Transport:
    """Two sides: a flow from the rows of the one to those of the other, found by shortest paths (Dinic 1970).

    Columns that are in a row of one side only lead to a place elsewhere, which takes and gives as much as is asked.
    """

    def __init__(self, rows: Ints, totals: Floats) -> None:
        self._rows = rows
        first, second = ({int(row) for row in np.unique(side) if row >= 0} for side in rows.T)
        self._supply = {("from", row): float(totals[row]) for row in first}
        self._demand = {("to", row): float(totals[row]) for row in second}
        self._supply["from", _ELSEWHERE] = sum(self._demand.values())
        self._demand["to", _ELSEWHERE] = sum(self._supply[node] for node in self._supply if node[1] >= 0)
        self._next: dict[tuple[str, int], list[tuple[str, int]]] = defaultdict(list)
        for one, other in [*map(tuple, rows.tolist()), (_ELSEWHERE, _ELSEWHERE)]:
            self._next["from", one].append(("to", other))
            self._next["to", other].append(("from", one))
        self._flow: dict[tuple[int, int], float] = defaultdict(float)
        self._least = 1e-12 * sum(self._supply.values())

    def solve(self) -> Floats:
        asked = sum(self._demand.values())
        while self._advance():
            pass
        if sum(self._demand.values()) > CLOSE * asked:
            raise DoNotFitError
        return np.array([self._flow[one, other] for one, other in self._rows.tolist()], dtype=np.float64)

    def _advance(self) -> bool:
        """Send what can be sent along shortest paths; tell whether there was one."""
        level = self._levels()
        used: dict[tuple[str, int], int] = defaultdict(int)
        sent = False
        for start in [node for node, left in self._supply.items() if left > self._least]:
            while self._supply[start] > self._least and self._send(start, level, used):
                sent = True
        return sent

    def _levels(self) -> dict[tuple[str, int], int]:
        """Return how far each node is from those that have something to give."""
        level = {node: 0 for node, left in self._supply.items() if left > self._least}
        layer = list(level)
        while layer and not any(self._demand.get(node, 0) > self._least for node in layer):
            following = []
            for node in layer:
                for other in self._next[node]:
                    if other not in level and self._room(node, other) > 0:
                        level[other] = level[node] + 1
                        following.append(other)
            layer = following
        return level

    def _room(self, node: tuple[str, int], other: tuple[str, int]) -> float:
        """Return how much more can go from a node to the next; what was sent can be sent back."""
        if node[0] == "from":
            return float("inf")
        left = self._flow[other[1], node[1]]
        return left if left > self._least else 0.0

    def _send(
        self, start: tuple[str, int], level: dict[tuple[str, int], int], used: dict[tuple[str, int], int]
    ) -> bool:
        """Send something from a node to one that asks for it; tell whether there was a way."""
        path = [start]
        while path:
            node = path[-1]
            if self._demand.get(node, 0) > self._least:
                self._push(path)
                return True
            listed = self._next[node]
            while used[node] < len(listed):
                other = listed[used[node]]
                if level.get(other) == level[node] + 1 and self._room(node, other) > 0:
                    path.append(other)
                    break
                used[node] += 1
            else:
                path.pop()
                if path:
                    used[path[-1]] += 1
        return False

    def _push(self, path: list[tuple[str, int]]) -> None:
        steps = list(pairwise(path))
        amount = min(self._supply[path[0]], self._demand[path[-1]], *(self._room(*step) for step in steps))
        self._supply[path[0]] -= amount
        self._demand[path[-1]] -= amount
        for (kind, one), (_, other) in steps:
            if kind == "from":
                self._flow[one, other] += amount
            else:
                self._flow[other, one] -= amount
