"""The page: a built template filled with a model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from odkanon.core.atomic_write import write_whole
from odkanon.errors import InputError
from odkanon.publish.report.basemap import build_basemap, build_labels
from odkanon.publish.report.custom_basemap import read_basemap
from odkanon.publish.report.page_model import PageTexts, build_model
from odkanon.release_format.datapackage import read_texts
from odkanon.release_format.folder import SavedRelease, is_linked_folder, open_linked, open_release
from odkanon.release_format.names import INDEX, PAGE, WHOLE
from odkanon.release_format.recipe import open_full
from odkanon.release_format.targets import check_files

TEMPLATE = "page.html"
MODEL_SLOT = "__ODKANON_MODEL__"
CONNECT_SLOT = "__ODKANON_CONNECT__"


def is_built() -> bool:
    """Return whether this installation contains the built template; a wheel always does."""
    return resources.files("odkanon.publish.report").joinpath(TEMPLATE).is_file()


def render(folders: Sequence[Path], *, basemap: Path | None = None, texts: PageTexts | None = None) -> str:
    """Make a page of one or several saved releases.

    Parameters
    ----------
    folders : sequence of Path
        Release folders. Two are compared zone by zone; more are shown side by side. A single folder of linked releases
        becomes one page with a switch.
    basemap : Path, optional
        A GeoJSON or PMTiles file to draw with the zones, such as streets. Its attributes are not copied.
    texts : PageTexts, optional
        Title, source, period, licence, language and the names of districts; by default, of a single release, those in
        its data package.

    Returns
    -------
    str
        A complete HTML document that makes no requests.

    Raises
    ------
    InputError
        If a folder is not a release, or the template was not built.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from odkanon import Rule, anonymize, make_survey, read_trips
    >>> from odkanon.read.od_matrix import build_od
    >>> release = anonymize(build_od(read_trips(make_survey().slice(0, 4000)), resolution=7), Rule(trips=10))
    >>> with TemporaryDirectory() as folder:
    ...     page = render([release.save(Path(folder) / "release")])
    >>> page.startswith("<!doctype html>")
    True
    """
    if not folders:
        raise InputError("no release given; give at least one release folder")
    paths = [Path(folder) for folder in folders]
    linked = len(paths) == 1 and is_linked_folder(paths[0])
    if len(paths) == 1:
        texts = (texts or PageTexts()).with_defaults(read_texts(paths[0] / WHOLE if linked else paths[0]))
    if linked:
        return make_page(open_linked(paths[0]), basemap=basemap, texts=texts, switch=paths[0].resolve().name)
    return make_page([open_release(path) for path in paths], basemap=basemap, texts=texts)


def make_page(
    releases: Sequence[SavedRelease],
    *,
    basemap: Path | None = None,
    texts: PageTexts | None = None,
    full: bool = False,
    switch: str | None = None,
) -> str:
    """Make a page of opened releases; see `render`.

    Parameters
    ----------
    full : bool
        State on the page that it contains more than the releases.
    switch : str, optional
        Show one release at a time; this is the name of all of them.
    """
    texts = texts or PageTexts()
    model = build_model(releases, texts.districts) | {"full": full, "switch": switch, "titles": texts.titles}
    places = model["shapes"][: model["extent"]]
    model["base"] = build_basemap(places)
    model["names"] = build_labels(places)
    model["beneath"] = None if basemap is None else read_basemap(basemap, places)
    return fill_template(model)


def write_report(folder: Path, *, basemap: Path | None = None, texts: PageTexts | None = None) -> Path:
    """Write ``report.html`` into a release folder and return its path.

    The page of linked releases goes beside their folder as ``NAME.html``, since that may hold nothing but releases.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from odkanon import Rule, anonymize, make_survey, read_trips
    >>> from odkanon.read.od_matrix import build_od
    >>> release = anonymize(build_od(read_trips(make_survey().slice(0, 4000)), resolution=7), Rule(trips=10))
    >>> with TemporaryDirectory() as folder:
    ...     write_report(release.save(Path(folder) / "release")).name
    'report.html'
    """
    folder = Path(folder)
    beside = folder.absolute().with_name(f"{folder.resolve().name}.html")
    target = beside if is_linked_folder(folder) else folder / PAGE
    write_whole(target, render([folder], basemap=basemap, texts=texts))
    return target


def write_full_report(
    folder: Path, *, basemap: Path | None = None, texts: PageTexts | None = None, force: bool = False
) -> Path:
    """Write a page with everything in the recipe of a release, beside its folder. Not for publication."""
    absolute = folder.absolute()
    if (absolute.parent / INDEX).is_file():
        target = absolute.parent.with_name(f"{absolute.parent.name}.{absolute.name}.full.html")
    else:
        target = absolute.with_name(f"{absolute.name}.full.html")
    check_files(target, force=force)
    texts = (texts or PageTexts()).with_defaults(read_texts(folder))
    write_whole(target, make_page([open_full(folder)], basemap=basemap, texts=texts, full=True))
    return target


def fill_template(model: dict[str, Any], *, connect: str = "'none'") -> str:
    """Put a model into the template.

    Parameters
    ----------
    model : dict
        As `build_model` returns it.
    connect : str
        Where the page may send requests, as a source of its content security policy: nowhere for a report, ``'self'``
        for the live explorer.
    """
    if not is_built():
        raise InputError("the report page has not been built; run `python scripts/build_web.py` in the source tree")
    template = resources.files("odkanon.publish.report").joinpath(TEMPLATE).read_text(encoding="utf-8")
    before, found, after = template.partition(MODEL_SLOT)
    if not found:
        raise InputError("the built report page is damaged; run `python scripts/build_web.py --force`")
    return before.replace(CONNECT_SLOT, connect) + _embed(model) + after


def _embed(model: dict[str, Any]) -> str:
    """Return JSON that cannot end the HTML element it is in: it contains no ``<``."""
    text = json.dumps(model, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
