"""Two sides: the least group with a column is a minimum cut.

Distinct contributors do not add up, so a group with few of them is not a cut. But the weight of each contributor can be
split over the columns that it contributes to. Then no group weighs more than its number of contributors, so if even the
least cut meets the rule, every group does. A cut below the rule that has enough contributors after all shows where to
shift their weight.

`scipy.sparse.csgraph.maximum_flow` is no replacement: its capacities are 32-bit integers, and masses are floats.
"""

from __future__ import annotations

from collections import ChainMap, Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from odkanon.audit.differencing.equations import ColumnContributors, DisclosedGroup, EquationSystem, is_published
from odkanon.core.arrays import Bools

ROUNDS = 30  # how often the weight of contributors is shifted before a column counts as undecided

WHOLE = 720_720  # the weight of a contributor; all numbers up to 16 divide it, so that its parts mostly add up exactly


class _CutNetwork:
    """Outer rows, of one side, from which the rows of the other side that lie inside them are subtracted."""

    def __init__(self, system: EquationSystem, live: Bools, outer: int) -> None:
        self.rows = system.rows[:, [outer, 1 - outer]]
        # For each outer row, the inner rows that share trips with it and the columns where they do; and the reverse.
        self.out: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self.back: dict[int, list[int]] = defaultdict(list)
        self.unshared: dict[int, int] = {}  # for some outer rows, the column in no inner row
        self.open: set[int] = set()  # the inner rows that extend beyond the outer rows
        for column in np.flatnonzero(live).tolist():
            outside, inside = self.rows[column].tolist()
            if outside < 0:
                self.open.add(inside)
            elif inside < 0:
                self.unshared[outside] = column
            else:
                self.out[outside].append((inside, column))
                self.back[inside].append(outside)
        self.column = {(u, v): column for u, listed in self.out.items() for v, column in listed}

    def cheapest(
        self, column: int, mass: Mapping[int, float], limit: float, taken: int | None = None, without: int | None = None
    ) -> DisclosedGroup | None:
        """Return the least group with a column; None if it is not below the limit.

        If given, row ``taken`` of the other side must be subtracted, and outer row ``without`` must not be in it.
        """
        start, end = self.rows[column].tolist()
        starts = [start] if taken is None else [start, taken]
        ends = {end, without}
        flow: dict[int, float] = defaultdict(float)
        total = 0.0
        while True:
            before = self._search(starts, ends, mass, flow)
            if -1 not in before:
                outer = {row for row in before if row in self.out or row in self.unshared}
                return self._group(outer, set(before) - outer)
            path = [-1]
            while path[-1] not in starts:
                path.append(before[path[-1]])
            unshared = None if path[1] in ends else self.unshared.get(path[1])
            total += self._push(path[:0:-1], unshared, mass, flow)
            if total >= limit:
                return None

    def _search(
        self, starts: Sequence[int], ends: set[int | None], mass: Mapping[int, float], flow: dict[int, float]
    ) -> dict[int, int]:
        """Return the predecessor of each row reached from the starts along residual capacity; -1 is the sink."""
        before = {row: row for row in starts}
        queue = deque(starts)
        while queue:
            row = queue.popleft()
            unshared = self.unshared.get(row)
            if row in ends or row in self.open or (unshared is not None and mass[unshared] - flow[unshared] > 0):
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

    def _push(self, path: list[int], unshared: int | None, mass: Mapping[int, float], flow: dict[int, float]) -> float:
        """Saturate a path, and the unshared column at its end, and return by how much."""
        steps = list(pairwise(path))
        forward = [self.column[step] for step in steps if step in self.column]
        if unshared is not None:
            forward.append(unshared)
        amount = min((mass[column] - flow[column] for column in forward), default=float("inf"))
        for column in forward:
            flow[column] += amount
        for one, other in steps:
            if (other, one) in self.column:
                flow[self.column[other, one]] -= amount
        return amount

    def _group(self, outer: set[int], inner: set[int]) -> DisclosedGroup:
        columns = [column for u in outer for v, column in self.out.get(u, ()) if v not in inner]
        columns += [self.unshared[u] for u in outer if u in self.unshared]
        return DisclosedGroup(np.array(sorted(columns), dtype=np.int64), tuple(sorted(outer)), tuple(sorted(inner)))


class _AdditiveCut:
    """A measure that adds up: a cut below the rule is a group below it."""

    def __init__(self, mass: npt.NDArray[np.float64], least: float) -> None:
        self.limit = least
        self.small: Bools = mass < least
        self._mass = dict(enumerate(mass.tolist()))

    def masses(self, column: int, tried: Sequence[DisclosedGroup]) -> Mapping[int, float]:
        return self._mass

    def is_small(self, group: DisclosedGroup) -> bool:
        return True


