"""Names of the places of a page: those of the steward's districts, or of the bundled towns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from odkanon.core.arrays import Ints
from odkanon.errors import InputError, nearest
from odkanon.estimate.town_names import FARTHEST_KM, nearest_towns, town_names, towns_of_zones
from odkanon.read.tables.geo_files import polygon_features
from odkanon.release_format.folder import SavedRelease
from odkanon.zoning.cells import KM_PER_DEGREE, Floats
from odkanon.zoning.spherical_geometry import list_polygons

USUAL_NAMES = ("name", "nombre", "nom", "nome", "label", "district", "comuna", "commune", "municipality", "barrio")
_NO_DIRECTION = -1
_DECIMALS = 2
"""Of the degrees of a middle: about a kilometre."""


@dataclass(frozen=True, eq=False)
class Districts:
    """Polygons with names that people know.

    Attributes
    ----------
    ids, names : list of str
        The id and the name of each.
    outlines : list of dict
        GeoJSON geometries in degrees.
    """

    ids: list[str]
    names: list[str]
    outlines: list[dict[str, Any]]


def name_places(
    lat: Floats, lon: Floats, weight: Floats, area_km2: float, districts: Districts | None, home: int | None = None
) -> dict[str, list[Any]]:
    """Return for each place a name, and how far from it in which direction the place lies.

    `home` is the region that most trips are in, as `find_home` finds it; by default that of these places.

    Returns
    -------
    dict of str to list
        ``name`` (None where nothing is near), ``km`` and ``direction`` (0 is east, counter-clockwise in eighths; -1
        where the name suffices).
    """
    if districts is not None:
        return _within(districts, lat, lon)
    found = nearest_towns(lat, lon, weight, area_km2, home)
    if found is None:
        return {"name": [None] * len(lat), "km": [0] * len(lat), "direction": [_NO_DIRECTION] * len(lat)}
    towns, east, north, _ = found
    radius = float(np.sqrt(area_km2 / np.pi))
    return _with_distance(town_names(towns), np.hypot(east, north), _directions(east, north), radius)


def main_town(releases: Sequence[SavedRelease]) -> str | None:
    """Return the town that most trips start or end nearest to; None if nothing is near."""
    found = towns_of_zones(releases)
    if found is None:
        return None
    (towns, *_), weight = found
    names, number = np.unique(town_names(towns), return_inverse=True)
    return str(names[np.bincount(number, weight).argmax()])


def _directions(east: Floats, north: Floats) -> Ints:
    return np.rint(np.arctan2(north, east) / (np.pi / 4)).astype(np.int64) % 8


def _with_distance(titles: Sequence[str], km: Floats, directions: Ints, radius: float) -> dict[str, list[Any]]:
    """Add distance and direction to the names of all places but the nearest to each town."""
    nearest: dict[str, int] = {}
    for at in np.argsort(km, kind="stable").tolist():
        nearest.setdefault(titles[at], at)
    bare = np.array([nearest[title] == at for at, title in enumerate(titles)]) & (km < 1.5 * radius)
    decimals = 0 if radius > 1.2 else 1
    return {
        "name": [title if far < FARTHEST_KM else None for title, far in zip(titles, km, strict=True)],
        "km": np.where(bare, 0, np.round(km, decimals)).tolist(),
        "direction": np.where(bare, _NO_DIRECTION, directions).tolist(),
    }


def _within(districts: Districts, lat: Floats, lon: Floats) -> dict[str, list[Any]]:
    """Name places after the district that their centre lies in."""
    import shapely

    shapes = np.array([shapely.from_geojson(json.dumps(outline)) for outline in districts.outlines])
    shapely.prepare(shapes)
    point, district = shapely.STRtree(shapes).query(shapely.points(lon, lat), predicate="intersects")
    found = np.full(len(lat), -1)
    found[point[::-1]] = district[::-1]
    centre = shapely.centroid(shapes)
    known = found >= 0
    east = np.where(known, (lon - shapely.get_x(centre)[found]) * np.cos(np.radians(lat)), 0) * KM_PER_DEGREE
    north = np.where(known, lat - shapely.get_y(centre)[found], 0) * KM_PER_DEGREE
    several = np.bincount(found[known], minlength=len(shapes))[found] > 1
    return {
        "name": [districts.names[each] if each >= 0 else None for each in found],
        "km": np.zeros(len(lat), dtype=np.int64).tolist(),
        "direction": np.where(known & several, _directions(east, north), _NO_DIRECTION).tolist(),
    }


def read_districts(path: Path, column: str | None = None) -> Districts:
    """Read polygons and their names.

    Parameters
    ----------
    path : Path
        A GeoPackage, Shapefile, GeoParquet or GeoJSON file.
    column : str, optional
        The column with the names; by default the first one that is called like one, or the only one of text.
    """
    features = polygon_features(path)
    columns = list(features[0]["properties"])
    if column is not None and column not in columns:
        raise InputError(f"{path} has no column {column!r}{nearest(column, columns)}; it has {', '.join(columns)}")
    usual = next((each for each in columns if each.lower() in USUAL_NAMES), None)
    texts = [each for each in columns if all(isinstance(one["properties"][each], str) for one in features)]
    chosen = column or usual or (texts[0] if len(texts) == 1 else None)
    if chosen is None:
        known = ", ".join(columns) or "none"
        raise InputError(f"{path} has several columns ({known}); name the one with the names with --name-column")
    parts: dict[str, list[dict[str, Any]]] = {}
    for feature in features:
        parts.setdefault(str(feature["properties"][chosen]).strip(), []).append(feature["geometry"])
    outlines = [_joined(own) for own in parts.values()]
    return Districts([f"d{number}" for number in range(len(parts))], list(parts), outlines)


def _joined(outlines: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the parts of a district as one geometry."""
    if len(outlines) == 1:
        return outlines[0]
    return {"type": "MultiPolygon", "coordinates": [part for each in outlines for part in list_polygons(each)]}
