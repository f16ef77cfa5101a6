"""How much a cube tells of its trips: for each axis besides the places, the share of trips of which it is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from odkanon.core.arrays import Bools
from odkanon.errors import InputError, RefusedError
from odkanon.model.release import Release
from odkanon.zoning.attribute_axis import ANY, AttributeAxis


@dataclass(frozen=True)
class Known:
    """What rows say of some axes, as shares of the trips of the input.

    Attributes
    ----------
    axes : tuple of str
        The names of the axes.
    full : float
        Trips in rows that have the value itself, on each of the axes.
    part : float
        Trips in rows that have the value or a group of values that it lies in, on each of the axes.
    """

    axes: tuple[str, ...]
    full: float
    part: float


def known(release: Release) -> list[Known]:
    """Return what is known of the trips: by each axis alone, and by all of them together.

    Examples
    --------
    >>> from odkanon import Rule, anonymize, cube_of, known, make_survey, read_trips
    >>> cube = cube_of(read_trips(make_survey()), ["sex"], resolution=8)
    >>> [sex] = known(anonymize(cube, Rule(trips=10), method="cascade", give_up="place,sex"))
    >>> sex.axes, sex.full > 0.99
    (('sex',), True)
    """
    if release.refusal:
        raise RefusedError(f"nothing can be published: {release.refusal}")
    if release.matrix is None or not release.matrix.axes:
        raise InputError("the release tells of places only; publish by an attribute")
    axes = release.matrix.axes
    found = [_known(release, [axis]) for axis in axes]
    return found if len(axes) == 1 else [*found, _known(release, axes)]


def _known(release: Release, axes: Sequence[AttributeAxis]) -> Known:
    full = np.ones(len(release.classes), dtype=bool)
    part = full.copy()
    for axis in axes:
        said = release.classes.attributes[axis.name]
        part &= said != ANY
        full &= (said != ANY) & np.isin(said, axis.public.leaves)
    return Known(tuple(axis.name for axis in axes), _share(release, full), _share(release, part))


def _share(release: Release, rows: Bools) -> float:
    return int(release.classes.trips[rows].sum()) / max(release.input.trips, 1)
