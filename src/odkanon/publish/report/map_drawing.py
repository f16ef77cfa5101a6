"""Maps in pictures: zones or flows over land, borders and the names of towns, in a window of the world."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from odkanon.errors import InputError, InvalidValueError
from odkanon.estimate.town_names import UNIT
from odkanon.publish.report.basemap import build_basemap, build_labels, find_town
from odkanon.publish.report.detail_levels import AreaLevel, LevelFlows
from odkanon.publish.report.packing import PackedShape, pack_line
from odkanon.release_format.folder import SavedRelease
from odkanon.zoning.spherical_geometry import list_polygons

KM_PER_DEGREE = 111.195
LAND, WATER, BORDER, NAME, EDGE = "#f6f5f1", "#dfe9f0", "#b9b4a8", "#22303c", "#33414d"
MAX_NAMES = 14
_COARSE = 0.03
"""Zones larger than this part of a map are outlined only, where most are smaller."""
TAIL = 0.005
"""The share of the trips that may lie beyond each side of a map."""
MOST_FLOWS, THICK = 300, 4.5
"""Flows of a map, and the width of the largest in points."""
FLOW_COLOURS, CELL = ("#fdbb84", "#ef6548", "#7f0000"), "#146e96"
_LETTER, _LINE = 0.017, 0.05
"""Approximate width of a letter and height of a line of a label, as shares of a map's width and height."""
_NO_SHAPES = "These zones have no shapes to draw."

LonLatRing = list[tuple[float, float]]


@dataclass(frozen=True)
class ZoneOutline:
    """The outline of a zone and its published total."""

    id: str
    mass: float
    rings: list[LonLatRing]
    """Longitudes and latitudes; holes run clockwise."""
    area: float
    """In square degrees without holes; only to compare zones of one picture."""

    @cached_property
    def bounds(self) -> tuple[float, float, float, float]:
        """West, south, east, north."""
        xs, ys = zip(*(point for ring in self.rings for point in ring), strict=True)
        return min(xs), min(ys), max(xs), max(ys)


def zone_outline(zone: dict[str, Any], measure: str) -> ZoneOutline | None:
    """Return the outline of a GeoJSON feature; None if it has no polygon."""
    own = zone["properties"]
    rings, area = [], 0.0
    for polygon in list_polygons(zone.get("geometry")):
        for number, ring in enumerate(polygon):
            oriented, size = _orient(_unroll(ring), clockwise=number > 0)
            rings.append(oriented)
            area += -size if number else size
    return ZoneOutline(str(own["id"]), float(own[measure]), rings, area) if rings else None


def axis_outlines(release: SavedRelease, axis: str, measure: str) -> list[ZoneOutline]:
    """Return the outlines of an axis, large zones first, so that small ones stay visible where zones overlap."""
    found = [outline for zone in release.axis_features(axis) if (outline := zone_outline(zone, measure)) is not None]
    return sorted(found, key=lambda outline: (-outline.area, outline.id))


def _unroll(ring: list[list[float]]) -> LonLatRing:
    """Return a ring without its jump across the date line."""
    xs = [point[0] for point in ring]
    jumps = max(xs) - min(xs) > 180
    return [(x + 360 if jumps and x < 0 else x, point[1]) for x, point in zip(xs, ring, strict=True)]


def _orient(ring: LonLatRing, *, clockwise: bool) -> tuple[LonLatRing, float]:
    """Return a ring in the given orientation, and its area."""
    twice = sum(x0 * y1 - x1 * y0 for (x0, y0), (x1, y1) in pairwise([*ring, ring[0]]))
    return (ring[::-1] if (twice < 0) != clockwise else ring), abs(twice) / 2


def common_bounds(outlines: Sequence[ZoneOutline]) -> tuple[float, float, float, float]:
    """Return west, south, east and north of all outlines."""
    west, south, east, north = zip(*(outline.bounds for outline in outlines), strict=True)
    return min(west), min(south), max(east), max(north)


@dataclass(frozen=True)
class MapWindow:
    """The part of the world that a map shows, in degrees."""

    west: float
    south: float
    east: float
    north: float

    @property
    def shape(self) -> PackedShape:
        """The window as a packed polygon."""
        corners = [[self.west, self.south], [self.east, self.south], [self.east, self.north], [self.west, self.north]]
        return [[pack_line(corners)]]


