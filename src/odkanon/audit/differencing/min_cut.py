"""Two sides: the least group with a column is a minimum cut.

Heads do not add up, so a group of few of them is no cut. But each head can be spread over the columns that it is in, in
parts that make one head together; then no group weighs more than it has heads, and where even the least cut is not
below the rule no group is. A cut that is below it without having few heads says where to spread them instead.
"""

from __future__ import annotations

from collections import ChainMap, Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from odkanon.audit.differencing.equations import ColumnContributors, Group, System, is_published
from odkanon.core.arrays import Bools

ROUNDS = 30
"""How often heads are spread anew, before it is left undecided whether a group has few of them."""

WHOLE = 720_720
"""What a head weighs: all numbers up to 16 divide it, so that its parts mostly make it up again."""


class _Network:
    """Rows of one side, from which rows of the other that lie inside are taken away.

    Attributes
    ----------
    out : dict
        For each outer row, the rows of the other side that it meets, and in which columns.
    back : dict
        For each row of the other side, the outer rows that it meets.
    alone : dict
        For some outer rows, the column that no row of the other side has.
    open : set of int
        The rows of the other side that reach beyond the outer rows.
    """

    def __init__(self, system: System, live: Bools, outer: int) -> None:
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

    def cheapest(
        self, column: int, mass: Mapping[int, float], limit: float, taken: int | None = None, without: int | None = None
    ) -> Group | None:
        """Return the least group with a column; None where it is not below the limit.

        Parameters
        ----------
        taken : int, optional
            A row of the other side that must be taken away.
        without : int, optional
            An outer row that must not be in it.
        """
        start, end = self.rows[column].tolist()
        starts = [start] if taken is None else [start, taken]
        ends = {end, without}
        flow: dict[int, float] = defaultdict(float)
        total = 0.0
        while True:
            before = self._search(starts, ends, mass, flow)
            if -1 not in before:
                outer = {row for row in before if row in self.out or row in self.alone}
                return self._group(outer, set(before) - outer)
            path = [-1]
            while path[-1] not in starts:
                path.append(before[path[-1]])
            alone = None if path[1] in ends else self.alone.get(path[1])
            total += self._push(path[:0:-1], alone, mass, flow)
            if total >= limit:
                return None

    def _search(
        self, starts: Sequence[int], ends: set[int | None], mass: Mapping[int, float], flow: dict[int, float]
    ) -> dict[int, int]:
        """Return how each row is reached from the starts along what is left; -1 is the end."""
        before = {row: row for row in starts}
        queue = deque(starts)
        while queue:
            row = queue.popleft()
            alone = self.alone.get(row)
            if row in ends or row in self.open or (alone is not None and mass[alone] - flow[alone] > 0):
                before[-1] = row
                return before
            following = self.back.get(row)
            if following is None:
                following = [v for v, column in self.out.get(row, ()) if mass[column] - flow[column] > 0]
            for other in following:
                if other not in before:
                    before[other] = row
                    queue.append(other)
        return before

    def _push(self, path: list[int], alone: int | None, mass: Mapping[int, float], flow: dict[int, float]) -> float:
        """Use up what is left along a path and in its last column, and return how much that was."""
        steps = list(pairwise(path))
        forward = [self.column[step] for step in steps if step in self.column]
        if alone is not None:
            forward.append(alone)
        amount = min((mass[column] - flow[column] for column in forward), default=float("inf"))
        for column in forward:
            flow[column] += amount
        for one, other in steps:
            if (other, one) in self.column:
                flow[self.column[other, one]] -= amount
        return amount

    def _group(self, outer: set[int], inner: set[int]) -> Group:
        columns = [column for u in outer for v, column in self.out.get(u, ()) if v not in inner]
        columns += [self.alone[u] for u in outer if u in self.alone]
        return Group(np.array(sorted(columns), dtype=np.int64), tuple(sorted(outer)), tuple(sorted(inner)))


class _Adding:
    """A measure that adds up: a cut below the rule is a group below it."""

    def __init__(self, mass: npt.NDArray[np.float64], least: float) -> None:
        self.limit = least
        self.small: Bools = mass < least
        self._mass = dict(enumerate(mass.tolist()))

    def masses(self, column: int, tried: Sequence[Group]) -> Mapping[int, float]:
        return self._mass

    def is_small(self, group: Group) -> bool:
        return True


