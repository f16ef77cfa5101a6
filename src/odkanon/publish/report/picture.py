"""Still pictures of saved releases, for papers: zones of both axes, what differs between two, and class sizes.

Matplotlib is imported only when a picture is drawn. The same release gives the same bytes with the same versions
of matplotlib: no dates, no random ids.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from odkanon.errors import InputError
from odkanon.model.measures import MEASURES
from odkanon.publish.report.model import AXES
from odkanon.publish.report.shapes import Outline, outline_of
from odkanon.publish.saved import SavedRelease, read_release

FORMATS = ("png", "svg", "pdf")
COLOURED = {"trips": "trips", "weight": "weighted trips"}
ONLY = ("#0072b2", "#d55e00")
"""Zones that only the first, or only the second, of two releases has: colour-blind safe."""
SHARED, EDGE, BAR, BELOW = "#d9dde0", "#33414d", "#225ea8", "#d55e00"
COLOURS = "YlGnBu"
_NO_DATES = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
_SETTINGS: dict[Any, Any] = {
    "svg.hashsalt": "odkanon",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
_NO_SHAPES = "These zones have no shapes to draw."


def write_picture(folders: Sequence[Path], target: Path, *, measure: str = "trips") -> Path:
    """Draw one saved release, or the difference of two.

    Parameters
    ----------
    folders : sequence of Path
        One or two saved releases.
    target : Path
        Where to; the ending decides on PNG, SVG or PDF.
    measure : {"trips", "weight"}
        What zones are coloured by.

    Raises
    ------
    InputError
        If the ending is another, a folder is not a saved release, or it has no such measure.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from odkanon import Rule, anonymize, build_od, make_survey, read_trips
    >>> release = anonymize(build_od(read_trips(make_survey()), resolution=7), Rule(trips=10))
    >>> with TemporaryDirectory() as folder:
    ...     saved = release.save(Path(folder) / "release")
    ...     write_picture([saved], Path(folder) / "zones.png").stat().st_size > 10_000
    True
    """
    kind = target.suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise InputError(f"{target.name} should end in .png, .svg or .pdf")
    if len(folders) not in (1, 2):
        raise InputError("a picture shows one release, or the difference of two")
    releases = [read_release(folder) for folder in folders]
    for release in releases:
        _check(release, measure)
    try:
        from matplotlib import rc_context
    except ImportError as error:
        raise InputError("pictures need matplotlib; install it with: pip install 'odkanon[plot]'") from error
    with rc_context(_SETTINGS):
        figure = draw_one(releases[0], measure) if len(releases) == 1 else draw_two(releases[0], releases[1])
        target.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(target, format=kind, dpi=140, metadata=_NO_DATES[kind])
    return target


def _check(release: SavedRelease, measure: str) -> None:
    if measure not in COLOURED:
        raise InputError(f"zones are coloured by {' or '.join(COLOURED)}, not {measure!r}")
    if not release.flows.num_rows:
        raise InputError(f"{release.name} publishes nothing, so there is nothing to draw")
    if measure not in release.flows.column_names:
        raise InputError(f"{release.name} has no {measure}; colour zones by trips")


def draw_one(release: SavedRelease, measure: str) -> Any:
    """Return a figure of both axes of a release, coloured by mass, above the sizes of its classes."""
    from matplotlib.ticker import LogLocator

    figure = _figure(6.3)
    grid = figure.add_gridspec(2, 2, height_ratios=[2.2, 1])
    outlines = {axis: _outlines(release, axis, measure) for axis in AXES}
    masses = [outline.mass for axis in AXES for outline in outlines[axis]]
    maps = [figure.add_subplot(grid[0, column]) for column in range(2)]
    scale = _scale(masses)
    for axes, axis in zip(maps, AXES, strict=True):
        drawn = outlines[axis]
        _draw_zones(axes, drawn, [scale.to_rgba(outline.mass) for outline in drawn])
        axes.set_title(f"{axis.capitalize()} zones ({_count(release, axis):,})", loc="left")
    if masses:
        _share_limits(maps, [outline for axis in AXES for outline in outlines[axis]])
        bar = figure.colorbar(scale, ax=maps, orientation="vertical", shrink=0.75, pad=0.02)
        bar.ax.yaxis.set_minor_locator(LogLocator(subs=(2, 3, 5)))
        bar.ax.yaxis.set_major_formatter(_plain)
        bar.ax.yaxis.set_minor_formatter(_plain)
        bar.set_label(f"{COLOURED[measure]} published in a zone")
    _draw_sizes(figure.add_subplot(grid[1, :]), release)
    return figure


def draw_two(first: SavedRelease, second: SavedRelease) -> Any:
    """Return a figure of two releases side by side: zones that only one of them has stand out."""
    figure = _figure(10.5)
    grid = figure.add_gridspec(3, 2, height_ratios=[2.4, 2.4, 1])
    maps, everything = [], []
    for row, axis in enumerate(AXES):
        pair = [_outlines(release, axis, "trips") for release in (first, second)]
        for side, release in enumerate((first, second)):
            others = {outline.id for outline in pair[1 - side]}
            axes = figure.add_subplot(grid[row, side])
            only = [outline.id not in others for outline in pair[side]]
            _draw_zones(axes, pair[side], [ONLY[side] if own else SHARED for own in only])
            axes.set_title(f"{release.name}: {sum(only):,} of {len(only):,} {axis} zones only here", loc="left")
            maps.append(axes)
            everything += pair[side]
    _share_limits(maps, everything)
    for side, release in enumerate((first, second)):
        _draw_sizes(figure.add_subplot(grid[2, side]), release)
    return figure


def _figure(height: float) -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=(9.0, height), layout="constrained")


def _scale(masses: Sequence[float]) -> Any:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm

    low, high = min(masses, default=1.0), max(masses, default=1.0)
    return ScalarMappable(LogNorm(low, max(high, low * 1.01)), COLOURS)


def _count(release: SavedRelease, axis: str) -> int:
    return len(release.zones_of(axis))


def _outlines(release: SavedRelease, axis: str, measure: str) -> list[Outline]:
    """Return what can be drawn of an axis, large zones first: where zones overlap, small ones stay in sight."""
    found = [outline for zone in release.zones_of(axis) if (outline := outline_of(zone, measure)) is not None]
    return sorted(found, key=lambda outline: (-outline.area, outline.id))


def _draw_zones(axes: Any, outlines: Sequence[Outline], colours: Sequence[Any]) -> None:
    from matplotlib.collections import PathCollection
    from matplotlib.path import Path as Line

    axes.set_axis_off()
    if not outlines:
        axes.text(0.5, 0.5, _NO_SHAPES, ha="center", va="center", transform=axes.transAxes)
        return
    paths = [Line.make_compound_path(*(Line(ring, closed=True) for ring in outline.rings)) for outline in outlines]
    together = sum(outline.area for outline in outlines)
    west, south, east, north = _bounds(outlines)
    overlapping = together > 1.2 * (east - west) * (north - south)
    axes.add_collection(
        PathCollection(paths, facecolors=colours, edgecolors=EDGE, linewidths=0.4, alpha=0.35 if overlapping else 0.95)
    )


def _share_limits(maps: Sequence[Any], outlines: Sequence[Outline]) -> None:
    """Give all maps the same part of the world, at the right proportions for its latitude."""
    if not outlines:
        return
    west, south, east, north = _bounds(outlines)
    margin = 0.03 * max(east - west, north - south)
    for axes in maps:
        axes.set_xlim(west - margin, east + margin)
        axes.set_ylim(south - margin, north + margin)
        axes.set_aspect(1 / max(0.05, math.cos(math.radians((south + north) / 2))))


def _bounds(outlines: Sequence[Outline]) -> tuple[float, float, float, float]:
    boxes = [outline.bounds for outline in outlines]
    return (
        min(box[0] for box in boxes),
        min(box[1] for box in boxes),
        max(box[2] for box in boxes),
        max(box[3] for box in boxes),
    )


def _draw_sizes(axes: Any, release: SavedRelease) -> None:
    """Draw how many flows are of which size, in the measure of the rule, with its threshold."""
    rule = release.about["rule"]
    counted = next((name for name in MEASURES if rule.get(name) is not None), "trips")
    sizes = release.measure(counted if counted in release.flows.column_names else "trips").tolist()
    threshold = rule.get(counted) or min(sizes)
    edges = _edges(min(sizes), max(sizes), threshold, whole=counted != "weight")
    axes.hist(sizes, bins=edges, color=BAR, edgecolor="white", linewidth=0.5)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(_plain)
    axes.set_ylim(top=1.22 * axes.get_ylim()[1])
    axes.axvline(threshold, color=BELOW, linestyle="--", linewidth=1.2)
    axes.annotate(
        f"threshold {_plain(round(threshold, 1))}", (threshold, 1.0), (4, -2), xycoords=("data", "axes fraction"),
        textcoords="offset points", va="top", color=BELOW,
    )  # fmt: skip
    words = "weighted trips" if counted == "weight" else MEASURES[counted].title
    axes.set_xlabel(f"{words} in one published flow")
    axes.set_ylabel("flows")
    axes.set_title(f"{release.name}: sizes of {len(sizes):,} published flows", loc="left")


def _plain(value: float, _: int | None = None) -> str:
    return f"{value:,.10g}"


def _edges(least: float, most: float, threshold: float, *, whole: bool) -> list[float]:
    """Return bins that grow by equal factors; the threshold is one boundary, so no bar stands on both sides of it."""
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