def map_window(
    outlines: Sequence[ZoneOutline], near: str | None = None, km: float = 10.0, *, whole: bool = False
) -> MapWindow | None:
    """Return the part of the world to show: that of nearly all trips, or the surroundings of a place.

    * ``outlines``: the zones to draw.
    * ``near``: the name of a town among the outlines, or longitude and latitude separated by a comma.
    * ``km``: width of the surroundings of the place.
    * ``whole``: without a place, show all zones.

    Raises `InputError` if there is no such place, there are no zones around it, or `km` is not positive.
    """
    if not outlines:
        if near is not None:
            raise InputError(f"these zones have no outlines, so there is no map around {near!r}; leave it out")
        return None
    west, south, east, north = common_bounds(outlines)
    if near is None and not whole:
        return _main_window(outlines)
    if near is None:
        margin = 0.03 * max(east - west, north - south)
        return MapWindow(west - margin, south - margin, east + margin, north + margin)
    if not km > 0:
        raise InvalidValueError.expected("the width of a picture in km", "a positive number", km)
    x, y = _place(near, MapWindow(west, south, east, north))
    half_height = km / 2 / KM_PER_DEGREE
    half_width = half_height / _squeeze(y)
    window = MapWindow(x - half_width, y - half_height, x + half_width, y + half_height)
    if not (window.west < east and window.east > west and window.south < north and window.north > south):
        raise InputError(f"there are no zones around {near!r}; write longitude before latitude, such as 2.35,48.86")
    return window


def _main_window(outlines: Sequence[ZoneOutline]) -> MapWindow:
    """Return the window of 98 % of the trips: a few far ones should not shrink a city to a dot."""
    bounds = np.array([outline.bounds for outline in outlines])
    mass = np.array([outline.mass for outline in outlines])
    low, high = [], []
    for side in (0, 1):
        middle = bounds[:, [side, side + 2]].mean(axis=1)
        order = np.argsort(middle, kind="stable")
        passed = np.cumsum(mass[order]) / max(float(mass.sum()), 1e-9)
        kept = order[(passed > TAIL) & (passed - mass[order] / max(float(mass.sum()), 1e-9) < 1 - TAIL)]
        size = np.median((bounds[:, side + 2] - bounds[:, side])[kept])
        low.append(max(float(bounds[:, side].min()), float(middle[kept].min() - 0.75 * size)))
        high.append(min(float(bounds[:, side + 2].max()), float(middle[kept].max() + 0.75 * size)))
    margin = 0.03 * max(high[0] - low[0], high[1] - low[1])
    return MapWindow(low[0] - margin, low[1] - margin, high[0] + margin, high[1] + margin)


def _squeeze(latitude: float) -> float:
    """Return the width of a degree of longitude relative to one of latitude."""
    return max(0.05, math.cos(math.radians(latitude)))


def _place(near: str, within: MapWindow) -> tuple[float, float]:
    try:
        x, y = (float(part) for part in near.split(","))
    except ValueError:
        found = find_town(near, [within.shape])
        if found is None:
            raise InputError(
                f"there is no town named {near!r} among these zones; write its longitude and latitude instead, such "
                "as 2.35,48.86"
            ) from None
        return found
    return x, y


def remove_frame(axes: Any) -> None:
    """Remove frame and ticks."""
    axes.set_xticks([])
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set_visible(False)


def draw_map(
    axes: Any, outlines: Sequence[ZoneOutline], colours: Sequence[Any], window: MapWindow | None, alpha: float = 0.95
) -> None:
    """Draw zones over the basemap, and the names of towns over them."""
    remove_frame(axes)
    if window is None or not outlines:
        axes.text(0.5, 0.5, _NO_SHAPES, ha="center", va="center", transform=axes.transAxes)
        return
    draw_basemap(axes, window)
    # A zone that is larger than the map would only tint it.
    fitting = [number for number, outline in enumerate(outlines) if not _hides(outline, window)]
    coarse = {number for number in fitting if _is_coarse(outlines[number], outlines, window)}
    fine = [number for number in fitting if number not in coarse]
    _draw_zones(axes, [outlines[number] for number in fine], [colours[number] for number in fine], alpha)
    _draw_zones(axes, [outlines[number] for number in sorted(coarse)], ["none"] * len(coarse), 1, style=":")
    draw_town_names(axes, window)
    draw_scale_bar(axes, window)


