"""The compact model that the page draws: columns instead of rows, each distinct shape once.

The live explorer sends the same model; `web/src/model.ts` is the only reader. A shape is a list of polygons, a polygon
a list of rings, and a ring one flat list of whole millionths of a degree: longitude and latitude of the first corner,
then the steps from corner to corner. A box has two entries only: a corner and its size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from odkanon.estimate.town_names import find_home
from odkanon.methods.method_registry import words_for
from odkanon.model.measures import MEASURES
from odkanon.publish.report.detail_levels import build_levels, choose_levels
from odkanon.publish.report.level_estimators import choose_estimator
from odkanon.publish.report.packing import ShapeTable, pack_numbers
from odkanon.publish.report.place_names import Districts, main_town
from odkanon.release_format.folder import SavedRelease
from odkanon.zoning.spherical_geometry import polygon_area_km2

FORMAT = 2
MAX_ROUGH = 150
"""At most this many areas are outlined that are only roughly known."""
_ROUGHER = 1.5


@dataclass(frozen=True, eq=False)
class PageTexts:
    """What the steward calls a release, on its page and in its data package.

    Attributes
    ----------
    title, source, period, licence : str, optional
        As a reader should see them.
    language : str, optional
        The language in which the page opens: ``en``, ``es`` or ``fr``; by default that of the reader.
    districts : Districts, optional
        Polygons with the names that people use.
    """

    title: str | None = None
    source: str | None = None
    period: str | None = None
    licence: str | None = None
    language: str | None = None
    districts: Districts | None = None

    @property
    def titles(self) -> dict[str, str]:
        """The texts that were given."""
        given = {name: getattr(self, name) for name in ("title", "source", "period", "licence", "language")}
        return {name: text for name, text in given.items() if text}

    def with_defaults(self, known: Mapping[str, str]) -> PageTexts:
        """Return the texts with others where none are given."""
        return PageTexts(**{**known, **self.titles}, districts=self.districts)


def build_model(
    releases: Sequence[SavedRelease], districts: Districts | None = None, *, fast: bool = False
) -> dict[str, Any]:
    """Pack releases into the model of one page, ready for JSON.

    Parameters
    ----------
    releases : sequence of SavedRelease
        At least one; two are compared, more are shown one at a time.
    districts : Districts, optional
        Polygons with names, the coarsest level of detail.
    fast : bool
        Spread rows evenly instead of estimating flows, for the slider of the explorer.
    """
    shapes = ShapeTable()
    chosen = choose_levels(releases, districts)
    estimators = [choose_estimator(release, chosen, fast=fast) for release in releases]
    levels = build_levels(chosen, releases, estimators, shapes, districts, find_home(releases))
    extent = list(shapes.packed)
    packed = [_pack_release(release, shapes) for release in releases]
    return {
        "format": FORMAT,
        "releases": packed,
        "levels": levels,
        "city": main_town(releases),
        "shapes": shapes.packed,
        "extent": len(extent),
    }


def _pack_release(release: SavedRelease, shapes: ShapeTable) -> dict[str, Any]:
    """Pack the manifest of one release, the sizes of its flows and its large zones."""
    # Without the running time: the same release should give the same page.
    about = {name: value for name, value in release.manifest.items() if name != "seconds"}
    words = words_for(str(release.manifest.get("method")))
    columns = [name for name in MEASURES if name in release.table.column_names]
    order = sorted(columns, key=["trips", *columns].index)
    table = release.table.select(columns).sort_by([(name, "ascending") for name in order])
    sizes = {name: pack_numbers(table.column(name).to_numpy()) for name in columns}
    return {"name": release.name, "about": about, "method": words, "flows": sizes, "rough": _rough(release, shapes)}


def _rough(release: SavedRelease, shapes: ShapeTable) -> list[int]:
    """Return the outlines of the zones that are larger than most, the largest first."""
    known = [(polygon_area_km2(each), each) for each in release.zone_index.outlines if each is not None]
    if not known:
        return []
    typical = sorted(area for area, _ in known)[len(known) // 2]
    large = sorted((one for one in known if one[0] > _ROUGHER * typical), key=lambda one: -one[0])
    return list(dict.fromkeys(shapes.number(outline) for _, outline in large))[:MAX_ROUGH]
