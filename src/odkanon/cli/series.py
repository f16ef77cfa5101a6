"""``odkanon series``: the changes from each release to the next."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from odkanon.cli.common_options import command
from odkanon.cli.console import console, make_table
from odkanon.core.parsing import format_count


@command(
    """
    releases: RELEASE...  Folders of releases on the same zones, in order.
    --output -o DIR  Folder for the table and the page.
    --show NUMBER  The number of changes to print, the largest first.
    --force  Replace an earlier series in DIR.
    """
)
def series(
    releases: list[Path],
    output: Path,
    show: Annotated[int, typer.Option(min=0)] = 10,
    force: bool = False,
) -> None:
    """Show how each flow changed between releases, as a table and a page.

    A series uses published figures only and is as safe as these are together: run `odkanon audit` on them first.

    Examples
    --------
    `odkanon series january february march -o spring`
    """
    from odkanon.publish.release_series import write_series

    found = write_series(releases, output, force=force)
    rows = found.table.to_pylist()
    console.add_result(
        folder=output, releases=found.names, flows=len(rows), flows_in_all=found.common_flows, changes=rows
    )
    console.print(
        f"{format_count(len(rows), 'flows')}, {found.common_flows:,} of them in all "
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
    console.print(f"Wrote {output}: {', '.join(sorted(path.name for path in output.iterdir()))}.")
