"""Polygons as the building blocks of free zones: their common borders, and the zones that they form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, log2
from typing import Any

import numpy as np

from odkanon.core.arrays import Codes, Ints
from odkanon.errors import InputError
from odkanon.methods.freezones.blocks import Blocks
from odkanon.methods.freezones.class_matrix import ZonePlan
from odkanon.zoning.hierarchy import Hierarchy, make_levels
from odkanon.zoning.polygon_neighbours import Edges, Shapes, borders, both_ways, bridged
from odkanon.zoning.zones import Zones, find_nodes

_AROUND = 40
"""Polygons of a zone to visit when one of them might leave; the way around it is rarely longer."""


@dataclass(frozen=True, eq=False)
class Polygons:
    """All leaves of a lookup table, observed or not, so that the composition of a zone discloses nothing."""

    tree: Hierarchy
    """The whole table."""
    shapes: Shapes
    """The polygon of each leaf."""
    edges: Edges
    """Neighbours, in both directions, sorted by the first, of shape (2, n)."""

    def blocks(self, tree: Hierarchy) -> Blocks:
        """Return every polygon as a block, with the leaves of a tree."""
        block_of_leaf = find_nodes(self.tree, 0, tree.leaves).astype(np.int32)
        numbers = np.arange(len(self.shapes), dtype=np.uint64)
        leaves = np.bincount(block_of_leaf, minlength=len(numbers))
        return Blocks(numbers, leaves, block_of_leaf, self.edges, _AROUND)

    def nearby(self, tree: Hierarchy) -> tuple[Hierarchy, Ints]:
        """Return a spatial tree over the leaves of a tree, and the previous positions of its leaves.

        A lookup table may have no level between its leaves and its root. The spatial tree halves places alternately
        from west to east and from south to north, two cuts per level.
        """
        import shapely

        middle = shapely.get_coordinates(shapely.centroid(self.shapes[find_nodes(self.tree, 0, tree.leaves)]))
        count = len(middle)
        path, leaf = np.zeros(count, dtype=np.int64), np.arange(count)
        levels = max(1, ceil(log2(max(count, 2)) / 2))
        for turn in range(2 * levels):
            order = np.lexsort((leaf, middle[:, 1 - turn % 2], middle[:, turn % 2], path))
            first = np.searchsorted(path[order], path[order])
            last = np.searchsorted(path[order], path[order], side="right")
            path[order] = 2 * path[order] + (2 * (leaf - first) >= last - first)
        order = np.argsort(path, kind="stable")
        return make_levels([path[order] >> (2 * level) for level in range(levels + 1)], None), order

    def zones(self, plan: ZonePlan, axis: int) -> tuple[Zones, Codes]:
        """Return the zones of one axis for publication, and for each leaf the number of its zone.

        A zone is named after the first of its codes and the number of its other codes.
        """
        blocks = plan.blocks[axis]
        zone = np.unique(plan.zones[axis], return_inverse=True)[1]
        codes = self.tree.leaves
        order = np.lexsort((codes, zone))
        parts = np.split(order, np.flatnonzero(np.diff(zone[order])) + 1)
        places = tuple(tuple(codes[part].tolist()) for part in parts)
        ids = [part[0] if len(part) == 1 else f"{part[0]}+{len(part) - 1}" for part in places]
        outlines = {name: _joined(self.shapes[part]) for name, part in zip(ids, parts, strict=True)}
        leaves = np.bincount(zone, blocks.leaves).astype(np.int64)
        zones = Zones(np.array(ids, dtype=np.str_), leaves, outlines=outlines, places=places)
        return zones, zone[blocks.block_of_leaf].astype(np.int32)


def polygons_of(tree: Hierarchy) -> Polygons:
    """Return the polygons of the whole lookup table of a tree; raise InputError if a leaf has none."""
    full, outlines = tree.public or tree, tree.outlines or {}
    missing = [str(leaf) for leaf in full.leaves if str(leaf) not in outlines]
    if missing:
        raise InputError(
            f"free zones join neighbours, and {len(missing):,} of {len(full.leaves):,} zones have no outline (such as "
            f"{missing[0]!r}); give polygons for all of them, or use treecut"
        )
    shapes = _shapes([outlines[str(leaf)] for leaf in full.leaves])
    return Polygons(full, shapes, both_ways(bridged(shapes, borders(shapes))))


def _shapes(outlines: list[Mapping[str, Any]]) -> Shapes:
    import shapely

    shapes = shapely.from_geojson([json.dumps(outline) for outline in outlines])
    return np.asarray(np.where(shapely.is_valid(shapes), shapes, shapely.make_valid(shapes)), dtype=object)


def _joined(shapes: Shapes) -> dict[str, Any]:
    import shapely

    joined: dict[str, Any] = json.loads(shapely.to_geojson(shapely.union_all(shapes)))
    return joined
