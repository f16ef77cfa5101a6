"""``odkanon report``: the page of one release, or of several side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from odkanon.cli.console import console, say
from odkanon.errors import InputError


def report(
    releases: Annotated[
        list[Path], typer.Argument(metavar="RELEASE...", help="Folders of saved releases.", show_default=False)
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to. [default: report.html in the one release]"),
    ] = None,
    beneath: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="GeoJSON or PMTiles of yours, such as streets, to draw over the zones."),
    ] = None,
    full: Annotated[
        bool,
        typer.Option("--full", help="All that the recipe knows, as RELEASE.full.html beside it. Not for publication."),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE.")] = False,
) -> None:
    """Make a page with maps and numbers: one file, no network needed.

    Two releases are compared zone by zone, more stand side by side. Segments are one page with a switch.

    Examples
    --------
    `odkanon report release`

    `odkanon report participants population -o compared.html`

    `odkanon report release --full`
    """
    from odkanon.core.atomic_write import check_new, write_whole
    from odkanon.publish.report import render, write_full_report, write_report

    if full:
        if output is not None or len(releases) > 1:
            raise InputError("a full page is of one release, and goes beside it; leave out -o and other releases")
        output = write_full_report(releases[0], beneath=beneath, force=force)
        say("This page tells more than the release does: it is for you, not for publication.")
    elif output is None:
        if len(releases) > 1:
            raise InputError("say where to write the page of several releases, with -o FILE")
        output = write_report(releases[0], beneath=beneath)
    else:
        check_new(output, force=force)
        write_whole(output, render(releases, beneath=beneath))
    console.tell(written=[output])
    say(f"Wrote {output}; open it in a browser.")
