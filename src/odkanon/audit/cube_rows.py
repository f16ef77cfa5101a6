"""Rows of a cube: of which kind of trips they are, which kind is part of which, and of which kind a trip is.

A kind is one text for what a row says of all axes; of a release of places alone it is empty. The table ``attributes``
tells which kind is part of which, each of itself included.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import duckdb
import pyarrow as pa

from odkanon.audit.conditions import age_condition, hour_condition, hours_of, text_condition
from odkanon.audit.counting.records import Records, raw_column
from odkanon.audit.release_reader import BETWEEN, Published
from odkanon.errors import InputError
from odkanon.read.tables.open_table import quote_text

_OF_TIME = ("hour", "weekday", "date")


def kind_of(names: Sequence[str], values: Sequence[str]) -> str:
    """Return a kind as one text."""
    return BETWEEN.join(f"{name}={value}" for name, value in zip(names, values, strict=True))


def attribute_columns_of(releases: Iterable[Published]) -> list[str]:
    """Return the columns of the trips that tell of which kind they are, besides times."""
    return sorted({name for release in releases for name in release.axes} - set(_OF_TIME))


def load_attributes(connection: duckdb.DuckDBPyConnection, releases: Iterable[Published]) -> None:
    """Make the table ``attributes`` of what the rows of each release say."""
    connection.execute("CREATE TABLE kinds (release INTEGER, inside VARCHAR, outside VARCHAR)")
    for release in releases:
        add_kinds(connection, release, _told(connection, f"classes WHERE release = {release.number}"))


def add_kinds(connection: duckdb.DuckDBPyConnection, release: Published, attributes: Sequence[str]) -> None:
    """Tell the table ``attributes`` of which kinds of rows some kinds are part."""
    told = set(_told(connection, f"classes WHERE release = {release.number}"))
    above = [_above(axis) for axis in release.recipe.get("about", {}).get("axes") or release.manifest.get("axes", [])]
    inside, outside = [], []
    for kind in attributes:
        values = [part.partition("=")[2] for part in kind.split(BETWEEN)] if kind else []
        chains = [chain.get(value, [value, "any"]) for chain, value in zip(above, values, strict=True)]
        found = [part for part in {kind_of(release.axes, each) for each in product(*chains)} if part in told]
        inside += [kind] * len(found)
        outside += found
    connection.register("incoming", pa.table({"i": pa.array(inside, pa.string()), "o": pa.array(outside, pa.string())}))
    connection.execute(
        f"INSERT INTO kinds SELECT {release.number}, i, o FROM incoming "
        "EXCEPT SELECT release, inside, outside FROM kinds"
    )
    connection.unregister("incoming")


def touching_attributes(connection: duckdb.DuckDBPyConnection, release: Published) -> str:
    """Return, in SQL, which two kinds of rows may share trips: on each axis the one lies in the other, or the reverse.

    Neither need be part of the other: so with the cars of any hour and anything in the morning.
    """
    chains = [_above(axis) for axis in release.manifest.get("axes", [])]
    related = [
        (at, *pair)
        for at, chain in enumerate(chains)
        for value, above in chain.items()
        for outer in above
        for pair in ((value, outer), (outer, value))
    ]
    told = _told(connection, f"classes WHERE release = {release.number}")
    parts = [(kind, at, part.partition("=")[2]) for kind in told if kind for at, part in enumerate(kind.split(BETWEEN))]
    # A value that no list has is like itself alone.
    related += [(at, value, value) for _, at, value in parts]
    for name, columns, listed in (
        (f"parts{release.number}", ("kind", "axis", "value"), parts),
        (f"alike{release.number}", ("axis", "one", "other"), sorted(set(related))),
    ):
        incoming = pa.table({column: [row[at] for row in listed] for at, column in enumerate(columns)})
        connection.register("incoming", incoming)
        connection.execute(f"CREATE OR REPLACE TABLE {name} AS FROM incoming")
        connection.unregister("incoming")
    if not parts:
        return "SELECT '' AS one, '' AS other"
    return (
        f"SELECT p.kind AS one, q.kind AS other FROM parts{release.number} p JOIN alike{release.number} a "
        f"ON a.axis = p.axis AND a.one = p.value JOIN parts{release.number} q ON q.axis = a.axis AND q.value = a.other "
        f"GROUP BY 1, 2 HAVING count(*) = {len(chains)}"
    )


def _told(connection: duckdb.DuckDBPyConnection, where: str) -> list[str]:
    return [row[0] for row in connection.execute(f"SELECT DISTINCT kind FROM {where} ORDER BY 1").fetchall()]


def _above(axis: dict[str, Any]) -> dict[str, list[str]]:
    """Return each value and group of an axis with what it lies in, itself first."""
    chains = [list(map(str, chain)) for chain in zip(*axis["levels"], strict=True)]
    return {chain[at]: chain[at:] for chain in chains for at in range(len(chain))}


def add_trip_attributes(connection: duckdb.DuckDBPyConnection, release: Published, records: Records) -> None:
    """Give the table of a release's trips the kind of each, as the recipe says that kinds were made."""
    axes = (release.about or {}).get("axes", [])
    parts = [f"{quote_text(axis['name'] + '=')} || ({_value(axis, records)})" for axis in axes]
    kind = f" || {quote_text(BETWEEN)} || ".join(parts) or "''"
    connection.execute(f"ALTER TABLE scope{release.number} ADD COLUMN kind VARCHAR")
    connection.execute(f"UPDATE scope{release.number} SET kind = {kind}")
    if axes:
        add_kinds(connection, release, _told(connection, f"scope{release.number}"))


def _value(axis: dict[str, Any], records: Records) -> str:
    """Return the SQL of the value that a trip has on an axis."""
    name, asked, values = axis["name"], axis["asked"], [str(value) for value in axis["levels"][0]]
    if name == "weekday":
        return "coalesce(dayname(start_time), 'missing')"
    if name == "date":
        return "coalesce(strftime(start_time, '%Y-%m-%d'), 'missing')"
    if name == "hour":
        taken = [hour for value in values if re.match(r"\d", value) for hour in hours_of(value)]
        return _first((value, hour_condition(value, taken)) for value in values)
    column = raw_column(records, name).sql
    if name == "age":
        return _first((value, age_condition(value, column)) for value in values)
    more = asked.partition(":")[2]
    if "=" not in more:
        text = text_condition(column)
        listed = ", ".join(map(quote_text, values))
        return f"CASE WHEN {text} IN ({listed}) THEN {text} ELSE 'other' END"
    groups = [part.partition("=") for part in more.split(",")]
    members = [(group.strip(), value.strip()) for group, _, listed in groups for value in listed.split("+")]
    tests = [(group, f"{text_condition(column)} = {quote_text(value)}") for group, value in members]
    return _first([*tests, ("missing", f"{text_condition(column)} = 'missing'"), ("other", "true")])


def _first(cases: Iterable[tuple[str, str]]) -> str:
    listed = " ".join(f"WHEN {condition} THEN {quote_text(value)}" for value, condition in cases)
    if not listed:
        raise InputError("an axis of the release has no values; its recipe was damaged")
    return f"CASE {listed} END"