def _is_coarse(outline: ZoneOutline, outlines: Sequence[ZoneOutline], window: MapWindow) -> bool:
    """Return whether the few trips of a zone would paint much of the map although most are known in smaller zones."""
    large = _COARSE * (window.east - window.west) * (window.north - window.south)
    return outline.area > large and sum(one.area <= large for one in outlines) > len(outlines) / 2


def _hides(outline: ZoneOutline, window: MapWindow) -> bool:
    west, south, east, north = outline.bounds
    return west < window.west and south < window.south and east > window.east and north > window.north


def draw_scale_bar(axes: Any, window: MapWindow) -> None:
    """Draw a bar of a round length in the lower left corner."""
    km_per_degree = KM_PER_DEGREE * _squeeze((window.south + window.north) / 2)
    longest = 0.25 * (window.east - window.west) * km_per_degree
    power = 10 ** math.floor(math.log10(longest))
    km = next(step * power for step in (5, 2, 1) if step * power <= longest)
    x = window.west + 0.04 * (window.east - window.west)
    y = window.south + 0.04 * (window.north - window.south)
    axes.plot([x, x + km / km_per_degree], [y, y], color=NAME, linewidth=2, solid_capstyle="butt", zorder=6)
    text = f"{km:g} km" if km >= 1 else f"{1000 * km:g} m"
    axes.annotate(text, (x, y), (0, 3), textcoords="offset points", fontsize=7, color=NAME, zorder=6)


def draw_flows(axes: Any, places: AreaLevel, flows: LevelFlows, window: MapWindow, most: float) -> None:
    """Draw estimated flows between places as arrows whose width is the square root of the trips, with a legend."""
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.lines import Line2D
    from matplotlib.patches import FancyArrowPatch

    remove_frame(axes)
    draw_basemap(axes, window)
    outlines = [_place_outline(places, number, float(flows.ends.trips[number])) for number in range(len(places.ids))]
    density = np.array([outline.mass / max(outline.area, 1e-12) for outline in outlines])
    shade = np.sqrt(density / max(float(np.quantile(density, 0.98)), 1e-12)).clip(0, 1)
    _draw_zones(axes, outlines, [(*_rgb(CELL), 0.05 + 0.45 * share) for share in shade.tolist()], 1.0, edge=0.1)
    middle = [np.mean(outline.rings[0], axis=0) for outline in outlines]
    colour = LinearSegmentedColormap.from_list("flows", FLOW_COLOURS)
    moving = np.flatnonzero(flows.origin != flows.destination)
    largest = moving[np.argsort(-flows.pairs.trips[moving], kind="stable")[:MOST_FLOWS]]
    for number in largest[::-1].tolist():
        share = math.sqrt(min(1.0, float(flows.pairs.trips[number]) / most))
        ends = tuple(middle[flows.origin[number]]), tuple(middle[flows.destination[number]])
        arrow = FancyArrowPatch(
            *ends, connectionstyle="arc3,rad=0.18", arrowstyle="-|>", mutation_scale=3 + 6 * share, shrinkA=2,
            shrinkB=2, linewidth=max(0.3, THICK * share), color=colour(share), alpha=0.25 + 0.65 * share, zorder=3,
        )  # fmt: skip
        arrow.set_clip_on(True)
        axes.add_patch(arrow)
    draw_town_names(axes, window)
    draw_scale_bar(axes, window)
    steps = sorted({round_step(most / part) for part in (1, 5, 25)} - {0})
    lines = [Line2D([], [], color=FLOW_COLOURS[1], linewidth=THICK * math.sqrt(step / most)) for step in steps]
    texts = [f"{step:,g}" for step in steps]
    axes.legend(lines, texts, title="estimated trips", loc="lower right", fontsize=7, title_fontsize=7, framealpha=1)


