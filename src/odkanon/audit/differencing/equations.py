"""Rows as equations over sets of trips, and the enumeration of all groups that few rows disclose."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from odkanon.core.arrays import Bools, Ints, spans

PRIME = 2**31 - 1
MOST_STATES = 1 << 12
MOST_ROWS = 60
MOST_COLUMNS = 600


class InconsistentCountsError(Exception):
    """Rows that contradict each other."""


@dataclass(frozen=True, eq=False)
class ColumnContributors:
    """The distinct contributors to each column: persons, or households."""

    name: str  # the measure
    least: int  # the number below which a group is too small
    contributor: Ints  # their numbers, each once per column, column by column
    start: Ints  # where the contributors of each column start; at the end, their total number

    def take(self, columns: Ints) -> ColumnContributors:
        """Return the contributors to some of the columns."""
        first, end = self.start[columns], self.start[columns + 1]
        return ColumnContributors(
            self.name, self.least, self.contributor[spans(first, end)], np.append(0, np.cumsum(end - first))
        )

    def count_distinct(self, columns: Ints) -> int:
        """Return the number of distinct contributors to the union of some columns."""
        return len(np.unique(self.take(columns).contributor))


@dataclass(frozen=True, eq=False)
class EquationSystem:
    """Rows over columns."""

    # For each column and each side, the number of its row; -1 for none. Sides have different numbers.
    rows: Ints
    names: tuple[str, ...]  # the measures that add up; the first is trips
    # The mass of each column in each of these measures; zeros for possible columns that are empty.
    mass: npt.NDArray[np.float64]
    least: npt.NDArray[np.float64]  # the mass below which a group is too small, in each of these measures
    contributors: tuple[ColumnContributors, ...] = ()  # for each measure that does not add up

    def take(self, columns: Ints) -> EquationSystem:
        """Return the system of some of the columns."""
        contributors = tuple(each.take(columns) for each in self.contributors)
        return EquationSystem(self.rows[columns], self.names, self.mass[columns], self.least, contributors)

    def counts(self) -> Ints:
        """Return the number of contributors to each column, for each measure that does not add up."""
        counts = np.array([np.diff(each.start) for each in self.contributors], dtype=np.int64)
        return counts.reshape(len(self.contributors), len(self.rows)).T

    def maybe_small(self, mass: npt.NDArray[np.float64], most: Ints) -> Bools:
        """Return whether groups may be too small, by their masses and the contributors to their largest columns."""
        least = np.array([each.least for each in self.contributors], dtype=np.int64)
        small: Bools = np.logical_or((mass < self.least).any(axis=-1), (most < least).any(axis=-1))
        return small


@dataclass(frozen=True, eq=False)
class DisclosedGroup:
    """A group of trips that rows disclose."""

    columns: Ints  # the columns of the system that make it up
    plus: tuple[int, ...]  # the rows to add; empty if other multiples of rows are needed
    minus: tuple[int, ...]  # the rows to subtract


def comparable_components(rows: Ints) -> list[Ints]:
    """Return the columns of each connected component with several columns and rows on several sides."""
    parts = split_components(rows)
    return [part for part in parts if len(part) > 1 and np.count_nonzero((rows[part] >= 0).any(axis=0)) > 1]


def split_components(rows: Ints) -> Iterator[Ints]:
    """Yield the columns of each connected component of rows."""
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


def incidence_matrix(rows: Ints) -> tuple[Ints, Ints]:
    """Return the numbers of the rows, and the matrix of rows by columns."""
    numbers, local = np.unique(rows, return_inverse=True)
    incidence = np.zeros((len(numbers), len(rows)), dtype=np.int64)
    incidence[local.reshape(rows.shape), np.arange(len(rows))[:, None]] = 1
    return numbers[numbers >= 0], incidence[numbers >= 0]


def is_published(system: EquationSystem, live: Bools, group: DisclosedGroup) -> bool:
    """Return whether a group is just a union of rows of one side."""
    inside = np.zeros(len(system.rows), dtype=bool)
    inside[group.columns] = True
    for side in range(system.rows.shape[1]):
        rows = system.rows[inside, side]
        if (rows >= 0).all() and not (np.isin(system.rows[:, side], rows) & live & ~inside).any():
            return True
    return False


def enumerate_groups(system: EquationSystem) -> list[DisclosedGroup] | None:
    """Return all smallest groups of a small system; None if there are too many combinations."""
    live = np.ones(len(system.rows), dtype=bool)
    while True:
        at = np.flatnonzero(live)
        if not len(at):
            return []
        numbers, incidence = incidence_matrix(system.rows[at])
        if len(numbers) > MOST_ROWS or len(at) > MOST_COLUMNS:
            return None
        combinations = _combinations(incidence, system.take(at))
        if combinations is None:
            return None
        chosen, signs = combinations
        empty = (system.mass[at, 0] * chosen).sum(axis=1) == 0
        gone = chosen[empty].any(axis=0)
        if not gone.any():
            return [group for group in _smallest(at, chosen, signs, numbers) if not is_published(system, live, group)]
        live[at[gone]] = False


def _reduce_rows(incidence: Ints, order: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the reduced rows, the multiples of rows that yield them, and their pivots, earliest in the given order."""
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


