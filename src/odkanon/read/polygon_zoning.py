"""Zones from a file of polygons: their hierarchy, the zone of a point, and what is wrong with their borders."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from odkanon.core.arrays import Bools, Ints
from odkanon.errors import InputError
from odkanon.read.tables.geo_files import ZonePolygons, is_geodataframe, read_polygons
from odkanon.zoning.hierarchy import Hierarchy
from odkanon.zoning.lookup import lookup_hierarchy
from odkanon.zoning.point_location import PolygonFinder
from odkanon.zoning.polygon_neighbours import neighbour_levels

log = logging.getLogger(__name__)

OUTSIDE_ZONES = "with an end outside all zones"
_KM2 = 111.195**2
"""Square kilometres of a square degree at the equator."""
_LEAST_KM2 = 1e-5
"""Smaller overlaps and gaps, up to ten square metres, are slivers that no trip is likely to start in."""


@dataclass(frozen=True, eq=False)
class PolygonZoning:
    """Polygons as zones of trips.

    Attributes
    ----------
    name : str
        Name of the file in messages.
    tree : Hierarchy
        The zones, with their outlines.
    finder : PolygonFinder
        Finds the leaf of a point.
    """

    name: str
    tree: Hierarchy
    finder: PolygonFinder

    def check_inside(self, inside: Bools) -> Bools:
        """Return which trips have both ends inside the zones; raise if none has."""
        if not inside.any():
            raise self.nowhere()
        return inside

    def nowhere(self) -> InputError:
        """Return the error for trips that all have an end outside the zones."""
        import shapely

        west, south, east, north = shapely.total_bounds(self.finder.shapes).tolist()
        return InputError(
            f"no trip has both ends inside the zones of {self.name}, which lie between longitude {west:.2f} and "
            f"{east:.2f}, latitude {south:.2f} and {north:.2f}; check the reference systems of both",
            option="crs",
        )


def read_zoning(source: Any, code: str | None = None, parents: Sequence[str] = ()) -> PolygonZoning:
    """Read polygons as zones.

    Parameters
    ----------
    source : path or GeoDataFrame
        GeoPackage, Shapefile, GeoJSON or GeoParquet in any reference system.
    code : str, optional
        The property with the codes; optional if there is only one, or one called ``id``.
    parents : sequence of str
        Properties with the codes of larger zones, from fine to coarse. Without any, neighbours are grouped by their
        geometry; see `odkanon.zoning.polygon_neighbours.neighbour_levels`.

    Notes
    -----
    A point on a shared border, or where polygons overlap, is in the zone whose code comes first in the order of texts.
    """
    name = "the GeoDataFrame" if is_geodataframe(source) else str(source)
    polygons = read_polygons(source, code, parents=parents, option="id PROPERTY")
    order = np.argsort(np.array(polygons.codes), kind="stable")
    codes, shapes = np.array(polygons.codes)[order], polygons.shapes[order]
    own = _without_overlaps(shapes, _report_borders(name, codes, shapes))
    levels = {column: np.array(above)[order] for column, above in _distinct_levels(polygons, code or "zone").items()}
    if not parents:
        levels = {f"neighbours {at}": each for at, each in enumerate(neighbour_levels(shapes, codes), 1)}
    table = pa.table({code or "zone": codes, **levels})
    tree = lookup_hierarchy(table, name)
    leaf = np.empty(len(codes), dtype=np.int64)
    leaf[np.searchsorted(codes, tree.leaves)] = np.arange(len(codes))
    tree = replace(tree, outlines=_outlines(tree, own[np.searchsorted(codes, tree.leaves)]))
    return PolygonZoning(name, tree, PolygonFinder(shapes, leaf))


def _outlines(tree: Hierarchy, shapes: npt.NDArray[Any]) -> dict[str, dict[str, Any]]:
    """Return the outlines of all zones, given those of the leaves; larger zones are unions of smaller ones."""
    import shapely

    outlines: dict[str, dict[str, Any]] = {}
    for level, ids in enumerate(tree.ids):
        if level:
            first = tree.first_children[level]
            parts = [shapes[start:end] for start, end in pairwise(first.tolist())]
            shapes = np.array([shapely.union_all(part) for part in parts], dtype=object)
        outlines |= dict(zip(map(str, ids), map(json.loads, shapely.to_geojson(shapes)), strict=True))
    return outlines


def _distinct_levels(polygons: ZonePolygons, leaf: str) -> dict[str, list[str]]:
    """Return the codes of larger zones, prefixed with the name of their property where a finer zone has such a code."""
    levels, taken = {}, set(polygons.codes)
    below = [leaf]
    for name, codes in polygons.parents.items():
        shared = sorted(taken & set(codes))
        if shared:
            codes = [f"{name} {each}" for each in codes]
            log.warning(
                "codes of %s, such as %s, are codes of %s, too; the larger zones are published as %r",
                name, shared[0], " or ".join(below), f"{name} {shared[0]}",
            )  # fmt: skip
        levels[name] = codes
        taken |= set(codes)
        below.append(name)
    return levels


def _without_overlaps(shapes: npt.NDArray[Any], pairs: Ints) -> npt.NDArray[Any]:
    """Return polygons without the parts that earlier ones cover, so that the outline of a zone is where its trips are.

    A polygon that lies in earlier ones has no trips, and stays as it is.
    """
    import shapely

    clipped = shapes.copy()
    for later in np.unique(pairs[1]).tolist():
        left = shapely.difference(shapes[later], shapely.union_all(shapes[pairs[0][pairs[1] == later]]))
        polygons = shapely.get_parts(left)
        polygons = polygons[shapely.get_type_id(polygons) == 3]
        if len(polygons):
            clipped[later] = shapely.multipolygons(polygons) if len(polygons) > 1 else polygons[0]
    return clipped


def _report_borders(name: str, codes: npt.NDArray[np.str_], shapes: npt.NDArray[Any]) -> Ints:
    """Warn of polygons that overlap, and of gaps that they enclose; return the pairs that overlap."""
    import shapely

    first, second = shapely.STRtree(shapes).query(shapes, predicate="intersects")
    first, second = first[first < second], second[first < second]
    # Neighbours with a common border do not overlap; of these there are many, so the test is cheap.
    inner = ~shapely.touches(shapes[first], shapes[second])
    first, second = first[inner], second[inner]
    area = _area_km2(shapely.intersection(shapes[first], shapes[second]))
    overlapping = np.stack([first, second])[:, area > _LEAST_KM2]
    many = overlapping.shape[1]
    if many:
        worst = int(np.argmax(area))
        log.warning(
            "%s: %s overlap (most, %.3g km2: %s and %s); a point in both is in the one whose code comes first",
            name, "2 zones" if many == 1 else f"{many:,} pairs of zones", area[worst],
            codes[first[worst]], codes[second[worst]],
        )  # fmt: skip
    parts = shapely.get_parts(shapely.union_all(shapes))
    filled = shapely.polygons(shapely.get_exterior_ring(parts[shapely.get_type_id(parts) == 3]))
    missing = _area_km2(shapely.get_parts(shapely.difference(shapely.union_all(filled), shapely.union_all(parts))))
    missing = missing[missing > _LEAST_KM2]
    if len(missing):
        log.warning(
            "%s: the zones enclose %s (%.3g km2 in all); trips there are outside all zones",
            name, "a gap" if len(missing) == 1 else f"{len(missing):,} gaps", missing.sum(),
        )  # fmt: skip
    return overlapping


def _area_km2(shapes: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return the approximate areas of small shapes in degrees."""
    import shapely

    middle = np.nan_to_num(shapely.bounds(shapes)[:, 1::2].mean(axis=1)) if len(shapes) else np.empty(0)
    areas: npt.NDArray[np.float64] = shapely.area(shapes) * _KM2 * np.cos(np.radians(middle))
    return areas
