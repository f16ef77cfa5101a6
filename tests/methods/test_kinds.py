"""Kinds of public nodes against the trees themselves: what is one kind, what a kind consists of, and what is spare."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import h3
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attacks.cascades import intervals
from odkanon.methods.cascade.subtree_types import Level, public_levels
from odkanon.read.area import Area
from odkanon.zoning.hierarchy import Hierarchy, h3_hierarchy
from odkanon.zoning.substeps import fine_hierarchy
from worlds.cubes import tree_of

Tree = Any
Interval = tuple[int, int]


def trees(depth: int) -> st.SearchStrategy[Tree]:
    """Nested tuples with leaves at the same depth, and with many single children."""
    below = st.just(0) if depth == 1 else trees(depth - 1)
    return st.lists(below, min_size=1, max_size=3).map(tuple)


def inside(levels: Any, at: int, node: Interval) -> list[Interval]:
    return [part for part in levels[at - 1] if node[0] <= part[0] and part[1] <= node[1]]


def shape(levels: Any, at: int, node: Interval, spare: set[int]) -> Any:
    """Return what a node looks like from below, in whatever order."""
    if at == 0:
        return node[0] in spare
    return tuple(sorted((shape(levels, at - 1, part, spare) for part in inside(levels, at, node)), key=repr))


def steps(levels: Any, at: int, node: Interval) -> tuple[int, list[Interval]]:
    """Return the level and the nodes of the largest proper parts."""
    if at == 0:
        return 0, []
    parts = inside(levels, at, node)
    return steps(levels, at - 1, parts[0]) if len(parts) == 1 else (at - 1, parts)


def counted(attributes: np.ndarray, counts: np.ndarray) -> Counter[int]:
    return Counter({int(kind): int(count) for kind, count in zip(attributes, counts, strict=True) if count})


@given(trees(3), st.sets(st.integers(0, 8)), st.randoms(use_true_random=False))
def test_kinds_are_the_shapes_of_nodes(tree: Tree, spare: set[int], random: Any) -> None:
    levels = intervals(tree)
    full = tree_of(levels)
    full = replace(full, spare=frozenset(name for at, name in enumerate(full.leaves.tolist()) if at in spare))
    seen = np.array([random.random() < 0.6 for _ in full.leaves])
    seen[0] = True
    observed = full.restrict(seen).to_public_root()
    numbers: list[dict[Interval, int]] = []
    for at, (level, nodes) in enumerate(zip(public_levels(full), levels, strict=True)):
        numbers.append(dict(zip(nodes, level.types.tolist(), strict=True)))
        shapes = {node: shape(levels, at, node, spare) for node in nodes}
        for node, kind in numbers[at].items():
            assert {other for other in nodes if numbers[at][other] == kind} == {
                other for other in nodes if shapes[other] == shapes[node]
            }
            assert bool(level.spare[kind]) == all(leaf in spare for leaf in range(*node))
            if at:
                parts = inside(levels, at, node)
                assert counted(level.child[kind], level.count[kind]) == Counter(numbers[at - 1][part] for part in parts)
                below, largest = steps(levels, at, node)
                told = Counter(numbers[below][part] for part in largest)
                assert counted(level.step[kind], level.step_count[kind]) == told
                assert bool(level.single[kind]) == (len(parts) == 1)
    # Of a tree of which little is observed, the nodes that are have the same kinds.
    for at, level in enumerate(public_levels(observed)):
        names = dict(zip(full.ids[at].tolist(), numbers[at].values(), strict=True))
        assert level.types.tolist() == [names[name] for name in observed.ids[at].tolist()]


def leaves_below(levels: tuple[Level, ...], at: int, kind: int) -> int:
    """Return how many leaves a node has, by its kind alone."""
    if at == 0:
        return 1
    children = counted(levels[at].child[kind], levels[at].count[kind])
    return sum(many * leaves_below(levels, at - 1, child) for child, many in children.items())


def check_steps(levels: tuple[Level, ...]) -> None:
    """Check that the largest proper parts are the children, or those of the only child."""
    for at, level in enumerate(levels[1:], 1):
        for kind in range(len(level.child)):
            below, node = at, kind
            while below and levels[below].single[node]:
                (node,) = counted(levels[below].child[node], levels[below].count[node])
                below -= 1
            parts = counted(levels[below].child[node], levels[below].count[node])
            assert counted(level.step[kind], level.step_count[kind]) == parts


def by_kinds(tree: Hierarchy) -> list[list[int]]:
    """Return for each level how many public leaves each of its observed nodes has."""
    levels = public_levels(tree.to_public_root())
    check_steps(levels)
    return [[leaves_below(levels, at, kind) for kind in level.types.tolist()] for at, level in enumerate(levels)]


@pytest.mark.parametrize("place", ["861fb4667ffffff", h3.get_pentagons(6)[3]])
def test_cells_have_as_many_leaves_as_the_grid(place: str) -> None:
    cells = np.array([h3.str_to_int(cell) for cell in h3.cell_to_children(place, 9)[::60]], dtype=np.uint64)
    tree = h3_hierarchy(cells).to_public_root()
    told = by_kinds(tree)
    for at in range(tree.top):
        names = [h3.int_to_str(int(cell)) for cell in tree.ids[at]]
        assert told[at] == [h3.cell_to_children_size(name, 9) for name in names]
    assert told[-1] == [h3.get_num_cells(9)]


@pytest.mark.parametrize("place", ["861fb4667ffffff", h3.get_pentagons(6)[3]])
@pytest.mark.parametrize("fine", [False, True])
def test_masked_cells_have_the_leaves_inside(place: str, fine: bool) -> None:
    """Single leaves, whole cells of three coarser resolutions, and one finer cell than a leaf."""
    sevens = sorted(h3.cell_to_children(place, 7))
    mask = {*sorted(h3.cell_to_children(sevens[1], 9))[::5], *sorted(h3.cell_to_children(sevens[2], 8))[:2], sevens[3]}
    mask |= {h3.cell_to_center_child(sorted(h3.cell_to_children(sevens[0], 9))[4], 10)}
    places = {
        leaf
        for cell in mask
        for leaf in (h3.cell_to_children(cell, 9) if h3.get_resolution(cell) < 9 else [h3.cell_to_parent(cell, 9)])
    }
    observed = np.array(sorted(h3.str_to_int(leaf) for leaf in sorted(places)[::4]), dtype=np.uint64)
    area = Area(cells=np.array(sorted(h3.str_to_int(cell) for cell in mask), dtype=np.uint64))
    tree = h3_hierarchy(observed)
    tree = replace(fine_hierarchy(tree)[0] if fine else tree, within=area)
    told = by_kinds(tree)
    step = tree.steps
    for resolution in range(9, -1, -1):
        at = (9 - resolution) * step
        names = [h3.int_to_str(int(cell)) for cell in tree.to_public_root().ids[at]]
        inside_of = Counter(h3.cell_to_parent(leaf, resolution) for leaf in places)
        assert told[at] == [inside_of[name] for name in names]
    assert told[-1] == [len(places)]


def test_the_parts_of_the_world_are_those_of_the_only_base_cell_inside() -> None:
    base = h3.cell_to_parent("861fb4667ffffff", 0)
    leaves = [h3.cell_to_center_child(cell, 3) for cell in sorted(h3.cell_to_children(base, 1))[:2]]
    cells = np.array(sorted(map(h3.str_to_int, leaves)), dtype=np.uint64)
    tree = replace(h3_hierarchy(cells), within=Area(cells=cells))
    assert by_kinds(tree) == [[1, 1], [1, 1], [1, 1], [2], [2]]
