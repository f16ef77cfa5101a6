"""``odkanon report``: pages and pictures of releases."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from odkanon.cli.common_options import OptionGroup, command, describe_options
from odkanon.cli.console import console
from odkanon.cli.option_rules import was_given
from odkanon.errors import InputError, OptionConflictError

if TYPE_CHECKING:
    from odkanon.publish.report import PageTexts


class Language(StrEnum):
    """The languages of the page."""

    en = "en"
    es = "es"
    fr = "fr"


@dataclass(frozen=True)
class PageOptions(OptionGroup):
    """What the release is called on its page and in its data package; call it for the texts."""

    OPTIONS = describe_options(
        """
        Texts and names on the page:
        --title TEXT  The title of the page. [default: the place]
        page_source: --source TEXT  Where the trips come from, such as 'Household survey 2012'.
        page_period: --period TEXT  When the trips were made, such as 'a working day in 2012'.
        page_licence: --licence TEXT  The licence of the release: a name, or a URL.
        names: --names FILE  Polygons with the names that people use, such as districts: GeoPackage, Shapefile, GeoJSON.
        --name-column NAME  With --names: the column with the names. [default: the one that looks like it]
        --language  The language in which the page opens. [default: that of the reader]
        """,
        {
            "title": (str | None, None),
            "page_source": (str | None, None),
            "page_period": (str | None, None),
            "page_licence": (str | None, None),
            "names": (Path | None, None),
            "name_column": (str | None, None),
            "language": (Language | None, None),
        },
    )

    def __call__(self) -> PageTexts:
        """Return the texts, with the districts read."""
        from odkanon.publish.report import PageTexts
        from odkanon.publish.report.place_names import read_districts

        names: Path | None = self.values["names"]
        language: Language | None = self.values["language"]
        return PageTexts(
            title=self.values["title"],
            source=self.values["page_source"],
            period=self.values["page_period"],
            licence=self.values["page_licence"],
            language=language and language.value,
            districts=None if names is None else read_districts(names, self.values["name_column"]),
        )


class ColourBy(StrEnum):
    """The measure that colours zones."""

    trips = "trips"
    weight = "weight"


class PictureAxis(StrEnum):
    """The ends of trips that a picture shows."""

    origin = "origin"
    destination = "destination"


@command(
    """
    releases: RELEASE...  Folders of releases, or of segments.
    --output -o FILE  The page. [default: report.html in the release]
    basemap: --basemap FILE  Draw this GeoJSON or PMTiles file, such as streets, over the zones.
    --full  Write RELEASE.full.html next to the release, with all figures of the recipe. Do not publish.
    --force  Replace an existing FILE.
    Pictures:
    --picture FILE  Draw a picture for a paper instead of a page: .png, .svg or .pdf. Two releases: their difference.
    --measure  Colour the zones by this measure.
    --axis  Draw one end of the trips only. [default: both]
    --near PLACE  Draw the area around a town or LONGITUDE,LATITUDE.
    --km KM  With --near: the width of that area.
    --paper  Draw the two figures of the paper: zones of two releases, and nested hexagons.
    """
)
def report(
    context: typer.Context,
    releases: list[Path],
    page: PageOptions,
    output: Path | None = None,
    basemap: Path | None = None,
    full: bool = False,
    force: bool = False,
    picture: Path | None = None,
    measure: ColourBy = ColourBy.trips,
    axis: PictureAxis | None = None,
    near: str | None = None,
    km: float = 10.0,
    paper: bool = False,
) -> None:
    """Write a page with maps and figures, or a picture for a paper.

    The page is one file that needs no network. Two releases are compared zone by zone; more are shown side by side.
    Segments are one page with a switch.

    Examples
    --------
    `odkanon report release`

    `odkanon report release --title "Where Santiago travels" --names communes.gpkg --language es`

    `odkanon report participants population -o compared.html`

    `odkanon report release --full`

    `odkanon report release --picture zones.pdf`

    `odkanon report participants population --picture difference.svg`

    `odkanon report release --picture montreuil.png --axis destination --near Montreuil --km 6`
    """
    from odkanon.core.atomic_write import check_new, write_whole
    from odkanon.publish.report import render, write_full_report, write_report

    if picture is not None:
        from odkanon.publish.report.pictures import write_picture

        if len(releases) == 2 and was_given(context, "measure"):
            why = "colours show which of them has a zone"
            raise OptionConflictError.between("--measure", "two releases", why)
        if len(releases) > 2:
            raise InputError(f"a picture shows one release or two, not {len(releases)}")
        check_new(picture, force=force)
        one = None if axis is None else axis.value
        write_picture(releases, picture, measure=measure.value, axis=one, near=near, km=km, paper=paper)
        console.add_result(written=[picture])
        console.print(f"Wrote {picture}")
        return
    if full:
        if output is not None or len(releases) > 1:
            raise InputError("--full takes one release and writes next to it; leave out -o and other releases")
        output = write_full_report(releases[0], basemap=basemap, texts=page(), force=force)
        console.print("This page contains private figures; do not publish it.")
    elif output is None:
        if len(releases) > 1:
            raise InputError("the page of several releases needs a name: -o FILE")
        output = write_report(releases[0], basemap=basemap, texts=page())
    else:
        check_new(output, force=force)
        write_whole(output, render(releases, basemap=basemap, texts=page()))
    console.add_result(written=[output])
    console.print(f"Wrote {output}; open it in a browser.")
