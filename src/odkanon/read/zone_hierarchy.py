"""Hierarchies of zones that are not H3 cells, with the polygons of the zones and the spelling of their codes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from odkanon.core.parsing import parse_json
from odkanon.core.sql import quote_name
from odkanon.errors import InputError, InvalidValueError, UnreadableFileError
from odkanon.read.coordinates import check_degrees
from odkanon.read.tables.geo_files import POLYGON_FILES, code_text, is_geodataframe, polygon_features
from odkanon.read.tables.open_table import open_table
from odkanon.zoning.hierarchy import Hierarchy
from odkanon.zoning.lookup import lookup_hierarchy

Codes = npt.NDArray[np.str_]


def read_hierarchy(source: Any, outlines: Any = None) -> Hierarchy:
    r"""Read the hierarchy in a lookup table of nested zones.

    Parameters
    ----------
    source : path or table
        CSV, Parquet or the like, or a table of pandas, geopandas, polars, Arrow or DuckDB. The first column names the
        leaves, each further column the zone one level up. The geometry of a GeoDataFrame outlines its leaves.
    outlines : path or GeoDataFrame, optional
        Polygons of the zones; see Notes.

    Notes
    -----
    Polygons may come from GeoJSON in degrees, or from a GeoPackage, Shapefile, GeoParquet or GeoDataFrame in any
    reference system. Codes are looked up in the ``id`` of the features and in every property; the property that matches
    the most zones is used. A zone without a polygon gets the union of the zones below it, if all of them have one.
    List every zone, not only those with trips: a larger outline would otherwise disclose where trips were.

    Examples
    --------
    >>> import pyarrow as pa
    >>> read_hierarchy(pa.table({"commune": ["a", "b", "c"], "department": ["x", "x", "y"]}))
    Hierarchy(lookup; nodes by level: 3 < 2 < 1)
    """
    frame = source if is_geodataframe(source) else None
    table = open_table(source if frame is None else frame.drop(columns=[frame.geometry.name]))
    rows = table.fetch({name: f"CAST({quote_name(name)} AS VARCHAR)" for name in table.columns})
    lines = table.unreadable_lines()
    if lines:
        raise InputError(f"{table.name} has {lines:,} lines with a wrong number of columns; each leaf needs all levels")
    tree, outlines = lookup_hierarchy(rows), frame if outlines is None else outlines
    return tree if outlines is None else with_outlines(tree, outlines)


def with_outlines(tree: Hierarchy, source: Any) -> Hierarchy:
    """Return a hierarchy with the polygons of its zones; see `read_hierarchy`."""
    features = _features(source)
    known = {str(zone) for ids in tree.ids for zone in ids}
    name = "the GeoDataFrame" if is_geodataframe(source) else str(source)
    return replace(tree, outlines=_completed(tree, _match_codes(features, known, name)))


def _features(source: Any) -> list[dict[str, Any]]:
    if is_geodataframe(source):
        return polygon_features(source)
    if not isinstance(source, str | Path):
        raise InvalidValueError.expected("outlines", "a path or a GeoDataFrame", source)
    path = Path(source)
    if path.suffix.lower() in POLYGON_FILES:
        return polygon_features(path)
    try:
        content = parse_json(path.read_text(encoding="utf-8-sig"))
        features = [feature for feature in content["features"] if feature.get("geometry")]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnreadableFileError.because(path, error, as_="a GeoJSON FeatureCollection") from None
    polygons = [feature for feature in features if feature["geometry"].get("type") in ("Polygon", "MultiPolygon")]
    if not polygons:
        raise InputError(f"{path} has no polygons; zones need outlines of type Polygon or MultiPolygon")
    try:
        rings = [np.asarray(ring, dtype=np.float64)[:, :2] for each in polygons for ring in _rings(each["geometry"])]
        points = np.concatenate(rings)
    except (KeyError, ValueError, TypeError, IndexError, OverflowError) as error:
        raise InputError(f"{path} has an invalid polygon ({error})") from None
    check_degrees([*points.min(axis=0).tolist(), *points.max(axis=0).tolist()], path)
    return polygons


def _rings(geometry: dict[str, Any]) -> list[Any]:
    parts = geometry["coordinates"] if geometry["type"] == "MultiPolygon" else [geometry["coordinates"]]
    return [ring for part in parts for ring in part]


def _match_codes(features: list[dict[str, Any]], known: set[str], path: str) -> dict[str, dict[str, Any]]:
    """Return geometries by zone code, from the property that matches the most zones."""
    properties = {name for feature in features for name in feature.get("properties") or {}}
    candidates = {name: [code_text((f.get("properties") or {}).get(name)) for f in features] for name in properties}
    candidates["id"] = [code_text(f.get("id", (f.get("properties") or {}).get("id"))) for f in features]
    hits = {name: len(known & set(codes)) for name, codes in candidates.items()}
    best = min(hits, key=lambda name: (-hits[name], name))
    if not hits[best]:
        raise InputError(
            f"no polygon of {path} has the code of a zone; its properties are "
            f"{', '.join(sorted(properties)) or 'none'}, and a zone is called {min(known)!r}"
        )
    named: dict[str, dict[str, Any]] = {}
    for code, feature in zip(candidates[best], features, strict=True):
        if code in known and named.setdefault(code, feature["geometry"]) is not feature["geometry"]:
            raise InputError(f"{path} has several polygons for zone {code!r}; make them one MultiPolygon")
    return named


def _completed(tree: Hierarchy, named: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Add the outlines of larger zones as unions of smaller ones, level by level."""
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
    import shapely

    shapes = shapely.make_valid(shapely.from_geojson([json.dumps(part) for part in parts]))
    joined: dict[str, Any] = json.loads(shapely.to_geojson(shapely.union_all(shapes)))
    return joined


def strip_zeros(codes: Codes) -> Codes:
    """Return codes without what programs add to or drop from numbers: ``052``, ``52`` and ``52.0`` become the same.

    Examples
    --------
    >>> strip_zeros(np.array(["0052", "52.0", "A07", "0"])).tolist()
    ['52', '52', 'A07', '0']
    """
    whole = np.char.partition(codes, ".")
    number = np.char.isdigit(whole[:, 0]) & np.isin(whole[:, 2], ["", "0", "00"])
    digits = np.char.lstrip(whole[:, 0], "0")
    return np.where(number, np.where(digits == "", "0", digits), codes)


def unknown_codes(codes: Codes, leaves: Codes) -> str:
    """Return a message about codes of the data that the lookup table lacks, and the likely cause; empty for none.

    Rows are never matched by guess: ``1`` and ``01`` may be different zones.
    """
    unknown = np.setdiff1d(codes, leaves)
    if len(unknown) == 0:
        return ""
    many = "1 code of the data is" if len(unknown) == 1 else f"{len(unknown):,} codes of the data are"
    known = dict(zip(strip_zeros(leaves).tolist(), leaves.tolist(), strict=True))
    for code, alike in zip(unknown.tolist(), strip_zeros(unknown).tolist(), strict=True):
        if alike in known:
            return (
                f"{many} not in the lookup table, such as {code!r}, which is {known[alike]!r} there; write codes the "
                "same way in both: as text, with leading zeros"
            )
    return (
        f"{many} not in the lookup table, such as {str(unknown[0])!r}; a leaf there is called {min(leaves.tolist())!r}"
    )
