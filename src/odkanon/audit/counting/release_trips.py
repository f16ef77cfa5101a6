"""The trips that a release covers, by its recipe, and the row to which each of them belongs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from duckdb import DuckDBPyConnection as Connection

from odkanon.audit.counting.conditions import (
    age_condition,
    filter_columns,
    filter_sql,
    hour_condition,
    parse_hour_slot,
    text_condition,
)
from odkanon.audit.counting.records import Records, raw_column
from odkanon.audit.counting.scan import TripsSource
from odkanon.audit.release_reader import BETWEEN, PublishedRelease, load_arrow
from odkanon.audit.row_nesting import (
    add_attribute_nesting,
    box_table,
    finest_rows,
    is_row,
    list_attributes,
    nested_rows,
    zone_join,
)
from odkanon.core.sql import quote_text
from odkanon.errors import DamagedReleaseError, InputError
from odkanon.read.area import Area, read_area
from odkanon.release_format.recipe import public_digest
from odkanon.zoning.cells import cell_to_latlng, str_to_cell

_PERIOD = {"since": ">=", "until": "<"}
_TIME_AXES = ("hour", "weekday", "date")


def release_filters(release: PublishedRelease) -> list[str]:
    """Return the filters with which a release was made, according to its recipe."""
    source = release.recipe.get("input", {})
    where = source.get("where") or []
    filters = [where] if isinstance(where, str) else [str(each) for each in where]
    return filters + [f'start_time {sign} "{source[name]}"' for name, sign in _PERIOD.items() if source.get(name)]


def file_digest(release: PublishedRelease, option: str) -> str | None:
    """Return the digest of the file that an option named, if the recipe has it; a file may change under its name."""
    files = (release.recipe.get("command") or {}).get("files") or {}
    digest: str | None = files.get(str(release.recipe.get("input", {}).get(option)))
    return digest


def release_area(release: PublishedRelease, source: TripsSource) -> Area | None:
    """Return the study area of a release: the one given with the trips, otherwise the one in the recipe."""
    within = release.recipe.get("input", {}).get("within")
    if source.within is not None or not isinstance(within, str) or within.endswith(" in memory"):
        return source.area
    return read_area(within)


def disclosed_area(release: PublishedRelease) -> Area | None:
    """Return the study area in the recipe, if it is listed in cells or its file still has the same digest."""
    within = release.recipe.get("input", {}).get("within")
    try:
        same = isinstance(within, str) and public_digest(Path(within)) == file_digest(release, "within")
        return read_area(within) if same else None
    except (InputError, OSError, ValueError):  # missing, or not a possible file name
        return None


def counting_resolution(releases: Sequence[PublishedRelease], source: TripsSource) -> int:
    """Return the H3 resolution in which to count trips: the one given, otherwise that of the releases.

    A cell does not contain its children exactly, so counts at another resolution than the release's differ from it.
    """
    finest = {each.manifest["resolution"] for each in releases if isinstance(each.manifest.get("resolution"), int)}
    if source.resolution is None and len(finest) > 1:
        raise InputError(
            f"the releases use H3 cells of resolution {' and '.join(map(str, sorted(finest)))}, which do not nest "
            "exactly; audit the releases of each resolution separately, or choose the resolution to count in",
            option="resolution",
        )
    return next(iter(finest)) if source.resolution is None and finest else source.finest


def needed_columns(releases: Sequence[PublishedRelease], where: Sequence[str]) -> list[str]:
    """Return the columns of the file that filters and segments of the releases name."""
    texts = [*where, *(text for release in releases for text in release_filters(release))]
    segments = [each for release in releases for part in _segments(release) for each in part]
    return sorted({name for names in (*map(filter_columns, texts), *segments) for name in names})


def attribute_columns(releases: Iterable[PublishedRelease]) -> list[str]:
    """Return the columns of the trips that hold the further axes of releases, except axes derived from times."""
    return sorted({name for release in releases for name in release.axes} - set(_TIME_AXES))


def _segments(release: PublishedRelease) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """Return the segments that a release covers (a trip is in one of them), and those that were left out of it."""
    parameters = release.parameters
    covered = parameters.get("joined") or [parameters.get("segment", {})]
    return [each for each in covered if each], parameters.get("left_out", [])


def scope_sql(release: PublishedRelease, records: Records, where: Sequence[str]) -> str:
    """Return the SQL condition, over the table ``records``, that a release covers a trip."""
    filters = release_filters(release) or list(where)
    covered, left_out = (
        [" AND ".join(_condition(name, label, release, records) for name, label in each.items()) for each in part]
        for part in _segments(release)
    )
    passed = filter_sql(filters, lambda name: raw_column(records, name))
    either = [f"({' OR '.join(covered)})"] if covered else []
    return " AND ".join([passed, *either, *(f"NOT coalesce({each}, false)" for each in left_out)])


def _condition(name: str, label: str, release: PublishedRelease, records: Records) -> str:
    if name == "age":
        return age_condition(label, raw_column(records, name).sql)
    if name != "hour":
        return f"{text_condition(raw_column(records, name).sql)} = {quote_text(label)}"
    taken: list[int] = []
    if label == "other":
        slots = next(part for part in release.parameters["dimension"].split("*") if part.strip().startswith("hour:"))
        taken = [hour for slot in slots.partition(":")[2].split(",") for hour in parse_hour_slot(slot)]
    return hour_condition(label, taken)


def add_trip_attributes(connection: Connection, release: PublishedRelease, records: Records) -> None:
    """Add to the trips of a release their values on its further axes, derived as its recipe specifies."""
    axes = (release.provenance or {}).get("axes", [])
    parts = [f"{quote_text(axis['name'] + '=')} || ({_axis_value(axis, records)})" for axis in axes]
    attributes = f" || {quote_text(BETWEEN)} || ".join(parts) or "''"
    connection.execute(f"ALTER TABLE scope{release.number} ADD COLUMN attributes VARCHAR")
    connection.execute(f"UPDATE scope{release.number} SET attributes = {attributes}")
    if axes:
        add_attribute_nesting(connection, release, list_attributes(connection, f"scope{release.number}"))


def _axis_value(axis: dict[str, Any], records: Records) -> str:
    """Return the SQL of the value that a trip has on an axis."""
    name, specification, values = axis["name"], axis["asked"], [str(value) for value in axis["levels"][0]]
    if name == "weekday":
        return "coalesce(dayname(start_time), 'missing')"
    if name == "date":
        return "coalesce(strftime(start_time, '%Y-%m-%d'), 'missing')"
    if name == "hour":
        taken = [hour for value in values if re.match(r"\d", value) for hour in parse_hour_slot(value)]
        return _first_match((value, hour_condition(value, taken)) for value in values)
    column = raw_column(records, name).sql
    if name == "age":
        return _first_match((value, age_condition(value, column)) for value in values)
    grouping = specification.partition(" without ")[0].partition(":")[2]
    if "=" not in grouping:
        text = text_condition(column)
        listed = ", ".join(map(quote_text, values))
        return f"CASE WHEN {text} IN ({listed}) THEN {text} ELSE 'other' END"
    groups = [part.partition("=") for part in grouping.split(",")]
    members = [(group.strip(), value.strip()) for group, _, listed in groups for value in listed.split("+")]
    tests = [(group, f"{text_condition(column)} = {quote_text(value)}") for group, value in members]
    return _first_match([*tests, ("missing", f"{text_condition(column)} = 'missing'"), ("other", "true")])


def _first_match(cases: Iterable[tuple[str, str]]) -> str:
    listed = " ".join(f"WHEN {condition} THEN {quote_text(value)}" for value, condition in cases)
    if not listed:
        raise DamagedReleaseError.because("the recipe", "lists an axis without values", advice="restore the original")
    return f"CASE {listed} END"


def add_area(connection: Connection, records: Records, number: int, area: Area | None) -> str:
    """Create the table ``area<number>`` and return the SQL condition that both ends of a trip are in it."""
    if area is None:
        return "true"
    inside = area.contains(str_to_cell(pa.array(records.leaves, pa.string())))
    leaves = pa.array(records.leaves).filter(pa.array(inside))
    load_arrow(connection, f"CREATE OR REPLACE TABLE area{number} AS FROM incoming", {"leaf": leaves})
    return " AND ".join(f"{end} IN (SELECT leaf FROM area{number})" for end in ("origin", "destination"))


def add_centres(connection: Connection, leaves: list[str]) -> None:
    """Create the table ``centres`` of the centroid of each leaf cell, which decides in which box it lies."""
    lat, lon = cell_to_latlng(str_to_cell(pa.array(leaves, pa.string())))
    columns = {"leaf": leaves, "lat": lat, "lon": lon}
    load_arrow(connection, "CREATE OR REPLACE TABLE centres AS FROM incoming", columns)


def assign_trips(
    connection: Connection, release: PublishedRelease, records: Records, source: TripsSource, prefix: str
) -> None:
    """Create ``scope<number>``, the trips of a release, and ``member<number>``, these trips with their rows.

    The row of a trip is the one between a zone above its origin and a zone above its destination; of nested rows, the
    finest. ``co, cd, ca`` are its origin, destination and attributes, null for a suppressed trip.
    """
    number = release.number
    inside = add_area(connection, records, number, release_area(release, source))
    connection.execute(
        f"CREATE OR REPLACE TABLE scope{number} AS SELECT DISTINCT ON (trip) * FROM records "
        f"WHERE {scope_sql(release, records, source.filters)} AND {inside} ORDER BY trip, row"
    )
    add_trip_attributes(connection, release, records)
    pairs = f"pairs{number}"
    connection.execute(
        f"CREATE OR REPLACE TABLE {pairs} AS SELECT DISTINCT origin, destination, attributes FROM scope{number}"
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
            f"JOIN attribute_nesting n_a ON n_a.release = {number} AND n_a.inside = p.attributes "
            f"JOIN classes c ON c.release = {number} AND c.origin = n_origin.zone "
            "AND c.destination = n_destination.zone AND c.attributes = n_a.outside"
        )
    # Join in this order, from pairs up to zones and then to rows: joining rows by one end alone would explode.
    usual = connection.execute("SELECT current_setting('disabled_optimizers')").fetchall()[0][0]
    connection.execute("SET disabled_optimizers = 'join_order,build_side_probe_side'")
    connection.execute(f"CREATE OR REPLACE TABLE flows{number} AS {flows}")
    connection.execute(f"SET disabled_optimizers = '{usual or ''}'")
    flows = finest_rows(connection, number) if release.nested else f"SELECT * FROM flows{number}"
    connection.execute(
        f"CREATE OR REPLACE TABLE member{number} AS SELECT r.*, c.origin AS co, c.destination AS cd, "
        f"c.attributes AS ca FROM scope{number} r JOIN {pairs} p ON {is_row('p', 'r')} "
        f"LEFT JOIN (SELECT DISTINCT * FROM ({flows})) f ON f.pair = p.rowid LEFT JOIN classes c ON c.rowid = f.class"
    )


def own_trips(number: int) -> str:
    """Return, in SQL, for each nested row how many trips it publishes and of how many it is the finest row."""
    return (
        "SELECT c.origin, c.destination, c.attributes, c.trips AS published, "
        "coalesce(sum(m.trips), 0)::BIGINT AS own FROM classes c LEFT JOIN "
        f"member{number} m ON m.co = c.origin AND m.cd = c.destination AND m.ca = c.attributes "
        f"WHERE c.release = {number} GROUP BY ALL"
    )


def add_possible_trips(connection: Connection, release: PublishedRelease) -> None:
    """Create the table ``possible<number>`` of every trip with every nested row that may list it.

    That is its finest row and, if trips may have been passed on from there, every row around it: a row that publishes
    another count than that of its own trips has passed some on or received some, and so may all rows around it.
    """
    number = release.number
    inside = nested_rows(connection, number)
    connection.execute(
        f"CREATE OR REPLACE TABLE possible{number} AS WITH own AS ({own_trips(number)}), "
        "moving AS (SELECT origin, destination, attributes FROM own WHERE own <> published), "
        "passed AS (SELECT * FROM moving UNION SELECT n.outer_origin, n.outer_destination, n.outer_attributes "
        f"FROM {inside} n JOIN moving m ON {is_row('m', 'n')}) "
        f"SELECT * FROM member{number} UNION ALL SELECT m.* REPLACE (n.outer_origin AS co, n.outer_destination AS cd, "
        f"n.outer_attributes AS ca) FROM {inside} n JOIN passed g ON {is_row('g', 'n')} "
        f"JOIN member{number} m ON m.co = n.origin AND m.cd = n.destination AND m.ca = n.attributes"
    )
