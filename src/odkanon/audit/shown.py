"""Which groups of trips the rows of several releases show by sums and differences.

Rows are equations: each says how many trips there are in some *columns*, where a column is a set of trips that the
rows do not tell apart. A group is shown if its indicator is a combination of rows; columns that must be empty, because
a sum of rows without a trip contains them, do not count. Every such group is made of smallest ones, which are found.

With rows on two sides, those of a side having no trip in common, each smallest group is *some rows of one side less all
rows of the other that lie inside them* (of any combination the levels are such differences), and the cheapest one
through a given column is a minimum cut. With rows on more sides, combinations are enumerated where there are few.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from odkanon.core.arrays import Bools, Ints

PRIME = 2**31 - 1
MOST_STATES = 1 << 12
MOST_ROWS = 60
MOST_COLUMNS = 600
MOST_WORK = 1 << 30
"""How many values combinations may have in all, before the rest is left undecided."""


@dataclass(frozen=True, eq=False)
class System:
    """Rows over columns.

    Attributes
    ----------
    rows : array of int
        For each column and each side, the number of the row in which it is; -1 for none. Rows of different sides have
        different numbers.
    mass : array of float
        For each column and each measure that adds up, its mass; zeros for columns that are possible but empty.
    others : array of int
        For each column and each measure that does not add up, such as persons, its mass.
    least : array of float
        Below which mass a group is too small, for each of the measures that add up.
    least_others : array of int
        The same for the others.
    """

    rows: Ints
    mass: npt.NDArray[np.float64]
    others: Ints
    least: npt.NDArray[np.float64]
    least_others: Ints

    def take(self, which: Bools) -> System:
        """Return the system of some of the columns."""
        return System(self.rows[which], self.mass[which], self.others[which], self.least, self.least_others)

    def maybe_small(self, mass: npt.NDArray[np.float64], most: Ints) -> Bools:
        """Tell for groups with these masses, and these largest columns, whether they can be too small."""
        small: Bools = np.logical_or((mass < self.least).any(axis=-1), (most < self.least_others).any(axis=-1))
        return small


@dataclass(frozen=True, eq=False)
class Group:
    """A group that is shown.

    Attributes
    ----------
    columns : array of int
        The columns of the system that make it up.
    plus, minus : tuple of int
        The rows to add and to subtract; empty where it takes more than that.
    """

    columns: Ints
    plus: tuple[int, ...]
    minus: tuple[int, ...]


def small_groups(system: System) -> tuple[list[Group], int]:
    """Return the smallest groups that can be too small, and in how many components not all were tried."""
    found: list[Group] = []
    undecided = 0
    work = 0
    for columns in components(system.rows):
        part = system.take(columns)
        filled = part.mass[:, 0] > 0
        if not part.maybe_small(part.mass[filled], part.others[filled]).any():
            continue
        work += len(part.rows) * MOST_STATES if len(part.rows) > MOST_ROWS else 0
        groups = _enumerate(part) if work < MOST_WORK else None
        if groups is None and part.rows.shape[1] == 2:
            groups = list(_cuts(part))
        if groups is None:
            undecided += 1
            continue
        at = np.flatnonzero(columns)
        found += [Group(at[group.columns], group.plus, group.minus) for group in groups]
    return found, undecided


def components(rows: Ints) -> Iterator[Bools]:
    """Yield the columns of each set of rows that hang together; rows of one side alone show nothing but themselves."""
    label = np.arange(int(rows.max(initial=-1)) + 1)
    there = rows >= 0
    while True:
        lowest = np.where(there, label[rows], len(label)).min(axis=1)
        new = label.copy()
        for side in range(rows.shape[1]):
            np.minimum.at(new, rows[there[:, side], side], lowest[there[:, side]])
        new = new[new]
        if np.array_equal(new, label):
            break
        label = new
    order = np.argsort(lowest, kind="stable")
    for part in np.split(order, np.flatnonzero(np.diff(lowest[order])) + 1):
        if len(part) > 1 and np.count_nonzero(there[part].any(axis=0)) > 1:
            chosen = np.zeros(len(rows), dtype=bool)
            chosen[part] = True
            yield chosen


# Few rows: all combinations.


def _enumerate(system: System) -> list[Group] | None:
    """Return all smallest groups of a small system; None where there are too many combinations."""
    live = np.ones(len(system.rows), dtype=bool)
    while True:
        at = np.flatnonzero(live)
        numbers, incidence = incidence_of(system.rows[at])
        if len(numbers) > MOST_ROWS or len(at) > MOST_COLUMNS:
            return None
        combinations = _combinations(incidence, system.take(live))
        if combinations is None:
            return None
        chosen, signs = combinations
        empty = (system.mass[at, 0] * chosen).sum(axis=1) == 0
        gone = chosen[empty].any(axis=0)
        if not gone.any():
            return [group for group in _smallest(at, chosen, signs, numbers) if not _is_published(system, live, group)]
        live[at[gone]] = False


def incidence_of(rows: Ints) -> tuple[Ints, Ints]:
    """Return the numbers of the rows, and for each of them (row) and each column whether it is in it."""
    numbers, local = np.unique(rows, return_inverse=True)
    incidence = np.zeros((len(numbers), len(rows)), dtype=np.int64)
    incidence[local.reshape(rows.shape), np.arange(len(rows))[:, None]] = 1
    return numbers[numbers >= 0], incidence[numbers >= 0]


def _reduced(incidence: Ints, order: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the reduced rows, how they are made of the rows, and their pivots, the first ones in the given order."""
    matrix, made = incidence.copy(), np.eye(len(incidence), dtype=np.int64)
    pivots: list[int] = []
    for column in order.tolist():
        rank = len(pivots)
        candidates = np.flatnonzero(matrix[rank:, column])
        if not len(candidates):
            continue
        other = rank + int(candidates[0])
        inverse = pow(int(matrix[other, column]), -1, PRIME)
        for table in (matrix, made):
            table[[rank, other]] = table[[other, rank]]
            table[rank] = table[rank] * inverse % PRIME
        factor = matrix[:, column].copy()
        factor[rank] = 0
        for table in (matrix, made):
            table -= factor[:, None] * table[rank] % PRIME
            table %= PRIME
        pivots.append(column)
        if len(pivots) == len(matrix):
            break
    return matrix[: len(pivots)], made[: len(pivots)], np.array(pivots, dtype=np.int64)


