"""The summary of a new release, for the terminal."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from textwrap import shorten

from odkanon.cli.console import NARROW, console, make_table, wrap_paragraph
from odkanon.cli.summaries import show_files, show_input, show_release
from odkanon.core.parsing import format_count
from odkanon.linked import LinkedReleases
from odkanon.model.release import Release
from odkanon.pipeline.cautions import MUCH_MORE, cascade_hint, cautions, suppressed_share, verdict
from odkanon.pipeline.request import Request
from odkanon.quality.privacy import privacy
from odkanon.quality.utility import utility
from odkanon.read.input_spec import InputSpec
from odkanon.read.tables.column_names import probable_columns
from odkanon.release_format.public_rule import linked_promise
from odkanon.release_format.recipe import recipe_path

LINES, RESERVED = 20, 5
"""The lines of the summary of a release, and those of what follows the cautions."""


def show_result(result: Release | LinkedReleases, request: Request, folder: Path, *, metrics: bool = False) -> None:
    """Print what was read and published, the cautions, the files, and one next step."""
    if isinstance(result, LinkedReleases):
        show_linked(result, metrics=metrics)
    else:
        show_release(result, metrics=metrics)
        if request.by:
            show_coverage(result, metrics=metrics)
    found = cautions(result)
    for text in found if metrics else short_texts(found, max(1, LINES - console.lines - RESERVED)):
        console.caution(text)
    if metrics or console.lines + RESERVED <= LINES:
        _show_hours(request)
    if isinstance(result, Release):
        _show_earlier(result, request)
    show_files(folder, result, found)
    console.paragraph(f"Next: {_next_step(result, request, folder, found)}", "bold")


def short_texts(texts: Sequence[str], lines: int) -> list[str]:
    """Return texts that fit into some lines: all of them, cut after sentences where these fit, at least a line each."""

    def needed(text: str) -> int:
        return len(wrap_paragraph(f"Caution: {text}"))

    short = list(texts)
    for at, number in enumerate(sorted(range(len(texts)), key=lambda each: needed(texts[each]))):
        share = max(1, lines // (len(texts) - at))  # what short cautions leave goes to longer ones
        sentences = re.split(r"(?<=[.:]) (?=[A-Z])", texts[number])
        while len(sentences) > 1 and needed(short[number]) > share and console.document is None:
            sentences.pop()
            short[number] = f"{' '.join(sentences)} ... (--metrics)"
        if needed(short[number]) > share and console.document is None:
            short[number] = shorten(texts[number], (NARROW - 12) * share, placeholder=" ... (--metrics)")
        lines -= needed(short[number])
    return short


def _next_step(result: Release | LinkedReleases, request: Request, folder: Path, found: Sequence[str]) -> str:
    """Return the one thing that is most worth doing with this result."""
    if verdict(result, found) == "fail":
        nested = isinstance(result, Release) and result.budget is not None and result.is_nested
        return f"{'leave out --budget' if nested else 'choose a larger --k'}, and run the command again with --force"
    if any("Protect persons" in text for text in found):
        return "run the command again with --protect participants --protect persons --force"
    paths = request.input.paths if isinstance(request.input, InputSpec) else ()
    trips = " --trips ".join(quote(str(path)) for path in paths) or "TRIPS"
    check = f"odkanon audit {folder.with_name(recipe_path(folder).name)}"
    if isinstance(result, LinkedReleases):
        return f"audit sums and differences: {check}"
    missing = probable_columns(result.input.source.unused, result.input.measures)
    if missing:
        ours, column = next(iter(missing.items()))
        return f"to count the {ours}, add --column {quote(f'{ours}={column}')} --force"
    hint = cascade_hint(result) if request.zones_of is None and not request.by else None
    if hint is not None:
        return f"try another method. {hint}"
    if result.is_noisy:
        return f"look at its estimates and intervals: {folder / 'report.html'}"
    if suppressed_share(result) >= MUCH_MORE:
        return f"see which flows were lost, and where: odkanon explain {folder} --trips {trips} -o lost.html"
    if not paths or any(str(path) == "-" for path in paths):
        return f"count it again from the files: {check}"
    return f"attack it, and get the sheet to sign: odkanon evidence {folder} -o evidence"


def _show_hours(request: Request) -> None:
    """Print the time zone of hours, if hours affect the release."""
    attributes = [
        part.partition(":")[0].strip() for text in (*request.by, *request.segments) for part in text.split("*")
    ]
    if isinstance(request.input, InputSpec) and (request.input.uses_hours or "hour" in attributes):
        console.paragraph(request.input.clock)


def _show_earlier(release: Release, request: Request) -> None:
    """Print how a release relates to the earlier one whose zones or rows it uses."""
    if request.zones_of is None:
        return
    outside = release.parameters.get("trips_outside")
    if outside is None:
        console.paragraph(f"This release and {request.zones_of} are safe side by side if they share no trip.")
        return
    trips = format_count(outside, "trips begin or end", "trip begins or ends")
    console.paragraph(
        f"{trips} outside the zones of {request.zones_of}, and {'is' if outside == 1 else 'are'} suppressed."
    )


def show_linked(linked: LinkedReleases, *, metrics: bool = False) -> None:
    """Print the whole and each segment in one table."""
    show_input(linked.whole.od)
    console.paragraph(linked_promise(linked.whole), "bold")
    table = make_table(
        "The whole and its segments, on the same zones",
        ("table", "trips", "flows", "of few persons", "suppressed", *(["G"] if metrics else [])),
        left=("table",),
    )
    rows = [("whole", linked.whole, None), *((part.title, part.release, part.reason) for part in linked.parts)]
    for title, release, reason in rows:
        if release is None:
            table.add_row(title, "-", reason, "-", "-", *(["-"] if metrics else []))
            continue
        persons = privacy(release).get("persons")
        table.add_row(
            title,
            f"{release.od.trips:,}",
            f"{len(release.classes):,}",
            "-" if persons is None else f"{persons.below:,}",
            f"{suppressed_share(release):.1%}",
            *([f"{utility(release.od, release).g:,.1f}"] if metrics else []),
        )
    console.print(table)
    for part in linked.parts:
        if part.joined:
            names = ", ".join(",".join(each.values()) for each in part.joined)
            console.print(f"{part.title} consists of {names}, which are too rare for tables of their own.")


def show_coverage(release: Release, *, metrics: bool) -> None:
    """Print the share of trips for which each attribute is published."""
    from odkanon.quality.utility import attribute_coverage

    shares = []
    for found in attribute_coverage(release):
        partly = f" (at least in part {found.part:.1%})" if metrics else ""
        shares.append(f"{' and '.join(found.axes)} {found.full:.1%}{partly}")
    console.paragraph(release.subject.words(f"Trips by published attribute: {', '.join(shares)}."))
    if metrics and not release.is_noisy:
        console.paragraph(
            f"Detail was dropped in this order: {release.parameters['drop_order']}. A dropped attribute has the value "
            "'any'."
        )
