"""Questions to a release: how many trips lead from here to there, or between the areas of a map."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from odkanon.errors import InputError, UnknownNameError
from odkanon.estimate.flow_estimates import LEAST, FlowEstimates, ReleaseReader, read_flows
from odkanon.estimate.row_combinations import Where
from odkanon.estimate.target_areas import EVERYWHERE, Areas, CellAreas, Everywhere, JoinedAreas, PolygonAreas
from odkanon.estimate.town_names import town_area
from odkanon.release_format.conversions import to_shapes
from odkanon.zoning.cells import MAX_RESOLUTION, cell_to_resolution, is_valid_cell, str_to_cell
from odkanon.zoning.hierarchy import Hierarchy

if TYPE_CHECKING:
    from odkanon.release_format.folder import SavedRelease

_POINT = re.compile(r"(-?\d+(?:\.\d+)?)\s*,\s*(-?\d+(?:\.\d+)?)")
_FEW_ZONES = 20
RESOLUTION = 7
"""H3 resolution of flows where no areas are given."""
MOST_CELLS = 4_000
"""Cells above which a coarser resolution is chosen, if none is given."""


def estimate_between(
    saved: SavedRelease,
    *,
    onto: Any = None,
    code: str | None = None,
    origin: Any = None,
    destination: Any = None,
    where: Where = None,
    least: float = LEAST,
) -> FlowEstimates:
    """Return the estimated flows of a release between areas; see `SavedRelease.estimate`."""
    reader = read_flows(saved, where)
    if origin is None and destination is None:
        areas = read_areas(onto, code, reader)
        return reader.between(areas, areas, where=where, least=least)
    named = None if onto is None else read_areas(onto, code, reader)
    ends = [find_area(place, named, reader, axis) for place, axis in ((origin, "origin"), (destination, "destination"))]
    return reader.between(ends[0], ends[1], where=where, least=0.0)


def check_places(onto: Any, code: str | None) -> int | Areas | None:
    """Return the places that a user gives: a resolution, polygons, or None for the usual cells.

    Parameters
    ----------
    onto : int, str, path, GeoDataFrame, Areas or None
        An H3 resolution, also as text; a file of polygons, or polygons.
    code : str, optional
        The column with the codes of polygons.
    """
    if isinstance(onto, str) and onto.isdecimal():
        onto = int(onto)
    if onto is None or isinstance(onto, int):
        if code is not None:
            raise InputError("a column of codes describes polygons; give their file, too")
        if onto is not None and not 0 <= onto <= MAX_RESOLUTION:
            raise InputError(f"{onto} is no H3 resolution; give one from 0 to {MAX_RESOLUTION}")
        return onto
    if isinstance(onto, str | Path):
        from odkanon.read.tables.geo_files import read_polygons

        polygons = read_polygons(Path(onto), code)
        return PolygonAreas(polygons.codes, polygons.shapes)
    if hasattr(onto, "geometry"):
        return _areas_of_frame(onto, code)
    if hasattr(onto, "relation"):
        areas: Areas = onto
        return areas
    raise InputError(f"{type(onto).__name__} is no areas; give an H3 resolution, a file of polygons, or a GeoDataFrame")


def zones_of_tree(tree: Hierarchy) -> PolygonAreas | None:
    """Return the leaves of a user's own zones, observed or not; None where they have no outlines, or are too many."""
    outlines, leaves = tree.outlines or {}, sorted(map(str, (tree.public or tree).leaves))
    if not leaves or len(leaves) > MOST_CELLS or not outlines.keys() >= set(leaves):
        return None
    return PolygonAreas(leaves, to_shapes([outlines[leaf] for leaf in leaves]))


def read_areas(onto: Any, code: str | None, reader: ReleaseReader) -> Areas:
    """Return areas from what a user gives: a resolution, a file of polygons, or a GeoDataFrame.

    Parameters
    ----------
    onto : int, path, GeoDataFrame, Areas or None
        None stands for the cells of `RESOLUTION`, or of a coarser one where these would be too many.
    code : str, optional
        The column with the codes of polygons.
    reader : ReleaseReader
        The release, which determines the cells that can have trips.
    """
    points, places = reader.tree.points, check_places(onto, code)
    if places is None:
        for resolution in range(RESOLUTION, 0, -1):
            cells = CellAreas.around(points.lat, points.lon, resolution)
            if len(cells.cells) <= MOST_CELLS:
                return cells
        return CellAreas.around(points.lat, points.lon, 0)
    return CellAreas.around(points.lat, points.lon, places) if isinstance(places, int) else places


