"""``odkanon audit``: a second look at releases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from odkanon.cli.console import console, make_table, say
from odkanon.cli.input_options import InputOptions, reads
from odkanon.core.formatting import format_count
from odkanon.core.parsing import parse_json

if TYPE_CHECKING:
    from odkanon.audit import Report

RULE = "What flows should meet, whatever they promise"


@reads
def audit(
    how: InputOptions,
    releases: Annotated[
        list[Path],
        typer.Argument(
            metavar="RELEASE...",
            help="Folders of releases, or of segments released together; or bare tables of origin, destination, trips.",
        ),
    ],
    trips: Annotated[
        Path | None,
        typer.Option("--trips", metavar="FILE", help="The trips they were made of, to count all flows again."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write everything found as JSON, too; an earlier report is replaced."
        ),
    ] = None,
    cumulative: Annotated[
        bool, typer.Option("--cumulative", help="Each release contains those with fewer trips, as in a growing series.")
    ] = False,
    disjoint: Annotated[
        bool, typer.Option("--disjoint", help="Releases that do not say how they are related share no trips.")
    ] = False,
    k: Annotated[int | None, typer.Option("--k", rich_help_panel=RULE, help="At least k of what it counts.")] = None,
    min_trips: Annotated[int | None, typer.Option(rich_help_panel=RULE, help="At least so many trips.")] = None,
    min_weight: Annotated[float | None, typer.Option(rich_help_panel=RULE, help="At least this weight.")] = None,
    min_persons: Annotated[int | None, typer.Option(rich_help_panel=RULE, help="At least so many persons.")] = None,
    min_households: Annotated[
        int | None, typer.Option(rich_help_panel=RULE, help="At least so many households.")
    ] = None,
    show: Annotated[int, typer.Option("--show", min=0, help="How many lines of each kind to print.")] = 20,
    force: Annotated[bool, typer.Option("--force", help="Replace the file, whatever it is.")] = False,
) -> None:
    """Check releases independently: rule, totals, zones, persons, and what several give away together.

    What it finds it measures by the rule of each release, and by yours where that asks for more.

    Examples
    --------
    `odkanon audit release --trips survey.parquet`

    `odkanon audit everyone women men --trips survey.parquet -o audit.json`

    `odkanon audit flows.csv --k 10`
    """
    from odkanon.audit import audit_releases as run
    from odkanon.cli.stages import stages
    from odkanon.core.atomic_write import check_new, write_whole
    from odkanon.release_format.recipe import check_outside

    if output is not None:
        check_outside(output)
        check_new(output, force=force or _is_report(output))
    asked = {"trips": min_trips, "weight": min_weight, "persons": min_persons, "households": min_households}
    reading = how(trips)
    with stages() as stage:
        stage(f"looking at {len(releases)} folders")
        report = run(
            releases,
            trips=None if trips is None else reading,
            hierarchy=reading.tree,
            cumulative=cumulative,
            disjoint=disjoint,
            k=k,
            least={name: value for name, value in asked.items() if value is not None},
        )
    show_report(report, show)
    console.tell(**report.as_dict())
    if output is not None:
        write_whole(output, json.dumps(report.as_dict(), indent=2, ensure_ascii=False) + "\n")
        say(f"Wrote {output}")
    raise typer.Exit(0 if report.clean else 1)


def _is_report(path: Path) -> bool:
    """Tell whether a file is what an earlier audit wrote."""
    try:
        return {"clean", "findings", "checks"} <= set(parse_json(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return False


def show_report(report: Report, limit: int) -> None:
    """Print what was found, findings before notes, and a verdict."""
    from rich.text import Text

    headings = ("", "check", "what was found")
    table = make_table(f"Audit of {format_count(len(report.releases), 'releases')}", headings, left=headings)
    table.show_lines = True
    shown: dict[tuple[str, str], int] = {}
    for each in report.findings:
        kind = (each.severity, each.check)
        shown[kind] = shown.get(kind, 0) + 1
        if shown[kind] <= limit:
            about = "" if each.check == "difference" else f"{', '.join(each.releases)}: "
            style = "bold red" if each.severity == "finding" else "yellow"
            table.add_row(Text(each.severity, style), each.check, about + each.message)
    if table.row_count:
        console.print(table)
    for (severity, check), count in shown.items():
        if count > limit:
            console.print(f"... and {count - limit:,} more {severity}s on {check}; see them all with -o audit.json")
    _show_compared(report)
    verdict = [f"Looked at: {', '.join(report.checks)}"]
    count = sum(each.severity == "finding" for each in report.findings)
    verdict.append("clean." if report.clean else f"{count:,} findings.")
    console.print("; ".join(verdict), style="bold green" if report.clean else "bold red")


def _show_compared(report: Report) -> None:
    """Print what was compared with what, and what was not."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for each in report.compared:
        groups.setdefault((each.compared, each.relation, each.how), []).append(" and ".join(each.releases))
    for (compared, relation, how), names in groups.items():
        more = f" and {len(names) - 3:,} more pairs" if len(names) > 3 else ""
        text = f"{_RELATIONS[relation]} ({how}), {compared}: {'; '.join(names[:3])}{more}"
        console.print(f"Compared: {text}", style="red" if relation == "unknown" else None)


_RELATIONS = {
    "disjoint": "no trips in common",
    "same": "the same trips",
    "part": "the first a part of the second",
    "overlap": "some trips in common",
    "unknown": "not known whether they share trips",
}
