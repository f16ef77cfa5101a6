"""Trees over cells and over lookup tables."""

from __future__ import annotations

import h3
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odkanon import Hierarchy, InputError
from odkanon.zoning.hierarchy import cut_at, h3_hierarchy, level_cut
from odkanon.zoning.lookup import lookup_hierarchy
from worlds.records import cells


def tree_of(names: list[str]) -> Hierarchy:
    return h3_hierarchy(np.array([h3.str_to_int(name) for name in names], dtype=np.uint64))


@given(st.lists(st.sampled_from(cells("Paris", 10) + cells("Sydney", 10)), min_size=1, unique=True))
def test_every_leaf_finds_its_ancestors(names: list[str]) -> None:
    tree = tree_of(names)
    assert tree.labels(0).tolist() == sorted(names)
    assert len(tree.ids[tree.top]) == 1
    assert tree.top == 0 or len(tree.ids[tree.top - 1]) > 1
    for level in range(min(tree.top, 10) + 1):
        ancestors = tree.labels(level)[tree.codes[level]].tolist()
        assert ancestors == [h3.cell_to_parent(name, 10 - level) for name in sorted(names)]
        assert tree.sizes[level].sum() == len(names)


def test_a_virtual_root_joins_continents() -> None:
    tree = tree_of([h3.latlng_to_cell(48.85, 2.35, 3), h3.latlng_to_cell(-33.4, -70.6, 3)])
    assert tree.labels(tree.top).tolist() == ["world"]
    assert tree.level_resolution(tree.top) is None


def test_one_leaf_is_its_own_root() -> None:
    tree = tree_of([h3.latlng_to_cell(48.85, 2.35, 10)])
    assert tree.top == 0


@given(st.lists(st.sampled_from(cells("Paris", 10)), min_size=2, unique=True), st.data())
def test_restricting_is_the_same_as_building_anew(names: list[str], data: st.DataObject) -> None:
    some = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    restricted = tree_of(names).restrict(np.array([name in some for name in sorted(names)]))
    anew = tree_of(some)
    assert [ids.tolist() for ids in restricted.ids] == [ids.tolist() for ids in anew.ids]
    assert [starts.tolist() for starts in restricted.starts] == [starts.tolist() for starts in anew.starts]


def test_cuts_partition_the_leaves() -> None:
    tree = tree_of(cells("Paris", 10))
    for level in range(tree.top + 2):
        cut = level_cut(tree, level)
        assert np.bincount(cut.zone_of_leaf).tolist() == tree.sizes[min(level, tree.top)].tolist()
    mixed = np.zeros(len(tree.leaves), dtype=np.int8)
    mixed[tree.codes[2] == 0] = 2
    cut = cut_at(tree, mixed)
    assert len(cut) == len(tree.leaves) - tree.sizes[2][0] + 1
    assert cut.level[0] == 2
    assert cut.node[0] == 0


def test_lookup_order_does_not_matter() -> None:
    rows = [("a", "X", "1"), ("b", "Y", "1"), ("c", "X", "1"), ("d", "Z", "2")]
    trees = [
        lookup_hierarchy(pa.table({"leaf": leaf, "town": town, "region": region}))
        for order in (rows, rows[::-1])
        for leaf, town, region in [zip(*order, strict=True)]
    ]
    assert [ids.tolist() for ids in trees[0].ids] == [ids.tolist() for ids in trees[1].ids]
    assert trees[0].ids[1].tolist() == ["X", "Y", "Z"]
    assert trees[0].ids[3].tolist() == ["world"]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"leaf": ["a", "a"], "town": ["X", "X"]}, r"'a' is in rows 1, 2"),
        ({"leaf": ["a", "a"], "town": ["X", "Y"]}, r"leaf 'a' is in more than one town \('X', 'Y'\), rows 1, 2"),
        (
            {"leaf": ["a", "b", "c"], "town": ["X", "Y", "X"], "region": ["1", "1", "2"]},
            r"town 'X' is in more than one region \('1', '2'\), rows 1, 3",
        ),
        ({"leaf": ["a", None], "town": ["X", "X"]}, "empty in row 2"),
        ({"leaf": ["a", "b"], "town": ["X", " "]}, "empty in row 2"),
        ({"leaf": ["a", "b"], "town": ["a", "b"], "region": ["X", "X"]}, None),
        ({"leaf": ["a", "b"], "town": ["b", "b"]}, "names both a leaf and a larger town"),
        ({"leaf": ["a", "b"], "town": ["X", "X"], "region": ["a", "a"]}, "names both a leaf and a larger region"),
        ({"leaf": ["a", "b", "c"], "town": ["X", "X", "b"]}, "names both a leaf and an unrelated town"),
        ({"leaf": []}, "empty"),
    ],
)
def test_tables_that_are_no_tree(table: dict[str, list[str | None]], message: str | None) -> None:
    columns = {name: pa.array(values, pa.string()) for name, values in table.items()}
    if message is None:
        lookup_hierarchy(pa.table(columns))
        return
    with pytest.raises(InputError, match=message):
        lookup_hierarchy(pa.table(columns))
