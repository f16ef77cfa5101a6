"""Count every flow of a release again, from the trips."""

from __future__ import annotations

from typing import Any

import duckdb

from odkanon.audit.counting.records import NoColumnError, Records, add_area, add_centres
from odkanon.audit.counting.scan import TripsSource
from odkanon.audit.cube_rows import add_trip_attributes
from odkanon.audit.findings import Finding
from odkanon.audit.nested_flows import add_possible_trips, check_nested_counts, finest_flows
from odkanon.audit.own_counts import named
from odkanon.audit.release_checks import show
from odkanon.audit.release_reader import AXES, Published, finding_on, rows
from odkanon.audit.study_area import area_of, scope_sql
from odkanon.audit.zone_geometry import box_table

DOMINANT = 0.5
"""From which share on one person or one weight is said to dominate a flow."""


def recount(
    connection: duckdb.DuckDBPyConnection, release: Published, records: Records, source: TripsSource
) -> tuple[list[Finding], bool]:
    """Compare a release with the trips: flow by flow, in total, and zone by zone.

    Leaves behind the table ``member<number>``: for each trip of the release, its flow, or null where it is in none.
    Also tells whether these are the trips that the release was made of.
    """
    # Leaves of a lookup table are named with their level, as other codes of it may be the same.
    prefix = "" if source.tree is None else "'0:' || "
    if release.axes and "axes" not in (release.about or {}):
        text = "how trips were told apart by kind stands in its recipe, which is not there; rows were not counted again"
        return [finding_on("recount", release, text)], False
    try:
        assign(connection, release, records, source, prefix)
    except NoColumnError as error:
        return [finding_on("recount", release, str(error))], False
    findings = _check_input(connection, release, records)
    if any(each.severity == "finding" for each in findings):
        return findings, False
    if release.nested:
        findings += check_nested_counts(connection, release)
        add_possible_trips(connection, release)
    else:
        findings += _check_flows(connection, release, records)
        findings += _check_residual(connection, release)
        findings += _check_share(connection, release, records)
    findings += _check_true_rule(connection, release, records)
    findings += _check_persons(connection, release, records)
    if not release.has_boxes:
        findings += _check_leaves(connection, release, prefix)
    return findings + _note_dominance(connection, release, records), True


def assign(
    connection: duckdb.DuckDBPyConnection, release: Published, records: Records, source: TripsSource, prefix: str
) -> None:
    """Find the flow of every trip: the one between a zone above its origin and a zone above its destination."""
    number = release.number
    inside = add_area(connection, records, number, area_of(release, source))
    connection.execute(
        f"CREATE OR REPLACE TABLE scope{number} AS SELECT DISTINCT ON (trip) * FROM records "
        f"WHERE {scope_sql(release, records, source.filters)} AND {inside} ORDER BY trip, row"
    )
    add_trip_attributes(connection, release, records)
    pairs = f"pairs{number}"
    connection.execute(
        f"CREATE OR REPLACE TABLE {pairs} AS SELECT DISTINCT origin, destination, kind FROM scope{number}"
    )
    if release.has_boxes:
        add_centres(connection, records.leaves)
        inside = " AND ".join(
            f"{leaf}.lon >= b.{end}_west AND {leaf}.lon < b.{end}_east AND {leaf}.lat >= b.{end}_south "
            f"AND {leaf}.lat < b.{end}_north"
            for leaf, end in (("lo", "o"), ("ld", "d"))
        )
        flows = (
            f"SELECT p.rowid AS pair, b.class FROM {pairs} p JOIN centres lo ON lo.leaf = p.origin "
            "JOIN centres ld ON ld.leaf = p.destination "
            f"JOIN {box_table(connection, release)} b ON {inside}"
        )
    else:
        flows = (
            "SELECT p.rowid AS pair, c.rowid AS class "
            f"FROM {pairs} p {zone_join('p.origin', 'origin', prefix, number)} "
            f"{zone_join('p.destination', 'destination', prefix, number)} "
            f"JOIN kinds n_kind ON n_kind.release = {number} AND n_kind.inside = p.kind "
            f"JOIN classes c ON c.release = {number} AND c.origin = n_origin.zone "
            "AND c.destination = n_destination.zone AND c.kind = n_kind.outside"
        )
    # From each pair up to its zones, and only then to the rows between them: by one end alone they would be too many.
    usual = connection.execute("SELECT current_setting('disabled_optimizers')").fetchall()[0][0]
    connection.execute("SET disabled_optimizers = 'join_order,build_side_probe_side'")
    connection.execute(f"CREATE OR REPLACE TABLE flows{number} AS {flows}")
    connection.execute(f"SET disabled_optimizers = '{usual or ''}'")
    flows = finest_flows(connection, number) if release.nested else f"SELECT * FROM flows{number}"
    connection.execute(
        f"CREATE OR REPLACE TABLE member{number} AS SELECT r.*, c.origin AS co, c.destination AS cd, c.kind AS ck "
        f"FROM scope{number} r JOIN {pairs} p ON p.origin = r.origin AND p.destination = r.destination "
        f"AND p.kind = r.kind LEFT JOIN (SELECT DISTINCT * FROM ({flows})) f ON f.pair = p.rowid "
        "LEFT JOIN classes c ON c.rowid = f.class"
    )


