"""Nested rows: each lists the trips between its two zones that no finer row inside it lists.

Rows of a ladder form a tree: of two that overlap, one lies inside the other on every axis. A trip belongs to the finest
row above it, except that a row may be capped, and pass what is too much to the next coarser row above it.
"""

from __future__ import annotations

import duckdb

from odkanon.audit.cube_rows import touching_attributes
from odkanon.audit.findings import Finding
from odkanon.audit.release_reader import Published, finding_on, rows


def _nesting(number: int) -> str:
    """Return, in SQL, which zone lies in which, ``axis, inside, outside``, each in itself included."""
    return (
        "SELECT i.axis, i.zone AS inside, o.zone AS outside FROM nodes i JOIN above a ON a.node = i.node "
        f"JOIN nodes o ON o.node = a.ancestor AND o.axis = i.axis AND o.release = {number} "
        f"WHERE i.release = {number} GROUP BY ALL HAVING count(DISTINCT i.node) = any_value(i.size)"
    )


def _rows_inside(connection: duckdb.DuckDBPyConnection, number: int) -> str:
    """Return the table of each row with each other row in which it lies.

    ``class, origin, destination, kind`` of the one, ``around, oo, od, ok`` of the other.
    """
    connection.execute(
        f"CREATE TABLE IF NOT EXISTS inside{number} AS SELECT c.rowid AS class, c.origin, c.destination, c.kind, "
        "e.rowid AS around, e.origin AS oo, e.destination AS od, e.kind AS ok FROM classes c "
        f"JOIN ({_nesting(number)}) o ON o.axis = 'origin' AND o.inside = c.origin "
        f"JOIN ({_nesting(number)}) d ON d.axis = 'destination' AND d.inside = c.destination "
        f"JOIN kinds k ON k.release = {number} AND k.inside = c.kind "
        "JOIN classes e ON e.origin = o.outside AND e.destination = d.outside AND e.kind = k.outside "
        f"AND e.release = c.release WHERE c.release = {number} "
        "AND (c.origin, c.destination, c.kind) <> (e.origin, e.destination, e.kind)"
    )
    return f"inside{number}"


def check_nesting(connection: duckdb.DuckDBPyConnection, release: Published) -> list[Finding]:
    """Check that of two rows that share a place at both ends, and a kind of trips, one lies inside the other."""
    number = release.number
    touching = (
        "SELECT i.axis, i.zone AS one, o.zone AS other FROM nodes i JOIN above a ON a.node = i.node "
        f"JOIN nodes o ON o.node = a.ancestor AND o.axis = i.axis AND o.release = {number} WHERE i.release = {number}"
    )
    both = f"SELECT axis, one, other FROM ({touching}) UNION SELECT axis, other, one FROM ({touching})"
    alike = touching_attributes(connection, release)
    nested = _rows_inside(connection, number)
    crossing = rows(
        connection,
        # First by origins alone: places and kinds that touch would be far more than rows that do.
        f"WITH near AS MATERIALIZED (SELECT c AS c, e AS e FROM classes c JOIN ({both}) o ON o.axis = 'origin' "
        "AND o.one = c.origin JOIN classes e ON e.origin = o.other AND e.release = c.release "
        f"WHERE c.release = {number} AND (c.origin, c.destination, c.kind) < (e.origin, e.destination, e.kind)) "
        f"SELECT {flow_name('p.c')} AS one, {flow_name('p.e')} AS other FROM near p "
        f"JOIN ({both}) d ON d.axis = 'destination' AND d.one = p.c.destination AND d.other = p.e.destination "
        f"JOIN ({alike}) k ON k.one = p.c.kind AND k.other = p.e.kind "
        f"LEFT JOIN {nested} n ON {_same('n', 'p.c')} AND {_outer('n', 'p.e')} "
        f"LEFT JOIN {nested} m ON {_same('m', 'p.e')} AND {_outer('m', 'p.c')} "
        "WHERE n.origin IS NULL AND m.origin IS NULL ORDER BY 1, 2",
    )
    if not crossing:
        return []
    text = (
        f"{len(crossing):,} pairs of rows overlap without one lying in the other, as rows of a ladder do: "
        f"{crossing[0]['one']} and {crossing[0]['other']}"
    )
    return [finding_on("zones", release, text, details=crossing)]


def flow_name(table: str) -> str:
    """Return, in SQL, what to call a row of the table ``classes``."""
    kind = f"CASE WHEN {table}.kind = '' THEN '' ELSE ' (' || replace({table}.kind, chr(31), ', ') || ')' END"
    return f"{table}.origin || ' -> ' || {table}.destination || {kind}"


