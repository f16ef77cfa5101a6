"""Dimensions: ways to split trips into segments, such as by sex, by age band, or by time slot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from odkanon.core.arrays import Bools, Codes, number_groups
from odkanon.errors import InputError
from odkanon.model.od import ODMatrix
from odkanon.read.attributes.hierarchies import AGE_BANDS, OTHER, name_of, requested_attribute
from odkanon.read.attributes.spec import AttributeSpec, Labels, axes_of_trips
from odkanon.read.trips import Trips

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


def segment_attributes(specs: Sequence[str], age_bands: Sequence[int] = AGE_BANDS) -> list[AttributeSpec]:
    """Return what has to be asked of each trip to make the dimensions that texts ask for; see `make_dimensions`."""
    repeated = [spec for spec in specs if list(specs).count(spec) > 1]
    if repeated:
        raise InputError(f"the segment {repeated[0]!r} is asked for twice; name it once")
    if list(age_bands) != sorted(set(age_bands)) or not age_bands:
        raise InputError(f"age bands begin at ascending ages, such as 18,40,65; not {','.join(map(str, age_bands))}")
    return [
        requested_attribute(part, age_bands) for part in dict.fromkeys(part for spec in specs for part in _parts(spec))
    ]


def _parts(spec: str) -> list[str]:
    parts = [part.strip() for part in spec.split("*")]
    keys = [name_of(part) for part in parts]
    if len(set(keys)) < len(keys) or not all(keys):
        raise InputError(f"the segment {spec!r} is not understood; write sex, hour:6-9,9-16 or sex*age")
    for part, key in zip(parts, keys, strict=True):
        if ":" in part and key != "hour":
            raise InputError(f"only hour takes slots, as in hour:6-9,9-16; not {part!r}")
    return parts


def make_dimensions(
    trips: Trips | ODMatrix, specs: Sequence[str], *, age_bands: Sequence[int] = AGE_BANDS
) -> list[Dimension]:
    """Return the dimensions that texts such as ``sex``, ``age``, ``hour``, ``hour:6-9,9-16`` or ``sex*age`` ask for.

    Parameters
    ----------
    trips : Trips or ODMatrix
        With the columns that the texts name; or a matrix by `segment_attributes`, whose rows are then split.
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
    attributes = segment_attributes(specs, age_bands)
    axes, values = (
        (trips.axes, trips.flows.attributes) if isinstance(trips, ODMatrix) else axes_of_trips(trips, attributes)
    )
    labels = {axis.asked: axis.tree.leaves[value] for axis, value in zip(axes, values, strict=True)}
    return [_dimension(spec, labels) for spec in specs]


def _dimension(spec: str, labels: Mapping[str, Labels]) -> Dimension:
    parts = _parts(spec)
    numbered = [np.unique(labels[part], return_inverse=True) for part in parts]
    key = np.zeros(len(numbered[0][1]), dtype=np.int64)
    for distinct, number in numbered:
        key = key * len(distinct) + number
    _, first, value = np.unique(key, return_index=True, return_inverse=True)
    if len(first) > MAX_VALUES:
        raise InputError(
            f"the segment {spec!r} has {len(first):,} values; at most {MAX_VALUES} tables can be released together, "
            "so use broader groups"
        )
    named = tuple(tuple(str(labels[part][row]) for part in parts) for row in first.tolist())
    return Dimension(spec, tuple(map(name_of, parts)), named, value.astype(np.int32))


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
