"""The public trees that a cascade goes up: masks of places, pentagons, and finer steps."""

from __future__ import annotations

from dataclasses import replace

import h3
import numpy as np
import pytest

from odkanon import InputError, Rule, lower_bound, utility
from odkanon.methods.cascade.subtree_types import public_levels
from odkanon.methods.method_registry import anonymize
from odkanon.read.area import Area
from odkanon.zoning.cells import is_pentagon
from odkanon.zoning.hierarchy import Hierarchy, h3_hierarchy
from odkanon.zoning.substeps import fine_cells, fine_hierarchy
from odkanon.zoning.zones import find_nodes
from worlds.matrices import leaf, od_of_cells, published_rows, random_world


def as_lookup(cells: np.ndarray, leaves: np.ndarray) -> Hierarchy:
    """Return the tree over all ``cells`` as a table of names, of which only some leaves are observed."""
    text = [[h3.int_to_str(int(cell)) for cell in cells]]
    resolution = h3.get_resolution(text[0][0])
    for at in range(resolution - 1, -1, -1):
        text.append([h3.cell_to_parent(cell, at) for cell in text[0]])
    text.append(["world"] * len(cells))
    ids, starts = [], []
    for column in text:
        names = np.array(column)
        first = np.flatnonzero(np.concatenate([[True], names[1:] != names[:-1]]))
        ids.append(names[first])
        starts.append(first)
    return Hierarchy(tuple(ids), tuple(starts)).restrict(np.isin(cells, leaves))


@pytest.mark.parametrize("place", ["861fb4667ffffff", h3.get_pentagons(6)[3]])
@pytest.mark.parametrize("seed", range(4))
def test_masked_cells_are_a_lookup_table_of_the_places_inside(place: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    inside = np.array(sorted(h3.str_to_int(cell) for cell in h3.cell_to_children(place, 8)), dtype=np.uint64)
    coarse = [h3.cell_to_children(place, 7)[at] for at in (0, 2)]
    some = random.choice(inside, 25)
    mask = np.unique(np.concatenate([some, np.array([h3.str_to_int(cell) for cell in coarse], dtype=np.uint64)]))
    whole = np.isin([h3.str_to_int(h3.cell_to_parent(h3.int_to_str(int(cell)), 7)) for cell in inside], mask)
    mask = mask[~np.isin(mask, inside[whole])]
    places = inside[whole | np.isin(inside, mask)]
    origin, destination = random.choice(places[::2], (2, 150))
    od = od_of_cells(origin, destination)
    trees = od.origins, od.destinations
    masked, looked = (
        replace(od, origins=pair[0], destinations=pair[1])
        for pair in (
            [replace(tree, within=Area(cells=mask)) for tree in trees],
            [as_lookup(places, tree.leaves) for tree in trees],
        )
    )
    ours, theirs = (published_rows(anonymize(one, Rule(trips=3), method="cascade")) for one in (masked, looked))
    assert ours == theirs


def test_nothing_is_listed_of_two_places_that_the_residual_of_a_cell_cannot_explain() -> None:
    """Nine trips from each of two places: where there are no others, a row of 18 would tell of both."""
    origin = np.repeat(leaf(8, np.array([[0, 1], [0, 2]])), 9)
    destination = np.repeat(leaf(8, np.array([[3, 3]])), 18)
    od = od_of_cells(origin, destination)
    assert published_rows(anonymize(od, Rule(trips=10), method="cascade"))[0][2] == 18
    trees = [
        replace(tree, within=Area(cells=np.unique(cells)))
        for tree, cells in ((od.origins, origin), (od.destinations, destination))
    ]
    masked = replace(od, origins=trees[0], destinations=trees[1])
    assert anonymize(masked, Rule(trips=10), method="cascade").refusal


def test_a_pentagon_has_six_children() -> None:
    pentagon = h3.get_pentagons(5)[3]
    cells = np.array([h3.str_to_int(h3.cell_to_center_child(pentagon, 7))], dtype=np.uint64)
    assert is_pentagon(cells).all()
    levels = public_levels(h3_hierarchy(cells).to_public_root())
    assert [int(level.count[level.types[0]].sum()) for level in levels[1:]] == [6] * 7 + [122]
    hexagon = leaf(8, np.zeros((1, 2), dtype=np.int64))
    levels = public_levels(h3_hierarchy(hexagon).to_public_root())
    assert [int(level.count[level.types[0]].sum()) for level in levels[1:]] == [7] * 8 + [122]


@pytest.mark.parametrize("place", ["861fb4667ffffff", h3.get_pentagons(6)[3]])
def test_finer_nodes_are_the_cells_that_they_say(place: str) -> None:
    cells = np.array([h3.str_to_int(cell) for cell in h3.cell_to_children(place, 8)], dtype=np.uint64)
    tree, order = fine_hierarchy(h3_hierarchy(cells))
    assert np.array_equal(tree.leaves, h3_hierarchy(cells).leaves[order])
    names = [name for level in range(tree.top + 1) for name in tree.labels(level).tolist()]
    assert len(set(names)) == len(names)
    for level in range(tree.top + 1):
        for node, parts in enumerate(fine_cells(tree.ids[level])):
            start, size = tree.starts[level][node], tree.sizes[level][node]
            below = sorted(h3.int_to_str(int(cell)) for cell in tree.leaves[start : start + size])
            assert below == sorted(child for part in parts for child in h3.cell_to_children(part, 8))


def test_public_children_of_finer_steps_are_those_of_the_whole_cell() -> None:
    """The kinds of a tree of few leaves are those of the tree of all of them, which needs no public knowledge."""
    place = h3.get_pentagons(6)[3]
    cells = np.array([h3.str_to_int(cell) for cell in h3.cell_to_children(place, 8)], dtype=np.uint64)
    whole, few_leaves = (fine_hierarchy(h3_hierarchy(some))[0].to_public_root() for some in (cells, cells[::9]))
    for tree in (whole, few_leaves):
        for level, told in enumerate(public_levels(tree)[1:7], start=1):
            seen = whole.children(level)[find_nodes(whole, level, tree.ids[level])]
            assert told.count[told.types].sum(axis=1).tolist() == seen.tolist()


@pytest.mark.parametrize("method", ["odkanon", "oigh", "atg-soft", "treecut", "cascade"])
def test_every_method_on_a_tree_takes_finer_steps(method: str) -> None:
    od = random_world(5, records=300, fan=7)
    release = anonymize(
        od, Rule(trips=8), method=method, substeps=True, **({} if method == "cascade" else {"budget": 0.2})
    )
    assert release.parameters["substeps"] is True
    assert release.origins.cells is not None
    assert int(release.classes.trips.sum()) + release.suppressed.trips == od.trips
    best, found = lower_bound(release.od, Rule(trips=8), budget=0.2).g, utility(release.od, release).g
    assert best is None or found is None or method == "cascade" or found >= best - 1e-9


def test_finer_steps_need_cells() -> None:
    tree = as_lookup(leaf(8, np.array([[0, 1], [0, 2]])), leaf(8, np.array([[0, 1], [0, 2]])))
    od = replace(random_world(1), origins=tree)
    with pytest.raises(InputError, match="lookup table"):
        anonymize(od, Rule(trips=2), method="cascade", substeps=True)
    with pytest.raises(InputError, match="substeps must be true or false"):
        anonymize(od, Rule(trips=2), method="cascade", substeps="coarse")
    with pytest.raises(InputError, match="no option 'substeps'"):
        anonymize(od, Rule(trips=2), method="mondrian", substeps=True)
