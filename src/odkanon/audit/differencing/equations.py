"""The rows of releases as equations over the trips that they do not tell apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from odkanon.core.arrays import Bools, Ints, spans


@dataclass(frozen=True, eq=False)
class ColumnContributors:
    """Who is in each column: persons, or households.

    Attributes
    ----------
    name : str
        The measure.
    least : int
        Below how many a group is too small.
    contributor : array of int
        Their numbers, each once a column, column by column.
    start : array of int
        Where those of each column start; at the end, how many there are in all.
    """

    name: str
    least: int
    contributor: Ints
    start: Ints

    def take(self, columns: Ints) -> ColumnContributors:
        """Return who is in some of the columns."""
        first, end = self.start[columns], self.start[columns + 1]
        return ColumnContributors(
            self.name, self.least, self.contributor[spans(first, end)], np.append(0, np.cumsum(end - first))
        )

    def among(self, columns: Ints) -> int:
        """Return how many there are in some columns together."""
        return len(np.unique(self.take(columns).contributor))


@dataclass(frozen=True, eq=False)
class System:
    """Rows over columns.

    Attributes
    ----------
    rows : array of int
        For each column and each side, the number of the row in which it is; -1 for none. Rows of different sides have
        different numbers.
    names : tuple of str
        The measures that add up; the first is trips.
    mass : array of float
        For each column and each of these measures, its mass; zeros for columns that are possible but empty.
    least : array of float
        Below which mass a group is too small, for each of these measures.
    contributors : tuple of Heads
        Who is in the columns, for each measure that does not add up, such as persons.
    """

    rows: Ints
    names: tuple[str, ...]
    mass: npt.NDArray[np.float64]
    least: npt.NDArray[np.float64]
    contributors: tuple[ColumnContributors, ...] = ()

    def take(self, columns: Ints) -> System:
        """Return the system of some of the columns."""
        contributors = tuple(each.take(columns) for each in self.contributors)
        return System(self.rows[columns], self.names, self.mass[columns], self.least, contributors)

    def counts(self) -> Ints:
        """Return, for each column and each measure that does not add up, how many heads it has."""
        counts = np.array([np.diff(each.start) for each in self.contributors], dtype=np.int64)
        return counts.reshape(len(self.contributors), len(self.rows)).T

    def maybe_small(self, mass: npt.NDArray[np.float64], most: Ints) -> Bools:
        """Tell for groups with these masses, and these largest columns, whether they can be too small."""
        least = np.array([each.least for each in self.contributors], dtype=np.int64)
        small: Bools = np.logical_or((mass < self.least).any(axis=-1), (most < least).any(axis=-1))
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


def components(rows: Ints) -> Iterator[Ints]:
    """Yield the columns of each set of rows that hang together; rows of one side alone show nothing but themselves."""
    for part in parts(rows):
        if len(part) > 1 and np.count_nonzero((rows[part] >= 0).any(axis=0)) > 1:
            yield part


def parts(rows: Ints) -> Iterator[Ints]:
    """Yield the columns of each set of rows that hang together."""
    if not len(rows):
        return
    label = np.arange(rows.max() + 1)
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
    yield from np.split(order, np.flatnonzero(np.diff(lowest[order])) + 1)


def incidence_of(rows: Ints) -> tuple[Ints, Ints]:
    """Return the numbers of the rows, and for each of them (row) and each column whether it is in it."""
    numbers, local = np.unique(rows, return_inverse=True)
    incidence = np.zeros((len(numbers), len(rows)), dtype=np.int64)
    incidence[local.reshape(rows.shape), np.arange(len(rows))[:, None]] = 1
    return numbers[numbers >= 0], incidence[numbers >= 0]


def is_published(system: System, live: Bools, group: Group) -> bool:
    """Tell whether a group is nothing but rows of one side, each of which stands for itself."""
    inside = np.zeros(len(system.rows), dtype=bool)
    inside[group.columns] = True
    for side in range(system.rows.shape[1]):
        rows = system.rows[inside, side]
        if (rows >= 0).all() and not (np.isin(system.rows[:, side], rows) & live & ~inside).any():
            return True
    return False
