"""Towns: the one that a place is named after, and the surroundings of one as an area to ask about."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any
from unicodedata import combining, normalize

import h3
import numpy as np
import numpy.typing as npt

from odkanon.core.arrays import Ints
from odkanon.estimate.target_areas import CellAreas, JoinedAreas
from odkanon.release_format.folder import SavedRelease
from odkanon.zoning.cells import KM_PER_DEGREE, Floats, cell_to_latlng
from odkanon.zoning.spherical_geometry import list_polygons

TOWNS = Path(__file__).parents[1] / "publish" / "report" / "names.bin.gz"
"""Built with the page. Licence: GeoNames, CC BY 4.0."""
UNIT = 4000
"""Steps of coordinates in a degree."""
FOREIGN = 2.5
"""A town in another region than most trips counts as this many times as far: Jersey City is no part of New York."""
FARTHEST_KM = 40.0
REACH_KM, MOST_REACH_KM = 0.0025, 4.0
"""About how far a town reaches, by the root of its residents."""
AROUND = "around "
"""Begins the name of the surroundings of a town."""
_DECIMALS = 2
"""Of the degrees of a middle: about a kilometre."""

_NearestTowns = tuple[Ints, Floats, Floats, int]


def town_area(name: str, saved: SavedRelease, cells: CellAreas) -> JoinedAreas | None:
    """Return the cells in reach of a town and nearest to it, as one area that is named so; None for no such town.

    Accents and case do not matter. How far a town reaches is estimated from its residents.
    """
    home = find_home([saved])
    if home is None:
        return None
    lat, lon = cell_to_latlng(cells.cells)
    area_km2 = float(h3.average_hexagon_area(cells.resolution))
    found = nearest_towns(lat, lon, np.ones(len(lat)), area_km2, home)
    if found is None:
        return None
    towns, east, north, _ = found
    same = np.array([fold_name(each) == fold_name(name) for each in town_names(towns)])
    which = np.flatnonzero(same & (np.hypot(east, north) <= np.maximum(_reach(towns), np.sqrt(area_km2 / np.pi))))
    if not len(which):
        return None
    return JoinedAreas(cells, which, f"{AROUND}{town_names(towns[which])[0]} ({area_km2 * len(which):.0f} km2)")


def town_names(towns: Ints) -> list[str]:
    """Return the names of towns, given their numbers."""
    names = load_towns()[2]
    return [names[town] for town in towns.tolist()]


def _reach(towns: Ints) -> Floats:
    """Return how far towns reach, in kilometres."""
    found: Floats = np.minimum(REACH_KM * np.sqrt(load_towns()[1][towns]), MOST_REACH_KM)
    return found


def find_home(releases: Sequence[SavedRelease]) -> int | None:
    """Return the region that most trips are in, by their zones: the middles of large cells can lie in another one."""
    found = towns_of_zones(releases)
    return None if found is None else found[0][3]


def towns_of_zones(releases: Sequence[SavedRelease]) -> tuple[_NearestTowns, Floats] | None:
    """Return the nearest towns of the zones of a release, and the trips that start or end near each middle.

    Zones larger than the surroundings of a town are left out where there are others: their middle is near by chance.
    """
    index, trips = releases[0].zone_index, releases[0].measure("trips")
    located = np.array([outline is not None for outline in index.outlines], dtype=bool)
    if not located.any():
        return None
    ends = sum(np.bincount(end, trips, minlength=len(located)) for end in (index.origin, index.destination))
    rings = [_outer_ring(outline) for outline in index.outlines if outline is not None]
    lon, lat = np.array([ring.mean(axis=0) for ring in rings]).T
    small = np.array([np.ptp(ring, axis=0).max() for ring in rings]) * KM_PER_DEGREE < FARTHEST_KM
    kept = small if small.any() else ~small
    # Zones of about the same middle have the same town.
    middles, number = np.unique(np.round([lat[kept], lon[kept]], _DECIMALS), axis=1, return_inverse=True)
    weight = np.bincount(number.ravel(), np.asarray(ends)[located][kept]).astype(np.float64)
    found = nearest_towns(middles[0], middles[1], weight, 0.0)
    return None if found is None else (found, weight)


def _outer_ring(outline: dict[str, Any]) -> Floats:
    return np.array(list_polygons(outline)[0][0], dtype=np.float64)[:-1, :2]


def nearest_towns(
    lat: Floats, lon: Floats, weight: Floats, area_km2: float, home: int | None = None
) -> _NearestTowns | None:
    """Return the town that each place is named after, how far east and north of it the place lies, and the home."""
    places, people, _, regions = load_towns()
    radius = float(np.sqrt(area_km2 / np.pi))
    margin = (FARTHEST_KM / KM_PER_DEGREE) / np.cos(np.radians(float(np.abs(lat).max(initial=0.0))))
    low, high = (
        [(lon.min() - margin) * UNIT, (lat.min() - margin) * UNIT],
        [(lon.max() + margin) * UNIT, (lat.max() + margin) * UNIT],
    )
    near = np.flatnonzero(((places >= low) & (places <= high)).all(axis=1)) if len(places) else np.zeros(0, np.int64)
    if not len(near):
        return None
    east = (lon[:, None] - places[near, 0] / UNIT) * np.cos(np.radians(lat))[:, None] * KM_PER_DEGREE
    north = (lat[:, None] - places[near, 1] / UNIT) * KM_PER_DEGREE
    distance = np.hypot(east, north)
    own, edge = regions[near], distance - _reach(near)
    if home is None:
        middle = [_weighted_median(side, weight) for side in (east, north)]
        home = int(own[np.hypot(*middle).argmin()])
    # The middle of a large cell can lie across the border of the region that its trips are in.
    town = np.where(own == home, edge, FOREIGN * distance + radius).argmin(axis=1)
    # A cell that is larger than a town is named after the largest town in it.
    inside = np.where((distance < radius) & (own == home), people[near], 0)
    town = np.where(inside.max(axis=1) > 0, inside.argmax(axis=1), town)
    rows = np.arange(len(lat))
    return near[town], east[rows, town], north[rows, town], home


def _weighted_median(offsets: Floats, weight: Floats) -> Floats:
    """Return for each town (column) the median of the offsets of all places from it."""
    order = np.argsort(offsets[:, 0], kind="stable")
    passed = np.cumsum((weight + 1e-9)[order])
    found: Floats = offsets[order[np.searchsorted(passed, passed[-1] / 2)]]
    return found


def fold_name(name: str) -> str:
    """Return a name without accents and case."""
    return "".join(letter for letter in normalize("NFD", name.strip()) if not combining(letter)).casefold()


@cache
def load_towns() -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], list[str], npt.NDArray[np.int64]]:
    """Return places, residents, names and regions of all towns, the largest first; nothing if they were not built."""
    if not TOWNS.exists():
        return np.zeros((0, 2), dtype=np.int64), np.zeros(0, dtype=np.int64), [], np.zeros(0, dtype=np.int64)
    content = gzip.decompress(TOWNS.read_bytes())
    count = int(np.frombuffer(content[:4], dtype="<i4")[0])
    numbers = np.frombuffer(content[4 : 4 + 16 * count], dtype="<i4").astype(np.int64).reshape(4, count)
    names = content[4 + 16 * count :].decode("utf-8").split("\n")
    # Some names continue with the district and the country.
    return numbers[:2].T, numbers[2], [name.split(",")[0] for name in names], numbers[3]
