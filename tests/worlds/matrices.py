"""Matrices to test on: the golden cases, small random worlds, a town, and every cut of a small tree."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import h3
import numpy as np
import numpy.typing as npt
import pyarrow.csv as pv
from hypothesis import strategies as st

from odkanon.attributes.hierarchies import AttributeAxis
from odkanon.attributes.spec import ANY
from odkanon.methods.method_registry import METHODS
from odkanon.model.od import ODMatrix, od_matrix
from odkanon.model.provenance import Source
from odkanon.model.release import Release
from odkanon.zoning.cells import Cells, latlng_to_cell, str_to_cell
from odkanon.zoning.hierarchy import Cut, Hierarchy, cut_at, h3_hierarchy

GOLDEN = Path(__file__).parent.parent / "golden"

CITY = 0x861FB4667FFFFFF
"""A resolution-6 cell in Paris; worlds made of digits lie inside."""
SCALE = 1000

# Two resolution-8 neighbours in Paris and one far away, so that roots lie at several heights.
PARENTS = ("881fb46711fffff", "881fb46713fffff", "881fb475a1fffff")


def effort(method: str, iterations: int = 20) -> dict[str, int]:
    """Return how long a method that searches may search where how good it gets is not the point."""
    return {"iterations": iterations} if "iterations" in METHODS[method].options else {}


def golden_od(name: str) -> ODMatrix:
    """Return the matrix of a golden case."""
    table = pv.read_csv(GOLDEN / name / "od.csv")
    columns = {column: table.column(column).combine_chunks() for column in table.column_names}
    return od_of_cells(
        str_to_cell(columns["origin"]),
        str_to_cell(columns["destination"]),
        trips=columns["trips"].to_numpy().astype(np.int64),
        weight=columns["weight"].to_numpy().astype(np.int64),
    )


def od_of_cells(
    origin: Cells,
    destination: Cells,
    *,
    trips: np.ndarray | None = None,
    weight: np.ndarray | None = None,
    scale: int = 1,
    person: np.ndarray | None = None,
) -> ODMatrix:
    """Return the matrix of records between H3 cells."""
    origins, destinations = h3_hierarchy(origin), h3_hierarchy(destination)
    return od_matrix(
        origins,
        destinations,
        leaf_numbers(origins, origin),
        leaf_numbers(destinations, destination),
        trips=trips,
        weight=weight,
        scale=scale,
        contributors=None if person is None else {"persons": person},
        source=Source(rows=len(origin)),
    )


def leaf_numbers(tree: Hierarchy, cells: Cells) -> np.ndarray:
    """Return the numbers of leaves of an H3 hierarchy."""
    return np.searchsorted(tree.leaves, cells).astype(np.int32)


def cells_below(parents: tuple[str, ...], resolution: int = 10) -> Cells:
    """Return all cells of a resolution below some parents."""
    children = [h3.str_to_int(cell) for parent in parents for cell in h3.cell_to_children(parent, resolution)]
    return np.array(sorted(children), dtype=np.uint64)


WORLD_CELLS = cells_below(PARENTS)


@st.composite
def random_od(draw: st.DrawFn, *, max_records: int = 60, max_weight: int = 50, equal_weights: bool = False) -> ODMatrix:
    """Draw a small world: records with trips, weights and persons between few cells below few parents."""
    seed = draw(st.integers(0, 2**32 - 1))
    # Sampled rather than drawn as integers, which would mostly be 1.
    records = draw(st.sampled_from([1, max_records // 6, max_records // 3, max_records, max_records]))
    places = draw(st.sampled_from([2, 6, 12, 25]))
    people = draw(st.sampled_from([3, 10, 30]))
    parents = draw(st.sampled_from([1, 2, 3]))
    busiest = draw(st.sampled_from([1, 4, 9]))
    rng = np.random.default_rng(seed)
    # Squared uniforms crowd some places, as in real data.
    cells = [rng.choice(WORLD_CELLS[: 49 * parents], places) for _ in range(2)]
    origin, destination = (axis[(rng.random(records) ** 2 * places).astype(int)] for axis in cells)
    trips = rng.integers(1, busiest + 1, records)
    weight = trips * 7 if equal_weights else rng.integers(1, max_weight + 1, records)
    return od_of_cells(
        origin,
        destination,
        trips=trips,
        weight=weight,
        scale=10,
        person=rng.integers(0, people, records).astype(np.int32),
    )


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


def by_mode(od: ODMatrix) -> ODMatrix:
    """Return a matrix as a cube: trips of a pair are all by the same of three modes."""
    tree = Hierarchy((np.array(["bike", "bus", "car"]), np.array([ANY])), (np.arange(3), np.zeros(1, dtype=np.int64)))
    mode = np.random.default_rng(0).choice(3, len(od.flows), p=[0.1, 0.4, 0.5]).astype(np.int32)
    return replace(od, flows=replace(od.flows, attributes=(mode,)), axes=(AttributeAxis("mode", tree),))


def published_rows(release: Release) -> list[tuple[str, str, int]]:
    """Return the rows of a release as zones and trips."""
    classes = release.classes
    return list(
        zip(
            release.origins.ids[classes.origin].tolist(),
            release.destinations.ids[classes.destination].tolist(),
            classes.trips.tolist(),
            strict=True,
        )
    )


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
