"""``odkanon picture``: a still picture of a release, or of what differs between two."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from odkanon.cli.say import console, say


class ColourBy(StrEnum):
    """What zones are coloured by."""

    trips = "trips"
    weight = "weight"


def picture(
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="Folder of a saved release.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where to: .png, .svg or .pdf")],
    other: Annotated[
        Path | None, typer.Argument(metavar="[RELEASE2]", help="Another one, to show what differs.")
    ] = None,
    measure: Annotated[ColourBy, typer.Option(help="What zones are coloured by.")] = ColourBy.trips,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE.")] = False,
) -> None:
    """Draw the zones of a release and the sizes of its flows, for a paper.

    Examples
    --------
    `odkanon picture release -o zones.pdf`

    `odkanon picture participants population -o difference.svg`
    """
    from odkanon.core.outputs import check_new
    from odkanon.publish.report.picture import write_picture

    check_new(output, force=force)
    write_picture([release] if other is None else [release, other], output, measure=measure.value)
    console.tell(written=[output])
    say(f"Wrote {output}")
