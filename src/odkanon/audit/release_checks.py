"""Checks of one release by its own files: rule, totals, margins, homogeneity, persons."""

from __future__ import annotations

from collections.abc import Iterator
from math import isclose
from typing import Any

from duckdb import DuckDBPyConnection as Connection

from odkanon.audit.counting.counted_measures import MEASURES, measures_named
from odkanon.audit.findings import Finding
from odkanon.audit.release_reader import AXES, PublishedRelease, finding_on, parse_number, rows


def format_mass(value: float) -> str:
    """Return a mass as text."""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.3f}"


def check_rule(connection: Connection, release: PublishedRelease, *, with_trips: bool) -> Iterator[Finding]:
    """Check that every flow meets the rule, is listed once, and that the statement promises the rule.

    Measures that the flows do not publish are left to the recount, if there are trips.
    """
    for measure, disclosed in release.thresholds.items():
        threshold = max(disclosed, release.exact_thresholds.get(measure, 0))
        if measure not in release.measures:
            if not with_trips:
                text = f"the rule counts {measure}, but no flow lists them; give the trips to count them"
                # Nested rows omit persons on purpose: their counts would disclose parts of a row.
                yield finding_on("rule", release, text, "note" if release.nested else "finding")
            continue
        # Weights have four digits, and the exact threshold is not published; a hair below a decimal text is not below.
        rounding = measures_named([measure])[0].rounding
        least = max(threshold * (1 - rounding), release.disclosed_thresholds.get(measure, 0)) * (1 - 1e-12)
        below = rows(
            connection,
            f"SELECT origin, destination, {measure} FROM classes WHERE release = {release.number} "
            f"AND coalesce(NOT isfinite(CAST({measure} AS DOUBLE)) OR {measure} < {least}, true) "
            f"ORDER BY {measure}, 1, 2",
        )
        if below:
            worst = below[0]
            own = (release.disclosed_thresholds.get(measure), release.exact_thresholds.get(measure))
            whose = "the rule" if threshold in own else "your rule"
            text = (
                f"{len(below):,} flows are below {whose} of {format_mass(threshold)} {measure}: {worst['origin']} -> "
                f"{worst['destination']} has {worst[measure]}"
            )
            yield finding_on("rule", release, text, details=below)
    yield from _check_destinations(connection, release)
    yield from _check_plausible(connection, release)
    yield from _check_listed_once(connection, release)
    yield from _check_promise(release)


def _check_plausible(connection: Connection, release: PublishedRelease) -> Iterator[Finding]:
    """Check that flows have an origin and a destination, and no more contributors than trips."""
    without_end = " OR ".join(f"coalesce({axis}, '') = ''" for axis in AXES)
    tests = {"have no origin or destination, and may be totals of others": without_end}
    for each in (each for each in MEASURES if not each.adds_up and each.name in release.measures):
        tests[f"have more {each.name} than trips, which cannot be"] = f"{each.name} > trips"
    for text, condition in tests.items():
        found = rows(
            connection,
            f"SELECT origin, destination, trips FROM classes WHERE release = {release.number} AND ({condition}) "
            "ORDER BY 1, 2",
        )
        if found:
            first = f"{found[0]['origin']} -> {found[0]['destination']} with {found[0]['trips']} trips"
            yield finding_on("rule", release, f"{len(found):,} flows {text}: {first}", details=found)


def _check_destinations(connection: Connection, release: PublishedRelease) -> Iterator[Finding]:
    least = release.constraints.get("min_destinations", 0)
    below = rows(
        connection,
        f"SELECT origin, count(DISTINCT destination) AS destinations FROM classes WHERE release = {release.number} "
        f"GROUP BY origin HAVING count(DISTINCT destination) < {least} ORDER BY 2, 1",
    )
    if below:
        text = (
            f"{len(below):,} origin zones have flows to fewer than the {least:g} destinations that are promised: "
            f"{below[0]['origin']} has {below[0]['destinations']}"
        )
        yield finding_on("rule", release, text, details=below)


def _check_listed_once(connection: Connection, release: PublishedRelease) -> Iterator[Finding]:
    twice = rows(
        connection,
        f"SELECT origin, destination, count(*) AS times FROM classes WHERE release = {release.number} "
        "GROUP BY origin, destination, attributes HAVING count(*) > 1 ORDER BY 1, 2",
    )
    if twice:
        text = f"{twice[0]['origin']} -> {twice[0]['destination']} is listed {twice[0]['times']} times"
        yield finding_on("rule", release, text, details=twice)


