"""Small worlds to test on: random H3 trips with weights and persons, and every cut of a small tree."""

from __future__ import annotations

from itertools import product

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from helpers import od_of_cells
from odkanon.cells import Cells, latlng_to_cell
from odkanon.hierarchy import Cut, Hierarchy, cut_at
from odkanon.od import ODMatrix

CITY = 0x861FB4667FFFFFF
"""A resolution-6 cell in Paris; all small worlds lie inside."""
SCALE = 1000


def leaf(resolution: int, digits: npt.NDArray[np.int64]) -> Cells:
    """Return cells below the city by their digits (0-6), one column a level below resolution 6."""
    cells = np.full(len(digits), CITY, dtype=np.uint64)
    for offset, column in enumerate(digits.T[: resolution - 6], start=7):
        shift = np.uint64(3 * (15 - offset))
        cells = (cells & ~(np.uint64(7) << shift)) | (column.astype(np.uint64) << shift)
    return (cells & ~np.uint64(0xF << 52)) | np.uint64(resolution << 52)


def random_world(
    seed: int, *, records: int = 60, fan: int = 3, levels: int = 2, people: int = 20, shuffle: int | None = None
) -> ODMatrix:
    """Return a random matrix whose leaves are ``levels`` levels below the city, at most ``fan`` children each.

    ``shuffle`` reorders the records, which must never matter.
    """
    random = np.random.default_rng(seed)
    skew = 1 / np.arange(1, fan + 1) ** random.uniform(0, 1.5)
    digits = random.choice(fan, size=(2, records, levels), p=skew / skew.sum())
    trips = random.integers(1, 6, records)
    weight = random.integers(1, 5000, records)
    person = random.integers(0, people, records).astype(np.int32)
    order = np.arange(records) if shuffle is None else np.random.default_rng(shuffle).permutation(records)
    origin, destination = (leaf(6 + levels, side)[order] for side in digits)
    return od_of_cells(origin, destination, trips=trips[order], weight=weight[order], scale=SCALE, person=person[order])


def worlds(*, records: int = 60, fan: int = 4, levels: int = 3) -> st.SearchStrategy[ODMatrix]:
    """Return a strategy for random small worlds."""
    return st.builds(
        lambda seed, rows, width, depth: random_world(seed, records=rows, fan=width, levels=depth),
        st.integers(0, 2**32 - 1),
        st.integers(1, records),
        st.integers(1, fan),
        st.integers(1, levels),
    )


def town(seed: int, *, trips: int = 1500, spread: float = 0.02) -> ODMatrix:
    """Return a matrix of trips at resolution 10 around a few centres; large enough for zones to have shapes."""
    random = np.random.default_rng(seed)
    centres = random.normal(0, spread, size=(5, 2)) + np.array([48.8566, 2.3522])
    ends = centres[random.integers(0, 5, size=(2, trips))] + random.normal(0, spread / 3, size=(2, trips, 2))
    origin, destination = (latlng_to_cell(end[:, 0].copy(), end[:, 1].copy(), 10) for end in ends)
    person = random.integers(0, trips // 3, trips).astype(np.int32)
    weight = random.integers(1, 5000, trips)
    return od_of_cells(origin, destination, weight=weight, scale=SCALE, person=person)


def all_cuts(tree: Hierarchy) -> list[Cut]:
    """Return every cut of a small tree."""

    def below(level: int, node: int) -> list[list[int]]:
        start, size = int(tree.starts[level][node]), int(tree.sizes[level][node])
        whole = [[level] * size]
        if level == 0:
            return whole
        children = np.flatnonzero((tree.starts[level - 1] >= start) & (tree.starts[level - 1] < start + size))
        parts = product(*(below(level - 1, int(child)) for child in children))
        return whole + [[at for part in combination for at in part] for combination in parts]

    return [cut_at(tree, np.array(levels, dtype=np.int8)) for levels in below(tree.top, 0)]