def round_step(value: float) -> float:
    """Return the largest of 1, 2 and 5 times a power of ten that is no larger; 0 below 1."""
    power = 10 ** math.floor(math.log10(max(value, 1e-9)))
    found = next(step * power for step in (5, 2, 1) if step * power <= value * (1 + 1e-9))
    return found if found >= 1 else 0


def _place_outline(places: AreaLevel, number: int, mass: float) -> ZoneOutline:
    zone = {"properties": {"id": places.ids[number], "trips": mass}, "geometry": places.outlines[number]}
    found = zone_outline(zone, "trips")
    assert found is not None  # such places are not drawn
    return found


def _rgb(text: str) -> tuple[float, float, float]:
    red, green, blue = (int(text[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return red, green, blue


def _draw_zones(
    axes: Any,
    outlines: Sequence[ZoneOutline],
    colours: Sequence[Any],
    alpha: float,
    edge: float = 0.4,
    style: str = "-",
) -> None:
    from matplotlib.collections import PathCollection
    from matplotlib.path import Path

    if not outlines:
        return
    paths = [Path.make_compound_path(*(Path(ring, closed=True) for ring in outline.rings)) for outline in outlines]
    total = sum(outline.area for outline in outlines)
    west, south, east, north = common_bounds(outlines)
    overlapping = total > 1.2 * (east - west) * (north - south)
    alpha = min(alpha, 0.35) if overlapping else alpha
    drawn = PathCollection(paths, facecolors=colours, edgecolors=EDGE, linewidths=edge, linestyles=style)
    drawn.set_alpha(None if alpha == 1 else alpha)
    axes.add_collection(drawn)


def draw_basemap(axes: Any, window: MapWindow) -> None:
    """Draw land and borders of a window, in the right proportions for its latitude."""
    from matplotlib.collections import LineCollection, PolyCollection

    axes.set_xlim(window.west, window.east)
    axes.set_ylim(window.south, window.north)
    axes.set_aspect(1 / _squeeze((window.south + window.north) / 2))
    base = build_basemap([window.shape])
    if base is None:
        return
    axes.patch.set_facecolor(WATER)
    land = [_corners(ring) for ring in base["land"]]
    axes.add_collection(PolyCollection(land, facecolors=LAND, edgecolors=BORDER, linewidths=0.5, zorder=0))
    lakes = [_corners(ring) for ring in base["water"]]
    axes.add_collection(PolyCollection(lakes, facecolors=WATER, edgecolors=BORDER, linewidths=0.5, zorder=0.2))
    lines = [_corners(line) for line in base["borders"]]
    axes.add_collection(LineCollection(lines, colors=BORDER, linewidths=0.8, zorder=0.5))


def draw_town_names(axes: Any, window: MapWindow) -> None:
    """Write the names of the largest towns, skipping those that would overlap a larger one."""
    width, height = window.east - window.west, window.north - window.south
    taken: list[tuple[float, float, float]] = []
    for name, x, y in _towns(window):
        half = _LETTER * len(name) * width / 2
        hidden = any(abs(x - a) < half + b and abs(y - c) < _LINE * height for a, b, c in taken)
        hidden |= not window.south + _LINE * height / 2 < y < window.north - _LINE * height / 2
        if hidden or not window.west + half < x < window.east - half or len(taken) == MAX_NAMES:
            continue
        taken.append((x, half, y))
        # A pale background instead of outlined letters, which would not be text in an SVG.
        background = {"facecolor": "white", "alpha": 0.6, "edgecolor": "none", "pad": 0.8}
        axes.text(x, y, name, ha="center", va="center", fontsize=7, color=NAME, bbox=background, clip_on=True)


def _towns(window: MapWindow) -> Iterator[tuple[str, float, float]]:
    labels = build_labels([window.shape])
    if labels is not None:
        places = iter(labels["place"])
        for name, x, y in zip(labels["name"], places, places, strict=True):
            yield name, x / UNIT, y / UNIT


def _corners(packed: Sequence[int]) -> list[tuple[float, float]]:
    x = y = 0
    corners, steps = [], iter(packed)
    for dx, dy in zip(steps, steps, strict=True):
        x, y = x + dx, y + dy
        corners.append((x / UNIT, y / UNIT))
    return corners
