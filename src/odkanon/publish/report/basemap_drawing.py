"""What still pictures are drawn on: a part of the world with its coast, borders and the names of towns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from odkanon.errors import InputError
from odkanon.publish.report.basemap import UNIT, build_base
from odkanon.publish.report.page_model import Shape, pack_line
from odkanon.publish.report.place_labels import build_names, find_town
from odkanon.publish.report.shapes import Outline, bounds_of

KM_PER_DEGREE = 111.195
LAND, WATER, BORDER, NAME = "#f6f5f1", "#dfe9f0", "#b9b4a8", "#22303c"
MOST_NAMES = 14
_LETTER, _LINE = 0.017, 0.05
"""About how wide a letter and how high a line of a name is, as shares of a map's width and height."""


@dataclass(frozen=True)
class Window:
    """The part of the world that a map shows, in degrees."""

    west: float
    south: float
    east: float
    north: float

    @property
    def shape(self) -> Shape:
        """The window as a packed polygon, for whoever cuts the world to it."""
        corners = [[self.west, self.south], [self.east, self.south], [self.east, self.north], [self.west, self.north]]
        return [[pack_line(corners)]]


def window_of(outlines: Sequence[Outline], near: str | None = None, km: float = 10.0) -> Window | None:
    """Return the part of the world to show: all outlines, or some kilometres around a place.

    Parameters
    ----------
    outlines : sequence of Outline
        What is to be drawn.
    near : str, optional
        The name of a town among the outlines, or longitude and latitude with a comma between them.
    km : float
        How wide the part around a place is.

    Raises
    ------
    InputError
        If there is no such place, no zone around it, or `km` is not above zero.
    """
    if not outlines:
        if near is not None:
            raise InputError(f"these zones have no outlines, so there is no map around {near!r}; leave it out")
        return None
    west, south, east, north = bounds_of(outlines)
    if near is None:
        margin = 0.03 * max(east - west, north - south)
        return Window(west - margin, south - margin, east + margin, north + margin)
    if not km > 0:
        raise InputError(f"a picture should be more than 0 km wide, not {km:g}")
    x, y = _place(near, Window(west, south, east, north))
    high = km / 2 / KM_PER_DEGREE
    wide = high / max(0.05, math.cos(math.radians(y)))
    shown = Window(x - wide, y - high, x + wide, y + high)
    if not (shown.west < east and shown.east > west and shown.south < north and shown.north > south):
        raise InputError(f"there are no zones around {near!r}; write longitude before latitude, such as 2.35,48.86")
    return shown


def _place(near: str, among: Window) -> tuple[float, float]:
    try:
        x, y = (float(part) for part in near.split(","))
    except ValueError:
        found = find_town(near, [among.shape])
        if found is None:
            raise InputError(
                f"there is no town called {near!r} among these zones; write its longitude and latitude instead, "
                "such as 2.35,48.86"
            ) from None
        return found
    return x, y


def draw_ground(axes: Any, window: Window) -> None:
    """Draw land and borders, and show this part of the world at the right proportions for its latitude."""
    from matplotlib.collections import LineCollection, PolyCollection

    axes.set_xlim(window.west, window.east)
    axes.set_ylim(window.south, window.north)
    axes.set_aspect(1 / max(0.05, math.cos(math.radians((window.south + window.north) / 2))))
    base = build_base([window.shape])
    if base is None:
        return
    axes.patch.set_facecolor(WATER)
    land = [_corners(ring) for ring in base["land"]]
    axes.add_collection(PolyCollection(land, facecolors=LAND, edgecolors=BORDER, linewidths=0.5, zorder=0))
    lines = [_corners(line) for line in base["borders"]]
    axes.add_collection(LineCollection(lines, colors=BORDER, linewidths=0.8, zorder=0.5))


def draw_names(axes: Any, window: Window) -> None:
    """Write the names of the largest towns, each where no larger one stands."""
    wide, high = window.east - window.west, window.north - window.south
    taken: list[tuple[float, float, float]] = []
    for name, x, y in _towns(window):
        half = _LETTER * len(name) * wide / 2
        hidden = any(abs(x - a) < half + b and abs(y - c) < _LINE * high for a, b, c in taken)
        if hidden or not window.west + half < x < window.east - half or len(taken) == MOST_NAMES:
            continue
        taken.append((x, half, y))
        # A pale ground instead of an outline of the letters: those would no longer be text in an SVG.
        ground = {"facecolor": "white", "alpha": 0.6, "edgecolor": "none", "pad": 0.8}
        axes.text(x, y, name, ha="center", va="center", fontsize=7, color=NAME, bbox=ground, clip_on=True)


def _towns(window: Window) -> Iterator[tuple[str, float, float]]:
    names = build_names([window.shape])
    if names is not None:
        places = iter(names["place"])
        for name, x, y in zip(names["name"], places, places, strict=True):
            yield name, x / UNIT, y / UNIT


def _corners(packed: Sequence[int]) -> list[tuple[float, float]]:
    x = y = 0
    corners, steps = [], iter(packed)
    for dx, dy in zip(steps, steps, strict=True):
        x, y = x + dx, y + dy
        corners.append((x / UNIT, y / UNIT))
    return corners
