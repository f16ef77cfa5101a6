"""A reader of a cube who adds and subtracts: rows, views of them, and totals.

The trips of two rows are never the same, so that every published number is a sum of whole rows. What a sum or
difference of numbers singles out is then made of whole rows too. Nothing of that is taken for granted here: which rows
a view must add up is worked out from what it was asked, and each number is compared with those rows before it is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from attacks.cascades import PAIR, THREE, Box, within
from odkanon import Release, Rule
from odkanon.errors import UnknownNameError
from odkanon.methods.method_registry import anonymize
from worlds.cubes import Cube, cube_matrix, random_counts

SUBTRACTED = [
    Cube((PAIR, THREE, THREE), (0, 2, 1)),
    Cube(((PAIR, PAIR), (PAIR, PAIR), PAIR), (0, 1, 2, 0, 1)),
    Cube((THREE, PAIR, PAIR, THREE), (3, 0, 1, 2)),
]


@dataclass(frozen=True)
class Asked:
    """A view: its condition, and the values of each attribute that it asks for."""

    where: str | None
    values: tuple[frozenset[int], ...]


def rows_of(world: Cube, release: Release) -> dict[Box, int]:
    """Return the rows of a release as boxes of public leaves."""
    by_axis = [
        {
            ("any" if axis > 1 and at == len(levels) - 1 else f"{at}:{part[0]}"): part
            for at, level in enumerate(levels)
            for part in level
        }
        for axis, levels in enumerate(world.levels)
    ]
    table = release.to_arrow()
    columns = [table.column(name).to_pylist() for name in ("origin", "destination", *world.names)]
    boxes = [tuple(by_axis[axis][value] for axis, value in enumerate(row)) for row in zip(*columns, strict=True)]
    return dict(zip(boxes, table.column("trips").to_pylist(), strict=True))


def questions(world: Cube) -> Iterator[Asked]:
    """Yield what can be asked: everybody, one value, all but one, and one value of each attribute."""
    leaves = [range(len(levels[0])) for levels in world.levels[2:]]
    everything = tuple(frozenset(own) for own in leaves)
    yield Asked(None, everything)
    for axis, (name, own) in enumerate(zip(world.names, leaves, strict=True)):
        for value in own:
            for sign, some in (("==", {value}), ("!=", set(own) - {value})):
                values = tuple(frozenset(some) if at == axis else every for at, every in enumerate(everything))
                yield Asked(f'{name} {sign} "0:{value}"', values)
    for kind in product(*leaves) if len(leaves) > 1 else ():
        text = " and ".join(f'{name} == "0:{value}"' for name, value in zip(world.names, kind, strict=True))
        yield Asked(text, tuple(frozenset([value]) for value in kind))


def numbers(world: Cube, release: Release, rows: dict[Box, int]) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """Return every number that can be had, as the rows that it adds up and as the value that is told."""
    boxes, sets, values = list(rows), list(np.eye(len(rows), dtype=bool)), list(rows.values())
    attributes = [[set(range(*part)) for part in box[2:]] for box in boxes]
    ends = [box[:2] for box in boxes]
    for asked in questions(world):
        try:
            view = release.view(asked.where)
        except UnknownNameError:  # a value that no row and no list names has no view
            continue
        certain = np.array([all(a <= b for a, b in zip(kind, asked.values, strict=True)) for kind in attributes])
        some = np.array([all(a & b for a, b in zip(kind, asked.values, strict=True)) for kind in attributes])
        for column, which in (("trips", certain), ("trips_possible", some & ~certain)):
            told = {(row["origin"], row["destination"]): row[column] for row in view.table.to_pylist()}
            for place in sorted(set(ends)):
                here = np.array([end == place for end in ends]) & which
                sets.append(here)
                values.append(told.get(named(world, place), 0))
            sets.append(which)
            values.append(int(view.total(column)))
        # Sums over all rows inside a pair of larger places, as a reader would add them up.
        for place in sorted(set(ends)):
            inside = np.array([within(end, place) for end in ends]) & certain
            sets.append(inside)
            values.append(sum(trips for trips, counts in zip(rows.values(), inside, strict=True) if counts))
    return np.array(sets), np.array(values, dtype=np.int64)


def named(world: Cube, place: Box) -> tuple[str, str]:
    """Return what a release calls a pair of places."""
    found = [
        next(f"{at}:{part[0]}" for at, level in enumerate(world.levels[axis]) if part in level)
        for axis, part in enumerate(place)
    ]
    return found[0], found[1]


def leaks(world: Cube, seed: int) -> int | None:
    """Return how often numbers of a random input single out fewer than k trips; None where nothing is published."""
    k = 2 + seed % 4
    counts = random_counts(world, k, seed, 0.3 + 0.2 * (seed % 3))
    release = anonymize(cube_matrix(world, counts), Rule(trips=k), method="cascade")
    if release.refusal:
        return None
    rows = rows_of(world, release)
    sets, values = numbers(world, release, rows)
    trips = np.array(list(rows.values()))
    wrong = int(np.count_nonzero(sets @ trips != values))
    sets, first = np.unique(sets, axis=0, return_index=True)
    values = values[first]
    inside = (sets.astype(np.int64) @ (~sets).T.astype(np.int64)) == 0
    left = values[np.newaxis, :] - values[:, np.newaxis]
    small = inside & (left != 0) & (left < k)
    return wrong + int(np.count_nonzero(small)) + int(np.count_nonzero((values != 0) & (values < k)))
