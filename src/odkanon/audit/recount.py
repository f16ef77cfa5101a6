"""Count every flow of a release again, from the trips."""

from __future__ import annotations

from typing import Any

import duckdb

from odkanon.audit.folder import AXES, Published, finding_on, rows
from odkanon.audit.places import box_table
from odkanon.audit.report import Finding
from odkanon.audit.scope import segment_condition
from odkanon.audit.trips import Pass, TripsSource, add_centres

DOMINANT = 0.5
"""From which share on one person or one weight is said to dominate a flow."""


def recount(
    connection: duckdb.DuckDBPyConnection, release: Published, reading: Pass, source: TripsSource
) -> list[Finding]:
    """Compare a release with the trips: flow by flow, in total, and zone by zone.

    Leaves behind the table ``member<number>``: for each trip of the release, its flow, or null where it is in none.
    """
    # Leaves of a lookup table are named with their level, as other codes of it may be the same.
    prefix = "" if source.hierarchy is None else "'0:' || "
    assign(connection, release, reading, prefix)
    findings = _check_input(connection, release, reading)
    if any(each.severity == "finding" for each in findings):
        return findings
    findings += _check_flows(connection, release, reading)
    findings += _check_rest(connection, release)
    if not release.has_boxes:
        findings += _check_leaves(connection, release, prefix)
    if "persons" in reading.measures:
        findings += _check_persons(connection, release)
    return findings + _note_dominance(connection, release, reading)


def assign(connection: duckdb.DuckDBPyConnection, release: Published, reading: Pass, prefix: str) -> None:
    """Find the flow of every trip: the one between a zone above its origin and a zone above its destination."""
    number = release.number
    chosen = f"(SELECT * FROM records{reading.number} WHERE {segment_condition(release)})"
    pairs = f"(SELECT DISTINCT origin, destination FROM {chosen})"
    if release.has_boxes:
        add_centres(connection, reading.leaves)
        inside = " AND ".join(
            f"{leaf}.lon >= b.{end}_west AND {leaf}.lon < b.{end}_east AND {leaf}.lat >= b.{end}_south "
            f"AND {leaf}.lat < b.{end}_north"
            for leaf, end in (("lo", "o"), ("ld", "d"))
        )
        flows = (
            "SELECT p.origin AS o, p.destination AS d, b.origin AS co, b.destination AS cd "
            f"FROM {pairs} p JOIN centres lo ON lo.leaf = p.origin JOIN centres ld ON ld.leaf = p.destination "
            f"JOIN {box_table(connection, release)} b ON {inside}"
        )
    else:
        flows = (
            "SELECT p.origin AS o, p.destination AS d, c.origin AS co, c.destination AS cd "
            f"FROM {pairs} p {_zone_join('p.origin', 'origin', prefix, number)} "
            f"{_zone_join('p.destination', 'destination', prefix, number)} "
            f"JOIN classes c ON c.release = {number} AND c.origin = n_origin.zone "
            "AND c.destination = n_destination.zone"
        )
    connection.execute(
        f"CREATE OR REPLACE TABLE member{number} AS SELECT r.*, f.co, f.cd FROM {chosen} r "
        f"LEFT JOIN (SELECT DISTINCT * FROM ({flows})) f ON f.o = r.origin AND f.d = r.destination"
    )


def _zone_join(leaf: str, axis: str, prefix: str, number: int) -> str:
    return (
        f"JOIN above a_{axis} ON a_{axis}.node = {prefix}{leaf} "
        f"JOIN nodes n_{axis} ON n_{axis}.node = a_{axis}.ancestor AND n_{axis}.release = {number} "
        f"AND n_{axis}.axis = '{axis}'"
    )


