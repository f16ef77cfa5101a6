"""Count every flow of a release again, from the trips."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from duckdb import DuckDBPyConnection as Connection

from odkanon.audit.counting.counted_measures import measures_named
from odkanon.audit.counting.records import NoColumnError, Records
from odkanon.audit.counting.release_trips import add_possible_trips, assign_trips, own_trips
from odkanon.audit.counting.scan import TripsSource
from odkanon.audit.findings import Finding
from odkanon.audit.release_checks import format_mass
from odkanon.audit.release_reader import AXES, PublishedRelease, finding_on, rows
from odkanon.audit.row_nesting import is_outer_row, is_row, nested_rows, row_label, zone_join

DOMINANT = 0.5  # the share of a flow above which one person or one weight dominates it


def recount(
    connection: Connection, release: PublishedRelease, records: Records, source: TripsSource
) -> tuple[list[Finding], bool]:
    """Compare a release with the trips: flow by flow, in total, and zone by zone.

    Creates the tables of `assign_trips`. Also returns whether these are the trips that the release was made from.
    """
    # Leaves of a lookup table are named with their level, since a code may occur on several levels.
    prefix = "" if source.tree is None else "'0:' || "
    if release.axes and "axes" not in (release.provenance or {}):
        text = "its recipe is missing, which has the attributes of trips; rows were not recounted"
        return [finding_on("recount", release, text)], False
    try:
        assign_trips(connection, release, records, source, prefix)
    except NoColumnError as error:
        return [finding_on("recount", release, str(error))], False
    findings = [*_check_input(connection, release, records)]
    if any(each.severity == "finding" for each in findings):
        return findings, False
    if release.nested:
        findings += _check_nested_counts(connection, release)
        add_possible_trips(connection, release)
    else:
        findings += _check_flows(connection, release, records)
        findings += _check_suppressed(connection, release)
        findings += _check_share(connection, release, records)
    findings += _check_rule(connection, release, records)
    findings += _check_persons(connection, release, records)
    if not release.has_boxes:
        findings += _check_leaves(connection, release, prefix)
    findings += _note_dominance(connection, release, records)
    return findings, True


def _check_input(connection: Connection, release: PublishedRelease, records: Records) -> Iterator[Finding]:
    """Check that these are the trips that the release was made from, and that no trip is in two flows."""
    sums = rows(
        connection,
        f"SELECT coalesce(sum(trips) FILTER (once), 0)::BIGINT AS trips, count(*) FILTER (NOT once) AS twice FROM "
        f"(SELECT trips, row_number() OVER (PARTITION BY trip) = 1 AS once FROM member{release.number})",
    )[0]
    if sums["twice"]:
        yield finding_on("recount", release, f"{sums['twice']:,} trips lie in more than one published flow")
    if release.total is not None and sums["trips"] != release.total:
        text = (
            f"the trips given are not those of the release: {sums['trips']:,} remain after reading, the release is "
            f"of {release.total:,}; give the file, filter, area and resolution that it was made with, or it "
            "counted rows that are no trips, or copies, as trips"
        )
        yield finding_on("recount", release, text)
    elif release.sha256 is not None and records.sha256 != release.sha256:
        text = "the trips come from another file than those of the release, though as many"
        yield finding_on("recount", release, text, "note")


def _true_counts(release: PublishedRelease, records: Records) -> str:
    """Return, in SQL, the measures of each flow ``co, cd`` counted from the trips; of nested rows, upper bounds."""
    counted = ", ".join(f"{measure.total} AS {measure.name}" for measure in measures_named(records.measures))
    trips = f"{'possible' if release.nested else 'member'}{release.number}"
    unnamed = "count(*) FILTER (person IS NULL) AS unnamed"
    return f"SELECT co, cd, {unnamed}, {counted} FROM {trips} WHERE co IS NOT NULL GROUP BY co, cd, ca"


def _check_flows(connection: Connection, release: PublishedRelease, records: Records) -> Iterator[Finding]:
    """Compare each published flow with the trips in it."""
    both = tuple(name for name in release.measures if name in records.measures)
    differs = " OR ".join(each.differs(f"c.{each.name}", f"t.{each.name}", "t.trips") for each in measures_named(both))
    columns = ", ".join(
        f"c.{each.name} AS stated_{each.name}, CAST(t.{each.name} AS {each.sql_type}) AS true_{each.name}"
        for each in measures_named(both)
    )
    wrong = rows(
        connection,
        f"SELECT c.origin, c.destination, {columns} FROM classes c LEFT JOIN ({_true_counts(release, records)}) t "
        f"ON t.co = c.origin AND t.cd = c.destination WHERE c.release = {release.number} AND ({differs}) ORDER BY 1, 2",
    )
    invented = tuple(row for row in wrong if row["true_trips"] is None)
    known = [row for row in wrong if row["true_trips"] is not None]
    more = tuple(row for row in known if row["stated_trips"] > row["true_trips"])
    # Pairs that were suppressed before generalising are missing from the flow whose area covers them.
    fewer = tuple(row for row in known if row["stated_trips"] <= row["true_trips"] and not release.thinned)
    for which, text in (
        (invented, "has {published} trips in the release, but none of the trips is in it: it was added"),
        (more, "has {published} trips in the release, but only {true} in the data"),
        (fewer, "has {published} trips{extra} in the release, but {true} in the data: its count was changed"),
    ):
        if which:
            yield finding_on("recount", release, _describe_flows(which, text, both), details=which)


def _describe_flows(flows: tuple[dict[str, Any], ...], text: str, measures: tuple[str, ...]) -> str:
    first = flows[0]
    what = next((name for name in measures if first[f"stated_{name}"] != first[f"true_{name}"]), "trips")
    extra = ""
    published, true = f"{first['stated_trips']:,}", f"{first['true_trips'] or 0:,}"
    if first["stated_trips"] == first["true_trips"]:
        extra = f" and {format_mass(first[f'stated_{what}'])} {what}"
        true = f"{format_mass(first[f'true_{what}'])} {what}"
    difference = text.format(published=published, true=true, extra=extra)
    more = f" (and {len(flows) - 1:,} more flows)" if len(flows) > 1 else ""
    return f"{first['origin']} -> {first['destination']} {difference}{more}"


def _check_suppressed(connection: Connection, release: PublishedRelease) -> Iterator[Finding]:
    """Compare the trips in no flow with the suppressed trips of the manifest."""
    if release.provenance is None:
        return
    residual = rows(
        connection, f"SELECT coalesce(sum(trips), 0)::BIGINT AS trips FROM member{release.number} WHERE co IS NULL"
    )[0]["trips"]
    suppressed = release.provenance["suppressed"]["trips"]
    if not (residual == suppressed or (release.thinned and residual <= suppressed)):
        stated = f"release.json states {suppressed:,} as suppressed"
        yield finding_on("recount", release, f"{residual:,} of the trips lie in no published flow, but {stated}")


def _check_nested_counts(connection: Connection, release: PublishedRelease) -> Iterator[Finding]:
    """Check nested rows against the trips whose finest row they are; rows at their cap pass trips up.

    A row lists no more than its own trips and those passed up by the rows inside it, and no more trips are unlisted
    than ``release.json`` states.
    """
    number = release.number
    wrong = rows(
        connection,
        f"WITH own AS ({own_trips(number)}) SELECT {row_label('t')} AS flow, t.published AS stated, "
        "(t.own + coalesce(sum(b.own - b.published), 0))::BIGINT AS true "
        f"FROM own t LEFT JOIN {nested_rows(connection, number)} n ON {is_outer_row('n', 't')} "
        f"LEFT JOIN own b ON {is_row('b', 'n')} GROUP BY t.origin, t.destination, t.attributes, t.own, t.published "
        "HAVING t.published > t.own + coalesce(sum(b.own - b.published), 0) ORDER BY 1, 2",
    )
    if wrong:
        first = wrong[0]
        text = (
            f"{first['flow']} lists {first['stated']:,} trips, but only {first['true']:,} "
            "of the data are in it and in no finer row"
        )
        yield finding_on("recount", release, text, details=wrong)
    totals = rows(
        connection,
        f"SELECT (SELECT coalesce(sum(trips), 0) FROM classes WHERE release = {number})::BIGINT AS listed, "
        f"(SELECT coalesce(sum(trips), 0) FROM scope{number})::BIGINT AS counted",
    )[0]
    most, unlisted = release.manifest.get("unlisted", {}).get("at_most_trips"), totals["counted"] - totals["listed"]
    if most is not None and unlisted > most:
        text = f"{unlisted:,} trips are in no row, but release.json states that at most {most:,} are not listed"
        yield finding_on("recount", release, text)
    withstands = release.parameters.get("withstands")
    if withstands is not None and unlisted > withstands:
        text = (
            f"{unlisted:,} trips are in no row, and more than {withstands:,} may show a group to a reader who knows "
            f"the total of {totals['counted']:,}: do not publish that total"
        )
        yield finding_on("recount", release, text, "note")


def _check_rule(connection: Connection, release: PublishedRelease, records: Records) -> Iterator[Finding]:
    """Check the rule against counts of the trips, whatever the published counts are."""
    for measure, threshold in release.thresholds.items():
        if measure not in records.measures:
            yield finding_on("rule", release, f"the rule counts {measure}, but the trips given do not name any")
            continue
        below = rows(
            connection,
            f"SELECT co AS origin, cd AS destination, CAST({measure} AS DOUBLE) AS true FROM "
            f"({_true_counts(release, records)}) WHERE {measure} < {threshold * (1 - 1e-12):.17g} ORDER BY 3, 1, 2",
        )
        if below:
            text = (
                f"counted from the trips, {len(below):,} flows are below the rule of {format_mass(threshold)} "
                f"{measure}: {below[0]['origin']} -> {below[0]['destination']} has {format_mass(below[0]['true'])}"
            )
            yield finding_on("rule", release, text, details=below)


def _check_share(connection: Connection, release: PublishedRelease, records: Records) -> Iterator[Finding]:
    """Check the largest share of a contributor; unnamed trips may all be from the largest one."""
    most = release.constraints.get("max_share")
    if most is None:
        return
    measures = measures_named(records.measures)
    contributors = [each for each in measures if not each.adds_up]
    unknown = f"the largest share of {most:.0%} of a flow cannot be checked: "
    if not contributors:
        yield finding_on("rule", release, f"{unknown}the trips given name nobody")
        return
    if release.thinned:
        text = f"{unknown}it does not disclose which trips of a flow were suppressed"
        yield finding_on("rule", release, text, "note")
        return
    counted = [each for each in measures if each.adds_up and each.name in {"trips", *release.disclosed_thresholds}]
    for contributor in contributors:
        for what in counted:
            above = rows(
                connection,
                "SELECT co AS origin, cd AS destination, CAST(coalesce(max(t) FILTER (id IS NOT NULL), 0) + "
                "coalesce(sum(t) FILTER (id IS NULL), 0) AS DOUBLE) / CAST(sum(t) AS DOUBLE) AS share FROM "
                f"(SELECT co, cd, {contributor.column} AS id, sum({what.column}) AS t FROM member{release.number} "
                f"WHERE co IS NOT NULL GROUP BY co, cd, {contributor.column}) GROUP BY co, cd HAVING share > "
                f"{most * (1 + 1e-9)!r} ORDER BY 3 DESC, 1, 2",
            )
            if above:
                text = (
                    f"in {len(above):,} flows one {contributor.column} has more than the {most:.0%} of the {what.name} "
                    f"that are promised: {above[0]['share']:.0%} in {above[0]['origin']} -> {above[0]['destination']}"
                )
                yield finding_on("rule", release, text, details=above)


def _check_leaves(connection: Connection, release: PublishedRelease, prefix: str) -> Iterator[Finding]:
    """Compare the number of leaves in each zone with the data; a zone that was moved has another number."""
    for axis in AXES:
        published = release.leaves(axis)
        if not published:
            continue
        counts = rows(
            connection,
            f"SELECT n_{axis}.zone AS zone, count(DISTINCT m.{axis}) AS leaves FROM (SELECT DISTINCT {axis} FROM "
            f"scope{release.number}) m {zone_join(f'm.{axis}', axis, prefix, release.number)} GROUP BY 1",
        )
        found = {row["zone"]: row["leaves"] for row in counts}
        wrong = [
            {"zone": zone, "stated": leaves, "true": found.get(zone, 0)}
            for zone, leaves in published.items()
            if leaves != found.get(zone, 0)
        ]
        if wrong:
            first = wrong[0]
            text = (
                f"{len(wrong):,} {axis} zones are not where they are stated: {first['zone']} has {first['true']:,} "
                f"places of the data, not {first['stated']:,}"
            )
            yield finding_on("zones", release, text, details=tuple(wrong))


def _check_persons(connection: Connection, release: PublishedRelease, records: Records) -> Iterator[Finding]:
    """Find flows with fewer than k different persons, if the rule has no threshold on persons.

    A flow with unnamed trips has at least as many persons as households.
    """
    if "persons" not in records.measures or "persons" in release.thresholds:
        return
    counted = _true_counts(release, records)
    if "households" in records.measures:
        least = "CASE WHEN unnamed > 0 THEN greatest(persons, households) ELSE persons END"
        counted = f"SELECT * REPLACE ({least} AS persons) FROM ({counted})"
    if release.thinned and "persons" in release.measures:
        # Which trips of a flow were suppressed beforehand is unknown; its number of persons is published.
        counted = f"SELECT origin AS co, destination AS cd, * FROM classes WHERE release = {release.number}"
    below = rows(
        connection,
        f"SELECT co AS origin, cd AS destination, trips, persons FROM ({counted}) WHERE persons < {release.k} "
        "ORDER BY persons, 1, 2",
    )
    if below:
        worst = below[0]
        total = rows(connection, f"SELECT count(*) AS flows FROM classes WHERE release = {release.number}")[0]["flows"]
        text = (
            f"{len(below):,} of {total:,} flows have fewer than {release.k:g} different persons: "
            f"whoever knows one of the {worst['persons']} behind {worst['origin']} -> {worst['destination']} learns of "
            f"its {worst['trips']:,} trips"
        )
        yield finding_on("persons", release, text, details=below)


def _note_dominance(connection: Connection, release: PublishedRelease, records: Records) -> Iterator[Finding]:
    """Note the largest share of a flow that one person, or one weight, makes up."""
    for measure, who, what, share in (
        ("persons", "person", "trips", "max(t) FILTER (person IS NOT NULL) / sum(t)"),
        ("weight", "weight", "weight", "CAST(max(w) AS DOUBLE) / CAST(sum(s) AS DOUBLE)"),
    ):
        if measure not in records.measures:
            continue
        largest = rows(
            connection,
            f"SELECT co AS origin, cd AS destination, {share} AS share FROM (SELECT co, cd, ca, "
            "coalesce(person, 'nobody ' || trip) AS key, any_value(person) AS person, sum(trips) AS t, "
            f"max(weight) AS w, sum(weight) AS s FROM member{release.number} WHERE co IS NOT NULL "
            "GROUP BY co, cd, ca, key) GROUP BY co, cd, ca HAVING share IS NOT NULL ORDER BY share DESC, 1, 2",
        )
        if largest:
            many = tuple(row for row in largest if row["share"] > DOMINANT)
            first = largest[0]
            text = (
                f"one {who} makes up at most {first['share']:.0%} of the {what} of a flow ({first['origin']} -> "
                f"{first['destination']}), and more than half in {len(many) or 'no'} flow{'s' * (len(many) > 1)}"
            )
            yield finding_on("dominance", release, text, "note", many or (first,))
