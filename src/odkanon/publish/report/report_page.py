"""Writing the page: the built template with a model in it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from odkanon.core.atomic_write import check_new, write_whole
from odkanon.errors import InputError
from odkanon.publish.report.basemap import build_base, read_beneath
from odkanon.publish.report.page_model import Shape, build_model
from odkanon.publish.report.place_labels import build_names
from odkanon.publish.report.segment_pages import is_index, read_index
from odkanon.publish.report.tiles import read_tiles
from odkanon.release_format.folder import SavedRelease, read_full, read_release
from odkanon.release_format.names import PAGE
from odkanon.release_format.recipe import INDEX, check_outside

TEMPLATE = "page.html"
MODEL_SLOT = "__ODKANON_MODEL__"
CONNECT_SLOT = "__ODKANON_CONNECT__"


def is_built() -> bool:
    """Tell whether this installation carries the built page; a wheel always does."""
    return resources.files("odkanon.publish.report").joinpath(TEMPLATE).is_file()


def render(folders: Sequence[Path], *, beneath: Path | None = None) -> str:
    """Make one page of one or several saved releases.

    Parameters
    ----------
    folders : sequence of Path
        Saved releases. Two are compared zone by zone; more stand side by side. A single folder of segments that were
        released together becomes one page with a switch.
    beneath : Path, optional
        A GeoJSON or PMTiles file of the user's, such as streets, to draw over the zones. Its attributes are not copied.

    Returns
    -------
    str
        A complete HTML document that asks for nothing from anywhere.

    Raises
    ------
    InputError
        If a folder is not a saved release, or the page was not built.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from odkanon import Rule, anonymize, make_survey, read_trips
    >>> from odkanon.read.od_matrix import build_od
    >>> release = anonymize(build_od(read_trips(make_survey()), resolution=7), Rule(trips=10))
    >>> with TemporaryDirectory() as folder:
    ...     page = render([release.save(Path(folder) / "release")])
    >>> page.startswith("<!doctype html>")
    True
    """
    if not folders:
        raise InputError("no release given; name at least one saved release folder")
    paths = [Path(folder) for folder in folders]
    if len(paths) == 1 and is_index(paths[0]):
        return page_of(read_index(paths[0]), beneath=beneath, switch=paths[0].resolve().name)
    return page_of([read_release(path) for path in paths], beneath=beneath)


def page_of(
    releases: Sequence[SavedRelease], *, beneath: Path | None = None, full: bool = False, switch: str | None = None
) -> str:
    """Make one page of releases whose files have been read, or are about to be written; see `render`.

    ``full`` says on the page that it tells more than the releases do. With a `switch`, which is the name of them all,
    one release is shown at a time.
    """
    model = build_model(releases) | {"full": full, "switch": switch}
    model["base"] = build_base(model["shapes"])
    model["names"] = build_names(model["shapes"])
    model["beneath"] = None if beneath is None else _beneath(beneath, model["shapes"])
    return fill_template(model)


def _beneath(path: Path, shapes: Sequence[Shape]) -> dict[str, list[Any]]:
    return read_tiles(path, shapes) if path.suffix.lower() == ".pmtiles" else read_beneath(path)


def write_report(folder: Path, *, beneath: Path | None = None) -> Path:
    """Write ``report.html`` into a saved release folder and return its path.

    The page of a folder of segments goes beside it, as ``NAME.html``: nothing but releases may be in there.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from odkanon import Rule, anonymize, make_survey, read_trips
    >>> from odkanon.read.od_matrix import build_od
    >>> release = anonymize(build_od(read_trips(make_survey()), resolution=7), Rule(trips=10))
    >>> with TemporaryDirectory() as folder:
    ...     write_report(release.save(Path(folder) / "release")).name
    'report.html'
    """
    folder = Path(folder)
    target = folder.absolute().with_name(f"{folder.resolve().name}.html") if is_index(folder) else folder / PAGE
    write_whole(target, render([Path(folder)], beneath=beneath))
    return target


def full_page_path(folder: Path) -> Path:
    """Return where the full page of a release goes: beside its folder, and never into one that may be published."""
    folder = folder.absolute()
    if (folder.parent / INDEX).is_file():
        return folder.parent.with_name(f"{folder.parent.name}.{folder.name}.full.html")
    return folder.with_name(f"{folder.name}.full.html")


def write_full_report(folder: Path, *, beneath: Path | None = None, force: bool = False) -> Path:
    """Write the page with all that the recipe of a release knows beside its folder; it is not for publication."""
    target = full_page_path(folder)
    check_outside(target)
    check_new(target, force=force)
    write_whole(target, page_of([read_full(folder)], beneath=beneath, full=True))
    return target


def fill_template(model: dict[str, Any], *, connect: str = "'none'") -> str:
    """Put a model into the built page.

    Parameters
    ----------
    model : dict
        As `build_model` makes it.
    connect : str
        Where the page may send requests, as a content security policy source: nowhere for a report, ``'self'`` for
        the live explorer.
    """
    if not is_built():
        raise InputError("the report page has not been built; run `python scripts/build_web.py` in the source tree")
    template = resources.files("odkanon.publish.report").joinpath(TEMPLATE).read_text(encoding="utf-8")
    head, found, tail = template.partition(MODEL_SLOT)
    if not found:
        raise InputError("the built report page is damaged; run `python scripts/build_web.py --force`")
    return head.replace(CONNECT_SLOT, connect) + _embed(model) + tail


def _embed(model: dict[str, Any]) -> str:
    """JSON that cannot end the element it stands in: no ``<`` is left in it."""
    text = json.dumps(model, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
