"""The two figures of the paper: origin zones for participants and population, and how hexagons lie in each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import h3
import numpy as np

from odkanon.core.formatting import format_count
from odkanon.publish.report.basemap_drawing import Window, draw_ground, draw_names
from odkanon.publish.report.pictures import ONLY, Look, bare, draw_map, new_figure, outlines_of
from odkanon.publish.report.shapes import Outline
from odkanon.release_format.folder import SavedRelease

FINEST, STEPS = 10, 5
STEPWISE = range(STEPS, 0, -1)
SHADES = ("#0c2c84", "#225ea8", "#1d91c0", "#159a8c", "#d55e00", "#a11212")


def draw_paper(first: SavedRelease, second: SavedRelease, look: Look) -> Any:
    """Return a figure of the zones of two releases side by side, above a hierarchy of hexagons."""
    figure = new_figure(9.0)
    grid = figure.add_gridspec(2, 2)
    axis = look.axes[0]
    pair = [outlines_of(release, axis, look.measure) for release in (first, second)]
    window = look.window([outline for side in pair for outline in side])
    for side, release in enumerate((first, second)):
        axes = figure.add_subplot(grid[0, side])
        draw_map(axes, pair[side], [ONLY[side]] * len(pair[side]), window, alpha=0.4)
        axes.set_title(f"{release.name}: {format_count(len(pair[side]), f'{axis} zones')}", loc="left")
    axes = figure.add_subplot(grid[1, :])
    if window is not None:
        _draw_hierarchy(axes, _middle(window, pair[0]))
    return figure


def _middle(window: Window, outlines: list[Outline]) -> tuple[float, float]:
    """Return the middle of the busiest zone in sight, longitude first: where a hierarchy is worth looking at."""
    corners = [np.mean(outline.rings[0], axis=0) for outline in outlines]
    inside = [
        (outline.mass / outline.area, float(x), float(y))
        for outline, (x, y) in zip(outlines, corners, strict=True)
        if window.west < x < window.east and window.south < y < window.north
    ]
    _, x, y = max(inside, default=(0.0, (window.west + window.east) / 2, (window.south + window.north) / 2))
    return x, y


def _draw_hierarchy(axes: Any, place: tuple[float, float]) -> None:
    """Draw the cells around a place: of each level, those that share a parent with the one that holds it."""
    from matplotlib.collections import PolyCollection

    finest = h3.latlng_to_cell(place[1], place[0], FINEST)
    levels = [[h3.cell_to_parent(finest, FINEST - STEPS)]]
    levels += [sorted(h3.cell_to_children(h3.cell_to_parent(finest, FINEST - up), FINEST - up + 1)) for up in STEPWISE]
    bare(axes)
    window = _around([cell for cells in levels[:3] for cell in cells])
    draw_ground(axes, window)
    for step, (cells, shade) in enumerate(zip(levels, SHADES, strict=True)):
        rings = [[(x, y) for y, x in h3.cell_to_boundary(cell)] for cell in cells]
        resolution = FINEST - STEPS + step
        size = h3.average_hexagon_area(resolution, unit="km^2")
        label = f"resolution {resolution}: {size:,.{0 if size >= 100 else 3}{'f' if size >= 100 else 'g'}} km²"
        line = 2.4 - 0.36 * step
        hexagons = PolyCollection(rings, facecolors=(shade, 0.1), edgecolors=shade, linewidths=line, label=label)
        axes.add_collection(hexagons)
    draw_names(axes, window)
    axes.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False, title="H3 cells lie in each other")
    axes.set_title("Seven cells make (about) one of the next level", loc="left")


def _around(cells: Sequence[str]) -> Window:
    corners = [corner for cell in cells for corner in h3.cell_to_boundary(cell)]
    (south, north), (west, east) = ((min(side), max(side)) for side in zip(*corners, strict=True))
    margin = 0.03 * (north - south)
    return Window(west - margin, south - margin, east + margin, north + margin)
