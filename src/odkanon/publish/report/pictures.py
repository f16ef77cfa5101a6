"""Still pictures of saved releases, for papers: zones over a basemap, differences between two, and sizes of flows.

Matplotlib is imported only when a picture is drawn. The same release gives the same bytes with the same version of
matplotlib: no dates, no random ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from odkanon.core.atomic_write import whole_file
from odkanon.core.registry import import_extra
from odkanon.errors import InputError, InvalidValueError, UnknownNameError
from odkanon.model.axes import AXES
from odkanon.release_format.folder import SavedRelease, is_linked_folder, open_linked, open_release

FORMATS = ("png", "svg", "pdf")
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
    """Draw one saved release, the difference between two, or a folder of linked releases.

    Parameters
    ----------
    folders : sequence of Path
        One or two release folders, or one folder of linked releases.
    target : Path
        The picture; its suffix selects PNG, SVG or PDF.
    measure : {"trips", "weight"}
        The measure that colours zones.
    axis : {"origin", "destination"}, optional
        Only one axis.
    near : str, optional
        Only the surroundings of a town, or of a longitude and latitude separated by a comma.
    km : float
        Width of these surroundings.
    paper : bool
        Draw the two figures of the paper instead: origin zones of two releases side by side, and how hexagons nest.

    Raises
    ------
    InputError
        If a folder is not a release, it lacks the measure, or there is no such format or place.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from odkanon import Rule, anonymize, make_survey, read_trips
    >>> from odkanon.read.od_matrix import build_od
    >>> release = anonymize(build_od(read_trips(make_survey().slice(0, 4000)), resolution=7), Rule(trips=10))
    >>> with TemporaryDirectory() as folder:
    ...     saved = release.save(Path(folder) / "release")
    ...     write_picture([saved], Path(folder) / "zones.png").stat().st_size > 10_000
    True
    """
    suffix = target.suffix.lower().removeprefix(".")
    if suffix not in FORMATS:
        raise InvalidValueError.expected("the name of a picture", "one that ends in .png, .svg or .pdf", target.name)
    if len(folders) not in (1, 2):
        raise InputError("a picture shows one release, or the difference between two; give one or two folders")
    if paper and len(folders) != 2:
        raise InputError("the paper's figures show two releases, such as one for participants and one for population")
    linked = len(folders) == 1 and is_linked_folder(folders[0])
    releases = open_linked(folders[0]) if linked else [open_release(folder) for folder in folders]
    for release in releases:
        _check_measure(release, measure)
    if axis is not None and axis not in AXES:
        raise UnknownNameError.among("axis", axis, AXES)
    matplotlib = import_extra("matplotlib", purpose="a picture", extra="plot")
    from odkanon.publish.report import figure_drawing as figures

    options = figures.FigureOptions(measure, AXES if axis is None else (axis,), near, km)
    with matplotlib.rc_context(_SETTINGS):
        if linked:
            figure = figures.draw_linked(releases, options)
        elif paper:
            figure = figures.draw_paper(releases[0], releases[1], options)
        elif len(releases) == 1:
            figure = figures.draw_one(releases[0], options)
        else:
            figure = figures.draw_two(releases[0], releases[1], options)
        with whole_file(target) as partial:
            figure.savefig(partial, format=suffix, dpi=140, metadata=_NO_DATES[suffix])
    return target


def _check_measure(release: SavedRelease, measure: str) -> None:
    if measure not in ("trips", "weight"):
        raise UnknownNameError.among("measure", measure, ("trips", "weight"))
    if not release.table.num_rows:
        raise InputError(f"{release.name} publishes nothing, so there is nothing to draw")
    if measure not in release.table.column_names:
        raise InputError(f"{release.name} has no {measure}; colour zones by trips")
