"""Matrices to test on: the golden cases, and small random worlds."""

from __future__ import annotations

from pathlib import Path

import h3
import numpy as np
import pyarrow.csv as pv
from hypothesis import strategies as st

from odkanon.cells import Cells, str_to_cell
from odkanon.hierarchy import Hierarchy, h3_hierarchy
from odkanon.od import ODMatrix, Source, od_matrix

GOLDEN = Path(__file__).parent / "golden"

# Two resolution-8 neighbours in Paris and one far away, so that roots lie at several heights.
PARENTS = ("881fb46711fffff", "881fb46713fffff", "881fb475a1fffff")


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
        person=person,
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
