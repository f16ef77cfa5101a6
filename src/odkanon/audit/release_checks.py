"""Checks of one release by what its own files say: rule, totals, margins, homogeneity."""

from __future__ import annotations

from math import isclose
from typing import Any

import duckdb

from odkanon.audit.findings import Finding
from odkanon.audit.own_counts import MEASURES
from odkanon.audit.release_reader import AXES, Published, finding_on, parse_number, rows


def show(value: float) -> str:
    """Return a mass as text."""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.3f}"


def check_rule(connection: duckdb.DuckDBPyConnection, release: Published, *, with_trips: bool) -> list[Finding]:
    """Check that every flow meets the rule, is listed once, and that the promise in words is the rule.

    What the flows do not say of themselves is left to the trips, where those are given.
    """
    findings = []
    for measure, told in release.thresholds.items():
        threshold = max(told, release.kept.get(measure, 0))
        if measure not in release.measures:
            text = f"the rule counts {measure}, but no flow says how many it has; give the trips to count them"
            if not with_trips:
                # Nested rows say nothing of persons on purpose: their numbers would tell of parts of a row.
                findings.append(finding_on("rule", release, text, "note" if release.nested else "finding"))
            continue
        # A threshold on weight went through a decimal text; a hair below is not below.
        least = threshold * (1 - 1e-12)
        below = rows(
            connection,
            f"SELECT origin, destination, {measure} FROM classes WHERE release = {release.number} "
            f"AND coalesce(NOT isfinite(CAST({measure} AS DOUBLE)) OR {measure} < {least}, true) "
            f"ORDER BY {measure}, 1, 2",
        )
        if below:
            worst = below[0]
            own = (release.disclosed_thresholds.get(measure), release.kept.get(measure))
            whose = "the rule" if threshold in own else "your rule"
            text = (
                f"{len(below):,} flows are below {whose} of {show(threshold)} {measure}: {worst['origin']} -> "
                f"{worst['destination']} has {worst[measure]}"
            )
            findings.append(finding_on("rule", release, text, details=below))
    findings += _check_destinations(connection, release)
    findings += _check_possible(connection, release)
    return findings + _check_listed_once(connection, release) + _check_promise(release)


def _check_possible(connection: duckdb.DuckDBPyConnection, release: Published) -> list[Finding]:
    """Check that rows say where they begin and end, and that nobody is in a flow without a trip."""
    tests = {
        "do not say where they begin or end, and may be totals of others": " OR ".join(
            f"coalesce({axis}, '') = ''" for axis in AXES
        )
    }
    for each in (each for each in MEASURES if not each.adds_up and each.name in release.measures):
        tests[f"have more {each.name} than trips, which cannot be"] = f"{each.name} > trips"
    findings = []
    for text, condition in tests.items():
        found = rows(
            connection,
            f"SELECT origin, destination, trips FROM classes WHERE release = {release.number} AND ({condition}) "
            "ORDER BY 1, 2",
        )
        if found:
            first = f"{found[0]['origin']} -> {found[0]['destination']} with {found[0]['trips']} trips"
            findings.append(finding_on("rule", release, f"{len(found):,} flows {text}: {first}", details=found))
    return findings


def _check_destinations(connection: duckdb.DuckDBPyConnection, release: Published) -> list[Finding]:
    least = release.constraints.get("min_destinations", 0)
    few = rows(
        connection,
        f"SELECT origin, count(DISTINCT destination) AS destinations FROM classes WHERE release = {release.number} "
        f"GROUP BY origin HAVING count(DISTINCT destination) < {least} ORDER BY 2, 1",
    )
    if not few:
        return []
    text = (
        f"{len(few):,} origin zones have flows to fewer than the {least:g} destinations that are promised: "
        f"{few[0]['origin']} has {few[0]['destinations']}"
    )
    return [finding_on("rule", release, text, details=few)]


def _check_listed_once(connection: duckdb.DuckDBPyConnection, release: Published) -> list[Finding]:
    twice = rows(
        connection,
        f"SELECT origin, destination, count(*) AS times FROM classes WHERE release = {release.number} "
        "GROUP BY origin, destination, kind HAVING count(*) > 1 ORDER BY 1, 2",
    )
    if not twice:
        return []
    first = twice[0]
    text = f"{first['origin']} -> {first['destination']} is listed {first['times']} times"
    return [finding_on("rule", release, text, details=twice)]