def _combinations(incidence: Ints, system: System) -> tuple[Bools, Ints] | None:
    """Return all groups that can be too small, as columns and as multiples of rows.

    A combination is settled by its values on the pivots, the heaviest independent columns; a group has few of them.
    """
    order = np.argsort(-system.mass[:, 0], kind="stable")
    matrix, made, pivots = _reduced(incidence, order)
    if not len(pivots):
        return np.zeros((0, incidence.shape[1]), dtype=bool), np.zeros((0, len(incidence)), dtype=np.int64)
    # A column is settled by the last pivot that has a part in it.
    last = len(pivots) - 1 - np.argmax((matrix != 0)[::-1], axis=0)
    states = np.zeros((1, incidence.shape[1]), dtype=np.int64)
    coefficients = np.zeros((1, len(incidence)), dtype=np.int64)
    mass = np.zeros((1, system.mass.shape[1]))
    most = np.zeros((1, system.others.shape[1]), dtype=np.int64)
    for step in range(len(pivots)):
        states = np.concatenate([states, (states + matrix[step]) % PRIME])
        coefficients = np.concatenate([coefficients, (coefficients + made[step]) % PRIME])
        settled = np.flatnonzero(last == step)
        values = states[:, settled]
        mass, most = np.tile(mass, (2, 1)), np.tile(most, (2, 1))
        good = (values <= 1).all(axis=1)
        mass = mass + np.where(values == 1, 1, 0) @ system.mass[settled]
        if most.shape[1]:
            inside = np.where((values == 1)[:, :, None], system.others[settled][None], 0)
            most = np.maximum(most, inside.max(axis=1, initial=0))
        good &= system.maybe_small(mass, most)
        states, coefficients, mass, most = states[good], coefficients[good], mass[good], most[good]
        if len(states) > MOST_STATES:
            return None
    some = (states == 1).any(axis=1)
    signed = np.where(coefficients > PRIME // 2, coefficients - PRIME, coefficients)
    return states[some] == 1, signed[some]


def _smallest(at: Ints, chosen: Bools, signs: Ints, numbers: Ints) -> list[Group]:
    """Keep the groups that contain no other one."""
    groups: list[Group] = []
    kept: list[Bools] = []
    for number in np.argsort(chosen.sum(axis=1), kind="stable").tolist():
        inside = chosen[number]
        if any((inside & other).sum() == other.sum() for other in kept):
            continue
        kept.append(inside)
        plain = bool((np.abs(signs[number]) <= 1).all())
        plus = tuple(numbers[signs[number] == 1].tolist()) if plain else ()
        minus = tuple(numbers[signs[number] == -1].tolist()) if plain else ()
        groups.append(Group(at[inside], plus, minus))
    return groups


def _is_published(system: System, live: Bools, group: Group) -> bool:
    """Tell whether a group is nothing but rows of one side, each of which stands for itself."""
    inside = np.zeros(len(system.rows), dtype=bool)
    inside[group.columns] = True
    for side in range(system.rows.shape[1]):
        rows = system.rows[inside, side]
        if (rows >= 0).all() and not (np.isin(system.rows[:, side], rows) & live & ~inside).any():
            return True
    return False


# Two sides: minimum cuts.


class _Network:
    """Rows of one side, from which rows of the other that lie inside are taken away."""

    def __init__(self, system: System, live: Bools, outer: int, measure: int) -> None:
        self.mass = system.mass[:, measure]
        self.rows = system.rows[:, [outer, 1 - outer]]
        self.out: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self.back: dict[int, list[int]] = defaultdict(list)
        self.alone: dict[int, int] = {}
        self.open: set[int] = set()
        for column in np.flatnonzero(live).tolist():
            outside, inside = self.rows[column].tolist()
            if outside < 0:
                self.open.add(inside)
            elif inside < 0:
                self.alone[outside] = column
            else:
                self.out[outside].append((inside, column))
                self.back[inside].append(outside)
        self.column = {(u, v): column for u, listed in self.out.items() for v, column in listed}

    def cheapest(self, column: int, limit: float) -> tuple[float, set[int], set[int]] | None:
        """Return the least mass of a group with this column, and its rows; None where that is not below the limit."""
        start, end = self.rows[column].tolist()
        flow: dict[int, float] = defaultdict(float)
        total = 0.0
        while True:
            before = self._search(start, end, flow)
            if -1 not in before:
                outer = {row for row in before if row in self.out or row in self.alone}
                return total, outer, set(before) - outer
            path = [-1]
            while path[-1] != start:
                path.append(before[path[-1]])
            total += self._push(path[::-1], flow)
            if total >= limit:
                return None

    def _search(self, start: int, end: int, flow: dict[int, float]) -> dict[int, int]:
        """Return how each row is reached from the start along what is left; -1 is the end."""
        before = {start: start}
        queue = deque([start])
        while queue:
            row = queue.popleft()
            if row in self.back:
                if row == end or row in self.open:
                    before[-1] = row
                    return before
                following = self.back[row]
            else:
                alone = self.alone.get(row)
                if alone is not None and self.mass[alone] - flow[alone] > 0:
                    before[-1] = row
                    return before
                following = [v for v, column in self.out.get(row, ()) if self.mass[column] - flow[column] > 0]
            for other in following:
                if other not in before:
                    before[other] = row
                    queue.append(other)
        return before

    def _push(self, path: list[int], flow: dict[int, float]) -> float:
        steps = list(pairwise(path))
        forward = [self.column[step] for step in steps if step in self.column]
        if steps[-1][1] == -1 and steps[-1][0] not in self.back:
            forward.append(self.alone[steps[-1][0]])
        amount = min(float(self.mass[column]) - flow[column] for column in forward)
        for column in forward:
            flow[column] += amount
        for one, other in steps:
            if (other, one) in self.column:
                flow[self.column[other, one]] -= amount
        return amount

    def group(self, outer: set[int], inner: set[int]) -> Group:
        columns = [column for u in outer for v, column in self.out[u] if v not in inner]
        columns += [self.alone[u] for u in outer if u in self.alone]
        return Group(np.array(sorted(columns), dtype=np.int64), tuple(sorted(outer)), tuple(sorted(inner)))


def _cuts(system: System) -> Iterator[Group]:
    """Yield, for each column that can be too small, the least group with it, in every measure and both ways round."""
    live = _without_empty(system)
    seen: set[tuple[int, ...]] = set()
    for outer in (0, 1):
        for measure, least in enumerate(system.least.tolist()):
            network = _Network(system, live, outer, measure)
            candidates = live & (system.mass[:, 0] > 0) & (system.mass[:, measure] < least) & (network.rows[:, 0] >= 0)
            for column in np.flatnonzero(candidates).tolist():
                found = network.cheapest(column, least)
                if found is not None and found[2]:
                    group = network.group(found[1], found[2])
                    key = tuple(group.columns.tolist())
                    if key not in seen and not _is_published(system, live, group):
                        seen.add(key)
                        yield group
        yield from _remainders(system, live, outer, seen)


def _without_empty(system: System) -> Bools:
    """Return which columns need not be empty: those through which no group without a trip passes."""
    live = np.ones(len(system.rows), dtype=bool)
    gone = np.zeros(len(system.rows), dtype=bool)
    for outer in (0, 1):
        network = _Network(system, live, outer, 0)
        for column in np.flatnonzero((system.mass[:, 0] == 0) & (network.rows[:, 0] >= 0)).tolist():
            found = None if gone[column] else network.cheapest(column, 1e-9)
            if found is not None:
                gone[network.group(found[1], found[2]).columns] = True
    return ~gone


def _remainders(system: System, live: Bools, outer: int, seen: set[tuple[int, ...]]) -> Iterator[Group]:
    """Yield each row less the rows inside it, where few persons may be left however many trips there are."""
    if not len(system.least_others):
        return
    network = _Network(system, live, outer, 0)
    for row in sorted(network.out):
        inside = {v for v, _ in network.out[row] if v not in network.open and set(network.back[v]) == {row}}
        group = network.group({row}, inside) if inside else None
        if group is not None and len(group.columns) and tuple(group.columns.tolist()) not in seen:
            seen.add(tuple(group.columns.tolist()))
            yield group
