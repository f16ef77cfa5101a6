"""What kind of trip it is: a value of a column, or when it starts; asked in the same words on every engine.

Every answer is a short text, and there are few different ones. So trips stay where they are, and only the distinct
answers are looked at to make an axis of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from odkanon.core.arrays import Codes
from odkanon.errors import InputError, nearest
from odkanon.model.od import ODMatrix
from odkanon.read.area import Area
from odkanon.read.person_ids import value_text
from odkanon.read.tables.open_table import Named, connect, quote_name
from odkanon.read.tables.time_formats import TimeColumn
from odkanon.read.trip_checks import finite, number_or_nan
from odkanon.read.trips import AttributeColumns, Trips, attribute_columns, count_trips
from odkanon.zoning.attribute_axis import AttributeAxis

Labels = npt.NDArray[np.str_]

START = "start_time"


@dataclass(frozen=True, eq=False)
class AttributeSpec:
    """A question about every trip, and the axis that the answers make.

    Attributes
    ----------
    name : str
        What the axis is called.
    source : str
        The column that it asks of, by our name.
    text : callable
        Given the name of the column (of times: the SQL of the clock), returns the SQL of the answer, which is empty
        where there is none.
    axis : callable
        Given the distinct answers, returns the axis and for each answer the number of its value.
    """

    name: str
    source: str
    text: Callable[[str], str]
    axis: Callable[[Labels], tuple[AttributeAxis, Codes]]

    def sql(self, found: Mapping[str, str], times: Mapping[str, TimeColumn]) -> str:
        """Return the SQL of the answer, given which column is which and how times are read."""
        if self.source != START:
            return self.text(found[self.source])
        if START not in times:
            raise InputError(f"{self.name} needs a start time; say which column it is", option="column start_time=NAME")
        return self.text(times[START].clock)


def value_answer(column: str) -> str:
    """Return the SQL of a value as it reads."""
    return f"coalesce({value_text(column)}, '')"


def hour_answer(clock: str) -> str:
    """Return the SQL of the hour of a time, such as ``7``."""
    return f"coalesce(CAST(EXTRACT(HOUR FROM {clock}) AS VARCHAR), '')"


def day_answer(clock: str) -> str:
    """Return the SQL of the day of a time, such as ``2024-03-04``."""
    return f"coalesce(CAST(CAST({clock} AS DATE) AS VARCHAR), '')"


def band_answer(begins: Sequence[int]) -> Callable[[str], str]:
    """Return what gives the SQL of the number of the band that a number lies in, given where bands begin."""

    def text(column: str) -> str:
        number = number_or_nan(column)
        bands = " ".join(f"WHEN {number} < {begin} THEN '{band}'" for band, begin in enumerate(begins))
        known = f"{finite(number)} AND {number} >= 0"
        return f"CASE WHEN {known} THEN CASE {bands} ELSE '{len(begins)}' END ELSE '' END"

    return text


def attribute_column(at: int) -> str:
    """Return what the column of an axis besides the two places is called."""
    return f"kind{at}"


@dataclass(frozen=True)
class Answers:
    """What rows answer to some kinds: SQL expressions.

    Attributes
    ----------
    sql : dict of str to str
        The answers, by `attribute_column`.
    written : dict of str to str
        What stands in the columns that were asked; two rows that differ there are different.
    times : dict of str to TimeColumn
        The times that were asked.
    """

    sql: dict[str, str]
    written: dict[str, str]
    times: dict[str, TimeColumn]


def answers_of(
    attributes: Sequence[AttributeSpec], table: Named, found: Mapping[str, str], times: Mapping[str, TimeColumn]
) -> Answers:
    """Return what the rows of a table answer, given which column is which and how times are read."""
    kept = attribute_columns(table, found, sources_of(attributes))
    sql = {attribute_column(at): kind.sql(kept, times) for at, kind in enumerate(attributes)}
    asked = {START: times[START]} if any(kind.source == START for kind in attributes) else {}
    written = [*kept.values(), *(found[name] for name in asked)]
    return Answers(sql, {f"written{at}": value_text(column) for at, column in enumerate(written)}, asked)


def sources_of(attributes: Sequence[AttributeSpec]) -> list[str]:
    """Return the attribute columns that kinds ask of, besides times."""
    return sorted({kind.source for kind in attributes} - {START})


def cube_of_attributes(
    trips: Trips, attributes: Sequence[AttributeSpec], *, resolution: int, within: Area | None
) -> ODMatrix:
    """Count trips in memory by origin, destination and kind; see `odkanon.cube_of`."""
    return count_trips(trips, resolution, within, lambda inside: axes_of_trips(inside, attributes))


def axes_of_trips(trips: Trips, attributes: Sequence[AttributeSpec]) -> AttributeColumns:
    """Return the axes that the answers of trips make, and for each the values of the trips."""
    if not attributes:
        return (), ()
    columns = trips.table.column_names
    for kind in attributes:
        if kind.source not in columns and kind.source == START:
            raise InputError(f"{kind.name} needs a start time; say which column it is", option="column start_time=NAME")
        if kind.source not in columns:
            raise InputError(f"the trips have no column {kind.source!r} to publish by{nearest(kind.source, columns)}")
    connection = connect()
    connection.register("trips", trips.table)
    asked = [kind.text(quote_name(START) if kind.source == START else kind.source) for kind in attributes]
    answers = connection.sql(f"SELECT {', '.join(f'{sql} AS a{at}' for at, sql in enumerate(asked))} FROM trips")
    return axes_of_answers(attributes, answers.to_arrow_table().columns)


def axes_of_answers(attributes: Sequence[AttributeSpec], answers: Sequence[pa.ChunkedArray]) -> AttributeColumns:
    """Return the axes that answers make, and for each the numbers of their values."""
    made = []
    for kind, column in zip(attributes, answers, strict=True):
        told = pc.dictionary_encode(column.combine_chunks())
        axis, code = kind.axis(np.asarray(told.dictionary.to_pylist(), dtype=np.str_))
        made.append((axis, code[told.indices.to_numpy()]))
    return tuple(axis for axis, _ in made), tuple(code for _, code in made)
