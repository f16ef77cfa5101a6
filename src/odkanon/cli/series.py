"""``odkanon series``: what changed from one release to the next."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from odkanon.cli.console import console, make_table, say
from odkanon.core.formatting import format_count


def series(
    releases: Annotated[
        list[Path],
        typer.Argument(
            metavar="RELEASE...", help="Folders of releases on the same zones, in order.", show_default=False
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for the table and the page.")],
    show: Annotated[int, typer.Option("--show", min=0, help="How many of the largest changes to print.")] = 10,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier series in DIR.")] = False,
) -> None:
    """Put releases side by side: how each flow changed, as a table and a page.

    It uses published numbers alone, and is as safe as they are together: ask `odkanon audit` first.

    Example:

    `odkanon series january february march -o spring`
    """
    from odkanon.publish.change_table import save_series

    found = save_series(releases, output, force=force)
    rows = found.table.to_pylist()
    console.tell(folder=output, releases=found.names, flows=len(rows), flows_in_all=found.lasting, changes=rows)
    say(
        f"{format_count(len(rows), 'flows')}, {found.lasting:,} of them in all "
        f"{format_count(len(found.names), 'releases')}."
    )
    totals = make_table("Published trips", ("release", "trips"), left=("release",))
    for name in found.names:
        totals.add_row(name, f"{found.total(name):,}")
    console.print(totals)
    last = f"change {found.names[-1]}"
    known = sorted((row for row in rows if row[last]), key=lambda row: -abs(row[last]))[:show]
    if known:
        table = make_table(f"Largest changes in {found.names[-1]}", ("origin", "destination", "trips", "change"))
        for row in known:
            table.add_row(row["origin"], row["destination"], f"{row[f'trips {found.names[-1]}']:,}", f"{row[last]:+,}")
        console.print(table)
    say(f"Wrote {output}: {', '.join(sorted(path.name for path in output.iterdir()))}.")
