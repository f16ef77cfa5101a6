"""Still pictures of saved releases, for papers: zones over a plain map, what differs between two, and class sizes.

Matplotlib is imported only when a picture is drawn. The same release gives the same bytes with the same versions
of matplotlib: no dates, no random ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from odkanon.core.atomic_write import whole_file
from odkanon.errors import InputError
from odkanon.publish.report.basemap_drawing import Window, draw_ground, draw_names, window_of
from odkanon.publish.report.page_model import AXES
from odkanon.publish.report.segment_pages import is_index, read_index
from odkanon.publish.report.shapes import Outline, bounds_of, outline_of
from odkanon.publish.report.size_labels import draw_sizes, plain
from odkanon.release_format.folder import SavedRelease, read_release

FORMATS = ("png", "svg", "pdf")
COLOURED = {"trips": "trips", "weight": "weighted trips"}
ONLY = ("#0072b2", "#d55e00")
"""Zones that only the first, or only the second, of two releases has: colour-blind safe."""
SHARED, EDGE = "#d9dde0", "#33414d"
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


@dataclass(frozen=True)
class Look:
    """What a picture shows of a release.

    Attributes
    ----------
    measure : {"trips", "weight"}
        What zones are coloured by.
    axes : tuple of str
        ``origin``, ``destination`` or both.
    near, km
        The part of the world; see `odkanon.publish.report.basemap_drawing.window_of`.
    """

    measure: str = "trips"
    axes: tuple[str, ...] = AXES
    near: str | None = None
    km: float = 10.0

    def window(self, outlines: Sequence[Outline]) -> Window | None:
        """Return the part of the world that all maps of the picture share."""
        return window_of(outlines, self.near, self.km)


def write_picture(
    folders: Sequence[Path],
    target: Path,
    *,
    measure: str = "trips",
    axis: str | None = None,
    near: str | None = None,
    km: float = 10.0,
    paper: bool = False,
) -> Path:
    """Draw one saved release, the difference of two, or all tables of a folder of segments.

    Parameters
    ----------
    folders : sequence of Path
        One or two saved releases, or one folder of segments.
    target : Path
        Where to; the ending decides on PNG, SVG or PDF.
    measure : {"trips", "weight"}
        What zones are coloured by.
    axis : {"origin", "destination"}, optional
        One axis alone.
    near : str, optional
        Only the surroundings of this town, or of this longitude and latitude with a comma between them.
    km : float
        How wide these surroundings are.
    paper : bool
        The two figures of the paper instead: origin zones of two releases side by side, and how hexagons nest.

    Raises
    ------
    InputError
        If the ending is another, a folder is not a saved release, it has no such measure, or there is no such place.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from odkanon import Rule, anonymize, make_survey, read_trips
    >>> from odkanon.read.od_matrix import build_od
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
    if paper and len(folders) != 2:
        raise InputError("the paper's figures are of two releases, such as one for participants and one for population")
    segments = len(folders) == 1 and is_index(folders[0])
    releases = read_index(folders[0]) if segments else [read_release(folder) for folder in folders]
    for release in releases:
        _check(release, measure)
    if axis is not None and axis not in AXES:
        raise InputError(f"an axis is {' or '.join(AXES)}, not {axis!r}")
    look = Look(measure, AXES if axis is None else (axis,), near, km)
    try:
        from matplotlib import rc_context
    except ImportError as error:
        raise InputError("pictures need matplotlib; install it with: pip install 'odkanon[plot]'") from error
    with rc_context(_SETTINGS):
        figure = _draw(releases, look, paper=paper, segments=segments)
        with whole_file(target) as partial:
            figure.savefig(partial, format=kind, dpi=140, metadata=_NO_DATES[kind])
    return target


def _draw(releases: Sequence[SavedRelease], look: Look, *, paper: bool, segments: bool) -> Any:
    if segments:
        from odkanon.publish.report.small_multiples import draw_panels

        return draw_panels(releases, look)
    if paper:
        # Imported here: only these figures know of hexagons.
        from odkanon.publish.report.paper_figures import draw_paper

        return draw_paper(releases[0], releases[1], look)
    return draw_one(releases[0], look) if len(releases) == 1 else draw_two(releases[0], releases[1], look)


def _check(release: SavedRelease, measure: str) -> None:
    if measure not in COLOURED:
        raise InputError(f"zones are coloured by {' or '.join(COLOURED)}, not {measure!r}")
    if not release.flows.num_rows:
        raise InputError(f"{release.name} publishes nothing, so there is nothing to draw")
    if measure not in release.flows.column_names:
        raise InputError(f"{release.name} has no {measure}; colour zones by trips")


