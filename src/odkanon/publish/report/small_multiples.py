"""The tables of segments in one picture: a small map each."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any

from odkanon.core.formatting import format_count
from odkanon.errors import InputError
from odkanon.publish.report.pictures import Look, draw_bar, draw_map, new_figure, outlines_of, scale_of
from odkanon.release_format.folder import SavedRelease

_ABREAST = 3
"""Maps side by side."""


def draw_panels(releases: Sequence[SavedRelease], look: Look) -> Any:
    """Return a figure of the tables of segments, a map each, all coloured on one scale."""
    panels = [(release, axis, outlines_of(release, axis, look.measure)) for axis in look.axes for release in releases]
    everything = [outline for _, _, outlines in panels for outline in outlines]
    if not everything:
        raise InputError("these zones have no shapes to draw; release the segments with the outlines of their zones")
    rows = ceil(len(releases) / _ABREAST) * len(look.axes)
    figure = new_figure(0.8 + 3.2 * rows)
    grid, maps = figure.add_gridspec(rows, _ABREAST), []
    window, scale = look.window(everything), scale_of([outline.mass for outline in everything])
    for at, (release, axis, outlines) in enumerate(panels):
        lines, column = divmod(at % len(releases), _ABREAST)
        row = look.axes.index(axis) * (rows // len(look.axes)) + lines
        maps.append(figure.add_subplot(grid[row, column]))
        draw_map(maps[-1], outlines, [scale.to_rgba(outline.mass) for outline in outlines], window)
        maps[-1].set_title(f"{release.name}: {format_count(len(outlines), f'{axis} zones')}", loc="left")
    draw_bar(figure, scale, maps, look)
    return figure