def zone_join(leaf: str, axis: str, prefix: str, number: int) -> str:
    """Return the SQL join from a leaf to the zones of a release above it."""
    return (
        f"JOIN above a_{axis} ON a_{axis}.node = {prefix}{leaf} "
        f"JOIN nodes n_{axis} ON n_{axis}.node = a_{axis}.ancestor AND n_{axis}.release = {number} "
        f"AND n_{axis}.axis = '{axis}'"
    )


def _check_input(connection: duckdb.DuckDBPyConnection, release: Published, records: Records) -> list[Finding]:
    """Check that these are the trips that the release was made of; a trip in two flows shows here, too."""
    sums = rows(
        connection,
        f"SELECT coalesce(sum(trips) FILTER (once), 0)::BIGINT AS trips, count(*) FILTER (NOT once) AS twice FROM "
        f"(SELECT trips, row_number() OVER (PARTITION BY trip) = 1 AS once FROM member{release.number})",
    )[0]
    findings = []
    if sums["twice"]:
        findings.append(finding_on("recount", release, f"{sums['twice']:,} trips lie in more than one published flow"))
    if release.total is not None and sums["trips"] != release.total:
        text = (
            f"the trips given are not those of the release: {sums['trips']:,} remain after reading, the release is "
            f"of {release.total:,}; give the file, filter, area and resolution that it was made with, or it "
            "counted rows that are no trips, or copies, as trips"
        )
        findings.append(finding_on("recount", release, text))
    elif release.sha256 is not None and records.sha256 != release.sha256:
        text = "the trips come from another file than the release says, though as many"
        findings.append(finding_on("recount", release, text, "note"))
    return findings


def _truth(release: Published, records: Records) -> str:
    """Return, in SQL, what the trips say of each flow, ``co, cd`` and all measures; of nested rows, at most."""
    counted = ", ".join(f"{measure.total} AS {measure.name}" for measure in named(records.measures))
    trips = f"{'possible' if release.nested else 'member'}{release.number}"
    unnamed = "count(*) FILTER (person IS NULL) AS unnamed"
    return f"SELECT co, cd, {unnamed}, {counted} FROM {trips} WHERE co IS NOT NULL GROUP BY co, cd, ck"


def _check_flows(connection: duckdb.DuckDBPyConnection, release: Published, records: Records) -> list[Finding]:
    """Compare each published flow with the trips in it."""
    both = tuple(name for name in release.measures if name in records.measures)
    differs = " OR ".join(each.differs(f"c.{each.name}", f"t.{each.name}", "t.trips") for each in named(both))
    columns = ", ".join(
        f"c.{name} AS said_{name}, CAST(t.{name} AS DOUBLE) AS true_{name}"
        if name == "weight"
        else f"c.{name} AS said_{name}, t.{name} AS true_{name}"
        for name in both
    )
    wrong = rows(
        connection,
        f"SELECT c.origin, c.destination, {columns} FROM classes c LEFT JOIN ({_truth(release, records)}) t "
        f"ON t.co = c.origin AND t.cd = c.destination WHERE c.release = {release.number} AND ({differs}) ORDER BY 1, 2",
    )
    invented = tuple(row for row in wrong if row["true_trips"] is None)
    known = [row for row in wrong if row["true_trips"] is not None]
    more = tuple(row for row in known if row["said_trips"] > row["true_trips"])
    fewer = tuple(row for row in known if row["said_trips"] <= row["true_trips"])
    if release.thinned:
        # Pairs suppressed before generalising are missing from the flow in whose area they lie.
        fewer = ()
    findings = []
    for which, text in (
        (invented, "has {said} trips in the release, but none of the trips is in it: it was added"),
        (more, "has {said} trips in the release, but only {true} in the data"),
        (fewer, "has {said} trips{extra} in the release, but {true} in the data: its count was changed"),
    ):
        if which:
            findings.append(finding_on("recount", release, _first_flow(which, text, both), details=which))
    return findings