def _check_promise(release: PublishedRelease) -> Iterator[Finding]:
    """Check that the statement agrees with the rule, and that not every flow meets the rule anyway."""
    missing = None if release.bare else _missing_from_statement(release)
    if missing is not None:
        text = f"the statement {release.manifest.get('statement', '')!r} does not promise {missing}, which is the rule"
        yield finding_on("rule", release, text)
    who, thresholds = (
        ("you ask", release.auditor_thresholds) if release.bare else ("it promises", release.disclosed_thresholds)
    )
    one = {"weight": release.mean_weight or 1}
    if all(threshold <= one.get(measure, 1) for measure, threshold in thresholds.items()):
        text = f"{who} that a flow has 1 of what it counts, which every flow has: it protects nobody"
        yield finding_on("rule", release, text)


def _missing_from_statement(release: PublishedRelease) -> str | None:
    """Return the first part of the rule that the statement does not promise; None if it promises all of it."""
    statement = release.manifest.get("statement", "")
    for measure, threshold in release.disclosed_thresholds.items():
        if f"{threshold:,.10g}" not in statement and f"{threshold:,}" not in statement:
            return f"{format_mass(threshold)} {measure}"
    constraints = {"max_share": "more than {:.10g} % of the", "min_destinations": "at least {} destinations"}
    for name, value in release.constraints.items():
        if constraints[name].format(100 * value if name == "max_share" else value) not in statement:
            return f"{name} {value:g}"
    return None


def check_totals(connection: Connection, release: PublishedRelease) -> Iterator[Finding]:
    """Check that flows add up to the published totals, and published, suppressed and rejected totals to the input."""
    published = release.manifest["published"]
    added = ", ".join(
        f"coalesce(sum({each.name}), 0)::{each.sql_type} AS {each.name}" for each in MEASURES if each.adds_up
    )
    sums = rows(
        connection,
        f"SELECT count(*) AS classes, {added}, count(DISTINCT origin) AS origins, "
        f"count(DISTINCT destination) AS destinations FROM classes WHERE release = {release.number}",
    )[0]
    for name in sums:
        if name in published and not _is_close(sums[name], published[name], name):
            text = (
                f"the flows have {format_mass(sums[name])} {name} in all, but release.json states "
                f"{format_mass(published[name])}"
            )
            yield finding_on("totals", release, text)
    if release.provenance is not None:
        yield from _check_input(release, release.provenance)
        yield from _check_minima(connection, release, release.provenance)


def _check_input(release: PublishedRelease, provenance: dict[str, Any]) -> Iterator[Finding]:
    given, published, suppressed = (provenance[part] for part in ("input", "published", "suppressed"))
    for name in (each.name for each in MEASURES if each.adds_up and each.name in given):
        rejected = sum(part.get(name, 0) for part in given["rejected"].values())
        if not _is_close(published[name] + suppressed[name] + rejected, given[name]):
            text = (
                f"input {format_mass(given[name])} {name} is not published {format_mass(published[name])} + suppressed "
                f"{format_mass(suppressed[name])} + rejected {format_mass(rejected)}"
            )
            yield finding_on("totals", release, text)


def _check_minima(connection: Connection, release: PublishedRelease, provenance: dict[str, Any]) -> Iterator[Finding]:
    """Check the recorded minima over flows, and the recorded number of flows below the rule."""
    for measure, recorded in provenance.get("privacy", {}).items():
        if measure not in release.measures or recorded["min"] is None or (measure == "weight" and release.nested):
            # Rows at their cap have another weight than their own.
            continue
        threshold = parse_number(recorded["threshold"])
        found = rows(
            connection,
            f"SELECT min({measure}) AS least, count(*) FILTER ({measure} < {threshold} * (1 - 1e-12)) AS below "
            f"FROM classes WHERE release = {release.number}",
        )[0]
        agrees = found["least"] is not None and _is_close(found["least"], recorded["min"], measure)
        if not agrees or (measure != "weight" and found["below"] != recorded["below"]):
            text = (
                f"release.json states that the smallest flow has {format_mass(recorded['min'])} {measure} and "
                f"{recorded['below']:,} are below {format_mass(threshold)}; it is {format_mass(found['least'] or 0)}, "
                f"and {found['below']:,} are"
            )
            yield finding_on("totals", release, text)


