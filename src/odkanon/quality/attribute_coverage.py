"""Attribute coverage of a cube: the share of trips whose attributes are published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from odkanon.attributes.hierarchies import AttributeAxis
from odkanon.attributes.spec import ANY
from odkanon.core.arrays import Bools
from odkanon.errors import InputError, RefusedError
from odkanon.model.release import Release


@dataclass(frozen=True)
class Coverage:
    """Coverage of some attributes, as shares of the trips of the input.

    Attributes
    ----------
    axes : tuple of str
        The names of the attributes.
    full : float
        Share of trips in rows with the value of every attribute.
    part : float
        Share of trips in rows with the value of every attribute or a group of values that contains it.
    """

    axes: tuple[str, ...]
    full: float
    part: float


def attribute_coverage(release: Release) -> list[Coverage]:
    """Return the coverage of each attribute of a cube and, if there are several, of all combined.

    Examples
    --------
    >>> from odkanon import Rule, anonymize, make_survey, read_trips
    >>> from odkanon.quality.attribute_coverage import attribute_coverage
    >>> from odkanon.read.od_matrix import build_od
    >>> cube = build_od(read_trips(make_survey()), by=["sex"], resolution=8)
    >>> [sex] = attribute_coverage(anonymize(cube, Rule(trips=10), method="cascade", drop_order="place,sex"))
    >>> sex.axes, sex.full > 0.99
    (('sex',), True)
    """
    if release.refusal:
        raise RefusedError.nothing_publishable(release.refusal)
    if release.matrix is None or not release.matrix.axes:
        raise InputError("the release has no attributes; publish a cube by one")
    axes = release.matrix.axes
    found = [_coverage(release, [axis]) for axis in axes]
    return found if len(axes) == 1 else [*found, _coverage(release, axes)]


def _coverage(release: Release, axes: Sequence[AttributeAxis]) -> Coverage:
    full = np.ones(len(release.classes), dtype=bool)
    part = full.copy()
    for axis in axes:
        labels = release.classes.attributes[axis.name]
        part &= labels != ANY
        full &= (labels != ANY) & np.isin(labels, axis.public.leaves)
    return Coverage(tuple(axis.name for axis in axes), _share(release, full), _share(release, part))


def _share(release: Release, rows: Bools) -> float:
    return int(release.classes.trips[rows].sum()) / max(release.input.trips, 1)
