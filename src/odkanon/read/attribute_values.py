"""Attribute values of trips in SQL, the same on every engine, and the axes that they form.

A raw value is a short text, and few of them are distinct. So trips stay where they are, and only the distinct values
are fetched to make an axis of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odkanon.attributes.hierarchies import AttributeAxis, Labels, make_axis
from odkanon.attributes.spec import START, AttributeSpec
from odkanon.core.arrays import Codes
from odkanon.core.sql import connect, quote_name
from odkanon.errors import ColumnNotFoundError, InputError
from odkanon.read.person_ids import value_text
from odkanon.read.tables.column_names import attribute_columns
from odkanon.read.tables.table import NamedColumns
from odkanon.read.tables.time_formats import TimeColumn
from odkanon.read.trip_checks import finite, number_or_nan
from odkanon.read.zone_hierarchy import read_hierarchy

AttributeColumns = tuple[tuple[AttributeAxis, ...], tuple[Codes, ...]]
"""Attribute axes, and for each of them the number of the value of each trip."""


def attribute_sql(spec: AttributeSpec, source: str) -> str:
    """Return the SQL of the raw value of an attribute, as text; empty where it is missing.

    * ``spec``: the attribute.
    * ``source``: its column; for attributes derived from the start time, the SQL of the local time.
    """
    if spec.kind == "hour":
        return f"coalesce(CAST(EXTRACT(HOUR FROM {source}) AS VARCHAR), '')"
    if spec.source == START:
        return f"coalesce(CAST(CAST({source} AS DATE) AS VARCHAR), '')"
    if spec.kind != "age":
        return f"coalesce({value_text(source)}, '')"
    number = number_or_nan(source)
    bands = " ".join(f"WHEN {number} < {bound} THEN '{band}'" for band, bound in enumerate(spec.age_bands))
    known = f"{finite(number)} AND {number} >= 0"
    return f"CASE WHEN {known} THEN CASE {bands} ELSE '{len(spec.age_bands)}' END ELSE '' END"


def attribute_column(at: int) -> str:
    """Return the internal name of the column of an attribute axis."""
    return f"kind{at}"


@dataclass(frozen=True)
class AttributeSql:
    """SQL expressions of some attributes over a table."""

    sql: dict[str, str]
    """Raw values, by `attribute_column`."""
    written: dict[str, str]
    """Contents of the columns that they are derived from; rows that differ there are not duplicates."""
    times: dict[str, TimeColumn]
    """The columns of times that they are derived from."""


def compile_attributes(
    attributes: Sequence[AttributeSpec], table: NamedColumns, found: Mapping[str, str], times: Mapping[str, TimeColumn]
) -> AttributeSql:
    """Return the SQL of some attributes, given the column of each of our names and the formats of times."""
    kept = attribute_columns(table, found, source_columns(attributes))
    sql = {}
    for at, spec in enumerate(attributes):
        if spec.source == START and START not in times:
            raise _without_start(spec)
        sql[attribute_column(at)] = attribute_sql(
            spec, times[START].clock if spec.source == START else kept[spec.source]
        )
    used = {START: times[START]} if any(spec.source == START for spec in attributes) else {}
    columns = [*kept.values(), *(found[name] for name in used)]
    return AttributeSql(sql, {f"written{at}": value_text(column) for at, column in enumerate(columns)}, used)


def _without_start(spec: AttributeSpec) -> InputError:
    return InputError(f"{spec.name} needs a start time; name its column", option="column start_time=NAME")


def source_columns(attributes: Sequence[AttributeSpec]) -> list[str]:
    """Return the columns that attributes are derived from, times excepted."""
    return sorted({spec.source for spec in attributes} - {START})


def table_to_axes(table: pa.Table, attributes: Sequence[AttributeSpec]) -> AttributeColumns:
    """Return the axes of some attributes of trips in memory, and for each the numbers of their values."""
    if not attributes:
        return (), ()
    columns = table.column_names
    for spec in attributes:
        if spec.source not in columns and spec.source == START:
            raise _without_start(spec)
        if spec.source not in columns:
            raise ColumnNotFoundError.from_missing("the trips table", spec.source, columns, purpose="to publish by")
    connection = connect()
    connection.register("trips", table)
    sources = [quote_name(START) if spec.source == START else spec.source for spec in attributes]
    selected = (f"{attribute_sql(*each)} AS a{at}" for at, each in enumerate(zip(attributes, sources, strict=True)))
    return values_to_axes(
        attributes, connection.sql(f"SELECT {', '.join(selected)} FROM trips").to_arrow_table().columns
    )


def values_to_axes(attributes: Sequence[AttributeSpec], values: Sequence[pa.ChunkedArray]) -> AttributeColumns:
    """Return the axes that raw values form, and for each the numbers of the values."""
    made = []
    for spec, column in zip(attributes, values, strict=True):
        distinct = pc.dictionary_encode(column.combine_chunks())
        axis, code = values_to_axis(spec, np.asarray(distinct.dictionary.to_pylist(), dtype=np.str_))
        made.append((axis, code[distinct.indices.to_numpy()]))
    return tuple(axis for axis, _ in made), tuple(code for _, code in made)


def values_to_axis(spec: AttributeSpec, values: Labels) -> tuple[AttributeAxis, Codes]:
    """Return the axis that distinct raw values form, and the number of each of them."""
    return make_axis(spec, values, None if spec.lookup is None else read_hierarchy(spec.lookup))