def _check_input(connection: duckdb.DuckDBPyConnection, release: Published, reading: Pass) -> list[Finding]:
    """Check that these are the trips that the release was made of; a trip in two flows shows here, too."""
    sums = rows(
        connection,
        f"SELECT coalesce(sum(trips) FILTER (once), 0)::BIGINT AS trips, count(*) FILTER (NOT once) AS twice FROM "
        f"(SELECT trips, row_number() OVER (PARTITION BY id) = 1 AS once FROM member{release.number})",
    )[0]
    findings = []
    if sums["twice"] and not release.nested:
        findings.append(finding_on("recount", release, f"{sums['twice']:,} trips lie in more than one published flow"))
    if sums["trips"] != release.total:
        text = (
            f"the trips given are not those of the release: {sums['trips']:,} remain after reading, the release is "
            f"of {release.total:,}; give the file, filter, area and resolution that it was made with"
        )
        findings.append(finding_on("recount", release, text))
    elif reading.sha256 != release.manifest["input"].get("sha256"):
        text = "the trips come from another file than the release says, though as many"
        findings.append(finding_on("recount", release, text, "note"))
    return findings


def _check_flows(connection: duckdb.DuckDBPyConnection, release: Published, reading: Pass) -> list[Finding]:
    """Compare each published flow with the trips in it."""
    counted = {
        "trips": "sum(trips)::BIGINT",
        "weight": "sum(weight) / any_value(scale)",
        "persons": "count(DISTINCT person)",
    }
    measures = [name for name in release.measures if name in reading.measures]
    if release.nested:
        # Of the trips that lie in such a flow, some are told by finer or by coarser ones; never the other way round.
        measures = ["trips"]
    truth = ", ".join(f"{counted[name]} AS {name}" for name in measures)
    close = {
        "trips": "c.trips <= t.trips" if release.nested else "c.trips = t.trips",
        "weight": "abs(c.weight - t.weight) <= 1e-9 * t.weight",
        "persons": "c.persons = t.persons",
    }
    wrong = rows(
        connection,
        f"SELECT c.origin, c.destination, {', '.join(f'c.{m} AS said_{m}, t.{m} AS true_{m}' for m in measures)} "
        f"FROM classes c LEFT JOIN (SELECT co, cd, {truth} FROM member{release.number} WHERE co IS NOT NULL "
        f"GROUP BY co, cd) t ON t.co = c.origin AND t.cd = c.destination WHERE c.release = {release.number} "
        f"AND NOT coalesce({' AND '.join(close[m] for m in measures)}, false) ORDER BY 1, 2",
    )
    invented = tuple(row for row in wrong if row["true_trips"] is None)
    more = tuple(row for row in wrong if row["true_trips"] is not None and row["said_trips"] > row["true_trips"])
    fewer = tuple(row for row in wrong if row not in invented and row not in more)
    if release.parameters.get("suppress") == "before":
        # Pairs suppressed before generalising are missing from the flow in whose area they lie.
        fewer = ()
    findings = []
    for which, text in (
        (invented, "has {said} trips in the release, but none of the trips is in it: it was added"),
        (more, "has {said} trips in the release, but only {true} in the data"),
        (fewer, "has {said} trips{extra} in the release, but {true} in the data: its count was changed"),
    ):
        if which:
            findings.append(finding_on("recount", release, _first_flow(which, text), details=which))
    return findings


def _first_flow(flows: tuple[dict[str, Any], ...], text: str) -> str:
    first = flows[0]
    extra = "" if first["said_trips"] != first["true_trips"] else " but another weight or other persons"
    told = text.format(said=f"{first['said_trips']:,}", true=f"{first['true_trips'] or 0:,}", extra=extra)
    more = f" (and {len(flows) - 1:,} more flows)" if len(flows) > 1 else ""
    return f"{first['origin']} -> {first['destination']} {told}{more}"


def _check_rest(connection: duckdb.DuckDBPyConnection, release: Published) -> list[Finding]:
    """Compare what is in no flow with what is said to be suppressed."""
    rest = rows(
        connection, f"SELECT coalesce(sum(trips), 0)::BIGINT AS trips FROM member{release.number} WHERE co IS NULL"
    )[0]["trips"]
    said = release.manifest["suppressed"]["trips"]
    if rest == said or ((release.nested or release.parameters.get("suppress") == "before") and rest <= said):
        return []
    text = f"{rest:,} of the trips lie in no published flow, but release.json says that {said:,} are suppressed"
    return [finding_on("recount", release, text)]


