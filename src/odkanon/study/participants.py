"""Whom the data stands for: persons, people represented, trips and cells, of the whole and of every segment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odkanon.read.area import Area
from odkanon.read.trips import Trips


@dataclass(frozen=True)
class People:
    """What a part of the data stands for.

    Attributes
    ----------
    dimension, segment : str
        Which part.
    persons : int or None
        Participants; None where the input does not name them.
    represented : float or None
        Whom they stand for: the sum of their weights, each person once; None without weights or persons.
    trips, cells : int
        Trips, and distinct cells in which they begin or end.
    """

    dimension: str
    segment: str
    persons: int | None
    represented: float | None
    trips: int
    cells: int


def people_in(trips: Trips, dimension: str, segment: str, resolution: int, within: Area | None = None) -> People:
    """Return whom some trips stand for.

    A person whose trips have different weights counts with their mean.

    Examples
    --------
    >>> from odkanon import make_survey, read_trips
    >>> found = people_in(read_trips(make_survey()), "whole", "whole", 10)
    >>> found.persons, round(found.represented), found.trips
    (3320, 9001164, 81291)
    """
    start, end = trips.cells(resolution)
    inside = np.ones(len(trips), dtype=bool) if within is None else within.contains(start) & within.contains(end)
    cells = len(np.unique(np.concatenate([start[inside], end[inside]])))
    person = trips.contributors.get("persons")
    if person is None:
        return People(dimension, segment, None, None, int(inside.sum()), cells)
    known = inside & (person >= 0)
    names, number = np.unique(person[known], return_inverse=True)
    represented = None
    if trips.weight is not None:
        sums = np.bincount(number, trips.weight[known].astype(np.float64), len(names))
        represented = float((sums / np.bincount(number, minlength=len(names))).sum()) / trips.scale
    return People(dimension, segment, len(names), represented, int(inside.sum()), cells)
