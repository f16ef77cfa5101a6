"""``odkanon report``: the page of one release, or of several side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
        Path | None, typer.Option(metavar="FILE", help="GeoJSON of yours to draw beneath the zones.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE.")] = False,
) -> None:
    """Make a page with maps and numbers: one file, no network needed.

    Two releases are compared zone by zone, more stand side by side.

    Examples
    --------
    `odkanon report release`

    `odkanon report participants population -o compared.html`
    """
    from odkanon.core.outputs import partial_folder, write_text
    from odkanon.publish.report import render, write_report

    if output is None and len(releases) > 1:
        raise InputError("say where to write the page of several releases, with -o FILE")
    if output is None:
        output = write_report(releases[0], beneath=beneath)
    else:
        if output.exists() and not force:
            raise InputError(f"{output} exists already; choose another name, or replace it with --force")
        page = render(releases, beneath=beneath)
        with partial_folder(output) as partial:
            write_text(partial / output.name, page)
            (partial / output.name).replace(output)
    typer.echo(f"Wrote {output}; open it in a browser.")