def _first_flow(flows: tuple[dict[str, Any], ...], text: str, measures: tuple[str, ...]) -> str:
    first = flows[0]
    what = next((name for name in measures if first[f"said_{name}"] != first[f"true_{name}"]), "trips")
    extra = ""
    said, true = f"{first['said_trips']:,}", f"{first['true_trips'] or 0:,}"
    if first["said_trips"] == first["true_trips"]:
        extra = f" and {show(first[f'said_{what}'])} {what}"
        true = f"{show(first[f'true_{what}'])} {what}"
    told = text.format(said=said, true=true, extra=extra)
    more = f" (and {len(flows) - 1:,} more flows)" if len(flows) > 1 else ""
    return f"{first['origin']} -> {first['destination']} {told}{more}"


def _check_residual(connection: duckdb.DuckDBPyConnection, release: Published) -> list[Finding]:
    """Compare what is in no flow with what is said to be suppressed."""
    if release.about is None:
        return []
    residual = rows(
        connection, f"SELECT coalesce(sum(trips), 0)::BIGINT AS trips FROM member{release.number} WHERE co IS NULL"
    )[0]["trips"]
    said = release.about["suppressed"]["trips"]
    if residual == said or (release.thinned and residual <= said):
        return []
    text = f"{residual:,} of the trips lie in no published flow, but release.json says that {said:,} are suppressed"
    return [finding_on("recount", release, text)]


def _check_true_rule(connection: duckdb.DuckDBPyConnection, release: Published, records: Records) -> list[Finding]:
    """Check the rule against what the trips say, whatever the release says of its flows."""
    findings = []
    for measure, threshold in release.thresholds.items():
        if measure not in records.measures:
            text = f"the rule counts {measure}, but the trips given do not name any"
            findings.append(finding_on("rule", release, text))
            continue
        below = rows(
            connection,
            f"SELECT co AS origin, cd AS destination, CAST({measure} AS DOUBLE) AS true FROM "
            f"({_truth(release, records)}) WHERE {measure} < {threshold * (1 - 1e-12):.17g} ORDER BY 3, 1, 2",
        )
        if below:
            text = (
                f"counted from the trips, {len(below):,} flows are below the rule of {show(threshold)} {measure}: "
                f"{below[0]['origin']} -> {below[0]['destination']} has {show(below[0]['true'])}"
            )
            findings.append(finding_on("rule", release, text, details=below))
    return findings


def _check_share(connection: duckdb.DuckDBPyConnection, release: Published, records: Records) -> list[Finding]:
    """Check the promise that nobody has too much of a flow; what names nobody may be of whoever has most."""
    most = release.constraints.get("max_share")
    if most is None:
        return []
    contributors = [each for each in named(records.measures) if not each.adds_up]
    if release.thinned or not contributors:
        why = (
            "the trips given name nobody"
            if not contributors
            else "which trips of a flow were suppressed it does not say"
        )
        text = f"nobody is said to have more than {most:.0%} of a flow, which cannot be checked: {why}"
        return [finding_on("rule", release, text, "finding" if not contributors else "note")]
    findings = []
    for contributor in contributors:
        for what in (each for each in named(records.measures) if each.adds_up):
            if what.name != "trips" and what.name not in release.disclosed_thresholds:
                continue
            above = rows(
                connection,
                "SELECT co AS origin, cd AS destination, CAST(coalesce(max(t) FILTER (head IS NOT NULL), 0) + "
                "coalesce(sum(t) FILTER (head IS NULL), 0) AS DOUBLE) / CAST(sum(t) AS DOUBLE) AS share FROM "
                f"(SELECT co, cd, {contributor.column} AS head, sum({what.column}) AS t FROM member{release.number} "
                f"WHERE co IS NOT NULL GROUP BY co, cd, {contributor.column}) GROUP BY co, cd HAVING share > "
                f"{most * (1 + 1e-9)!r} ORDER BY 3 DESC, 1, 2",
            )
            if above:
                text = (
                    f"in {len(above):,} flows one {contributor.column} has more than the {most:.0%} of the {what.name} "
                    f"that are promised: {above[0]['share']:.0%} in {above[0]['origin']} -> {above[0]['destination']}"
                )
                findings.append(finding_on("rule", release, text, details=above))
    return findings


