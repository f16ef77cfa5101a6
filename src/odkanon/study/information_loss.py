"""What a release lost, for the eyes of whoever made it: flow by flow, beside the trips that it was made of."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from odkanon.core.arrays import Ints
from odkanon.errors import InputError
from odkanon.model.od import ODMatrix
from odkanon.quality.accuracy.accuracy import map_of, places_of_leaves, spreadable
from odkanon.quality.accuracy.comparison import NEAR, compare_on, measured
from odkanon.quality.accuracy.result import OnPlaces
from odkanon.quality.accuracy.squares import GivenPlaces, Places, Squares, corner
from odkanon.quality.accuracy.trip_lengths import LENGTHS, length_bands, lengths_after
from odkanon.quality.accuracy.truth import by_length, engine_of, on_places
from odkanon.read.zone_polygons import Polygons
from odkanon.release_format.folder import SavedRelease, read_release
from odkanon.zoning.cells import Floats
from odkanon.zoning.projection import Projection
from odkanon.zoning.zones import Zones

GONE = 0.05
"""A flow of which less than this share is left is gone."""


@dataclass(frozen=True, eq=False)
class Explained:
    """A release beside its input, on squares or zones of the user's own.

    Attributes
    ----------
    release : str
        Its name.
    places : list of str
        What the places are called.
    outlines : list of array of float
        For each place its rings in metres on the map, for drawing.
    origin, destination : array of int
        For each flow of the input, its places.
    before, after : array of float
        Trips of the input, and what the release makes of them.
    elsewhere : float
        Trips that the release puts between places where the input has none.
    summary : OnPlaces
        The same in a few numbers.
    lengths : list of tuple
        For each band of lengths, where it begins in km, and the shares of trips before and after.
    """

    release: str
    places: list[str]
    outlines: list[list[Floats]]
    origin: Ints
    destination: Ints
    before: Floats
    after: Floats
    elsewhere: float
    summary: OnPlaces
    lengths: list[tuple[float, float, float]]

    def table(self) -> pa.Table:
        """Return every flow of the input, those that lost or gained most first."""
        after = self.after.round(3)
        off = (after - self.before).round(3)
        order = np.lexsort((self.destination, self.origin, -np.abs(off)))
        names = np.array(self.places, dtype=object)
        return pa.table(
            {
                "origin": pa.array(names[self.origin[order]], pa.string()),
                "destination": pa.array(names[self.destination[order]], pa.string()),
                "trips": self.before[order],
                "release": after[order],
                "difference": off[order],
                "verdict": pa.array(_verdicts(self.before, after)[order], pa.string()),
            }
        )


def explain(folder: str | Path, od: ODMatrix, *, km: float = 2.0, polygons: Polygons | None = None) -> Explained:
    """Compare a saved release with the trips that it was made of, flow by flow. Not for publication.

    Parameters
    ----------
    folder : path
        The release.
    od : ODMatrix
        Its input, read as it was then.
    km : float
        Side of the squares to compare on.
    polygons : Polygons, optional
        Zones to compare on instead of squares.
    """
    release, found = read_release(folder), map_of(od)
    if found is None:
        raise InputError("flows can only be explained where it is known where zones lie; give their polygons")
    published = int(release.measure("trips").sum())
    if published > od.trips:
        raise InputError(
            f"{release.name} publishes {published:,} trips, and there are only {od.trips:,}: it was made of other ones"
        )
    about, ends = found
    places: Places = Squares(km) if polygons is None else _given(polygons, about)
    zones = _zones(release, "origin"), _zones(release, "destination")
    numbers = _numbers(release, zones[0], "origin"), _numbers(release, zones[1], "destination")
    rows, areas = spreadable(zones, numbers, release.measure("trips")[:, None], od, about, release.attributes)
    counted, _ = on_places(engine_of(od, ("trips",)), od, places_of_leaves(places, ends), ("trips",))
    compared = compare_on(places, counted, rows, areas)
    known = np.union1d(*counted.places)
    origins, destinations = (np.searchsorted(known, place) for place in counted.places)
    lengths = [length_bands(*each) for each in (by_length(od, ends, ("trips",)), lengths_after(rows, areas))]
    after = compared.spread[:, 0]
    return Explained(
        release.name,
        *_drawn(known, km, polygons, about),
        origins[counted.origin],
        destinations[counted.destination],
        counted.mass[:, 0],
        after,
        published - float(after.sum()),
        measured(places, None if polygons is not None else km, compared, rows)[0],
        list(zip((0.0, *LENGTHS[1:]), *(part.tolist() for part in lengths), strict=True)),
    )


def _zones(release: SavedRelease, axis: str) -> Zones:
    """Return the zones of an axis as they were before they were saved, as far as is needed to know where they lie."""
    features = release.zones_of(axis)
    about = [feature["properties"] for feature in features]
    ids = np.array([zone["id"] for zone in about], dtype=np.str_)
    if any(zone.get("kind") == "box" for zone in about):
        rings = [np.array(feature["geometry"]["coordinates"][0]) for feature in features]
        return Zones(ids, bounds=np.array([[*ring.min(axis=0), *ring.max(axis=0)] for ring in rings]))
    if any(zone.get("cells") for zone in about):
        return Zones(ids, cells=tuple(tuple(zone.get("cells") or [zone["id"]]) for zone in about))
    resolution = [zone.get("resolution") for zone in about]
    if any(each is not None for each in resolution):
        return Zones(ids, resolution=np.array([-1 if each is None else each for each in resolution]))
    outlines = {zone["id"]: feature["geometry"] for zone, feature in zip(about, features, strict=True)}
    if any(zone.get("places") for zone in about):
        return Zones(ids, outlines=outlines, places=tuple(tuple(zone.get("places", ())) for zone in about))
    return Zones(ids, level=np.array([zone.get("level", 1) for zone in about]), outlines=outlines)


def _numbers(release: SavedRelease, zones: Zones, axis: str) -> Ints:
    number = {zone: position for position, zone in enumerate(zones.ids.tolist())}
    return np.array([number[zone] for zone in release.flows.column(axis).to_pylist()], dtype=np.int64)


def _verdicts(before: Floats, after: Floats) -> Any:
    ratio = after / before
    words = [ratio < GONE, ratio <= 1 - NEAR, ratio < 1 + NEAR]
    return np.select(words, ["gone", "less", "near"], "more").astype(object)


def _given(polygons: Polygons, about: Projection) -> GivenPlaces:
    import shapely

    tree = shapely.STRtree(polygons.shapes)

    def locate(x: Floats, y: Floats) -> Ints:
        lat, lon = about.to_degrees(x, y)
        place = np.full(len(x), len(polygons.codes), dtype=np.int64)
        point, inside = tree.query(shapely.points(lon, lat), predicate="intersects")
        place[point[::-1]] = inside[::-1]  # on a border the first counts
        return place

    return GivenPlaces("zones", locate)


def _spot(lat: float, lon: float) -> str:
    """Return a point as people write it; a minus in front would make a spreadsheet calculate."""
    return f"{abs(lat):.4f}{'N' if lat >= 0 else 'S'} {abs(lon):.4f}{'E' if lon >= 0 else 'W'}"


def _drawn(
    known: Ints, km: float, polygons: Polygons | None, about: Projection
) -> tuple[list[str], list[list[Floats]]]:
    """Return what places are called, and their outlines on the map."""
    if polygons is None:
        side = 1000 * km
        column, row = (np.asarray(part * side, dtype=np.float64) for part in corner(known))
        lat, lon = about.to_degrees(column + side / 2, row + side / 2)
        names = [_spot(a, b) for a, b in zip(lat.tolist(), lon.tolist(), strict=True)]
        square = np.array([[0, 0], [side, 0], [side, side], [0, side]])
        return names, [[square + np.array([x, y])] for x, y in zip(column.tolist(), row.tolist(), strict=True)]
    import shapely

    names = [*polygons.codes, "outside"]
    outlines = []
    for place in known.tolist():
        parts = shapely.get_parts(polygons.shapes[place]) if place < len(polygons.codes) else []
        rings = [np.asarray(part.exterior.coords) for part in parts if part.geom_type == "Polygon"]
        outlines.append([np.stack(about.to_metres(ring[:, 1], ring[:, 0]), axis=1) for ring in rings])
    return [names[place] for place in known.tolist()], outlines