def _areas_of_frame(frame: Any, code: str | None) -> PolygonAreas:
    from odkanon.read.tables.geo_files import read_polygons

    polygons = read_polygons(frame, code, any_code=code is None)
    codes = polygons.codes if code is not None else [str(name) for name in frame.index]
    repeated = next((name for name, count in Counter(codes).items() if count > 1), None)
    if repeated is not None:
        raise InputError(f"{repeated!r} is the index of several polygons; name the column with their codes")
    return PolygonAreas(codes, polygons.shapes)


def find_area(place: Any, named: Areas | None, reader: ReleaseReader, axis: str) -> Areas:
    """Return a place as an area.

    Parameters
    ----------
    place : str, geometry or None
        None or ``anywhere``; the code of one of the given areas; ``latitude,longitude``, for the cell of `RESOLUTION`
        there; the id of a zone of the release; an H3 cell; a town, for the cells of `RESOLUTION` in its reach that are
        nearest to it; or a shapely polygon in degrees.
    named : Areas, optional
        The given areas.
    reader : ReleaseReader
        The release.
    axis : str
        Whether trips start or end there.
    """
    if place is None or place == EVERYWHERE:
        return Everywhere()
    if not isinstance(place, str):
        return PolygonAreas([axis], np.array([place], dtype=object))
    if named is not None and place in named.ids:
        return JoinedAreas(named, np.array([named.ids.index(place)]), place)
    point = _POINT.fullmatch(place.strip())
    if point is not None:
        lat, lon = (np.array([float(side)]) for side in point.groups())
        if abs(lat[0]) > 90 or abs(lon[0]) > 360:
            raise InputError(f"{place} is no latitude and longitude in degrees")
        return CellAreas.around(lat, lon, RESOLUTION)
    cell = str_to_cell(pa.array([place]))
    if bool(is_valid_cell(cell)[0]):
        return CellAreas(cell, int(cell_to_resolution(cell)[0]))
    zones = {zone["properties"]["id"]: zone.get("geometry") for zone in reader.saved.features}
    if zones.get(place) is not None:
        return PolygonAreas([place], to_shapes([zones[place]]))
    if named is not None:
        raise UnknownNameError.among("place", place, named.ids)
    points = reader.tree.points
    town = town_area(place, reader.saved, CellAreas.around(points.lat, points.lon, RESOLUTION))
    if town is not None:
        return town
    located = [zone for zone in zones if zones[zone] is not None]
    if len(located) <= _FEW_ZONES:
        raise UnknownNameError.among("place", place, located)
    raise InputError(
        f"{place!r} is no zone of {reader.saved.name}, and no town near its trips; give one, an H3 cell, "
        "latitude,longitude, or polygons with names"
    )


def sentence(flows: FlowEstimates) -> str:
    """Return the answer to a question about one flow as a sentence.

    Examples
    --------
    >>> import pyarrow as pa
    >>> row = {"origin": "A", "destination": "B", "estimate": 1850.2, "low": 974, "high": 3208,
    ...        "interval_low": 1640, "interval_high": 2070, "sure": 0.5}
    >>> sentence(FlowEstimates(pa.Table.from_pylist([row]), 1850.2))
    'about 1,850 trips (1,640 to 2,070); certainly between 974 and 3,208'
    """
    rows: Sequence[dict[str, Any]] = flows.table.to_pylist()
    if not rows:
        return "no published row meets both places"
    row = rows[0]
    high = row["high"]
    certainly = (
        f"certainly at least {row['low']:,}" if high is None else f"certainly between {row['low']:,} and {high:,}"
    )
    if row["low"] == high:
        return f"exactly {high:,} trips"
    return f"about {_rounded(row['estimate'])} trips ({row['interval_low']:,} to {row['interval_high']:,}); {certainly}"


def _rounded(trips: float) -> str:
    """Return an estimate to three digits, as more would claim more than is known."""
    return f"{float(f'{trips:.3g}'):,.0f}" if trips >= 10 else f"{trips:.1f}".removesuffix(".0")