def _check_leaves(connection: duckdb.DuckDBPyConnection, release: Published, prefix: str) -> list[Finding]:
    """Compare the places in each zone with those that the data has there; a zone that was moved has others."""
    findings = []
    for axis in AXES:
        told = release.leaves(axis)
        if not told:
            continue
        counts = rows(
            connection,
            f"SELECT n_{axis}.zone AS zone, count(DISTINCT m.{axis}) AS leaves FROM (SELECT DISTINCT {axis} FROM "
            f"scope{release.number}) m {zone_join(f'm.{axis}', axis, prefix, release.number)} GROUP BY 1",
        )
        found = {row["zone"]: row["leaves"] for row in counts}
        wrong = [
            {"zone": zone, "said": leaves, "true": found.get(zone, 0)}
            for zone, leaves in told.items()
            if leaves != found.get(zone, 0)
        ]
        if wrong:
            first = wrong[0]
            text = (
                f"{len(wrong):,} {axis} zones do not lie where the release says: {first['zone']} has {first['true']:,} "
                f"places of the data, not {first['said']:,}"
            )
            findings.append(finding_on("zones", release, text, details=tuple(wrong)))
    return findings


def _check_persons(connection: duckdb.DuckDBPyConnection, release: Published, records: Records) -> list[Finding]:
    """Find flows with fewer than k different persons, where the rule does not ask for so many.

    Where nobody wrote down who made some trips of a flow, its households are as many persons at least.
    """
    if "persons" not in records.measures or "persons" in release.thresholds:
        return []
    counted = _truth(release, records)
    if "households" in records.measures:
        least = "CASE WHEN unnamed > 0 THEN greatest(persons, households) ELSE persons END"
        counted = f"SELECT * REPLACE ({least} AS persons) FROM ({counted})"
    if release.thinned and "persons" in release.measures:
        # Which trips of a flow were suppressed before it was formed, the release does not say; its persons it does.
        counted = f"SELECT origin AS co, destination AS cd, * FROM classes WHERE release = {release.number}"
    few = rows(
        connection,
        f"SELECT co AS origin, cd AS destination, trips, persons FROM ({counted}) WHERE persons < {release.k} "
        "ORDER BY persons, 1, 2",
    )
    if not few:
        return []
    worst = few[0]
    total = rows(connection, f"SELECT count(*) AS flows FROM classes WHERE release = {release.number}")[0]["flows"]
    text = (
        f"{len(few):,} of {total:,} flows have fewer than {release.k:g} different persons: "
        f"whoever knows one of the {worst['persons']} behind {worst['origin']} -> {worst['destination']} learns of "
        f"its {worst['trips']:,} trips"
    )
    return [finding_on("persons", release, text, details=few)]


def _note_dominance(connection: duckdb.DuckDBPyConnection, release: Published, records: Records) -> list[Finding]:
    """Note how much one person, or one weight, makes up of a flow at most."""
    shares = []
    if "persons" in records.measures:
        shares.append(("person", "trips", "max(t) FILTER (person IS NOT NULL) / sum(t)"))
    if "weight" in records.measures:
        shares.append(("weight", "weight", "CAST(max(w) AS DOUBLE) / CAST(sum(s) AS DOUBLE)"))
    notes = []
    for who, what, share in shares:
        largest = rows(
            connection,
            f"SELECT co AS origin, cd AS destination, {share} AS share FROM (SELECT co, cd, ck, "
            "coalesce(person, 'nobody ' || trip) AS key, any_value(person) AS person, sum(trips) AS t, "
            f"max(weight) AS w, sum(weight) AS s FROM member{release.number} WHERE co IS NOT NULL "
            "GROUP BY co, cd, ck, key) GROUP BY co, cd, ck ORDER BY share DESC, 1, 2",
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
