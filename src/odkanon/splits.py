"""Splits of trips by an attribute of the person: sex, age bands, category, or any other column."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odkanon.arrays import Bools
from odkanon.errors import InputError, nearest
from odkanon.trips import Trips

AGE_BANDS = (10, 20, 30, 40, 50, 60, 70)
"""Lower ends of the paper's age bands; the last one has no upper end."""


def split(trips: Trips, by: str, *, age_bands: Sequence[int] = AGE_BANDS) -> dict[str, Bools]:
    """Return, for each value of an attribute in ascending order, which trips have it.

    Parameters
    ----------
    trips : Trips
        The trips.
    by : str
        The attribute; ``age`` is cut into bands.
    age_bands : sequence of int
        Lower ends of the bands, ascending.

    Notes
    -----
    Trips without the attribute, or younger than the first band, are in no part.
    """
    if by not in trips.table.column_names:
        raise InputError(
            f"the trips have no column {by!r} to segment by{nearest(by, trips.table.column_names)}; "
            f"name it with --column {by}=NAME"
        )
    column = trips.table.column(by)
    if by == "age":
        return _bands(column, age_bands)
    values = column.cast(pa.string())
    return {
        value: np.asarray(pc.fill_null(pc.equal(values, value), False))
        for value in sorted(pc.drop_null(pc.unique(values)).to_pylist())
    }


def _bands(column: pa.ChunkedArray, lower_ends: Sequence[int]) -> dict[str, Bools]:
    if list(lower_ends) != sorted(set(lower_ends)) or not lower_ends:
        raise InputError(f"age bands are given by their lower ends in ascending order, not {list(lower_ends)}")
    try:
        age = np.asarray(pc.fill_null(column.cast(pa.float64()), np.nan))
    except pa.ArrowInvalid:
        raise InputError(
            "the column age has values that are not numbers; clean it, or segment by another column"
        ) from None
    bands = {}
    for low, high in zip(lower_ends, [*lower_ends[1:], None], strict=True):
        name = f"{low}+" if high is None else f"[{low}-{high})"
        bands[name] = (age >= low) & (age < (np.inf if high is None else high))
    return bands