class _ByHeads:
    """Heads, each spread over the columns that it is in."""

    def __init__(self, heads: ColumnContributors, live: Bools) -> None:
        counts = np.diff(heads.start)
        self.limit = (heads.least - 1) * WHOLE + 1  # heads are whole, so more than one less is enough
        self.small: Bools = counts < heads.least
        self._heads = heads
        self._inside: dict[int, list[int]] = defaultdict(list)
        self._columns: dict[int, list[int]] = defaultdict(list)
        for column, head in zip(
            np.repeat(np.arange(len(counts)), counts).tolist(), heads.contributor.tolist(), strict=True
        ):
            if live[column]:
                self._inside[column].append(head)
                self._columns[head].append(column)
        self._mass: dict[int, float] = {
            column: sum(self._part(head) for head in self._inside[column]) for column in range(len(counts))
        }

    def _part(self, head: int) -> int:
        return WHOLE // len(self._columns[head])

    def masses(self, column: int, tried: Sequence[Group]) -> Mapping[int, float]:
        """Return what columns weigh in groups with this one: its heads all here, others where they were too light."""
        wanted: dict[int, Counter[int]] = defaultdict(Counter)
        for group in tried:
            for at in group.columns.tolist():
                for head in self._inside[at]:
                    wanted[head][at] += 1
        wanted.update((head, Counter([column])) for head in self._inside[column])
        changed: dict[int, float] = {}
        for head, times in wanted.items():
            whole = times.total()
            for at in self._columns[head]:
                changed[at] = changed.get(at, self._mass[at]) - self._part(head) + WHOLE * times[at] // whole
        return ChainMap(changed, self._mass)

    def is_small(self, group: Group) -> bool:
        return self._heads.among(group.columns) < self._heads.least


class _Search:
    """Groups below one measure's rule, column by column.

    Attributes
    ----------
    undecided : bool
        Whether of some column it is not known if it is in one.
    """

    def __init__(self, system: System, live: Bools, network: _Network, measure: _Adding | _ByHeads) -> None:
        self._system, self._live, self._network, self._measure = system, live, network, measure
        self.undecided = False

    def __iter__(self) -> Iterator[Group]:
        filled = self._live & (self._system.mass[:, 0] > 0) & (self._network.rows[:, 0] >= 0)
        for column in np.flatnonzero(filled & self._measure.small).tolist():
            yield from self._with(column)

    def _with(self, column: int) -> Iterator[Group]:
        """Yield the least group with a column, or where that is published, the least ones that it is not in."""
        row, end = self._network.rows[column].tolist()
        cases: list[tuple[int | None, int | None]] = [(None, None)]
        while cases:
            taken, without = cases.pop()
            group = self._below(column, taken, without)
            if group is None:
                continue
            if not is_published(self._system, self._live, group):
                yield group
                continue
            if taken is None:
                cases += [(other, without) for other, _ in self._network.out.get(row, ())]
            if without is None:
                cases += [(taken, other) for other in self._network.back.get(end, ())]

    def _below(self, column: int, taken: int | None, without: int | None) -> Group | None:
        tried: list[Group] = []
        for _ in range(ROUNDS):
            masses = self._measure.masses(column, tried)
            group = self._network.cheapest(column, masses, self._measure.limit, taken, without)
            if group is None or self._measure.is_small(group):
                return group
            tried.append(group)
        self.undecided = True
        return None


def least_cuts(system: System) -> tuple[list[Group], bool]:
    """Return for each column that can be too small the least group with it, and whether all of them are decided.

    In every measure, and both ways round: rows of one side less rows of the other.
    """
    live = _without_empty(system)
    measures: list[_Adding | _ByHeads] = [
        *(_Adding(mass, least) for mass, least in zip(system.mass.T, system.least.tolist(), strict=True)),
        *(_ByHeads(heads, live) for heads in system.contributors),
    ]
    found: list[Group] = []
    decided = True
    for outer in (0, 1):
        network = _Network(system, live, outer)
        for measure in measures:
            search = _Search(system, live, network, measure)
            found += search
            decided &= not search.undecided
    return list(_smallest(found)), decided


def _smallest(groups: Iterable[Group]) -> Iterator[Group]:
    """Yield the groups that are not made of smaller ones."""
    kept: dict[int, list[set[int]]] = defaultdict(list)
    for group in sorted(groups, key=lambda each: len(each.columns)):
        columns = set(group.columns.tolist())
        inside = [other for column in columns for other in kept[column] if other <= columns]
        if columns != set().union(*inside):
            kept[min(columns)].append(columns)
            yield group


def _without_empty(system: System) -> Bools:
    """Return which columns need not be empty: those through which no group without a trip passes."""
    live = np.ones(len(system.rows), dtype=bool)
    gone = np.zeros(len(system.rows), dtype=bool)
    trips = dict(enumerate(system.mass[:, 0].tolist()))
    for outer in (0, 1):
        network = _Network(system, live, outer)
        for column in np.flatnonzero((system.mass[:, 0] == 0) & (network.rows[:, 0] >= 0)).tolist():
            group = None if gone[column] else network.cheapest(column, trips, 1e-9)
            if group is not None:
                gone[group.columns] = True
    return ~gone