def _check_leaves(connection: duckdb.DuckDBPyConnection, release: Published, prefix: str) -> list[Finding]:
    """Compare the places in each zone with those that the data has there; a zone that was moved has others."""
    findings = []
    for axis in AXES:
        counts = rows(
            connection,
            f"SELECT n_{axis}.zone AS zone, count(DISTINCT m.{axis}) AS leaves FROM (SELECT DISTINCT {axis} FROM "
            f"member{release.number}) m {_zone_join(f'm.{axis}', axis, prefix, release.number)} GROUP BY 1",
        )
        found = {row["zone"]: row["leaves"] for row in counts}
        wrong = [
            {"zone": about["id"], "said": about["leaves"], "true": found.get(about["id"], 0)}
            for about, _ in release.zones[axis]
            if about["leaves"] != found.get(about["id"], 0)
        ]
        if wrong:
            first = wrong[0]
            text = (
                f"{len(wrong):,} {axis} zones do not lie where the release says: {first['zone']} has {first['true']:,} "
                f"places of the data, not {first['said']:,}"
            )
            findings.append(finding_on("zones", release, text, details=tuple(wrong)))
    return findings


def _check_persons(connection: duckdb.DuckDBPyConnection, release: Published) -> list[Finding]:
    """Find flows with fewer than k different persons, whatever the rule was."""
    k = release.thresholds.get("persons", release.k)
    counted = (
        f"SELECT co AS origin, cd AS destination, sum(trips)::BIGINT AS trips, count(DISTINCT person) AS persons "
        f"FROM member{release.number} WHERE co IS NOT NULL GROUP BY 1, 2"
    )
    if release.parameters.get("suppress") == "before" and "persons" in release.measures:
        # Which trips of a flow were suppressed before it was formed, the release does not say; its persons it does.
        counted = f"SELECT origin, destination, trips, persons FROM classes WHERE release = {release.number}"
    few = rows(connection, f"SELECT * FROM ({counted}) WHERE persons < {k} ORDER BY persons, 1, 2")
    if not few:
        return []
    worst = few[0]
    text = (
        f"{len(few):,} of {release.manifest['published']['classes']:,} flows have fewer than {k:g} different persons: "
        f"whoever knows one of the {worst['persons']} behind {worst['origin']} -> {worst['destination']} learns of "
        f"its {worst['trips']:,} trips"
    )
    return [finding_on("persons", release, text, details=few)]


def _note_dominance(connection: duckdb.DuckDBPyConnection, release: Published, reading: Pass) -> list[Finding]:
    """Note how much one person, or one weight, makes up of a flow at most."""
    shares = []
    if "persons" in reading.measures:
        shares.append(("person", "trips", "max(t) FILTER (person IS NOT NULL) / sum(t)"))
    if "weight" in reading.measures:
        shares.append(("weight", "weight", "max(w) / sum(s)"))
    notes = []
    for who, what, share in shares:
        largest = rows(
            connection,
            f"SELECT co AS origin, cd AS destination, {share} AS share FROM (SELECT co, cd, person_key, "
            f"any_value(person) AS person, sum(trips) AS t, max(weight) AS w, sum(weight) AS s FROM "
            f"({_with_keys(release, reading)}) GROUP BY co, cd, person_key) GROUP BY 1, 2 ORDER BY share DESC, 1, 2",
        )
        largest = tuple(row for row in largest if row["share"] is not None)
        if largest:
            many = tuple(row for row in largest if row["share"] > DOMINANT)
            first = largest[0]
            text = (
                f"one {who} makes up at most {first['share']:.0%} of the {what} of a flow ({first['origin']} -> "
                f"{first['destination']}), and more than half in {len(many):,} flows"
            )
            notes.append(finding_on("dominance", release, text, "note", many or (first,)))
    return notes


def _with_keys(release: Published, reading: Pass) -> str:
    """Return the trips in flows, with a key for each person; trips of nobody are each on their own."""
    person = "person" if "persons" in reading.measures else "NULL::INTEGER"
    weight = "weight" if "weight" in reading.measures else "NULL::BIGINT"
    return (
        f"SELECT co, cd, trips, {person} AS person, {weight} AS weight, coalesce({person}, -id) AS person_key "
        f"FROM member{release.number} WHERE co IS NOT NULL"
    )