def draw_one(release: SavedRelease, look: Look) -> Any:
    """Return a figure of the zones of a release, coloured by mass, above the sizes of its classes."""
    figure = new_figure(6.3, 5.0 if len(look.axes) == 1 else 9.0)
    grid = figure.add_gridspec(2, len(look.axes), height_ratios=[2.2, 1])
    drawn = {axis: outlines_of(release, axis, look.measure) for axis in look.axes}
    everything = [outline for axis in look.axes for outline in drawn[axis]]
    window, scale = look.window(everything), scale_of([outline.mass for outline in everything])
    maps = []
    for column, axis in enumerate(look.axes):
        maps.append(figure.add_subplot(grid[0, column]))
        draw_map(maps[-1], drawn[axis], [scale.to_rgba(outline.mass) for outline in drawn[axis]], window)
        maps[-1].set_title(f"{axis.capitalize()} zones ({len(release.zones_of(axis)):,})", loc="left")
    if everything:
        draw_bar(figure, scale, maps, look)
    draw_sizes(figure.add_subplot(grid[1, :]), release)
    return figure


def draw_two(first: SavedRelease, second: SavedRelease, look: Look) -> Any:
    """Return a figure of two releases side by side: zones that only one of them has stand out."""
    rows = len(look.axes)
    figure = new_figure(2.1 + 4.2 * rows)
    grid = figure.add_gridspec(rows + 1, 2, height_ratios=[2.4] * rows + [1])
    pairs = {axis: [outlines_of(release, axis, "trips") for release in (first, second)] for axis in look.axes}
    window = look.window([outline for pair in pairs.values() for side in pair for outline in side])
    for row, (axis, pair) in enumerate(pairs.items()):
        for side, release in enumerate((first, second)):
            others = {outline.id for outline in pair[1 - side]}
            axes = figure.add_subplot(grid[row, side])
            only = [outline.id not in others for outline in pair[side]]
            draw_map(axes, pair[side], [ONLY[side] if own else SHARED for own in only], window)
            axes.set_title(f"{release.name}: {sum(only):,} of {len(only):,} {axis} zones only here", loc="left")
    for side, release in enumerate((first, second)):
        draw_sizes(figure.add_subplot(grid[rows, side]), release)
    return figure


def draw_bar(figure: Any, scale: Any, maps: Sequence[Any], look: Look) -> None:
    """Draw what the colours of some maps mean."""
    from matplotlib.ticker import LogLocator

    bar = figure.colorbar(scale, ax=maps, orientation="vertical", shrink=0.75, pad=0.02)
    bar.ax.yaxis.set_minor_locator(LogLocator(subs=(2, 3, 5)))
    bar.ax.yaxis.set_major_formatter(plain)
    bar.ax.yaxis.set_minor_formatter(plain)
    bar.set_label(f"{COLOURED[look.measure]} published in a zone")


def new_figure(height: float, width: float = 9.0) -> Any:
    """Return an empty figure, as wide as a page where nothing else is said."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def scale_of(masses: Sequence[float]) -> Any:
    """Return the colours of masses."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm

    low, high = min(masses, default=1.0), max(masses, default=1.0)
    return ScalarMappable(LogNorm(low, max(high, low * 1.01)), COLOURS)


def outlines_of(release: SavedRelease, axis: str, measure: str) -> list[Outline]:
    """Return what can be drawn of an axis, large zones first: where zones overlap, small ones stay in sight."""
    found = [outline for zone in release.zones_of(axis) if (outline := outline_of(zone, measure)) is not None]
    return sorted(found, key=lambda outline: (-outline.area, outline.id))


def bare(axes: Any) -> None:
    """Take the frame and the ticks off: degrees tell nothing on a map of a city."""
    axes.set_xticks([])
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set_visible(False)


def draw_map(
    axes: Any, outlines: Sequence[Outline], colours: Sequence[Any], window: Window | None, alpha: float = 0.95
) -> None:
    """Draw zones over the plain map, and the names of towns over them."""
    bare(axes)
    if window is None or not outlines:
        axes.text(0.5, 0.5, _NO_SHAPES, ha="center", va="center", transform=axes.transAxes)
        return
    draw_ground(axes, window)
    _draw_zones(axes, outlines, colours, alpha)
    draw_names(axes, window)


def _draw_zones(axes: Any, outlines: Sequence[Outline], colours: Sequence[Any], alpha: float) -> None:
    from matplotlib.collections import PathCollection
    from matplotlib.path import Path as Line

    paths = [Line.make_compound_path(*(Line(ring, closed=True) for ring in outline.rings)) for outline in outlines]
    together = sum(outline.area for outline in outlines)
    west, south, east, north = bounds_of(outlines)
    overlapping = together > 1.2 * (east - west) * (north - south)
    faint = min(alpha, 0.35) if overlapping else alpha
    axes.add_collection(PathCollection(paths, facecolors=colours, edgecolors=EDGE, linewidths=0.4, alpha=faint))