def _same(one: str, other: str) -> str:
    return " AND ".join(f"{one}.{name} = {other}.{name}" for name in ("origin", "destination", "kind"))


def _outer(one: str, other: str) -> str:
    return f"{one}.oo = {other}.origin AND {one}.od = {other}.destination AND {one}.ok = {other}.kind"


def finest_flows(connection: duckdb.DuckDBPyConnection, number: int) -> str:
    """Return, in SQL, of the rows ``class`` above each ``pair`` those in which no other of them lies."""
    inside = _rows_inside(connection, number)
    # Made by themselves, since few rows lie around a row, but many in one.
    connection.execute(
        f"CREATE OR REPLACE TABLE around{number} AS SELECT DISTINCT g.pair, n.around AS class "
        f"FROM flows{number} g JOIN {inside} n ON n.class = g.class"
    )
    return f"SELECT * FROM flows{number} ANTI JOIN around{number} USING (pair, class)"


def _own_trips(number: int) -> str:
    """Return, in SQL, for each row how many trips it says, and whose finest row it is."""
    return (
        "SELECT c.origin, c.destination, c.kind, c.trips AS said, coalesce(sum(m.trips), 0)::BIGINT AS own "
        f"FROM classes c LEFT JOIN member{number} m ON m.co = c.origin AND m.cd = c.destination AND m.ck = c.kind "
        f"WHERE c.release = {number} GROUP BY ALL"
    )


def add_possible_trips(connection: duckdb.DuckDBPyConnection, release: Published) -> None:
    """Make the table ``possible<number>``: every trip with every row that may list it.

    That is its finest row, and every row around that, if trips may have been passed on from there: a row that lists
    other than its own trips has done so or been given some, and so may all rows around it.
    """
    number = release.number
    inside = _rows_inside(connection, number)
    connection.execute(
        f"CREATE OR REPLACE TABLE possible{number} AS WITH own AS ({_own_trips(number)}), "
        "moving AS (SELECT origin, destination, kind FROM own WHERE own <> said), "
        f"given AS (SELECT * FROM moving UNION SELECT n.oo, n.od, n.ok FROM {inside} n "
        f"JOIN moving m ON {_same('m', 'n')}) "
        f"SELECT * FROM member{number} UNION ALL SELECT m.* REPLACE (n.oo AS co, n.od AS cd, n.ok AS ck) "
        f"FROM {inside} n JOIN given g ON {_same('g', 'n')} "
        f"JOIN member{number} m ON m.co = n.origin AND m.cd = n.destination AND m.ck = n.kind"
    )


def check_nested_counts(connection: duckdb.DuckDBPyConnection, release: Published) -> list[Finding]:
    """Compare rows with the trips whose finest row they are, allowing for what capped rows passed up.

    A row lists no more than its own trips and what the rows inside it passed up, and all but so many trips as
    ``release.json`` says are listed.
    """
    number = release.number
    wrong = rows(
        connection,
        f"WITH own AS ({_own_trips(number)}) SELECT {flow_name('t')} AS flow, t.said, "
        "(t.own + coalesce(sum(b.own - b.said), 0))::BIGINT AS true "
        f"FROM own t LEFT JOIN {_rows_inside(connection, number)} n ON {_outer('n', 't')} "
        f"LEFT JOIN own b ON {_same('b', 'n')} GROUP BY t.origin, t.destination, t.kind, t.own, t.said "
        "HAVING t.said > t.own + coalesce(sum(b.own - b.said), 0) ORDER BY 1, 2",
    )
    findings = []
    if wrong:
        first = wrong[0]
        text = (
            f"{first['flow']} lists {first['said']:,} trips, but only {first['true']:,} "
            "of the data are in it and in no finer row"
        )
        findings.append(finding_on("recount", release, text, details=wrong))
    listed = rows(
        connection,
        f"SELECT (SELECT coalesce(sum(trips), 0) FROM classes WHERE release = {number})::BIGINT AS said, "
        f"(SELECT coalesce(sum(trips), 0) FROM scope{number})::BIGINT AS there",
    )[0]
    most = release.manifest.get("unlisted", {}).get("at_most_trips")
    if most is not None and listed["there"] - listed["said"] > most:
        text = (
            f"{listed['there'] - listed['said']:,} trips are in no row, but release.json says that at most "
            f"{most:,} are not listed"
        )
        findings.append(finding_on("recount", release, text))
    return findings
