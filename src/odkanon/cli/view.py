"""``odkanon view``: the matrix of some of the trips of a cube."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from odkanon.cli.console import console, say
from odkanon.core.formatting import format_count


def view(
    cube: Annotated[Path, typer.Argument(metavar="CUBE", help="Folder of a cube.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for the view.")],
    which: Annotated[
        str | None,
        typer.Option(
            "--where",
            metavar="EXPR",
            help='Which trips, such as \'mode == "car" and hour == "07-09"\'. [default: all]',
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier view in DIR.")] = False,
) -> None:
    """Write the matrix of a mode, of the morning or of everyone, as sums of the published rows of a cube.

    Trips of which the rows tell too little to say stand beside, in columns of their own.

    Examples
    --------
    `odkanon view cube --where 'mode == "car" and hour == "07-09"' -o car-morning`

    `odkanon view cube -o everyone`
    """
    from odkanon.publish.attribute_view import save_view

    found = save_view(cube, output, which, force=force)
    console.tell(
        folder=output,
        pairs=found.table.num_rows,
        trips=found.total(),
        trips_possible=found.total("trips_possible"),
    )
    pairs = format_count(found.table.num_rows, "pairs of zones", "pair of zones")
    say(
        f"Wrote {output}: {format_count(found.total(), 'trips')} that are certainly such, between {pairs}; up to "
        f"{found.total('trips_possible'):,.0f} more may be."
    )
