"""The summary of a new release, for the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from odkanon.cli.console import console, make_table
from odkanon.cli.summaries import show_files, show_input, show_release, show_verdict
from odkanon.core.formatting import format_count
from odkanon.linked import LinkedReleases
from odkanon.pipeline.cautions import cascade_hint, cautions, suppressed_share
from odkanon.pipeline.request import Request
from odkanon.quality.privacy import privacy
from odkanon.quality.utility import utility
from odkanon.read.input_spec import InputSpec
from odkanon.release_format.public_rule import linked_promise

if TYPE_CHECKING:
    from odkanon.model.release import Release


def show_result(result: Release | LinkedReleases, request: Request, folder: Path) -> None:
    """Print what was read and published, the cautions, and the files."""
    if isinstance(result, LinkedReleases):
        show_linked(result)
    else:
        show_release(result)
        if request.by:
            show_coverage(result)
    texts = cautions(result)
    for text in texts:
        console.print(f"Caution: {text}", style="bold yellow")
    _show_hours(request)
    if isinstance(result, LinkedReleases):
        written = 1 + sum(part.release is not None for part in result.parts)
        console.print(f"Wrote {folder}: {format_count(written, 'releases')} on the same zones, and index.json")
        show_verdict(folder, result, texts)
        return
    _show_earlier(result, request)
    hint = cascade_hint(result) if request.zones_of is None and not request.by else None
    if hint is not None:
        console.print(hint)
    show_files(folder, result, texts)


def _show_hours(request: Request) -> None:
    """Print the time zone of hours, if hours affect the release."""
    attributes = [
        part.partition(":")[0].strip() for text in (*request.by, *request.segments) for part in text.split("*")
    ]
    if isinstance(request.input, InputSpec) and (request.input.uses_hours or "hour" in attributes):
        console.print(request.input.clock)


def _show_earlier(release: Release, request: Request) -> None:
    """Print how a release relates to the earlier one whose zones or rows it uses."""
    if request.zones_of is None:
        return
    outside = release.parameters.get("trips_outside")
    if outside is None:
        console.print(f"This release and {request.zones_of} are safe side by side if they share no trip.")
        return
    trips = format_count(outside, "trips begin or end", "trip begins or ends")
    console.print(f"{trips} outside the zones of {request.zones_of}, and {'is' if outside == 1 else 'are'} suppressed.")


def show_linked(linked: LinkedReleases) -> None:
    """Print the whole and each segment in one table."""
    show_input(linked.whole.od)
    console.print(linked_promise(linked.whole), style="bold")
    table = make_table(
        "The whole and its segments, on the same zones",
        ("table", "trips", "flows", "of few persons", "suppressed", "G"),
        left=("table",),
    )
    rows = [("whole", linked.whole, None), *((part.title, part.release, part.reason) for part in linked.parts)]
    for title, release, reason in rows:
        if release is None:
            table.add_row(title, "-", reason, "-", "-", "-")
            continue
        persons = privacy(release).get("persons")
        table.add_row(
            title,
            f"{release.od.trips:,}",
            f"{len(release.classes):,}",
            "-" if persons is None else f"{persons.below:,}",
            f"{suppressed_share(release):.1%}",
            f"{utility(release.od, release).g:,.1f}",
        )
    console.print(table)
    for part in linked.parts:
        if part.joined:
            names = ", ".join(",".join(each.values()) for each in part.joined)
            console.print(f"{part.title} consists of {names}, which are too rare for tables of their own.")


def show_coverage(release: Release) -> None:
    """Print the share of trips for which each attribute is published."""
    from odkanon.quality.attribute_coverage import attribute_coverage

    table = make_table(
        release.subject.words("Share of trips by published attribute"),
        ("attribute", "in full", "at least in part"),
        left=("attribute",),
    )
    for found in attribute_coverage(release):
        table.add_row(" and ".join(found.axes), f"{found.full:.1%}", f"{found.part:.1%}")
    console.print(table)
    if release.is_noisy:
        return
    console.print(
        f"Detail was dropped in this order: {release.parameters['give_up']}. A dropped attribute has the value 'any'.",
        style="dim",
    )