def _combinations(incidence: Ints, system: EquationSystem) -> tuple[Bools, Ints] | None:
    """Return all groups that may be too small, as columns and as multiples of rows.

    A combination is determined by its values on the pivots, the heaviest independent columns; a small group has few.
    """
    order = np.argsort(-system.mass[:, 0], kind="stable")
    matrix, made, pivots = _reduce_rows(incidence, order)
    # A column is settled by the last pivot that contributes to it.
    last = len(pivots) - 1 - np.argmax((matrix > 0)[::-1], axis=0)
    states = np.zeros((1, incidence.shape[1]), dtype=np.int64)
    coefficients = np.zeros((1, len(incidence)), dtype=np.int64)
    mass = np.zeros((1, system.mass.shape[1]))
    counts = system.counts()
    most = np.zeros((1, counts.shape[1]), dtype=np.int64)
    for step in range(len(pivots)):
        states = np.concatenate([states, (states + matrix[step]) % PRIME])
        coefficients = np.concatenate([coefficients, (coefficients + made[step]) % PRIME])
        settled = np.flatnonzero(last == step)
        values = states[:, settled]
        good = (values <= 1).all(axis=1)
        mass = np.concatenate([mass, mass]) + np.where(values == 1, 1, 0) @ system.mass[settled]
        most = np.concatenate([most, most])
        if most.shape[1]:
            inside = np.where((values == 1)[:, :, None], counts[settled][None], 0)
            most = np.maximum(most, inside.max(axis=1, initial=0))
        good &= system.maybe_small(mass, most)
        states, coefficients, mass, most = states[good], coefficients[good], mass[good], most[good]
        if len(states) > MOST_STATES:
            return None
    some = (states == 1).any(axis=1)
    signed = np.where(coefficients > PRIME // 2, coefficients - PRIME, coefficients)
    return states[some] == 1, signed[some]


def _smallest(at: Ints, chosen: Bools, signs: Ints, numbers: Ints) -> list[DisclosedGroup]:
    """Return the groups that contain no other one."""
    groups: list[DisclosedGroup] = []
    kept: list[Bools] = []
    for number in np.argsort(chosen.sum(axis=1), kind="stable").tolist():
        inside = chosen[number]
        if any((inside & other).sum() == other.sum() for other in kept):
            continue
        kept.append(inside)
        plain = bool((np.abs(signs[number]) <= 1).all())
        plus = tuple(numbers[signs[number] == 1].tolist()) if plain else ()
        minus = tuple(numbers[signs[number] == -1].tolist()) if plain else ()
        groups.append(DisclosedGroup(at[inside], plus, minus))
    return groups
