"""``odkanon picture``: a still picture of a release, or of what differs between two."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from odkanon.cli.console import console, say
from odkanon.cli.option_rules import was_given
from odkanon.errors import InputError


class ColourBy(StrEnum):
    """What zones are coloured by."""

    trips = "trips"
    weight = "weight"


class OneAxis(StrEnum):
    """Where trips start, or where they end."""

    origin = "origin"
    destination = "destination"


def picture(
    context: typer.Context,
    release: Annotated[
        Path, typer.Argument(metavar="RELEASE", help="Folder of a release, or of segments.", show_default=False)
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where to: .png, .svg or .pdf")],
    other: Annotated[
        Path | None, typer.Argument(metavar="[RELEASE2]", help="Another one, to show what differs.")
    ] = None,
    measure: Annotated[ColourBy, typer.Option(help="What zones are coloured by.")] = ColourBy.trips,
    axis: Annotated[OneAxis | None, typer.Option(help="One axis alone. [default: both]", show_default=False)] = None,
    near: Annotated[
        str | None, typer.Option(metavar="PLACE", help="Only around this town, or around LONGITUDE,LATITUDE.")
    ] = None,
    km: Annotated[float, typer.Option(metavar="KM", help="With --near: how wide a part of the map.")] = 10.0,
    paper: Annotated[
        bool, typer.Option("--paper", help="The paper's two figures: zones of two releases, and nested hexagons.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE.")] = False,
) -> None:
    """Draw the zones of a release and the sizes of its flows, for a paper.

    Examples
    --------
    `odkanon picture release -o zones.pdf`

    `odkanon picture participants population -o difference.svg`

    `odkanon picture segments -o segments.png --axis origin`

    `odkanon picture release -o montreuil.png --axis destination --near Montreuil --km 6`

    `odkanon picture participants population -o figures.pdf --paper`
    """
    from odkanon.core.atomic_write import check_new
    from odkanon.publish.report.pictures import write_picture

    if was_given(context, "measure") and other is not None:
        raise InputError("--measure does not apply to two releases: colours say which of them has a zone; leave it out")
    check_new(output, force=force)
    releases = [release] if other is None else [release, other]
    one = None if axis is None else axis.value
    write_picture(releases, output, measure=measure.value, axis=one, near=near, km=km, paper=paper)
    console.tell(written=[output])
    say(f"Wrote {output}")
