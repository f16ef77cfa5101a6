import h3
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from odkanon.publish.report.page_model import coarsest_level, pack_zone_tree
from worlds.tries import tries

PARIS = h3.latlng_to_cell(48.8566, 2.3522, 4)


@st.composite
def zones(draw: st.DrawFn) -> list[str]:
    """Some cells of several resolutions, one in another or not."""
    found = set()
    for _ in range(draw(st.integers(1, 25))):
        resolution = draw(st.integers(4, 9))
        cell = PARIS
        for level in range(5, resolution + 1):
            cell = sorted(h3.cell_to_children(cell, level))[draw(st.integers(0, 6))]
        found.add(cell)
    return sorted(found)


@tries(60)
@given(zones())
def test_every_cell_climbs_to_the_roof_by_its_parents(ids: list[str]) -> None:
    roof = coarsest_level([h3.get_resolution(cell) for cell in ids])
    packed = pack_zone_tree(ids, roof)
    assert packed is not None
    nest, outlines = packed
    nodes = [*ids, *nest["id"]]
    assert len(nodes) == len(set(nodes)) == len(nest["parent"])
    assert len(outlines) == len(nest["id"]) == len(nest["level"])
    for node, parent in zip(nodes, nest["parent"], strict=True):
        resolution = h3.get_resolution(node)
        if resolution == roof:
            assert parent == -1
        else:
            assert nodes[parent] == h3.cell_to_parent(node, resolution - 1)


def test_zones_that_are_no_cells_have_no_nest() -> None:
    assert pack_zone_tree(["commune 1", "commune 2"], 5) is None
    assert pack_zone_tree([], 5) is None


def test_the_world_holds_the_coarsest_cells() -> None:
    packed = pack_zone_tree([PARIS, "world"], 4)
    assert packed is not None
    assert packed[0]["parent"] == [1, -1]


def test_one_level_can_still_be_rolled_up() -> None:
    assert coarsest_level([8, 8, None]) == 6
    assert coarsest_level(np.array([], dtype=int).tolist()) == 0