class _ContributorCut:
    """Distinct contributors, each with its weight split over its columns."""

    def __init__(self, contributors: ColumnContributors, live: Bools) -> None:
        counts = np.diff(contributors.start)
        # Contributors are whole: any weight above one fewer is enough.
        self.limit = (contributors.least - 1) * WHOLE + 1
        self.small: Bools = counts < contributors.least
        self._contributors = contributors
        self._inside: dict[int, list[int]] = defaultdict(list)
        self._columns: dict[int, list[int]] = defaultdict(list)
        numbers = np.repeat(np.arange(len(counts)), counts).tolist()
        for column, contributor in zip(numbers, contributors.contributor.tolist(), strict=True):
            if live[column]:
                self._inside[column].append(contributor)
                self._columns[contributor].append(column)
        self._mass: dict[int, float] = {
            column: sum(self._part(each) for each in self._inside[column]) for column in range(len(counts))
        }

    def _part(self, contributor: int) -> int:
        return WHOLE // len(self._columns[contributor])

    def masses(self, column: int, tried: Sequence[DisclosedGroup]) -> Mapping[int, float]:
        """Return the weights of columns in groups with this one.

        Its contributors have all their weight there, those of the groups tried so far in these groups.
        """
        wanted: dict[int, Counter[int]] = defaultdict(Counter)
        for group in tried:
            for at in group.columns.tolist():
                for contributor in self._inside[at]:
                    wanted[contributor][at] += 1
        wanted.update((contributor, Counter([column])) for contributor in self._inside[column])
        changed: dict[int, float] = {}
        for contributor, times in wanted.items():
            whole, part = times.total(), self._part(contributor)
            for at in self._columns[contributor]:
                changed[at] = changed.get(at, self._mass[at]) - part + WHOLE * times[at] // whole
        return ChainMap(changed, self._mass)

    def is_small(self, group: DisclosedGroup) -> bool:
        return self._contributors.count_distinct(group.columns) < self._contributors.least


def find_least_cuts(system: EquationSystem) -> tuple[list[DisclosedGroup], bool]:
    """Return the least group with each column that may be too small, and whether all columns are decided.

    In every measure, and both ways round: rows of one side minus rows of the other.
    """
    live = _live_columns(system)
    measures: list[_AdditiveCut | _ContributorCut] = [
        *(_AdditiveCut(mass, least) for mass, least in zip(system.mass.T, system.least.tolist(), strict=True)),
        *(_ContributorCut(contributors, live) for contributors in system.contributors),
    ]
    found: list[DisclosedGroup | None] = []
    for outer in (0, 1):
        network = _CutNetwork(system, live, outer)
        filled = live & (system.mass[:, 0] > 0) & (network.rows[:, 0] >= 0)
        for measure in measures:
            for column in np.flatnonzero(filled & measure.small).tolist():
                found += _groups_with(column, system, live, network, measure)
    groups = [group for group in found if group is not None]
    return list(_irreducible(groups)), len(groups) == len(found)


def _groups_with(
    column: int, system: EquationSystem, live: Bools, network: _CutNetwork, measure: _AdditiveCut | _ContributorCut
) -> Iterator[DisclosedGroup | None]:
    """Yield the least group with a column or, if that is published, the least ones that are not; None if undecided."""
    row, end = network.rows[column].tolist()
    cases: list[tuple[int | None, int | None]] = [(None, None)]
    while cases:
        taken, without = cases.pop()
        tried: list[DisclosedGroup] = []
        while len(tried) < ROUNDS:
            group = network.cheapest(column, measure.masses(column, tried), measure.limit, taken, without)
            if group is None or measure.is_small(group):
                break
            tried.append(group)
        else:
            yield None
            continue
        if group is not None and not is_published(system, live, group):
            yield group
        elif group is not None:
            if taken is None:
                cases += [(other, without) for other, _ in network.out.get(row, ())]
            if without is None:
                cases += [(taken, other) for other in network.back.get(end, ())]


def _irreducible(groups: Iterable[DisclosedGroup]) -> Iterator[DisclosedGroup]:
    """Yield the groups that are not unions of smaller ones."""
    kept: dict[int, list[set[int]]] = defaultdict(list)
    for group in sorted(groups, key=lambda each: len(each.columns)):
        columns = set(group.columns.tolist())
        inside = [other for column in columns for other in kept[column] if other <= columns]
        if columns != set().union(*inside):
            kept[min(columns)].append(columns)
            yield group


def _live_columns(system: EquationSystem) -> Bools:
    """Return the columns that need not be empty: those in no group without trips."""
    live = np.ones(len(system.rows), dtype=bool)
    gone = np.zeros(len(system.rows), dtype=bool)
    trips = dict(enumerate(system.mass[:, 0].tolist()))
    for outer in (0, 1):
        network = _CutNetwork(system, live, outer)
        for column in np.flatnonzero((system.mass[:, 0] == 0) & (network.rows[:, 0] >= 0)).tolist():
            group = None if gone[column] else network.cheapest(column, trips, 1e-9)
            if group is not None:
                gone[group.columns] = True
    return ~gone
