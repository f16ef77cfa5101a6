"""Dimensions: partitions of the trips into segments, such as by sex, by age band, or by time slot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from odkanon.attributes.hierarchies import Labels
from odkanon.attributes.spec import OTHER, AttributeSpec
from odkanon.core.arrays import Bools, Codes, number_groups
from odkanon.errors import InputError

MAX_SEGMENTS = 100


@dataclass(frozen=True, eq=False)
class Dimension:
    """A partition of the trips into segments."""

    name: str
    """What the user wrote: ``sex``, ``hour:6-9,9-16``, ``sex*age``."""
    keys: tuple[str, ...]
    """The attributes that it combines."""
    labels: tuple[tuple[str, ...], ...]
    """For each value, one label per key."""
    value: Codes
    """For each trip, the number of its value."""
    joined: tuple[tuple[str, ...], ...] = ()
    """Labels of the values that were merged into `OTHER`."""

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
        """The label of merged values."""
        return (OTHER,) * len(self.keys)

    def segments_of(self, value: int) -> list[dict[str, str]]:
        """Return the segments in a value: itself, or those that were merged into it."""
        labels = self.joined if self.joined and self.labels[value] == self.other else (self.labels[value],)
        return [dict(zip(self.keys, each, strict=True)) for each in labels]

    def join(self, which: Bools) -> Dimension:
        """Return the dimension with some values merged into `OTHER`."""
        goes = which | np.array([label == self.other for label in self.labels])
        going = {label for label, gone in zip(self.labels, goes.tolist(), strict=True) if gone}
        kept = [label for label in self.labels if label not in going]
        number = np.where(goes, len(kept), np.cumsum(~goes) - 1).astype(np.int32)
        # The label of the values merged before is no label of its own.
        joined = tuple(sorted({*self.joined, *(going - {self.other} if self.joined else going)}))
        return Dimension(self.name, self.keys, (*kept, self.other), number[self.value], joined)

    def select(self, which: Bools) -> Dimension:
        """Return the dimension restricted to some of the trips."""
        return replace(self, value=self.value[which])


def combine_attributes(text: str, parts: Sequence[AttributeSpec], labels: Mapping[str, Labels]) -> Dimension:
    """Return the dimension of every combination of some attributes that occurs.

    * ``text``: what the user wrote, such as ``sex*age``.
    * ``parts``: its attributes.
    * ``labels``: the label of each trip, by the text of an attribute.
    """
    key = np.zeros(len(labels[parts[0].text]), dtype=np.int64)
    for part in parts:
        distinct, number = np.unique(labels[part.text], return_inverse=True)
        key = key * len(distinct) + number
    _, first, value = np.unique(key, return_index=True, return_inverse=True)
    if len(first) > MAX_SEGMENTS:
        raise InputError(
            f"the segment {text!r} has {len(first):,} values; at most {MAX_SEGMENTS} linked tables can be released, so "
            "use broader groups"
        )
    named = tuple(tuple(str(labels[part.text][row]) for part in parts) for row in first.tolist())
    return Dimension(text, tuple(part.name for part in parts), named, value.astype(np.int32))


def parent_dimension(dimensions: Sequence[Dimension], child: int) -> int | None:
    """Return the finest dimension whose values are unions of values of ``child``; None if there is none.

    Tables of the two are linked, as those of region and town are, or of ``sex`` and ``sex*age``.
    """
    coarser = [
        number
        for number, other in enumerate(dimensions)
        if number != child
        and _refines(dimensions[child], other)
        and not (number > child and _refines(other, dimensions[child]))
    ]
    # Attributes may determine each other by chance; the parts of a combination are always determined by it.
    named = [number for number in coarser if set(dimensions[number].keys) <= set(dimensions[child].keys)]
    finest = max(named or coarser, key=lambda number: (len(dimensions[number]), number), default=None)
    for number in named:
        if finest is not None and not _refines(dimensions[finest], dimensions[number]):
            raise InputError(
                f"the segments {dimensions[number].name!r} and {dimensions[finest].name!r} are both sums of "
                f"{dimensions[child].name!r}; drop one of the three, so that each table has one parent"
            )
    return finest


def _refines(fine: Dimension, coarse: Dimension) -> bool:
    """Return whether the value of one dimension determines that of the other for every trip."""
    pairs, _ = number_groups(fine.value.astype(np.int64) * len(coarse) + coarse.value, len(fine) * len(coarse))
    return len(pairs) == len(np.unique(fine.value))
