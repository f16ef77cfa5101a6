"""What kind of trip it is: a value of a column, or when it starts; asked in the same words on every engine.

Every answer is a short text, and there are few different ones. So trips stay where they are, and only the distinct
answers are looked at to make an axis of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from odkanon.core.arrays import Codes
from odkanon.errors import InputError, nearest
from odkanon.model.od import ODMatrix
from odkanon.read.area import Area
from odkanon.read.checks import finite, number_or_nan
from odkanon.read.identity import value_text
from odkanon.read.tables.open import connect, quote_name
from odkanon.read.tables.times import TimeColumn
from odkanon.read.trips import OUTSIDE, Trips, od_between
from odkanon.zoning.attributes import AttributeAxis

Labels = npt.NDArray[np.str_]

START = "start_time"


@dataclass(frozen=True, eq=False)
class Kind:
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


def sources_of(kinds: Sequence[Kind]) -> list[str]:
    """Return the attribute columns that kinds ask of, besides times."""
    return sorted({kind.source for kind in kinds} - {START})


def cube_of_kinds(trips: Trips, kinds: Sequence[Kind], *, resolution: int, within: Area | None) -> ODMatrix:
    """Count trips in memory by origin, destination and kind; see `odkanon.cube_of`."""
    if within is not None:
        cells = trips.cells(resolution)
        inside = within.contains(cells[0]) & within.contains(cells[1])
        if not inside.any():
            raise InputError("no trip has both ends inside the area; check the cells or the outline")
        trips = trips.reject(~inside, OUTSIDE)
    made = _axes(trips, kinds)
    return od_between(
        trips.cells(resolution),
        within,
        weight=trips.weight,
        scale=trips.scale,
        heads=trips.heads,
        source=trips.source,
        axes=tuple(axis for axis, _ in made),
        kinds=tuple(code for _, code in made),
    )


def _axes(trips: Trips, kinds: Sequence[Kind]) -> list[tuple[AttributeAxis, Codes]]:
    """Return each axis, and for each trip the number of its value."""
    columns = trips.table.column_names
    for kind in kinds:
        if kind.source not in columns and kind.source == START:
            raise InputError(f"{kind.name} needs a start time; say which column it is", option="column start_time=NAME")
        if kind.source not in columns:
            raise InputError(f"the trips have no column {kind.source!r} to publish by{nearest(kind.source, columns)}")
    connection = connect()
    connection.register("trips", trips.table)
    asked = [kind.text(quote_name(START) if kind.source == START else kind.source) for kind in kinds]
    answers = connection.sql(f"SELECT {', '.join(f'{sql} AS a{at}' for at, sql in enumerate(asked))} FROM trips")
    made = []
    for kind, column in zip(kinds, answers.to_arrow_table().columns, strict=True):
        told = pc.dictionary_encode(column.combine_chunks())
        axis, code = kind.axis(np.asarray(told.dictionary.to_pylist(), dtype=np.str_))
        made.append((axis, code[told.indices.to_numpy()]))
    return made
