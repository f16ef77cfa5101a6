"""What absence discloses: a pair of zones that a release does not list has fewer trips than its rule requires.

Between releases that share trips, this bounds what rows leave open: zones 40 + 30 inside a district's 88 leave 18 for
two unlisted pairs of zones, so both have nine. Every unlisted pair is bounded by an integer programme over the trips
that may be between any two places, in any set of releases. Where one flow that meets the rule may have been suppressed
with too few others (complementary suppression), the programme allows for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any

import numpy as np
import numpy.typing as npt
from duckdb import DuckDBPyConnection as Connection

from odkanon.audit.equation_systems import MOST_CELLS, atom_members, both_inside, number_rows, row_grid
from odkanon.audit.findings import Finding
from odkanon.audit.release_reader import AXES, PublishedRelease
from odkanon.audit.zone_geometry import Spot, ZonePlaces
from odkanon.core.arrays import Bools, Ints
from odkanon.methods.method_registry import METHODS

MOST_COLUMNS = 60_000  # the most combinations of rows and unlisted pairs around a trip; with more, none is bounded
MOST_PLACES = 49  # the most places into which a part of the world without zones is split
SECONDS = 30.0  # the time limit of one programme
MOST_CHOICES = 2_000  # the most unlisted groups for which complementary suppression is modelled

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Group:
    """The trips of a release between two of its zones, or parts of the world outside them, without a row."""

    release: int
    zones: tuple[str, str] | None  # None unless both ends are single zones
    most: float  # the most trips if nothing else was suppressed
    whole: bool  # whether it is one flow of the release, and not part of one or several


@dataclass(frozen=True, eq=False)
class _AbsenceColumns:
    """Where a trip may be: for each release, its row or its unlisted group."""

    row: Ints  # columns x releases; -1 for none
    group: Ints  # columns x releases; -1 for none
    groups: Sequence[_Group]


def bounds_absence(release: PublishedRelease) -> bool:
    """Return whether every flow that a release does not list is below its rule on trips, but for the residual.

    A rule on weight or persons does not bound trips, and constraints, segments and earlier suppression take flows of
    any size.
    """
    method = str(release.manifest.get("method"))
    return (
        set(release.disclosed_thresholds) == {"trips"}
        and not {"segment", "released_with"} & release.parameters.keys()
        and not (release.bare or release.constraints or release.nested or release.has_boxes)
        and (method in METHODS or method == "zones")
    )


def find_absent_pairs(
    connection: Connection,
    places: ZonePlaces,
    releases: Sequence[PublishedRelease],
    atoms: Sequence[frozenset[int]],
    complete: AbstractSet[int] = frozenset(),
) -> list[Finding]:
    """Return the unlisted pairs of zones that certainly have trips, given the rows of releases that share trips.

    * ``atoms``: the sets of releases, by number, to which some trip belongs exactly.
    * ``complete``: the releases that list all trips, in addition to those that state it.
    """
    if len(releases) < 2 or not any(map(bounds_absence, releases)):
        return []
    rows = number_rows(connection)
    columns = _make_columns(connection, places, releases, atoms, complete)
    if columns is None:
        names = tuple(each.name for each in releases)
        text = "there are too many places to bound the flows that they do not list by those that they do"
        return [Finding("absence", names, text, "note")]
    programme = _Programme(columns, releases, rows.trips)
    found = [(each, *programme.bound(each)) for each in programme.disclosed()]
    return [_finding(columns.groups[each], releases, *interval) for each, *interval in found]


def _finding(group: _Group, releases: Sequence[PublishedRelease], least: int, most: int) -> Finding:
    assert group.zones is not None
    own = next(each for each in releases if each.number == group.release)
    others = " and ".join(each.name for each in releases if each is not own)
    count = f"exactly {least:,}" if least == most else f"{least:,} to {most:,}"
    place = {"release": own.name, "origin": group.zones[0], "destination": group.zones[1]}
    text = (
        f"{own.name} does not list {group.zones[0]} -> {group.zones[1]}, which is below its rule of "
        f"{own.disclosed_thresholds['trips']:,.10g} trips; by the rows of {others} it has {count}"
    )
    return Finding("absence", tuple(each.name for each in releases), text, details=({**place, "least": least},))


def _make_columns(
    connection: Connection,
    places: ZonePlaces,
    releases: Sequence[PublishedRelease],
    atoms: Sequence[frozenset[int]],
    complete: AbstractSet[int],
    most_places: int = MOST_PLACES,
) -> _AbsenceColumns | None:
    """Return where trips may be; None if there are too many possibilities, even with fewer places distinguished."""
    numbers = [each.number for each in releases]
    areas = places.areas_of(numbers)
    if areas is None:
        return None
    spots = {axis: places.spots(axis, releases, most_places) for axis in AXES}
    regions = {axis: [spot.region for spot in own] for axis, own in spots.items()}
    shape = tuple(len(regions[axis]) for axis in AXES)
    coarser = (connection, places, releases, atoms, complete, 0)
    if shape[0] * shape[1] > MOST_CELLS:
        return _make_columns(*coarser) if most_places else None
    inside = {area: both_inside(regions, area) for area in areas}
    groups: list[_Group] = []
    row_of = np.column_stack([row_grid(connection, each, regions, shape) for each in releases])
    group_of = np.column_stack(
        [_group_grid(places, each, spots, row, groups) for each, row in zip(releases, row_of.T, strict=True)]
    )
    whole = np.isin(numbers, [each.number for each in releases if each.number in complete or each.lists_all])
    own = [atom for atom in atoms if not atom.isdisjoint(numbers)]
    found = []
    for chosen, within in sorted({atom_members([[each] for each in releases], atom, inside) for atom in own}):
        member = np.array(chosen) >= 0
        rows, unlisted = np.where(member, row_of, -1), np.where(member, group_of, -1)
        valid = ((rows >= 0) | ~(member & whole)).all(axis=1)
        for area, both in inside.items():
            valid &= both if area in within else ~both
        found.append(np.unique(np.hstack([rows, unlisted])[valid], axis=0))
    columns = np.unique(np.concatenate(found), axis=0) if found else np.empty((0, 0), dtype=np.int64)
    if not len(columns) or len(columns) > MOST_COLUMNS:
        return _make_columns(*coarser) if most_places and len(columns) else None
    return _AbsenceColumns(columns[:, : len(releases)], columns[:, len(releases) :], groups)


def _group_grid(
    places: ZonePlaces, release: PublishedRelease, spots: Mapping[str, Sequence[Spot]], row: Ints, groups: list[_Group]
) -> Ints:
    """Return, for each two parts without a row, the number of their group; adds the groups of the release."""
    labels = [places.class_labels(axis, release, spots[axis]) for axis in AXES]
    least = release.disclosed_thresholds.get("trips", inf) if bounds_absence(release) else inf
    number = [np.unique([each.name for each in own], return_index=True, return_inverse=True) for own in labels]
    keys = np.add.outer(number[0][2] * len(number[1][0]), number[1][2]).ravel()
    absent = np.flatnonzero(row < 0)
    distinct, of_absent = np.unique(keys[absent], return_inverse=True)
    grid = np.full(len(row), -1, dtype=np.int64)
    grid[absent] = len(groups) + of_absent
    for key in distinct.tolist():
        start, end = divmod(key, len(number[1][0]))
        origin, destination = labels[0][number[0][1][start]], labels[1][number[1][1][end]]
        zones = None if origin.zone is None or destination.zone is None else (origin.zone, destination.zone)
        most = origin.classes * destination.classes * (least - 1)
        groups.append(_Group(release.number, zones, most, origin.certain and destination.certain))
    return grid


class _Programme:
    """An integer programme over the trips of each column, with the counts of rows and the bounds of absence."""

    def __init__(self, columns: _AbsenceColumns, releases: Sequence[PublishedRelease], trips: Ints) -> None:
        from scipy.sparse import csr_array

        self._columns = columns
        size, many = columns.row.shape
        at, side = np.nonzero(columns.group >= 0)
        cells = columns.group[at, side], at
        self._inside = csr_array((np.ones(len(at)), cells), shape=(len(columns.groups), size))
        at, side = np.nonzero(columns.row >= 0)
        self._of_row = csr_array((np.ones(len(at)), (columns.row[at, side], at)), shape=(len(trips), size))
        listed = np.unique(columns.row[columns.row >= 0])
        # Whatever more is outside all rows can be left out without a change to what is inside them.
        self._limit = float(trips[listed].sum() + 4 * sum(each.min_trips for each in releases) + 1)
        self._unknowns, self._whole = size, many > 2
        self._parts: list[tuple[Any, Floats, Floats]] = []
        self._add(self._of_row[listed], trips[listed], trips[listed])
        for number, release in enumerate(releases):
            published = np.unique(columns.row[columns.row[:, number] >= 0, number])
            if bounds_absence(release):
                self._add_release(release, float(trips[published].min(initial=2**53)))

    def _add(self, matrix: Any, low: Any, high: Any) -> None:
        from scipy.sparse import csr_array

        matrix = csr_array(matrix)
        ends = (np.broadcast_to(np.asarray(end, dtype=np.float64), matrix.shape[:1]) for end in (low, high))
        self._parts.append((matrix, *ends))

    def _add_release(self, release: PublishedRelease, smallest: float) -> None:
        """Add the bounds that a release sets by what it does not list; ``smallest`` is its smallest flow."""
        groups = self._columns.groups
        own = np.array([at for at, each in enumerate(groups) if each.release == release.number], dtype=np.int64)
        if not len(own):
            return
        k, stated = release.disclosed_thresholds["trips"], release.manifest.get("unlisted", {}).get("at_most_trips")
        inside, most = self._inside[own], np.array([groups[at].most for at in own])
        total = inside.sum(axis=0)
        self._add(total[None], 0, self._limit if stated is None else min(float(stated), self._limit))
        least = self._solve(total)
        if least is None or least[0] >= k + smallest:
            self._add(inside, 0, most)
        elif len(own) <= MOST_CHOICES:
            self._add_choices(inside, most, np.array([groups[at].whole for at in own]), k, smallest)

    def _add_choices(self, inside: Any, most: Floats, certain: Bools, k: float, smallest: float) -> None:
        """Add that a flow that meets the rule may be suppressed, if all others are too few together.

        That is one of the groups that are flows, or some flow among all other groups.
        """
        from scipy.sparse import block_array, csr_array, eye_array, vstack

        flows, others = inside[np.flatnonzero(certain)], inside[np.flatnonzero(~certain)]
        chosen = csr_array(vstack([flows, csr_array(others.sum(axis=0)[None])]))
        many, first, total = chosen.shape[0], self._unknowns, csr_array(inside.sum(axis=0)[None])
        single = np.arange(many) < many - 1
        self._unknowns += many + 1
        self._whole = True

        def add(trips: Any, choice: Any, low: Any, high: Any) -> None:
            blank = csr_array((trips.shape[0], first - trips.shape[1]))
            self._add(block_array([[trips, blank, csr_array(choice)]]), low, high)

        def each(value: Any) -> Any:
            return eye_array(many) * np.broadcast_to(value, many)

        whole = csr_array(vstack([total] * many))
        finite = np.minimum(np.append(most[certain], self._limit), self._limit)
        add(chosen, each(np.where(single, finite - smallest, 0)), -inf, finite)
        finite = np.minimum(most[~certain], self._limit)
        add(others, np.outer(np.ones(len(finite)), np.where(single, 0, -smallest)), -inf, finite)
        add(chosen, each(-k), 0, inf)
        add(whole - chosen, each(self._limit - (k - 1)), -inf, self._limit)
        add(whole - csr_array(chosen * single[:, None]), each(np.where(single, -1, -k - 1)), 0, inf)
        once = np.ones((1, many))
        add(csr_array((1, inside.shape[1])), once, 0, 1)
        add(total, once * (self._limit - (k - 1 + smallest)), -inf, self._limit)
        # All that is suppressed is nothing, or meets the rule.
        last = csr_array((1, self._unknowns - 1 - inside.shape[1]))
        for some, low, high in ((-k, 0, inf), (-self._limit, -inf, 0)):
            self._add(block_array([[total, last, csr_array([[some]])]]), low, high)

    def _solve(self, objective: Floats) -> tuple[float, Floats] | None:
        """Return the minimum and a solution; None if there is none, or none was found in time."""
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_array, vstack

        for matrix, _, _ in self._parts:
            matrix.resize(matrix.shape[0], self._unknowns)
        size = len(objective)
        upper = np.where(np.arange(self._unknowns) < size, self._limit, 1)
        found = milp(
            np.pad(objective, (0, self._unknowns - size)),
            integrality=np.full(self._unknowns, int(self._whole)),
            bounds=Bounds(0, upper),
            constraints=LinearConstraint(
                csr_array(vstack([matrix for matrix, _, _ in self._parts])),
                *(np.concatenate([part[end] for part in self._parts]) for end in (1, 2)),
            ),
            options={"time_limit": SECONDS},
        )
        return (float(found.fun), found.x[:size]) if found.status == 0 else None

    def disclosed(self) -> list[int]:
        """Return the smallest unlisted pairs of zones that have trips in every solution."""
        candidates = self._candidates()
        left, found = candidates, []
        while left:
            solution = self._solve(self._inside[left].sum(axis=0))
            empty = self._empty(left, solution)
            if not empty and solution is not None:
                # Each has trips here: try the first by itself.
                solution = self._solve(self._inside[left[:1]].sum(axis=0))
                empty = self._empty(left, solution)
                if solution is not None and left[0] not in empty:
                    # A flow that was certainly suppressed with others meets the rule.
                    found += [left[0]] if solution[0] < self._columns.groups[left[0]].most + 0.5 else []
                    empty.add(left[0])
            if solution is None:
                break
            left = [each for each in left if each not in empty]
        inside = {each: set(self._inside[[each]].indices.tolist()) for each in found}
        return [each for each in found if not any(inside[other] < inside[each] for other in found)]

    def _empty(self, groups: Sequence[int], solution: tuple[float, Floats] | None) -> set[int]:
        if solution is None:
            return set()
        trips = self._inside[groups] @ solution[1]
        return {each for each, count in zip(groups, trips.tolist(), strict=True) if count < 0.5}

    def _candidates(self) -> list[int]:
        """Return the unlisted pairs of zones inside which no other release has a row."""
        groups = self._columns.groups
        sizes = self._of_row.sum(axis=1)
        shared = self._inside @ self._of_row.T
        has_row = (shared.toarray() == np.maximum(sizes, 1)).any(axis=1)
        filled = self._inside.sum(axis=1) > 0
        return [
            at
            for at, each in enumerate(groups)
            if each.zones is not None and isfinite(each.most) and filled[at] and not has_row[at]
        ]

    def bound(self, group: int) -> tuple[int, int]:
        """Return the least and the most trips of a group."""
        inside = self._inside[[group]].sum(axis=0)
        low, high = self._solve(inside), self._solve(-inside)
        return (0 if low is None else round(low[0])), (round(self._limit) if high is None else round(-high[0]))
