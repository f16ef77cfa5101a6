"""Neighbouring polygons, and a public tree of neighbours for zones without parents."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

import numpy as np
import numpy.typing as npt

from odkanon.core.arrays import Ints

Edges = Ints
Shapes = npt.NDArray[Any]

_TOLERANCE = 2e-5
"""Degrees, some two metres, by which polygons are widened to find their neighbours despite gaps between them."""
_CORNER = 10
"""Common borders up to this many tolerances long are corners."""
_SMALLEST_GROUP = 3
"""Fewest members of a group of neighbours; a cascade lists little above groups of two."""


def islands(count: int, edges: Edges) -> Ints:
    """Return for each node the smallest node of its connected component."""
    island = np.arange(count)
    while True:
        lower = island.copy()
        np.minimum.at(lower, edges[0], island[edges[1]])
        np.minimum.at(lower, edges[1], island[edges[0]])
        lower = lower[lower]
        if np.array_equal(lower, island):
            return island
        island = lower


def distinct_edges(edges: Edges) -> Edges:
    """Return each pair of different nodes once."""
    edges = np.sort(edges[:, edges[0] != edges[1]], axis=0)
    return np.unique(edges, axis=1)


def both_ways(edges: Edges) -> Edges:
    """Return each edge in both directions, sorted."""
    edges = np.concatenate([edges, edges[::-1]], axis=1)
    return edges[:, np.lexsort((edges[1], edges[0]))]


def borders(shapes: Shapes) -> Edges:
    """Return the pairs of polygons whose borders share more than single points, each once."""
    import shapely

    first, second = shapely.STRtree(shapes).query(shapes, predicate="intersects")
    once = first < second
    first, second = first[once], second[once]
    shared = shapely.length(shapely.intersection(shapes[first], shapes[second])) > 0
    return distinct_edges(np.stack([first[shared], second[shared]]).astype(np.int64))


def bridged(shapes: Shapes, edges: Edges) -> Edges:
    """Add links between parts that share no border, such as islands: each to the nearest polygon of another part."""
    island = islands(len(shapes), edges)
    while island.any():
        roots, sizes = np.unique(island, return_counts=True)
        links = [_nearest(shapes, island == root) for root in np.delete(roots, int(np.argmax(sizes))).tolist()]
        edges = distinct_edges(np.concatenate([edges, np.array(links, dtype=np.int64).T], axis=1))
        island = islands(len(shapes), edges)
    return edges


def _nearest(shapes: Shapes, part: npt.NDArray[np.bool_]) -> tuple[int, int]:
    """Return a polygon of a part and the nearest one outside of it; the first of several."""
    import shapely

    inside, outside = np.flatnonzero(part), np.flatnonzero(~part)
    pairs, distance = shapely.STRtree(shapes[outside]).query_nearest(shapes[inside], return_distance=True)
    found: Ints = np.stack([inside[pairs[0]], outside[pairs[1]]])
    at = int(np.lexsort((found[1], found[0], distance))[0])
    return int(found[0, at]), int(found[1, at])


def neighbour_levels(shapes: Shapes, codes: npt.NDArray[np.str_]) -> list[npt.NDArray[np.str_]]:
    """Return a tree that groups neighbouring polygons, then neighbouring groups, until one group is left.

    It depends on the geometry only, so it is as public as the polygons. Polygons should be sorted by code. For each
    level below the last, from the finest on, the result has the name of the group of each polygon: the first of its
    codes and the number of the others.
    """
    links = _shared_borders(shapes)
    group = np.arange(len(shapes))
    levels: list[npt.NDArray[np.str_]] = []
    while True:
        merged = _merge_neighbours(links)
        group = merged[group]
        first, size = np.unique(group, return_index=True, return_counts=True)[1:]
        if len(first) == 1:
            return levels
        names = [f"{codes[at]}+{n - 1}" if n > 1 else str(codes[at]) for at, n in zip(first, size, strict=True)]
        levels.append(np.array(names)[group])
        links = _contracted(links, merged)


Links = list[dict[int, float]]
"""For each group, its neighbours and the lengths of their common borders."""


def _shared_borders(shapes: Shapes) -> Links:
    """Return the neighbours of each polygon, including those within some metres."""
    import shapely

    _, south, _, north = shapely.total_bounds(shapes).tolist()
    square = np.array([np.cos(np.radians((south + north) / 2)), 1.0])
    plain = shapely.transform(shapes, lambda xy: xy * square)
    wide = shapely.buffer(plain, _TOLERANCE, quad_segs=1)
    first, second = shapely.STRtree(wide).query(wide, predicate="intersects")
    once = first < second
    first, second = first[once], second[once]
    length = shapely.area(shapely.intersection(wide[first], wide[second])) / (2 * _TOLERANCE)
    good = length > _CORNER * _TOLERANCE
    edges = np.stack([first[good], second[good]]).astype(np.int64)
    links: Links = [{} for _ in shapes]
    for a, b, n in zip(*edges.tolist(), np.round(length[good], 7).tolist(), strict=True):
        links[a][b] = links[b][a] = n
    for a, b in bridged(plain, distinct_edges(edges)).T.tolist():
        links[a].setdefault(b, 0.0)
        links[b].setdefault(a, 0.0)
    return links


def _merge_neighbours(links: Links) -> Ints:
    """Return the number of the group of each member; groups are ordered by their first members.

    The smallest group joins the neighbour with the longest common border for its size, until none is too small.
    """
    members = [[at] for at in range(len(links))]
    borders = [dict(each) for each in links]
    queue = [(1, at) for at in range(len(links))]
    while queue:
        size, at = heappop(queue)
        if size != len(members[at]) or size >= _SMALLEST_GROUP or not borders[at]:
            continue
        near = borders[at]
        into = min(near, key=lambda other: (-near[other] / (size + len(members[other])), other))
        keep, gone = min(at, into), max(at, into)
        members[keep] += members[gone]
        members[gone] = []
        for other, length in borders[gone].items():
            del borders[other][gone]
            if other != keep:
                borders[keep][other] = borders[other][keep] = borders[keep].get(other, 0.0) + length
        borders[gone] = {}
        heappush(queue, (len(members[keep]), keep))
    group = np.empty(len(links), dtype=np.int64)
    for number, own in enumerate(each for each in members if each):
        group[own] = number
    return group


def _contracted(links: Links, group: Ints) -> Links:
    """Return the neighbours of groups, given those of their members."""
    merged: Links = [{} for _ in range(int(group.max()) + 1)]
    for at, near in enumerate(links):
        mine = merged[group[at]]
        for other, length in near.items():
            if group[other] != group[at]:
                mine[int(group[other])] = mine.get(int(group[other]), 0.0) + length
    return merged
