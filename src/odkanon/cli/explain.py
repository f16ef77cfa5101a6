"""``odkanon explain``: what a release lost, for whoever made it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from odkanon.cli.input_options import InputOptions, reads
from odkanon.errors import InputError


@reads
def explain(
    how: InputOptions,
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="Folder of a release.", show_default=False)],
    trips: Annotated[
        Path,
        typer.Option("--trips", metavar="FILE", help="The trips that it was made of; read them as then."),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The page (.html), outside the release.")
    ],
    km: Annotated[float, typer.Option("--km", help="Side of the squares to compare on.")] = 2.0,
    onto: Annotated[
        Path | None,
        typer.Option("--onto", metavar="FILE", help="Compare on these polygons instead.", show_default=False),
    ] = None,
    code: Annotated[
        str | None,
        typer.Option(
            "--id", metavar="NAME", help="With --onto: the property that has their codes.", show_default=False
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the page and its table.")] = False,
) -> None:
    """Show what a release lost: which flows disappeared or were blurred, and where. Not for publication.

    Writes a page with a map, and beside it a table (.csv) of every flow. Both show trips that the release hides: keep
    them.

    Example:

    `odkanon explain release --trips survey.parquet -o lost.html`
    """
    from odkanon.cli.console import console
    from odkanon.cli.stages import stages
    from odkanon.core.atomic_write import check_new, whole_file, write_whole
    from odkanon.read.input_matrix import matrix_of
    from odkanon.read.tables.open_table import write_csv
    from odkanon.read.zone_polygons import read_polygons
    from odkanon.release_format.names import guard_text
    from odkanon.release_format.recipe import check_outside
    from odkanon.study.information_loss import explain as run
    from odkanon.study.information_loss_page import page

    table = output.with_suffix(".csv")
    if output.suffix != ".html":
        raise InputError(f"{output} should end in .html")
    check_outside(output)
    for path in (output, table):
        check_new(path, force=force)
    if not 0.05 <= km <= 1000:
        raise InputError(f"squares have sides of 0.05 to 1000 km, not {km:g}")
    with stages() as stage:
        stage(f"reading {trips}")
        od = matrix_of(how(trips))
        stage(f"comparing them with {release}")
        told = run(release, od, km=km, polygons=None if onto is None else read_polygons(onto, code))
        write_whole(output, page(told))
        with whole_file(table) as partial:
            write_csv(guard_text(told.table()), partial)
    console.tell(written=[output, table], place=told.summary.name, cpc=told.summary.cpc)
    near = "" if told.summary.large_near is None else f", large ones near in {told.summary.large_near:.0%}"
    console.print(f"Flows between places ({told.summary.name}) are right to {told.summary.cpc:.0%}{near}.")
    console.print(f"Wrote {output} and {table}: not for publication, they show what the release hides.")
