"""The figures of pictures: one release, two compared, linked releases side by side, and those of the paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import h3
import numpy as np

from odkanon.core.parsing import format_count
from odkanon.errors import InputError
from odkanon.model.axes import AXES
from odkanon.model.measures import MEASURES
from odkanon.publish.report.detail_levels import choose_levels
from odkanon.publish.report.level_estimators import choose_estimator
from odkanon.publish.report.map_drawing import (
    MapWindow,
    ZoneOutline,
    axis_outlines,
    draw_basemap,
    draw_flows,
    draw_map,
    draw_town_names,
    map_window,
    remove_frame,
)
from odkanon.release_format.folder import SavedRelease

NOUNS = {"trips": "trips", "weight": "weighted trips"}
"""Measures that zones can be coloured by, as labels name them."""
ONLY = ("#0072b2", "#d55e00")
"""Colours of zones that only the first, or only the second, of two releases has: safe for colour-blind readers."""
SHARED, COLOURS = "#d9dde0", "YlGnBu"
BAR, THRESHOLD = "#225ea8", "#d55e00"
FINEST, STEPS = 10, 5
"""The finest resolution of the hierarchy in the paper's figure, and its number of levels."""
SHADES = ("#0c2c84", "#225ea8", "#1d91c0", "#159a8c", "#d55e00", "#a11212")
ENOUGH_PLACES = 20
"""Flows are drawn between the coarsest places of which there are so many."""
_COLUMNS = 3
"""Maps of linked releases side by side."""


@dataclass(frozen=True)
class FigureOptions:
    """What a figure shows of a release."""

    measure: str = "trips"
    """The measure that colours zones."""
    axes: tuple[str, ...] = AXES
    """``origin``, ``destination`` or both."""
    near: str | None = None
    km: float = 10.0
    """The part of the world; see `odkanon.publish.report.map_drawing.map_window`."""

    def window(self, outlines: Sequence[ZoneOutline], *, whole: bool = False) -> MapWindow | None:
        """Return the part of the world that all maps of the figure share."""
        return map_window(outlines, self.near, self.km, whole=whole)


