"""Outlines of zones that are not H3 cells, from a GeoJSON file; zones above those in the file are put together."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from odkanon.core.parsing import parse_json
from odkanon.errors import InputError
from odkanon.read.coordinates import check_degrees
from odkanon.read.zone_polygons import POLYGON_FILES, polygon_features
from odkanon.zoning.hierarchy import Hierarchy


def with_outlines(tree: Hierarchy, path: Path) -> Hierarchy:
    """Return a hierarchy whose zones have the outlines in a GeoJSON file.

    Parameters
    ----------
    tree : Hierarchy
        A tree over zone codes: all of them, not only those with trips, so that the outline of a larger zone does not
        tell where trips were.
    path : Path
        A FeatureCollection of polygons in degrees, or a GeoPackage, Shapefile or GeoParquet in any reference system.
        Codes are looked for in the ``id`` of the features and in every property; the one that names the most zones
        counts.

    Notes
    -----
    A zone that is not in the file gets the union of the zones below it, if all of them have an outline.

    Examples
    --------
    >>> import json
    >>> from tempfile import TemporaryDirectory
    >>> import pyarrow as pa
    >>> from odkanon import lookup_hierarchy
    >>> tree = lookup_hierarchy(pa.table({"zone": ["a", "b"], "district": ["x", "x"]}))
    >>> squares = [
    ...     {"type": "Polygon", "coordinates": [[[x, 0], [x + 1, 0], [x + 1, 1], [x, 1], [x, 0]]]} for x in (0, 1)
    ... ]
    >>> features = [{"type": "Feature", "id": name, "geometry": g} for name, g in zip("ab", squares, strict=True)]
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "zones.geojson"
    ...     written = path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    ...     sorted(with_outlines(tree, path).outlines)
    ['a', 'b', 'x']
    """
    features = _features(path)
    known = {str(zone) for ids in tree.ids for zone in ids}
    named = _by_code(features, known, path)
    return replace(tree, outlines=_completed(tree, named))


def _features(path: Path) -> list[dict[str, Any]]:
    if path.suffix.lower() in POLYGON_FILES:
        return polygon_features(path)
    try:
        content = parse_json(path.read_text(encoding="utf-8-sig"))
        features = [feature for feature in content["features"] if feature.get("geometry")]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is not a GeoJSON FeatureCollection that can be read ({error})") from None
    polygons = [feature for feature in features if feature["geometry"].get("type") in ("Polygon", "MultiPolygon")]
    if not polygons:
        raise InputError(f"{path} has no polygons; zones need outlines of type Polygon or MultiPolygon")
    try:
        rings = [np.asarray(ring, dtype=np.float64)[:, :2] for each in polygons for ring in _rings(each["geometry"])]
        points = np.concatenate(rings)
    except (KeyError, ValueError, TypeError, IndexError, OverflowError) as error:
        raise InputError(f"{path} has a polygon that cannot be read ({error})") from None
    check_degrees([*points.min(axis=0).tolist(), *points.max(axis=0).tolist()], path)
    return polygons


def _rings(geometry: dict[str, Any]) -> list[Any]:
    parts = geometry["coordinates"] if geometry["type"] == "MultiPolygon" else [geometry["coordinates"]]
    return [ring for part in parts for ring in part]


def _by_code(features: list[dict[str, Any]], known: set[str], path: Path) -> dict[str, dict[str, Any]]:
    properties = {name for feature in features for name in feature.get("properties") or {}}
    candidates = {name: [_text((f.get("properties") or {}).get(name)) for f in features] for name in properties}
    candidates["id"] = [_text(f.get("id", (f.get("properties") or {}).get("id"))) for f in features]
    hits = {name: len(known & set(codes)) for name, codes in candidates.items()}
    best = min(hits, key=lambda name: (-hits[name], name))
    if not hits[best]:
        raise InputError(
            f"no polygon of {path} has the code of a zone; it has {', '.join(sorted(properties)) or 'no properties'}, "
            f"and a zone is called {min(known)!r}"
        )
    named: dict[str, dict[str, Any]] = {}
    for code, feature in zip(candidates[best], features, strict=True):
        if code in known and named.setdefault(code, feature["geometry"]) is not feature["geometry"]:
            raise InputError(f"{path} has several polygons for zone {code!r}; make them one MultiPolygon")
    return named


def _text(value: Any) -> str:
    """Return a code as it would stand in a table: 8320 and 8320.0 are the same zone."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _completed(tree: Hierarchy, named: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Add outlines of larger zones from those of the smaller ones, level by level."""
    outlines = dict(named)
    for level in range(1, tree.top + 1):
        below = tree.ids[level - 1]
        first = np.searchsorted(tree.starts[level - 1], tree.starts[level])
        for zone, children in zip(tree.ids[level], np.split(below, first[1:]), strict=True):
            parts = [outlines.get(str(child)) for child in children]
            if str(zone) not in outlines and all(parts):
                outlines[str(zone)] = _union([part for part in parts if part])
    return outlines


def _union(parts: list[dict[str, Any]]) -> dict[str, Any]:
    if len(parts) == 1:
        return parts[0]
    try:
        import shapely
    except ImportError:
        raise InputError("putting zones together needs shapely: pip install 'odkanon[geo]'") from None
    shapes = shapely.make_valid(shapely.from_geojson([json.dumps(part) for part in parts]))
    joined: dict[str, Any] = json.loads(shapely.to_geojson(shapely.union_all(shapes)))
    return joined
