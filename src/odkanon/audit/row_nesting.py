"""Which zones and rows lie inside which others, and whether rows overlap; everything is a join over zone nodes.

The *attributes* of a row are one text for its values on all axes but origin and destination, empty in a release without
further axes. The table ``attribute_nesting`` lists which attributes contain which; each contains itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import pyarrow as pa
from duckdb import DuckDBPyConnection as Connection

from odkanon.audit.counting.counted_measures import NAMES
from odkanon.audit.findings import Finding
from odkanon.audit.release_reader import AXES, BETWEEN, PublishedRelease, finding_on, load_arrow, rows
from odkanon.methods.method_registry import METHODS


def nest_zones(connection: Connection, inner: int, outer: int) -> None:
    """Add the zones of one release that lie inside those of another (or the same) to the table ``zone_nesting``."""
    connection.execute(
        "CREATE TABLE IF NOT EXISTS zone_nesting (axis VARCHAR, inner_release INTEGER, inside VARCHAR, "
        "outer_release INTEGER, outside VARCHAR)"
    )
    pair = f"inner_release = {inner} AND outer_release = {outer}"
    if not connection.execute(f"SELECT 1 FROM zone_nesting WHERE {pair} LIMIT 1").fetchall():
        connection.execute(
            "INSERT INTO zone_nesting SELECT i.axis, i.release, i.zone, o.release, o.zone FROM nodes i "
            "JOIN above a ON a.node = i.node JOIN nodes o ON o.node = a.ancestor AND o.axis = i.axis "
            f"WHERE i.release = {inner} AND o.release = {outer} "
            "GROUP BY ALL HAVING count(DISTINCT i.node) = any_value(i.size)"
        )


def rows_inside(connection: Connection, inner: Sequence[int], outer: int) -> str:
    """Return, in SQL, each row of some releases with each other row of one release inside which it lies.

    The columns ``class, release, origin, destination, attributes`` and the measures are those of the inner row;
    ``outer_class, outer_origin, outer_destination, outer_attributes`` those of the outer one. Attributes are compared
    within one release only: releases with further axes are not compared with others by their rows.
    """
    for number in inner:
        nest_zones(connection, number, outer)
    joins = " ".join(
        f"JOIN zone_nesting {axis[0]} ON {axis[0]}.axis = '{axis}' AND {axis[0]}.inner_release = c.release "
        f"AND {axis[0]}.inside = c.{axis} AND {axis[0]}.outer_release = {outer}"
        for axis in AXES
    )
    attributes, measures = "true", ", ".join(f"c.{name}" for name in NAMES)
    if [*inner] == [outer]:
        joins += f" JOIN attribute_nesting n ON n.release = {outer} AND n.inside = c.attributes"
        attributes = "e.attributes = n.outside"
    return (
        f"SELECT c.rowid AS class, c.release, c.origin, c.destination, c.attributes, {measures}, "
        "e.rowid AS outer_class, e.origin AS outer_origin, e.destination AS outer_destination, "
        f"e.attributes AS outer_attributes FROM classes c {joins} JOIN classes e ON e.release = {outer} "
        f"AND e.origin = o.outside AND e.destination = d.outside AND {attributes} "
        f"WHERE c.release IN ({', '.join(map(str, inner))}) AND (c.release, c.origin, c.destination, c.attributes) "
        "<> (e.release, e.origin, e.destination, e.attributes)"
    )


def nested_rows(connection: Connection, number: int) -> str:
    """Return the name of a table of the rows of one release with the other rows inside which they lie."""
    connection.execute(f"CREATE TABLE IF NOT EXISTS inside{number} AS {rows_inside(connection, [number], number)}")
    return f"inside{number}"


def touching_zones(number: int) -> str:
    """Return, in SQL, the zones ``axis, outside, inside`` of a release that share a node: one has it, one a part."""
    return (
        "SELECT i.axis, o.zone AS outside, i.zone AS inside FROM nodes i JOIN above a ON a.node = i.node "
        f"JOIN nodes o ON o.node = a.ancestor AND o.release = i.release AND o.axis = i.axis WHERE i.release = {number}"
    )


def zone_join(leaf: str, axis: str, prefix: str, number: int) -> str:
    """Return the SQL join from a leaf to the zones of a release above it."""
    return (
        f"JOIN above a_{axis} ON a_{axis}.node = {prefix}{leaf} "
        f"JOIN nodes n_{axis} ON n_{axis}.node = a_{axis}.ancestor AND n_{axis}.release = {number} "
        f"AND n_{axis}.axis = '{axis}'"
    )


def row_label(table: str) -> str:
    """Return, in SQL, the label of a row of the table ``classes`` in messages."""
    attributes = f"' (' || replace({table}.attributes, chr(31), ', ') || ')'"
    return (
        f"{table}.origin || ' -> ' || {table}.destination || "
        f"CASE WHEN {table}.attributes = '' THEN '' ELSE {attributes} END"
    )


def is_row(one: str, other: str) -> str:
    """Return the SQL condition that two tables have the same row."""
    return " AND ".join(f"{one}.{name} = {other}.{name}" for name in (*AXES, "attributes"))


def is_outer_row(nested: str, other: str) -> str:
    """Return the SQL condition that the outer row of a table of nested rows is that of another table."""
    return " AND ".join(f"{nested}.outer_{name} = {other}.{name}" for name in (*AXES, "attributes"))


def finest_rows(connection: Connection, number: int) -> str:
    """Return, in SQL, the finest rows ``class`` around each ``pair``: those that contain no other row around it."""
    inside = nested_rows(connection, number)
    # Materialised first: few rows lie around a row, but many inside one.
    connection.execute(
        f"CREATE OR REPLACE TABLE around{number} AS SELECT DISTINCT g.pair, n.outer_class AS class "
        f"FROM flows{number} g JOIN {inside} n ON n.class = g.class"
    )
    return f"SELECT * FROM flows{number} ANTI JOIN around{number} USING (pair, class)"


def join_attributes(names: Sequence[str], values: Sequence[str]) -> str:
    """Return the values on further axes as one text."""
    return BETWEEN.join(f"{name}={value}" for name, value in zip(names, values, strict=True))


def load_attributes(connection: Connection, releases: Iterable[PublishedRelease]) -> None:
    """Create the table ``attribute_nesting`` of the attributes of all published rows."""
    connection.execute("CREATE TABLE attribute_nesting (release INTEGER, inside VARCHAR, outside VARCHAR)")
    for release in releases:
        add_attribute_nesting(connection, release, _published_attributes(connection, release))


def add_attribute_nesting(connection: Connection, release: PublishedRelease, attributes: Sequence[str]) -> None:
    """Add to the table ``attribute_nesting`` which published attributes contain each of some attributes."""
    published = set(_published_attributes(connection, release))
    axes = release.recipe.get("about", {}).get("axes") or release.manifest.get("axes", [])
    parents = [_parent_chains(axis) for axis in axes]
    inside, outside = [], []
    for text in attributes:
        values = [part.partition("=")[2] for part in text.split(BETWEEN)] if text else []
        chains = [chain.get(value, [value, "any"]) for chain, value in zip(parents, values, strict=True)]
        found = list({join_attributes(release.axes, each) for each in product(*chains)} & published)
        inside += [text] * len(found)
        outside += found
    load_arrow(
        connection,
        f"INSERT INTO attribute_nesting SELECT {release.number}, i, o FROM incoming "
        "EXCEPT SELECT release, inside, outside FROM attribute_nesting",
        {"i": pa.array(inside, pa.string()), "o": pa.array(outside, pa.string())},
    )


def list_attributes(connection: Connection, source: str) -> list[str]:
    """Return the distinct attributes in a table."""
    return [text for (text,) in connection.execute(f"SELECT DISTINCT attributes FROM {source} ORDER BY 1").fetchall()]


def _published_attributes(connection: Connection, release: PublishedRelease) -> list[str]:
    return list_attributes(connection, f"classes WHERE release = {release.number}")


def _parent_chains(axis: dict[str, Any]) -> dict[str, list[str]]:
    """Return each value and group of an axis with all groups above it, itself first."""
    chains = [list(map(str, chain)) for chain in zip(*axis["levels"], strict=True)]
    return {chain[at]: chain[at:] for chain in chains for at in range(len(chain))}


def touching_attributes(connection: Connection, release: PublishedRelease) -> str:
    """Return, in SQL, which attributes may share trips: on each axis, one value contains the other.

    Neither row need contain the other: *cars at any hour* share trips with *any mode in the morning*.
    """
    chains = [_parent_chains(axis) for axis in release.manifest.get("axes", [])]
    inside = [
        (at, *pair) for at, chain in enumerate(chains) for value in chain for pair in product([value], chain[value])
    ]
    listed = [text for text in _published_attributes(connection, release) if text]
    parts = [(text, at, part.partition("=")[2]) for text in listed for at, part in enumerate(text.split(BETWEEN))]
    related = {each for at, value, outer in inside for each in ((at, value, outer), (at, outer, value))}
    related |= {(at, value, value) for _, at, value in parts}  # also values that are missing from the levels
    for name, columns, table in (
        (f"parts{release.number}", ("attributes", "axis", "value"), parts),
        (f"alike{release.number}", ("axis", "one", "other"), sorted(related)),
    ):
        incoming = {column: [row[at] for row in table] for at, column in enumerate(columns)}
        load_arrow(connection, f"CREATE OR REPLACE TABLE {name} AS FROM incoming", incoming)
    if not parts:
        return "SELECT '' AS one, '' AS other"
    return (
        f"SELECT p.attributes AS one, q.attributes AS other FROM parts{release.number} p "
        f"JOIN alike{release.number} a ON a.axis = p.axis AND a.one = p.value "
        f"JOIN parts{release.number} q ON q.axis = a.axis AND q.value = a.other "
        f"GROUP BY 1, 2 HAVING count(*) = {len(chains)}"
    )


def check_overlap(connection: Connection, release: PublishedRelease) -> list[Finding]:
    """Check that no two flows overlap, and no two zones where every flow uses the same zones."""
    if release.nested:
        return _check_nesting(connection, release)
    if release.has_boxes:
        return _check_boxes(connection, release)
    method = METHODS.get(release.manifest.get("method", ""))
    findings = []
    # Where a method lets zones depend on the other end, they may overlap; flows never may.
    for axis in () if method is not None and method.overlaps else AXES:
        touching = f"FROM ({touching_zones(release.number)}) WHERE axis = '{axis}' AND outside <> inside"
        overlaps = rows(connection, f"SELECT DISTINCT outside, inside {touching} ORDER BY 1, 2")
        if overlaps:
            first = overlaps[0]
            text = f"{axis} zone {first['inside']} lies in zone {first['outside']}: places must be in one zone only"
            findings.append(finding_on("zones", release, text, details=overlaps))
    return findings + _double_counting(release, rows(connection, _overlapping_rows(release.number)))


def _overlapping_rows(number: int) -> str:
    def touching(axis: str) -> str:
        pairs = f"FROM ({touching_zones(number)}) WHERE axis = '{axis}' AND outside <> inside"
        return (
            f"(SELECT outside AS one, inside AS other {pairs} UNION SELECT inside, outside {pairs} "
            f"UNION SELECT DISTINCT {axis}, {axis} FROM classes WHERE release = {number})"
        )

    name = "{0}.origin || ' -> ' || {0}.destination"
    return (
        f"SELECT {name.format('c')} AS one, {name.format('e')} AS other FROM classes c JOIN {touching('origin')} o "
        f"ON o.one = c.origin JOIN {touching('destination')} d ON d.one = c.destination "
        "JOIN classes e ON e.origin = o.other AND e.destination = d.other AND e.release = c.release "
        f"WHERE c.release = {number} AND (c.origin, c.destination) < (e.origin, e.destination) ORDER BY 1, 2"
    )


def _double_counting(release: PublishedRelease, pairs: tuple[dict[str, Any], ...]) -> list[Finding]:
    if not pairs:
        return []
    first = pairs[0]
    text = f"{len(pairs):,} pairs of flows overlap: {first['one']} and {first['other']} count some trips twice"
    return [finding_on("zones", release, text, details=pairs)]


def box_table(connection: Connection, release: PublishedRelease) -> str:
    """Create a table of the flows between boxes with their bounds, and return its name."""
    bounds = []
    for axis in AXES:
        for properties, geometry in release.zones[axis]:
            x, y = zip(*geometry["coordinates"][0], strict=True)
            bounds.append((axis, properties["id"], min(x), min(y), max(x), max(y)))
    names = ("axis", "zone", "west", "south", "east", "north")
    columns = {side: [each[at] for each in bounds] for at, side in enumerate(names)}
    name = f"boxes{release.number}"
    sides = ", ".join(f"o.{side} AS o_{side}, d.{side} AS d_{side}" for side in ("west", "south", "east", "north"))
    load_arrow(
        connection,
        f"CREATE OR REPLACE TABLE {name} AS SELECT c.rowid AS class, c.origin, c.destination, {sides} FROM classes c "
        "JOIN incoming o ON o.axis = 'origin' AND o.zone = c.origin JOIN incoming d ON d.axis = 'destination' "
        f"AND d.zone = c.destination WHERE c.release = {release.number}",
        columns,
    )
    return name


def _check_boxes(connection: Connection, release: PublishedRelease) -> list[Finding]:
    name = box_table(connection, release)
    touching = " AND ".join(
        f"a.{end}_{low} < b.{end}_{high} AND b.{end}_{low} < a.{end}_{high}"
        for end in "od"
        for low, high in (("west", "east"), ("south", "north"))
    )
    both = rows(
        connection,
        "SELECT a.origin || ' -> ' || a.destination AS one, b.origin || ' -> ' || b.destination AS other "
        f"FROM {name} a JOIN {name} b ON {touching} AND (a.origin, a.destination) < (b.origin, b.destination)",
    )
    return _double_counting(release, both)


def _check_nesting(connection: Connection, release: PublishedRelease) -> list[Finding]:
    """Check that of two nested rows that may share trips, one lies inside the other."""
    number = release.number
    touching = touching_zones(number)
    both = (
        f"SELECT axis, inside AS one, outside AS other FROM ({touching}) UNION SELECT axis, outside, inside "
        f"FROM ({touching})"
    )
    attributes = touching_attributes(connection, release)
    nested = nested_rows(connection, number)
    crossing = rows(
        connection,
        # Origins first: zones and attributes touch in far more combinations than rows do.
        f"WITH near AS MATERIALIZED (SELECT c AS c, e AS e FROM classes c JOIN ({both}) o ON o.axis = 'origin' "
        "AND o.one = c.origin JOIN classes e ON e.origin = o.other AND e.release = c.release "
        f"WHERE c.release = {number} "
        "AND (c.origin, c.destination, c.attributes) < (e.origin, e.destination, e.attributes)) "
        f"SELECT {row_label('p.c')} AS one, {row_label('p.e')} AS other FROM near p "
        f"JOIN ({both}) d ON d.axis = 'destination' AND d.one = p.c.destination AND d.other = p.e.destination "
        f"JOIN ({attributes}) k ON k.one = p.c.attributes AND k.other = p.e.attributes "
        f"LEFT JOIN {nested} n ON {is_row('n', 'p.c')} AND {is_outer_row('n', 'p.e')} "
        f"LEFT JOIN {nested} m ON {is_row('m', 'p.e')} AND {is_outer_row('m', 'p.c')} "
        "WHERE n.origin IS NULL AND m.origin IS NULL ORDER BY 1, 2",
    )
    if not crossing:
        return []
    text = (
        f"{len(crossing):,} pairs of rows overlap without one lying in the other, as rows of a ladder do: "
        f"{crossing[0]['one']} and {crossing[0]['other']}"
    )
    return [finding_on("zones", release, text, details=crossing)]
