"""Which combinations of attributes the rows of a release count, and which rows match a filter."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from odkanon.attributes.filter_grammar import FilterComparison, conjunction
from odkanon.attributes.hierarchies import UNLISTED
from odkanon.core.arrays import Bools, Ints
from odkanon.errors import DamagedReleaseError, InputError, UnknownNameError
from odkanon.estimate.flow_model import Combinations
from odkanon.release_format.folder import SavedRelease
from odkanon.release_format.names import MANIFEST
from odkanon.zoning.cells import Floats

log = logging.getLogger(__name__)

MOST_COMBINATIONS = 60
"""Combinations with rates of their own; where there would be more, values are grouped as in their hierarchies."""
TIMES = ("hour", "weekday", "date")
"""Attributes in which people return at another value."""
_NONE, _SOME, _ALL = 0, 1, 2
"""How many of the trips of a value match a filter; of unlisted values at most some."""
_LEAST_STATED = 1e-6
Labels = npt.NDArray[np.str_]
Where = str | Mapping[str, str] | None
"""A filter as text, or a value for each of some attributes."""


@dataclass(frozen=True, eq=False)
class AttributeGroups:
    """Groups of the values of each attribute, whose combinations have rates of their own.

    Attributes
    ----------
    levels : dict of array of str
        For each attribute the nodes above each value, from the values themselves.
    group : dict of array of int
        For each attribute the group of each value; -1 for values of which no row lists a trip.
    """

    levels: dict[str, Labels]
    group: dict[str, Ints]

    @classmethod
    def of_release(cls, release: SavedRelease, where: Where = None) -> AttributeGroups:
        """Return the values of each attribute, grouped where their combinations would be too many.

        Attributes that a filter names are grouped last, and then by whether they match it.
        """
        levels = {axis["name"]: np.array(axis["levels"], dtype=np.str_) for axis in release.manifest.get("axes", [])}
        matches = _matching_values(where, levels)
        depth = dict.fromkeys(levels, 0)
        group = {name: _numbered(columns, _spare(columns)) for name, columns in levels.items()}
        while prod(int(own.max()) + 1 for own in group.values()) > MOST_COMBINATIONS:
            free = [name for name in group if name not in matches and depth[name] + 1 < len(levels[name])]
            others = [name for name in matches if depth[name] == 0]
            if not free and not others:
                break
            name = max(free or others, key=lambda each: int(group[each].max()))
            depth[name] += 1
            columns = levels[name][depth[name] :] if free else matches[name][None].astype(np.str_)
            group[name] = _numbered(columns, _spare(levels[name]))
        return cls(levels, group)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of groups of each attribute."""
        return tuple(int(own.max()) + 1 for own in self.group.values())

    def combinations(self, labels: Mapping[str, Labels], most: int) -> Combinations:
        """Return which combinations rows with some labels count, given the most trips of an unlisted group."""
        rows = len(next(iter(labels.values())))
        covers = np.ones((rows, 1), dtype=bool)
        for name, own in labels.items():
            distinct, number = np.unique(own, return_inverse=True)
            below = np.stack([(self.levels[name] == label).any(axis=0) for label in distinct])
            known = self.group[name] >= 0
            covered = np.zeros((len(distinct), int(self.group[name].max()) + 1), dtype=bool)
            label, value = np.nonzero(below & known)
            covered[label, self.group[name][value]] = True
            covers = (covers[:, :, None] & covered[number.reshape(-1)][:, None, :]).reshape(rows, -1)
        place = np.indices(self.shape).reshape(len(self.shape), -1)
        lasting = [own for name, own in zip(self.group, place, strict=True) if name not in TIMES]
        back = _numbered(np.stack(lasting)) if lasting else np.zeros(covers.shape[1], dtype=np.int64)
        return Combinations(covers, back, most)

    def matching(self, where: Where, release: SavedRelease) -> tuple[Ints, Floats]:
        """Return the number of each row's labels, and by labels and combination the share that matches a filter.

        It is 1 or 0 but for values that were grouped. Of the values of a group that the label of a row leaves open, the
        shares are those of the rows that state them. What is rare is stated less often than its share, so the square
        roots of stated trips are compared.
        """
        matches = _matching_values(where, self.levels)
        label, found = np.zeros(release.table.num_rows, dtype=np.int64), np.ones((1, 1))
        for name, group in self.group.items():
            own = np.ones((1, int(group.max()) + 1))
            if name in matches:
                size = np.sqrt(_stated_trips(release, name, self.levels[name][0])) + _LEAST_STATED
                distinct, number = np.unique(_labels(release, name), return_inverse=True)
                label = label * len(distinct) + number.reshape(-1)
                below = np.stack([(self.levels[name] == each).any(axis=0) for each in distinct])
                of_group = group[:, None] == np.arange(own.shape[1])
                whole = (below * size) @ of_group
                own = np.divide(
                    (below * size * (matches[name] == _ALL)) @ of_group, whole, out=0 * whole, where=whole > 0
                )
            found = (found[:, None, :, None] * own[None, :, None, :]).reshape(len(found) * len(own), -1)
        return label, np.round(found, 9)