def _check_promise(release: Published) -> list[Finding]:
    """Check that there is a promise at all, and that its words are its numbers."""
    findings = [] if release.bare else _check_words(release)
    who, asked = ("you ask", release.demanded) if release.bare else ("it promises", release.disclosed_thresholds)
    one = {"weight": release.mean_weight or 1}
    if all(threshold <= one.get(measure, 1) for measure, threshold in asked.items()):
        text = f"{who} that a flow has 1 of what it counts, which every flow has: it protects nobody"
        findings.append(finding_on("rule", release, text))
    return findings


def _check_words(release: Published) -> list[Finding]:
    told = release.manifest.get("statement", "")
    for measure, threshold in release.disclosed_thresholds.items():
        if f"{threshold:,.10g}" not in told and f"{threshold:,}" not in told:
            text = f"the statement {told!r} does not promise {show(threshold)} {measure}, which is the rule"
            return [finding_on("rule", release, text)]
    constraints = {"max_share": "more than {:.10g} % of the", "min_destinations": "at least {} destinations"}
    for name, value in release.constraints.items():
        if constraints[name].format(100 * value if name == "max_share" else value) not in told:
            text = f"the statement {told!r} does not promise {name} {value:g}, which is the rule"
            return [finding_on("rule", release, text)]
    return []


def check_totals(connection: duckdb.DuckDBPyConnection, release: Published) -> list[Finding]:
    """Check that flows add up to what is said to be published, and input to published, suppressed and rejected."""
    published = release.manifest["published"]
    added = ", ".join(f"coalesce(sum({each.name}), 0)::{each.kind} AS {each.name}" for each in MEASURES if each.adds_up)
    sums = rows(
        connection,
        f"SELECT count(*) AS classes, {added}, count(DISTINCT origin) AS origins, "
        f"count(DISTINCT destination) AS destinations FROM classes WHERE release = {release.number}",
    )[0]
    findings = []
    for name in sums:
        if name in published and not _same(sums[name], published[name]):
            text = f"the flows have {show(sums[name])} {name} in all, but release.json says {show(published[name])}"
            findings.append(finding_on("totals", release, text))
    if release.about is None:
        return findings
    return findings + _check_account(release, release.about) + _check_claims(connection, release, release.about)


def _check_account(release: Published, about: dict[str, Any]) -> list[Finding]:
    account, published, suppressed = (about[part] for part in ("input", "published", "suppressed"))
    findings = []
    for name in (each.name for each in MEASURES if each.adds_up and each.name in account):
        rejected = sum(part.get(name, 0) for part in account["rejected"].values())
        parts = published[name] + suppressed[name] + rejected
        if not _same(parts, account[name]):
            text = (
                f"input {show(account[name])} {name} is not published {show(published[name])} + suppressed "
                f"{show(suppressed[name])} + rejected {show(rejected)}"
            )
            findings.append(finding_on("totals", release, text))
    return findings


def _check_claims(connection: duckdb.DuckDBPyConnection, release: Published, about: dict[str, Any]) -> list[Finding]:
    """Check what is said about the smallest flows."""
    findings = []
    for measure, said in about.get("privacy", {}).items():
        if measure not in release.measures or said["min"] is None:
            continue
        threshold = parse_number(said["threshold"])
        found = rows(
            connection,
            f"SELECT min({measure}) AS least, count(*) FILTER ({measure} < {threshold} * (1 - 1e-12)) AS below "
            f"FROM classes WHERE release = {release.number}",
        )[0]
        if found["least"] is None or not _same(found["least"], said["min"]) or found["below"] != said["below"]:
            text = (
                f"release.json says that the smallest flow has {show(said['min'])} {measure} and {said['below']:,} are "
                f"below {show(threshold)}; it is {show(found['least'] or 0)}, and {found['below']:,} are"
            )
            findings.append(finding_on("totals", release, text))
    return findings


