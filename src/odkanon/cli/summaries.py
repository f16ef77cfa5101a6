"""Tables and sentences about releases and comparisons, for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from odkanon.cli.console import console, make_table
from odkanon.core.parsing import format_count
from odkanon.linked import LinkedReleases
from odkanon.model.measures import MEASURES
from odkanon.model.od import Matrix
from odkanon.model.release import Release
from odkanon.pipeline.cautions import verdict
from odkanon.quality.accuracy.accuracy import SIZES
from odkanon.quality.accuracy.comparison import FlowAccuracy
from odkanon.quality.privacy import steward_privacy
from odkanon.quality.utility import utility
from odkanon.read.coordinates import NO_COORDINATES
from odkanon.read.trips import MANY_REJECTED, rejected_share, unusable_rows
from odkanon.release_format.public_rule import promise, short_promise
from odkanon.release_format.recipe import read_recipe, recipe_path

if TYPE_CHECKING:
    from rich.table import Table

    from odkanon.quality.accuracy.accuracy import Accuracy
    from odkanon.study.method_comparison import MethodComparison

LIMITS = ("floor", "ceiling")
"""What the accuracy of a release is to be compared with."""


def show_release(release: Release, *, metrics: bool = False) -> None:
    """Print what was read, what is promised, what is published, and how accurate it is."""
    if release.matrix is not None:
        show_input(release.matrix)
    console.paragraph(promise(release) if metrics else short_promise(release), "bold")
    if release.is_noisy:
        show_noisy(release)
    else:
        show_published(release)
    if release.subject.place is not None:
        return  # the other measures are of flows
    if not metrics:
        for found in list(release.accuracy.values())[:1]:
            console.paragraph(found.sentence())
        return
    if not release.is_noisy:
        show_privacy([(release.method, release)])
    summarize_accuracy([(release.method, release)])
    if not release.is_noisy:
        show_utility([(release.method, release)])


def show_input(od: Matrix) -> None:
    """Print how many rows were read, what was not used, and why some were rejected."""
    whole, subject = od.summary, od.summary.source.subject
    pairs = f"between {format_count(whole.pairs, 'pairs of places', 'pair of places')}"
    if subject.place is not None:
        pairs = f"in {format_count(len(od.origins.leaves), 'places', 'place')}"
    trips = subject.words(format_count(whole.trips, "trips"))
    unusable = unusable_rows(whole.source)
    share = sum(unusable.values()) / max(whole.source.rows, 1)
    lost = f", {share:.0%} of which cannot be used" if rejected_share(whole.source) > MANY_REJECTED else ""
    located = od.origins.resolution is not None
    console.paragraph(
        f"Read {format_count(whole.source.rows, 'rows')}{lost}: {trips} {pairs}{_place(od) if located else ''}.",
        "bold yellow" if lost else None,
    )
    if lost and whole.source.example and unusable.keys() != {NO_COORDINATES}:
        console.paragraph(f"  for instance {whole.source.example}", "yellow")
    if located:
        _check_zone(od)
    if whole.source.rejected:
        reasons = (f"{format_count(part.rows, 'rows')} {reason}" for reason, part in whole.source.rejected.items())
        console.paragraph(f"  rejected {subject.words('; '.join(reasons))}", "yellow")
    if whole.source.unused:
        console.paragraph(f"Not used: {', '.join(whole.source.unused)}.", "dim")
    if whole.source.lookalikes:
        console.paragraph(
            f"  {whole.source.lookalikes:,} rows equal another row; they count as {subject.unit}, because duplicates "
            "cannot be recognised without a person, a time and coordinates",
            "yellow",
        )


def _place(od: Matrix) -> str:
    """Return around which place most trips start, which makes wrong coordinates obvious."""
    from odkanon.publish.report.basemap import describe_place

    lat, lon = (float(np.median(values)) for values in od.origins.centres)
    place = describe_place(lat, lon)
    return f" near {lat:.2f}, {lon:.2f}" if place is None else f" {place} ({lat:.2f}, {lon:.2f})"


def _check_zone(od: Matrix) -> None:
    """Print what suggests that the reference system is that of a neighbouring zone."""
    from odkanon.read.coordinates import utm_neighbours

    crs = od.summary.source.reading.get("crs")
    neighbours = None if crs is None else utm_neighbours(crs, float(np.median(od.origins.centres[1])))
    if neighbours is not None:
        console.paragraph(f"  {neighbours}; is zone {crs} the right one?", "yellow")


def show_published(release: Release) -> None:
    """Print what is published and what is suppressed."""
    left = release.input.trips - int(release.classes.trips.sum())
    zones = (
        f"between {len(release.origins):,} origin and {format_count(len(release.destinations), 'destination zones')}"
    )
    if release.subject.place is not None:
        zones = f"in {format_count(len(release.origins), 'zones')}"
    listed, lost = "all trips", ""
    if left:
        share = f"{1 - left / release.input.trips:.1%}"
        listed = f"{'more than 99.9%' if share == '100.0%' else share} of {format_count(release.input.trips, 'trips')}"
        lost = f"; suppressed: {format_count(left, 'trips', 'trip')}"
    published = f"Published {format_count(len(release.classes), 'flows')} {zones}: {listed}{lost}."
    console.paragraph(release.subject.words(published))
    if release.companion is not None:
        budget = release.budget
        trips = format_count(release.companion.trips, "trips")
        over = budget is not None and budget.mass(release.suppressed) > budget.allowance(release.input)
        console.paragraph(
            f"One flow of {trips} is suppressed although it meets the rule: otherwise the total of the other "
            "suppressed trips, which can be derived, would be below it."
            + (f" This exceeds the budget of {budget.share:.0%} of {budget.of}." if over and budget else ""),
            "yellow",
        )


def show_noisy(release: Release) -> None:
    """Print what a noisy release estimates, and what was spent on the same people."""
    console.paragraph(
        f"Estimated {release.classes.trips.sum():,} trips in {format_count(len(release.classes), 'rows')}, from "
        f"{format_count(len(release.parameters['noise']), 'queries', 'query')} with noise."
    )
    spent = release.parameters.get("spent")
    if spent is not None and spent["epsilon"] is not None:
        new = " It is new: if earlier releases of these people are in another one, use that (--ledger)."
        console.paragraph(
            f"Spent on the same people so far: epsilon = {spent['epsilon']:.3g}, delta = {spent['delta']:.3g} "
            f"({format_count(spent['releases'], 'releases')} in {spent['ledger']}).{new * (spent['releases'] == 1)}"
        )


def show_privacy(releases: list[tuple[str, Release]]) -> None:
    """Print the privacy table of the paper: the smallest flow by each measure, and the number below the threshold."""
    table = make_table(
        "Privacy: the smallest published flow, and the flows below the threshold",
        ("release", "counted in", "smallest", "threshold", "flows below"),
        left=("release", "counted in"),
    )
    for name, release in releases:
        for measure, report in steward_privacy(release).items():
            below = f"{report.below:,} of {len(release.classes):,}"
            table.add_row(name, MEASURES[measure].title, _number(report.min), _number(report.threshold), below)
    console.print(table)


def summarize_accuracy(releases: list[tuple[str, Release]]) -> None:
    """Print the accuracy of releases on regular squares; nothing if zones have no location."""
    table = make_table(
        "Accuracy: overlap of estimated flows between squares with the input (1 is best; in brackets, spread evenly)",
        ("release", "counted in", "1 km", "2 km", "4 km", "8 km", "lengths", "stay in 2 km"),
        left=("release", "counted in"),
    )
    for name, release in releases:
        for measure, found in release.accuracy.items():
            places = [found.on_squares(km) for km in SIZES]
            right = ["-" if place is None else _right(place) for place in places]
            near = found.on_squares(2)
            inside = "-" if near is None else f"{_number(near.inside_after)} of {_number(near.inside_before)}"
            table.add_row(name, MEASURES[measure].title, *right, _number(found.length_overlap), inside)
    if table.row_count == 0:
        return
    _add_limits(table, next(found for _, release in releases for found in release.accuracy.values()))
    console.print(table)
    for name, release in releases:
        prefix = f"{name}: " if len(releases) > 1 else ""
        found = next(iter(release.accuracy.values()))
        after = "none" if found.length_after is None else f"{found.length_after:.1f} km"
        console.print(
            f"{prefix}{found.sentence()} The mean trip length is {after}; in the input {found.length_before:.1f} km."
        )


def _add_limits(table: Table, found: Accuracy) -> None:
    """Add what accuracy is to be compared with; the sentence below the table explains it."""
    for name in LIMITS:
        places = [found.on_squares(km) for km in SIZES]
        limits = [None if place is None else getattr(place, name) for place in places]
        if any(limit is not None for limit in limits):
            table.add_row(name, "", *map(_number, limits))


def _right(place: FlowAccuracy) -> str:
    """Return the accuracy of the estimate, and that of even spreading."""
    return _number(place.cpc) if place.estimated is None else f"{_number(place.estimated)} ({_number(place.cpc)})"


def show_ranking(comparison: MethodComparison, target: str) -> None:
    """Print the methods of a comparison by descending accuracy, and the best one for each use."""
    from odkanon.quality.utility import extra_metrics
    from odkanon.study.tables import format_target

    best, extra = comparison.ranking(target), extra_metrics()
    if not best:
        return
    table = make_table(
        f"Protecting the {format_target(target)}: the most accurate first",
        ("method", "1 km", "2 km", "4 km", "8 km", "published", "G", "zones", *(metric.title for metric in extra)),
        left=("method",),
    )
    for outcome in best:
        if outcome.refusal is not None:
            table.add_row(outcome.title, *"----", "0%", "-", "-", *("-" for _ in extra))
            continue
        right = ["-" if (found := outcome.cpc("trips", km)) is None else f"{found:.2f}" for km in SIZES]
        score = outcome.utility["trips"]
        zones = f"{outcome.origins:,} x {outcome.destinations:,}"
        more = (_number(score.get(metric.name)) for metric in extra)
        published = "-" if outcome.suppressed is None else f"{1 - outcome.suppressed:.0%}"
        g = "-" if score.get("g") is None else f"{score['g']:,.0f}"
        table.add_row(outcome.title, *right, published, g, zones, *more)
    for name in LIMITS:
        limits = [next((own for each in best if (own := each.limit(name, km)) is not None), None) for km in SIZES]
        if any(limit is not None for limit in limits):
            table.add_row(name, *("-" if limit is None else f"{limit:.2f}" for limit in limits))
    console.print(table)
    console.print(
        "1 to 8 km: accuracy of the flows between squares of that side, from 0 to 1 (CPC). Published: share of trips. "
        "G: size of zones in observed cells; smaller is finer, but not necessarily more accurate. Floor: totals and "
        "distances alone. Ceiling: half of the input for the other half.",
        style="dim",
    )
    for stated in {outcome.promise for outcome in best if outcome.promise}:
        console.print(
            f"Noise promises something else than k: it protects {stated}. So no recommendation names it. No "
            "ledger has these draws: do not publish what they show."
        )
    for use, chosen, km, share in comparison.recommendations(target):
        console.print(f"For {use}: {chosen.title} ({share:.0%} accurate at {km:g} km).")


def show_utility(releases: list[tuple[str, Release]]) -> None:
    """Print the four metrics of the paper, in participants and, if there are weights, in population."""
    table = make_table(
        "Utility (lower is better)",
        ("release", "counted in", "zones", "C_DM", "C_AVG", "G", "at best", "E"),
        left=("release", "counted in"),
    )
    for name, release in releases:
        for measure in ("trips", "weight"):
            if measure not in release.input.measures:
                continue
            score = utility(release.input, release, measure=measure)
            zones = f"{len(release.origins):,} x {len(release.destinations):,}"
            best = release.lower_bound.g if release.lower_bound and measure == "trips" and score.g is not None else None
            numbers = map(_number, (score.c_avg, score.g, best, score.e))
            table.add_row(name, MEASURES[measure].title, zones, f"{score.c_dm:.3g}", *numbers)
    console.print(table)
    console.print(
        "C_DM: penalty for large classes and suppression. C_AVG: mean class size over k, 1 at best. "
        "G: mean number of finest cells in the two zones of a flow; 'at best' is a lower bound for all zones of the "
        "hierarchy. E: share of trips on a wrong pair of cells if flows are distributed evenly, from 0 to 2.",
        style="dim",
    )


def show_files(folder: Path, result: Release | LinkedReleases, texts: Sequence[str]) -> None:
    """Print whether to publish a release with these cautions, what to keep, and what to open first."""
    recipe, found = folder.with_name(recipe_path(folder).name), verdict(result, texts, doubts=console.doubts)
    content = read_recipe(folder) or {}
    console.add_result(folder=folder, recipe=recipe, verdict=found, about=content.get("about") or _accounts(content))
    console.add_result(files=sorted(path.name for path in folder.iterdir()))
    above = [
        format_count(number, f"{word}s")
        for number, word in ((len(texts), "caution"), (console.doubts, "warning"))
        if number
    ]
    verdicts = {
        "pass": (f"Ready to publish: {folder}.", "bold green"),
        "review": (f"Look at this first: {' and '.join(above)} above.", "bold yellow"),
        "fail": (f"Not for publication: {folder}.", "bold red"),
    }
    text, style = verdicts[found]
    page = folder / "report.html"
    look = f" Open {page} in a browser." if page.is_file() else ""
    console.paragraph(f"{text}{look} Keep {recipe}: it has private figures; do not publish it.", style)


def _accounts(recipe: dict[str, Any]) -> dict[str, Any]:
    """Return the account of each release in the recipe of several."""
    return {name: release["about"] for name, release in recipe.get("releases", {}).items()}


def _number(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}" if value < 100 else f"{value:,.1f}"
