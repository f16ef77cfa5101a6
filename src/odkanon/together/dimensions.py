"""Dimensions: ways to split trips into segments, such as by sex, by age band, or by time slot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from odkanon.core.arrays import Bools, Codes, Ints, number_groups
from odkanon.errors import InputError, nearest
from odkanon.read.axes import AGE_BANDS, MISSING, OTHER, band_names, slot_names
from odkanon.read.identity import value_text
from odkanon.read.tables.open import quote_name
from odkanon.read.trips import Trips

Labels = npt.NDArray[np.str_]

MAX_VALUES = 100


@dataclass(frozen=True, eq=False)
class Dimension:
    """A partition of the trips.

    Attributes
    ----------
    name : str
        As it was asked for: ``sex``, ``hour:6-9,9-16``, ``sex*age``.
    keys : tuple of str
        The attributes that it combines.
    labels : tuple of tuple of str
        For each value, one label a key.
    value : array of int
        For each trip, the number of its value.
    joined : tuple of tuple of str
        The labels of the values that were joined into `OTHER`.
    """

    name: str
    keys: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    value: Codes
    joined: tuple[tuple[str, ...], ...] = ()

    def __len__(self) -> int:
        return len(self.labels)

    def segment(self, value: int) -> dict[str, str]:
        """Return a value as ``{attribute: label}``."""
        return dict(zip(self.keys, self.labels[value], strict=True))

    def title(self, value: int) -> str:
        """Return a value as text, such as ``sex=Woman,age=20-29``."""
        return ",".join(f"{key}={label}" for key, label in self.segment(value).items())

    @property
    def other(self) -> tuple[str, ...]:
        """The label of values that are joined."""
        return (OTHER,) * len(self.keys)

    def segments_of(self, value: int) -> list[dict[str, str]]:
        """Return what a value stands for: itself, or the values that were joined into it."""
        labels = self.joined if self.joined and self.labels[value] == self.other else (self.labels[value],)
        return [dict(zip(self.keys, each, strict=True)) for each in labels]

    def join(self, which: Bools) -> Dimension:
        """Return the dimension with some values, and those that are `OTHER` already, as one."""
        which = which | np.array([label == self.other for label in self.labels])
        kept = [label for label, goes in zip(self.labels, which.tolist(), strict=True) if not goes]
        going = [label for label, goes in zip(self.labels, which.tolist(), strict=True) if goes]
        own = [label for label in going if not (self.joined and label == self.other)]
        number = np.where(which, len(kept), np.cumsum(~which) - 1).astype(np.int32)
        joined = tuple(sorted({*self.joined, *own}))
        return Dimension(self.name, self.keys, (*kept, self.other), number[self.value], joined)

    def select(self, which: Bools) -> Dimension:
        """Return the dimension over some of the trips."""
        return replace(self, value=self.value[which])


def columns_of(specs: Sequence[str]) -> list[str]:
    """Return the attribute columns that dimensions need, besides times."""
    names = {part.partition(":")[0].strip() for spec in specs for part in spec.split("*")}
    return sorted(names - {"hour"})


def make_dimensions(trips: Trips, specs: Sequence[str], *, age_bands: Sequence[int] = AGE_BANDS) -> list[Dimension]:
    """Return the dimensions that texts such as ``sex``, ``age``, ``hour``, ``hour:6-9,9-16`` or ``sex*age`` ask for.

    Parameters
    ----------
    trips : Trips
        With the columns that the texts name.
    specs : sequence of str
        ``age`` is banded, ``hour`` is the hour in which a trip starts; any other name is a column taken as it is.
    age_bands : sequence of int
        Where the second, third, ... band of ages begins.

    Examples
    --------
    >>> from odkanon import make_survey, read_trips
    >>> trips = read_trips(make_survey())
    >>> [len(each) for each in make_dimensions(trips, ["sex", "hour:6-9,9-16", "sex*age"])]
    [2, 3, 14]
    """
    repeated = [spec for spec in specs if list(specs).count(spec) > 1]
    if repeated:
        raise InputError(f"the segment {repeated[0]!r} is asked for twice; name it once")
    if list(age_bands) != sorted(set(age_bands)) or not age_bands:
        raise InputError(f"age bands begin at ascending ages, such as 18,40,65; not {','.join(map(str, age_bands))}")
    return [_dimension(trips, spec, age_bands) for spec in specs]


def _dimension(trips: Trips, spec: str, age_bands: Sequence[int]) -> Dimension:
    parts = [part.strip() for part in spec.split("*")]
    keys = tuple(part.partition(":")[0].strip() for part in parts)
    if len(set(keys)) < len(keys) or not all(keys):
        raise InputError(f"the segment {spec!r} is not understood; write sex, hour:6-9,9-16 or sex*age")
    columns = [_labels(trips, part, age_bands) for part in parts]
    numbered = [np.unique(column, return_inverse=True) for column in columns]
    key = np.zeros(len(trips), dtype=np.int64)
    for distinct, number in numbered:
        key = key * len(distinct) + number
    _, first, value = np.unique(key, return_index=True, return_inverse=True)
    if len(first) > MAX_VALUES:
        raise InputError(
            f"the segment {spec!r} has {len(first):,} values; at most {MAX_VALUES} tables can be released together, "
            "so use broader groups"
        )
    labels = tuple(tuple(str(column[row]) for column in columns) for row in first.tolist())
    return Dimension(spec, keys, labels, value.astype(np.int32))


def _labels(trips: Trips, part: str, age_bands: Sequence[int]) -> Labels:
    name, _, slots = part.partition(":")
    if name == "hour":
        return _hours(trips, slots, part)
    if slots:
        raise InputError(f"only hour takes slots, as in hour:6-9,9-16; not {part!r}")
    if name not in trips.table.column_names:
        raise InputError(f"the trips have no column {name!r} to segment by{nearest(name, trips.table.column_names)}")
    return band_labels(trips, age_bands) if name == "age" else value_labels(trips, name)


def value_labels(trips: Trips, name: str) -> Labels:
    """Return the value of each trip in a column, as text."""
    text = f"coalesce(nullif({value_text(name)}, ''), '{MISSING}')"
    return np.asarray(_selected(trips, text).to_pylist(), dtype=np.str_)


def _selected(trips: Trips, expression: str) -> pa.ChunkedArray:
    connection = duckdb.connect()
    connection.register("trips", trips.table)
    return connection.sql(f"SELECT {expression} AS v FROM trips").to_arrow_table().column("v")


def band_labels(trips: Trips, begins: Sequence[int]) -> Labels:
    """Return the band of ages of each trip."""
    age = _selected(trips, f"coalesce(TRY_CAST({quote_name('age')} AS DOUBLE), 'nan')").to_numpy()
    known = np.isfinite(age) & (age >= 0)
    band = np.searchsorted(np.array(begins), np.where(known, age, 0), side="right")
    return np.asarray([*band_names(begins), MISSING], dtype=np.str_)[np.where(known, band, len(begins) + 1)]


def hours_of(trips: Trips) -> Ints:
    """Return the hour in which each trip starts; 24 where that is not known."""
    if "start_time" not in trips.table.column_names:
        raise InputError("hours need a start time; say which column it is", option="column start_time=NAME")
    column = trips.table.column("start_time").combine_chunks()
    known = np.asarray(column.is_valid())
    seconds = np.asarray(column.cast(pa.timestamp("s"), safe=False).cast(pa.int64()).fill_null(0))
    return np.where(known, seconds // 3600 % 24, 24)


def _hours(trips: Trips, slots: str, part: str) -> Labels:
    names = slot_names(slots, part) if slots else [f"{each:02}" for each in range(24)]
    return np.asarray([*names, MISSING], dtype=np.str_)[hours_of(trips)]


def parent_of(dimensions: Sequence[Dimension], child: int) -> int | None:
    """Return the dimension whose every value is a union of values of ``child``, the finest one; None without any.

    Tables of the two are tied to each other, as region and town are, or sex and sex*age.
    """
    coarser = [
        number
        for number, other in enumerate(dimensions)
        if number != child
        and _refines(dimensions[child], other)
        and not (number > child and _refines(other, dimensions[child]))
    ]
    # Attributes may settle each other by chance; those that the child is made of do so for certain.
    named = [number for number in coarser if set(dimensions[number].keys) <= set(dimensions[child].keys)]
    finest = max(named or coarser, key=lambda number: (len(dimensions[number]), number), default=None)
    for number in named:
        if finest is not None and not _refines(dimensions[finest], dimensions[number]):
            raise InputError(
                f"the segments {dimensions[number].name!r} and {dimensions[finest].name!r} both add up from "
                f"{dimensions[child].name!r}; drop one of the three, so that the tables are tied in one way only"
            )
    return finest


def _refines(fine: Dimension, coarse: Dimension) -> bool:
    """Tell whether the value of one dimension settles that of the other for every trip."""
    pairs, _ = number_groups(fine.value.astype(np.int64) * len(coarse) + coarse.value, len(fine) * len(coarse))
    return len(pairs) == len(np.unique(fine.value))