def check_margins(connection: Connection, release: PublishedRelease) -> Iterator[Finding]:
    """Check that zone totals and the grand total disclose no suppressed flows."""
    for axis in release.subject.axes:
        totals = rows(
            connection,
            f"SELECT {axis} AS zone, sum(trips)::BIGINT AS trips, sum(weight) AS weight FROM classes "
            f"WHERE release = {release.number} GROUP BY 1",
        )
        sums = {row["zone"]: row for row in totals}
        listed = {properties["id"]: properties for properties, _ in release.zones[axis]}
        for zone in sorted(sums.keys() - listed.keys()):
            yield finding_on("zones", release, f"{axis} zone {zone} has flows but is missing from zones.geojson")
        for zone in sorted(listed.keys() - sums.keys()):
            text = f"{axis} zone {zone} has no published flow: it discloses a suppressed one"
            yield finding_on("zones", release, text)
        for zone in sorted(sums.keys() & listed.keys()):
            yield from _check_margin(release, axis, listed[zone], sums[zone])
    yield from _note_remainder(release)


def _check_margin(
    release: PublishedRelease, axis: str, properties: dict[str, Any], sums: dict[str, Any]
) -> Iterator[Finding]:
    zone = properties["id"]
    if properties["trips"] != sums["trips"]:
        off = properties["trips"] - sums["trips"]
        text = (
            f"zones.geojson gives {axis} zone {zone} {properties['trips']:,} trips, its published flows have "
            f"{sums['trips']:,}: the difference of {off:,} is what was suppressed there, or the file was edited"
        )
        yield finding_on("margins", release, text)
    elif "weight" in properties and not _is_close(properties["weight"], sums["weight"], "weight"):
        text = f"zones.geojson gives {axis} zone {zone} another weight than its published flows have"
        yield finding_on("margins", release, text)


def _note_remainder(release: PublishedRelease) -> Iterator[Finding]:
    # Others can subtract only the totals in the folder; the recipe stays with the steward.
    suppressed = release.manifest.get("suppressed", {})
    small = [name for name, least in release.thresholds.items() if 0 < suppressed.get(name, 0) < least]
    if small:
        text = (
            f"input - rejected - published = {format_mass(suppressed[small[0]])} {small[0]}, below the rule: some "
            "group of so few is in no published flow (where is not disclosed)"
        )
        yield finding_on("margins", release, text, "note")


def check_persons(connection: Connection, release: PublishedRelease) -> Iterator[Finding]:
    """Note flows that publish fewer than k persons, if the rule has no threshold on persons."""
    if "persons" in release.thresholds or "persons" not in release.measures or release.bare:
        return
    below = rows(
        connection,
        f"SELECT origin, destination, trips, persons FROM classes WHERE release = {release.number} "
        f"AND persons < {release.k} ORDER BY persons, 1, 2",
    )
    if below:
        worst = below[0]
        text = (
            f"{len(below):,} flows have fewer than {release.k} different persons, which the rule does not cover: "
            f"{worst['origin']} -> {worst['destination']} has {worst['trips']:,} trips of {worst['persons']}"
        )
        yield finding_on("persons", release, text, "note", below)


def check_homogeneity(connection: Connection, release: PublishedRelease) -> Iterator[Finding]:
    """Note zones with a single published destination: there, the origin discloses the destination."""
    origins = len(release.zones["origin"])
    # A flow between boxes has its own box at both ends, and boxes overlap.
    if origins == 1 or release.has_boxes or release.nested:
        return
    single = rows(
        connection,
        "SELECT origin, min(destination) AS destination, sum(trips)::BIGINT AS trips FROM classes "
        f"WHERE release = {release.number} GROUP BY origin HAVING count(*) = 1 ORDER BY origin",
    )
    if single:
        text = (
            f"{len(single):,} of {origins:,} origin zones have a single published destination: whoever is known to "
            f"leave {single[0]['origin']} went to {single[0]['destination']}"
        )
        yield finding_on("homogeneity", release, text, "note", single)


def _is_close(one: float, other: float, measure: str = "") -> bool:
    rounding = sum(each.rounding for each in measures_named([measure]))
    return isclose(one, other, rel_tol=max(1e-9, rounding), abs_tol=1e-6)
