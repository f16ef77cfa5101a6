"""``odkanon report``: pages and pictures of releases."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from odkanon.cli.common_options import command
from odkanon.cli.console import console
from odkanon.cli.option_rules import was_given
from odkanon.errors import InputError, OptionConflictError

_PICTURE = "Pictures"


class ColourBy(StrEnum):
    """The measure that colours zones."""

    trips = "trips"
    weight = "weight"


class PictureAxis(StrEnum):
    """The ends of trips that a picture shows."""

    origin = "origin"
    destination = "destination"


@command
def report(
    context: typer.Context,
    releases: Annotated[
        list[Path],
        typer.Argument(metavar="RELEASE...", help="Folders of releases, or of segments.", show_default=False),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The page. [default: report.html in the release]"),
    ] = None,
    beneath: Annotated[
        Path | None,
        typer.Option(
            "--basemap", metavar="FILE", help="Draw this GeoJSON or PMTiles file, such as streets, over the zones."
        ),
    ] = None,
    full: Annotated[
        bool,
        typer.Option(
            "--full",
            help="Write RELEASE.full.html next to the release, with all figures of the recipe. Do not publish.",
        ),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing FILE.")] = False,
    picture: Annotated[
        Path | None,
        typer.Option(
            "--picture",
            metavar="FILE",
            rich_help_panel=_PICTURE,
            help="Draw a picture for a paper instead of a page: .png, .svg or .pdf. Two releases: their difference.",
        ),
    ] = None,
    measure: Annotated[
        ColourBy, typer.Option(rich_help_panel=_PICTURE, help="Colour the zones by this measure.")
    ] = ColourBy.trips,
    axis: Annotated[
        PictureAxis | None,
        typer.Option(
            rich_help_panel=_PICTURE, help="Draw one end of the trips only. [default: both]", show_default=False
        ),
    ] = None,
    near: Annotated[
        str | None,
        typer.Option(
            metavar="PLACE", rich_help_panel=_PICTURE, help="Draw the area around a town or LONGITUDE,LATITUDE."
        ),
    ] = None,
    km: Annotated[
        float, typer.Option(metavar="KM", rich_help_panel=_PICTURE, help="With --near: the width of that area.")
    ] = 10.0,
    paper: Annotated[
        bool,
        typer.Option(
            "--paper",
            rich_help_panel=_PICTURE,
            help="Draw the two figures of the paper: zones of two releases, and nested hexagons.",
        ),
    ] = False,
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
        output = write_full_report(releases[0], beneath=beneath, force=force)
        console.print("This page contains private figures; do not publish it.")
    elif output is None:
        if len(releases) > 1:
            raise InputError("the page of several releases needs a name: -o FILE")
        output = write_report(releases[0], beneath=beneath)
    else:
        check_new(output, force=force)
        write_whole(output, render(releases, beneath=beneath))
    console.add_result(written=[output])
    console.print(f"Wrote {output}; open it in a browser.")
