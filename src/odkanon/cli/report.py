"""``odkanon report``: pages and pictures of releases."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import typer

from odkanon.cli.common_options import command
from odkanon.cli.console import console
from odkanon.cli.option_rules import was_given
from odkanon.errors import InputError, OptionConflictError


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
        output = write_full_report(releases[0], basemap=basemap, force=force)
        console.print("This page contains private figures; do not publish it.")
    elif output is None:
        if len(releases) > 1:
            raise InputError("the page of several releases needs a name: -o FILE")
        output = write_report(releases[0], basemap=basemap)
    else:
        check_new(output, force=force)
        write_whole(output, render(releases, basemap=basemap))
    console.add_result(written=[output])
    console.print(f"Wrote {output}; open it in a browser.")
