"""Few rows: the smallest groups among all combinations of them."""

from __future__ import annotations

import numpy as np

from odkanon.audit.differencing.equations import Group, System, incidence_of, is_published
from odkanon.core.arrays import Bools, Ints

PRIME = 2**31 - 1
MOST_STATES = 1 << 12
MOST_ROWS = 60
MOST_COLUMNS = 600


def smallest_groups(system: System) -> list[Group] | None:
    """Return all smallest groups of a small system; None where there are too many combinations."""
    live = np.ones(len(system.rows), dtype=bool)
    while True:
        at = np.flatnonzero(live)
        if not len(at):
            return []
        numbers, incidence = incidence_of(system.rows[at])
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
    # A column is settled by the last pivot that has a part in it.
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
