"""``odkanon audit``: an independent check of releases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from odkanon.cli.common_options import command
from odkanon.cli.console import console, make_table
from odkanon.cli.request_options import InputOptions
from odkanon.core.parsing import format_count, parse_json

if TYPE_CHECKING:
    from odkanon.audit import Report


@command(
    """
    releases: RELEASE...  Folders of releases or of segments; tables with origin, destination, trips; one folder with
        releases in it; or recipes (NAME.recipe.json), which name the trips and how to read them.
    --trips FILE  The trips behind the releases, to recount every flow; a file, a folder or a pattern. Repeatable. Of a
        folder with releases, the recipes name them; if they were moved, the folder where they are.
    --output -o FILE  Write all findings as JSON; an earlier report is replaced.
    --cumulative  Each release contains the trips of all smaller ones, as in a growing series.
    --disjoint  Releases without information on how they are related share no trips.
    --show NUMBER  Lines to print for each check.
    --force  Replace FILE even if it is not a report.
    Minimum counts, in addition to the rule of each release:
    --k  Of whatever the rule counts.
    --min-trips  Trips of a flow.
    --min-weight  Weight of a flow.
    --min-persons  Persons of a flow.
    --min-households  Households of a flow.
    """
)
def audit(
    how: InputOptions,
    releases: list[Path],
    trips: list[Path] = [],  # noqa: B006 - typer copies it
    output: Path | None = None,
    cumulative: bool = False,
    disjoint: bool = False,
    k: int | None = None,
    min_trips: int | None = None,
    min_weight: float | None = None,
    min_persons: int | None = None,
    min_households: int | None = None,
    show: Annotated[int, typer.Option(min=0)] = 20,
    force: bool = False,
) -> None:
    """Check releases independently: rule, totals, zones, persons, and disclosure by comparing several.

    Each release is checked against its own rule, and against your thresholds if these are stricter.

    Examples
    --------
    `odkanon audit release --trips survey.parquet`

    `odkanon audit everyone women men --trips survey.parquet -o audit.json`

    `odkanon audit release.recipe.json`

    `odkanon audit releases/`

    `odkanon audit flows.csv --k 10`
    """
    from odkanon.audit import audit_releases as run
    from odkanon.cli.console import stages
    from odkanon.core.atomic_write import write_whole
    from odkanon.release_format.targets import check_files

    if output is not None:
        check_files(output, force=force or _is_report(output))
    thresholds = {"trips": min_trips, "weight": min_weight, "persons": min_persons, "households": min_households}
    reading = how(trips or None)
    with stages() as stage:
        stage(f"checking {format_count(len(releases), 'releases')}")
        report = run(
            releases,
            trips=reading if trips else None,
            hierarchy=reading.tree,
            cumulative=cumulative,
            disjoint=disjoint,
            k=k,
            least={name: value for name, value in thresholds.items() if value is not None},
        )
    show_report(report, show)
    console.add_result(**report.as_dict())
    if output is not None:
        write_whole(output, json.dumps(report.as_dict(), indent=2, ensure_ascii=False) + "\n")
        console.print(f"Wrote {output}")
    raise typer.Exit(0 if report.clean else 1)


def _is_report(path: Path) -> bool:
    """Return whether a file is the report of an earlier audit."""
    try:
        return {"clean", "findings", "checks"} <= set(parse_json(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return False


def show_report(report: Report, limit: int) -> None:
    """Print the findings, the notes and the verdict."""
    from rich.text import Text

    if report.reading is not None:
        console.print(report.reading, style="yellow")
    headings = ("", "check", "finding")
    table = make_table(f"Audit of {format_count(len(report.releases), 'releases')}", headings, left=headings)
    table.show_lines = True
    counts: dict[tuple[str, str], int] = {}
    for each in report.findings:
        key = (each.severity, each.check)
        counts[key] = counts.get(key, 0) + 1
        if counts[key] <= limit:
            about = "" if each.check == "difference" else f"{', '.join(each.releases)}: "
            style = "bold red" if each.severity == "finding" else "yellow"
            table.add_row(Text(each.severity, style), each.check, about + each.message)
    if table.row_count:
        console.print(table)
    for (severity, check), count in counts.items():
        if count > limit:
            console.print(
                f"... and {count - limit:,} more {severity}s on {check}; write all of them with -o audit.json"
            )
    _show_compared(report)
    verdict = [f"Checked: {', '.join(report.checks)}"]
    count = sum(each.severity == "finding" for each in report.findings)
    verdict.append("clean." if report.clean else f"{format_count(count, 'findings')}.")
    console.print("; ".join(verdict), style="bold green" if report.clean else "bold red")


def _show_compared(report: Report) -> None:
    """Print which releases were compared, and how they are related."""
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
    "part": "the first is part of the second",
    "overlap": "some trips in common",
    "unknown": "unknown whether they share trips",
}