def new_figure(height: float, width: float = 9.0) -> Any:
    """Return an empty figure, by default as wide as a page."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _flow_rows(figure: Any, releases: Sequence[SavedRelease], options: FigureOptions, below: list[float]) -> Any:
    """Draw a map of the flows of each release in the first row, if both ends are shown; return the rows below."""
    levels = choose_levels(releases, None)
    drawn = len(options.axes) == 2 and all(None not in level.outlines for level in levels)
    every = [outline for release in releases for axis in AXES for outline in axis_outlines(release, axis, "trips")]
    window = options.window(every)
    heights = [*([3.4 if len(releases) == 1 else 2.6] if drawn and window else []), *below]
    outer = figure.add_gridspec(len(heights), 2, height_ratios=heights)
    if drawn and window:
        level = next((one for one in levels if len(one.ids) >= ENOUGH_PLACES), levels[-1])
        flows = [choose_estimator(release, levels).flows(level, {}) for release in releases]
        moving = [found.pairs.trips[found.origin != found.destination] for found in flows]
        most = max(float(each.max(initial=1.0)) for each in moving)
        for side, (release, found) in enumerate(zip(releases, flows, strict=True)):
            axes = figure.add_subplot(outer[0, :] if len(releases) == 1 else outer[0, side])
            draw_flows(axes, level, found, window, most)
            axes.set_title(f"{release.name}: {found.total.trips[0]:,.0f} published trips", loc="left")
    return outer, len(heights) - len(below)


def draw_one(release: SavedRelease, options: FigureOptions) -> Any:
    """Return a figure of the flows and zones of a release, coloured by a measure, above the sizes of its flows."""
    one = len(options.axes) == 1
    figure = new_figure(6.3 if one else 11.5, 5.0 if one else 9.0)
    grid, row = _flow_rows(figure, [release], options, [2.2, 1])
    drawn = {axis: axis_outlines(release, axis, options.measure) for axis in options.axes}
    everything = [outline for outlines in drawn.values() for outline in outlines]
    window, scale = options.window(everything), _colour_scale([outline.mass for outline in everything])
    maps = []
    for column, (axis, outlines) in enumerate(drawn.items()):
        maps.append(figure.add_subplot(grid[row, :] if one else grid[row, column]))
        draw_map(maps[-1], outlines, [scale.to_rgba(outline.mass) for outline in outlines], window)
        maps[-1].set_title(f"{axis.capitalize()} zones ({len(release.axis_features(axis)):,})", loc="left")
    if everything:
        _draw_colour_bar(figure, scale, maps, options)
    draw_sizes(figure.add_subplot(grid[row + 1, :]), release)
    return figure


def draw_two(first: SavedRelease, second: SavedRelease, options: FigureOptions) -> Any:
    """Return a figure of two releases side by side, in which zones of only one of them stand out."""
    rows = len(options.axes)
    figure = new_figure(2.1 + 4.2 * rows + (4.2 if rows == 2 else 0))
    grid, above = _flow_rows(figure, [first, second], options, [2.4] * rows + [1])
    pairs = {axis: [axis_outlines(release, axis, "trips") for release in (first, second)] for axis in options.axes}
    window = options.window([outline for pair in pairs.values() for side in pair for outline in side])
    for row, (axis, pair) in enumerate(pairs.items()):
        for side, release in enumerate((first, second)):
            others = {outline.id for outline in pair[1 - side]}
            axes = figure.add_subplot(grid[above + row, side])
            only = [outline.id not in others for outline in pair[side]]
            draw_map(axes, pair[side], [ONLY[side] if own else SHARED for own in only], window)
            axes.set_title(f"{release.name}: {sum(only):,} of {len(only):,} {axis} zones only here", loc="left")
    for side, release in enumerate((first, second)):
        draw_sizes(figure.add_subplot(grid[above + rows, side]), release)
    return figure


def draw_linked(releases: Sequence[SavedRelease], options: FigureOptions) -> Any:
    """Return a figure of linked releases: small multiples, all coloured on one scale."""
    panels = [
        (release, axis, axis_outlines(release, axis, options.measure)) for axis in options.axes for release in releases
    ]
    everything = [outline for _, _, outlines in panels for outline in outlines]
    if not everything:
        raise InputError("these zones have no shapes to draw; release the segments with the outlines of their zones")
    rows = math.ceil(len(releases) / _COLUMNS) * len(options.axes)
    figure = new_figure(0.8 + 3.2 * rows)
    grid, maps = figure.add_gridspec(rows, _COLUMNS), []
    window, scale = options.window(everything), _colour_scale([outline.mass for outline in everything])
    for at, (release, axis, outlines) in enumerate(panels):
        line, column = divmod(at % len(releases), _COLUMNS)
        row = options.axes.index(axis) * (rows // len(options.axes)) + line
        maps.append(figure.add_subplot(grid[row, column]))
        draw_map(maps[-1], outlines, [scale.to_rgba(outline.mass) for outline in outlines], window)
        maps[-1].set_title(f"{release.name}: {format_count(len(outlines), f'{axis} zones')}", loc="left")
    _draw_colour_bar(figure, scale, maps, options)
    return figure


def _colour_scale(masses: Sequence[float]) -> Any:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm

    low, high = min(masses, default=1.0), max(masses, default=1.0)
    return ScalarMappable(LogNorm(low, max(high, low * 1.01)), COLOURS)


def _draw_colour_bar(figure: Any, scale: Any, maps: Sequence[Any], options: FigureOptions) -> None:
    from matplotlib.ticker import LogLocator

    bar = figure.colorbar(scale, ax=maps, orientation="vertical", shrink=0.75, pad=0.02)
    bar.ax.yaxis.set_minor_locator(LogLocator(subs=(2, 3, 5)))
    bar.ax.yaxis.set_major_formatter(_plain_number)
    bar.ax.yaxis.set_minor_formatter(_plain_number)
    bar.set_label(f"{NOUNS[options.measure]} published in a zone")


def draw_sizes(axes: Any, release: SavedRelease) -> None:
    """Draw a histogram of the sizes of flows in the first measure of the rule, with its threshold."""
    rule = release.manifest["rule"]
    counted = next((name for name in MEASURES if rule.get(name) is not None), "trips")
    sizes = release.measure(counted if counted in release.table.column_names else "trips").tolist()
    threshold = rule.get(counted) or min(sizes)
    edges = _bin_edges(min(sizes), max(sizes), threshold, whole=counted != "weight")
    axes.hist(sizes, bins=edges, color=BAR, edgecolor="white", linewidth=0.5)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(_plain_number)
    axes.xaxis.set_minor_formatter(_plain_number if max(sizes) < 10 * min(sizes) else "")
    axes.set_ylim(top=1.22 * axes.get_ylim()[1])
    axes.axvline(threshold, color=THRESHOLD, linestyle="--", linewidth=1.2)
    axes.annotate(
        f"threshold {_plain_number(round(threshold, 1))}", (threshold, 1.0), (4, -2),
        xycoords=("data", "axes fraction"), textcoords="offset points", va="top", color=THRESHOLD,
    )  # fmt: skip
    axes.set_xlabel(f"{NOUNS.get(counted, MEASURES[counted].title)} in one published flow")
    axes.set_ylabel("flows")
    axes.set_title(f"{release.name}: sizes of {len(sizes):,} published flows", loc="left")


def _plain_number(value: float, _: int | None = None) -> str:
    """Return a number without powers of ten; also a formatter of matplotlib axes."""
    return f"{value:,.10g}"


def _bin_edges(least: float, most: float, threshold: float, *, whole: bool) -> list[float]:
    """Return logarithmic bins of which the threshold is one edge, so that no bar is on both sides of it."""
    factor = 2**0.5
    while math.log(most / least) > 24 * math.log(factor):
        factor *= 2**0.5
    step = math.floor(math.log(least / threshold) / math.log(factor))
    edges: list[float] = []
    while not edges or edges[-1] <= most:
        edge = threshold * factor**step
        edge = round(edge) if whole else edge
        if edge > 0 and (not edges or edge > edges[-1]):
            edges.append(edge)
        step += 1
    return edges if len(edges) > 1 else [edges[0], edges[0] * factor]


def draw_paper(first: SavedRelease, second: SavedRelease, options: FigureOptions) -> Any:
    """Return the two figures of the paper: the zones of two releases, above a hierarchy of hexagons."""
    figure = new_figure(9.0)
    grid = figure.add_gridspec(2, 2)
    axis = options.axes[0]
    pair = [axis_outlines(release, axis, options.measure) for release in (first, second)]
    window = options.window([outline for side in pair for outline in side], whole=True)
    for side, release in enumerate((first, second)):
        axes = figure.add_subplot(grid[0, side])
        draw_map(axes, pair[side], [ONLY[side]] * len(pair[side]), window, alpha=0.4)
        axes.set_title(f"{release.name}: {format_count(len(pair[side]), f'{axis} zones')}", loc="left")
    axes = figure.add_subplot(grid[1, :])
    if window is not None:
        _draw_hierarchy(axes, _busiest_place(window, pair[0]))
    return figure


def _busiest_place(window: MapWindow, outlines: list[ZoneOutline]) -> tuple[float, float]:
    """Return the centre of the densest zone in a window, longitude first."""
    corners = [np.mean(outline.rings[0], axis=0) for outline in outlines]
    inside = [
        (outline.mass / outline.area, float(x), float(y))
        for outline, (x, y) in zip(outlines, corners, strict=True)
        if window.west < x < window.east and window.south < y < window.north
    ]
    _, x, y = max(inside, default=(0.0, (window.west + window.east) / 2, (window.south + window.north) / 2))
    return x, y


def _draw_hierarchy(axes: Any, place: tuple[float, float]) -> None:
    """Draw the cells around a place: at each level, those that share a parent with the cell of the place."""
    from matplotlib.collections import PolyCollection

    finest = h3.latlng_to_cell(place[1], place[0], FINEST)
    levels = [[h3.cell_to_parent(finest, FINEST - STEPS)]]
    levels += [
        sorted(h3.cell_to_children(h3.cell_to_parent(finest, FINEST - up), FINEST - up + 1))
        for up in range(STEPS, 0, -1)
    ]
    remove_frame(axes)
    window = _cell_window([cell for cells in levels[:3] for cell in cells])
    draw_basemap(axes, window)
    for step, (cells, shade) in enumerate(zip(levels, SHADES, strict=True)):
        rings = [[(x, y) for y, x in h3.cell_to_boundary(cell)] for cell in cells]
        resolution = FINEST - STEPS + step
        size = h3.average_hexagon_area(resolution, unit="km^2")
        label = f"resolution {resolution}: {size:,.{0 if size >= 100 else 3}{'f' if size >= 100 else 'g'}} km²"
        line = 2.4 - 0.36 * step
        hexagons = PolyCollection(rings, facecolors=(shade, 0.1), edgecolors=shade, linewidths=line, label=label)
        axes.add_collection(hexagons)
    draw_town_names(axes, window)
    axes.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False, title="H3 cells lie in each other")
    axes.set_title("Seven cells make (about) one of the next level", loc="left")


def _cell_window(cells: Sequence[str]) -> MapWindow:
    corners = [corner for cell in cells for corner in h3.cell_to_boundary(cell)]
    (south, north), (west, east) = ((min(side), max(side)) for side in zip(*corners, strict=True))
    margin = 0.03 * (north - south)
    return MapWindow(west - margin, south - margin, east + margin, north + margin)