def _labels(release: SavedRelease, name: str) -> Labels:
    """Return the value of an attribute of each row."""
    return np.array(release.table.column(name).to_pylist(), dtype=np.str_)


def _stated_trips(release: SavedRelease, name: str, values: Labels) -> Floats:
    """Return the trips of the rows that state each value."""
    labels, number = np.unique(_labels(release, name), return_inverse=True)
    trips = dict(zip(labels.tolist(), np.bincount(number.reshape(-1), release.measure("trips")).tolist(), strict=True))
    return np.array([trips.get(str(value), 0.0) for value in values])


def _numbered(columns: npt.NDArray[np.generic], spare: Bools | None = None) -> Ints:
    """Return the number of each column of an array, equal ones having equal numbers; -1 for spare ones."""
    used = np.arange(columns.shape[1]) if spare is None else np.flatnonzero(~spare)
    found = np.full(columns.shape[1], -1, dtype=np.int64)
    _, number = np.unique(columns[:, used], axis=1, return_inverse=True)
    found[used] = number.reshape(-1)
    return found


def _spare(columns: Labels) -> Bools:
    """Return which values are not listed, though others of all their groups are: no row lists a trip of theirs."""
    spare: Bools = columns[0] == UNLISTED
    for level in columns[1:]:
        spare &= np.isin(level, level[columns[0] != UNLISTED])
    return spare


def matching_rows(release: SavedRelease, where: Where) -> tuple[Bools, Bools]:
    """Return for each row of a cube whether all of its trips match a filter, and whether some may."""
    if not release.axes:
        raise InputError(f"{release.name} has no attributes, so its trips cannot be filtered")
    certain = np.ones(release.table.num_rows, dtype=bool)
    possible = certain.copy()
    levels = {axis["name"]: np.array(axis["levels"], dtype=np.str_) for axis in release.manifest["axes"]}
    for name, matches in _matching_values(where, levels).items():
        labels = _labels(release, name)
        for label in np.unique(labels):
            here, below = labels == label, (levels[name] == label).any(axis=0)
            if not below.any():
                raise DamagedReleaseError.because(
                    release.name, f"has {name} {str(label)!r}, which {MANIFEST} does not list"
                )
            certain[here] &= bool((matches[below] == _ALL).all())
            possible[here] &= bool((matches[below] != _NONE).any())
    return certain, possible


def certain_rows(release: SavedRelease, where: Where) -> Bools:
    """Return the rows whose trips all match a filter, and warn of trips in others that may; all rows for None."""
    if where is None:
        return np.ones(release.table.num_rows, dtype=bool)
    certain, possible = matching_rows(release, where)
    undecided = int(release.measure("trips")[possible & ~certain].sum())
    if undecided:
        unit = release.subject.unit
        log.warning("up to %s more %s may match; their rows are too coarse and are left out", f"{undecided:,}", unit)
    return certain


def _comparisons(where: Where) -> Sequence[FilterComparison]:
    if where is None or isinstance(where, str):
        return [] if where is None else conjunction(where)
    return [FilterComparison(name, "==", (value,)) for name, value in where.items()]


def _distinct(levels: npt.NDArray[np.str_]) -> list[str]:
    """Return the values of an attribute and their groups, from the finest level."""
    return list(dict.fromkeys(levels.ravel().tolist()))


def _matching_values(where: Where, levels: dict[str, npt.NDArray[np.str_]]) -> dict[str, npt.NDArray[np.int8]]:
    """Return for each filtered attribute how many of the trips of each of its values match."""
    matches: dict[str, npt.NDArray[np.int8]] = {}
    for comparison in _comparisons(where):
        name = comparison.name
        if name not in levels:
            raise UnknownNameError.among("attribute of the cube", name, levels)
        matches.setdefault(name, np.full(levels[name].shape[1], _ALL, dtype=np.int8))
        listed = [value for value in _distinct(levels[name]) if value != UNLISTED or not isinstance(where, str)]
        if not {*map(str, comparison.values)} & {*listed}:
            raise UnknownNameError.among(f"value of {name}", comparison.values[0], listed)
        inside = np.full_like(matches[name], _NONE)
        for value in map(str, comparison.values):
            found = (levels[name] == value).any(axis=0)
            # An unlisted value may be part of any row that is coarser than the values.
            part = np.where(found, _ALL, _NONE) if found.any() else np.where(levels[name][0] == UNLISTED, _SOME, _NONE)
            inside = np.maximum(inside, part.astype(np.int8))
        matches[name] = np.minimum(matches[name], inside if comparison.operator in ("==", "in") else _ALL - inside)
    return matches