def check_margins(connection: duckdb.DuckDBPyConnection, release: Published) -> list[Finding]:
    """Check what zone sums and the total give away about suppressed flows."""
    findings = []
    for axis in AXES:
        sums = {
            row["zone"]: row
            for row in rows(
                connection,
                f"SELECT {axis} AS zone, sum(trips)::BIGINT AS trips, sum(weight) AS weight FROM classes "
                f"WHERE release = {release.number} GROUP BY 1",
            )
        }
        listed = {about["id"]: about for about, _ in release.zones[axis]}
        findings += [
            finding_on("zones", release, f"{axis} zone {zone} has flows but is missing from zones.geojson")
            for zone in sorted(sums.keys() - listed.keys())
        ]
        findings += [
            finding_on("zones", release, f"{axis} zone {zone} has no published flow: it tells of a suppressed one")
            for zone in sorted(listed.keys() - sums.keys())
        ]
        for zone in sorted(sums.keys() & listed.keys()):
            findings += _check_margin(release, axis, listed[zone], sums[zone])
    return findings + _note_remainder(release)


def _check_margin(release: Published, axis: str, about: dict[str, Any], sums: dict[str, Any]) -> list[Finding]:
    if about["trips"] != sums["trips"]:
        off = about["trips"] - sums["trips"]
        text = (
            f"zones.geojson gives {axis} zone {about['id']} {about['trips']:,} trips, its published flows have "
            f"{sums['trips']:,}: the difference of {off:,} is what was suppressed there, or the file was edited"
        )
        return [finding_on("margins", release, text)]
    if "weight" in about and not _same(about["weight"], sums["weight"]):
        text = f"zones.geojson gives {axis} zone {about['id']} another weight than its published flows have"
        return [finding_on("margins", release, text)]
    return []


def _note_remainder(release: Published) -> list[Finding]:
    # Only what stands in the folder can be subtracted by others; the recipe stays with the steward.
    suppressed = release.manifest.get("suppressed", {})
    small = [
        each.name
        for each in MEASURES
        if each.name in release.thresholds and 0 < suppressed.get(each.name, 0) < release.thresholds[each.name]
    ]
    if not small:
        return []
    text = (
        f"input - rejected - published = {show(suppressed[small[0]])} {small[0]}, below the rule: somewhere there are "
        "so few in no published flow (where, it does not say)"
    )
    return [finding_on("margins", release, text, "note")]


def check_persons(connection: duckdb.DuckDBPyConnection, release: Published) -> list[Finding]:
    """Note flows with fewer than k persons, by what the release says, where its rule does not rule that out."""
    if "persons" in release.thresholds or "persons" not in release.measures or release.bare:
        return []
    below = rows(
        connection,
        f"SELECT origin, destination, trips, persons FROM classes WHERE release = {release.number} "
        f"AND persons < {release.k} ORDER BY persons, 1, 2",
    )
    if not below:
        return []
    worst = below[0]
    text = (
        f"{len(below):,} flows have fewer than {release.k} different persons, which the rule does not cover: "
        f"{worst['origin']} -> {worst['destination']} has {worst['trips']:,} trips of {worst['persons']}"
    )
    return [finding_on("persons", release, text, "note", below)]


def check_homogeneity(connection: duckdb.DuckDBPyConnection, release: Published) -> list[Finding]:
    """Note zones from which all published trips go to one place: knowing the origin is knowing the destination."""
    single = rows(
        connection,
        f"SELECT origin, min(destination) AS destination, sum(trips)::BIGINT AS trips FROM classes "
        f"WHERE release = {release.number} GROUP BY origin HAVING count(*) = 1 ORDER BY origin",
    )
    origins = len(release.zones["origin"])
    # Each flow between boxes has a box of its own at both ends, and boxes overlap.
    if not single or origins == 1 or release.has_boxes or release.nested:
        return []
    first = single[0]
    text = (
        f"{len(single):,} of {origins:,} origin zones have a single published destination: whoever is known to leave "
        f"{first['origin']} went to {first['destination']}"
    )
    return [finding_on("homogeneity", release, text, "note", single)]


def _same(one: float, other: float) -> bool:
    return isclose(one, other, rel_tol=1e-9, abs_tol=1e-6)
