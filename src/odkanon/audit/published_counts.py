"""Releases whose trips are not given, as equations over the trips that their relations and counts allow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from duckdb import DuckDBPyConnection as Connection

from odkanon.audit.absence_bounds import find_absent_pairs
from odkanon.audit.counting.counted_measures import measures_named
from odkanon.audit.differences import Breakdown, find_breakdowns, find_differences, find_few_contributors
from odkanon.audit.differencing.equations import EquationSystem, InconsistentCountsError, split_components
from odkanon.audit.equation_systems import Sides, possible_columns, strictest_threshold
from odkanon.audit.findings import Finding
from odkanon.audit.pairwise_checks import ReleaseComparer, clusters_of
from odkanon.audit.relations import Relation, inside_mark
from odkanon.audit.release_reader import PublishedRelease
from odkanon.audit.zone_geometry import ZonePlaces
from odkanon.core.arrays import Ints

Floats = npt.NDArray[np.float64]
MOST_ATOMS = 1 << 10
"""The number of sets of releases above which too many are possible for a trip."""
CLOSE = 1e-7  # the relative error of a component that rounding may cause
MOST_VALUES = 40_000  # the most rows times columns of a component on three or more sides that is solved
_SCALE = float(1 << 20)
"""The largest count that the solver sees, far above its absolute tolerance of 1e-7; a power of two, to stay exact."""
_TINY = 1e-9  # the scaled mass up to which a column is empty


def compare_numbers(
    connection: Connection, places: ZonePlaces, comparable: Sequence[Relation], related: Sequence[Relation]
) -> list[Finding]:
    """Return the groups that published counts disclose, for the ``comparable`` among all related pairs of releases."""
    apart = [each for each in related if each.kind == "disjoint"]
    swapped = [each for each in comparable if each.kind == "overlap"]
    certain = [each for each in comparable if each.kind != "overlap"]
    members = {release.number for each in certain for release in (each.one, each.other)}
    between = [each for each in related if {each.one.number, each.other.number} <= members]
    found = ReleaseComparer(connection, SystemBuilder(connection, places, between)).compare(between)
    rough = [*swapped, *(certain if any(each.check == "relation" for each in found) else ())]
    found += find_few_contributors(connection, find_breakdowns([*comparable, *apart]))
    found += _absent_pairs(connection, places, between)
    return found + find_differences(connection, find_breakdowns([*rough, *apart]))


def _absent_pairs(connection: Connection, places: ZonePlaces, related: Sequence[Relation]) -> list[Finding]:
    """Return the unlisted pairs of zones that certainly have trips, for each cluster of releases that share some."""
    found = []
    whole = [each for each in find_breakdowns(related) if each.complete]
    for cluster, _ in clusters_of([each for each in related if each.kind != "disjoint"]):
        releases = [each for each in cluster if not each.thinned]
        atoms = possible_atoms(releases, related, whole)
        if atoms is not None:
            complete = {each.number for each in releases if _suppresses_nothing(each)}
            atoms = _inside_areas(atoms, releases, places)
            found += find_absent_pairs(connection, places, releases, atoms, complete)
    return found


class SystemBuilder:
    """Builds the systems of releases whose relations to each other are stated, not known by trips."""

    def __init__(self, connection: Connection, places: ZonePlaces, related: Sequence[Relation]) -> None:
        self._connection, self._places = connection, places
        self._related = related
        self._complete = [each for each in find_breakdowns(related) if each.complete]

    def __call__(self, sides: Sides) -> EquationSystem | None:
        """Return the rows of some releases as a system; None if there are too many possibilities.

        Raises `InconsistentCountsError` if their counts contradict their relations.
        """
        releases = [release for side in sides for release in side]
        atoms = possible_atoms(releases, self._related, self._complete)
        atoms = None if atoms is None else _inside_areas(atoms, releases, self._places)
        complete = {each.number for each in releases if _suppresses_nothing(each)}
        rows = None if atoms is None else possible_columns(self._connection, self._places, sides, atoms, complete)
        if rows is None:
            return None
        # Half a trip of tolerance is safe, since trips are whole; sums of weights may be a hair off.
        least = {"trips": max(each.min_trips for each in releases) - 0.5}
        if strictest_threshold(releases, "weight") and all("weight" in each.measures for each in releases):
            # The weight below which a group certainly breaks a rule, though published weights are rounded.
            error = 2 * measures_named(["weight"])[0].rounding * float(self._counts("weight").max(initial=0))
            least["weight"] = strictest_threshold(releases, "weight") * (1 - 1e-9) - error
        masses = [
            found
            for name in least
            if (found := feasible_masses(rows, self._counts(name), measures_named([name])[0].rounding)) is not None
        ]
        if len(masses) < len(least):
            return None
        return EquationSystem(rows, tuple(least), np.column_stack(masses), np.array([*least.values()]))

    def _counts(self, name: str) -> Floats:
        found = self._connection.sql(
            f"SELECT coalesce(CAST({name} AS DOUBLE), 'nan') AS total FROM numbered ORDER BY number"
        )
        return np.asarray(found.fetchnumpy()["total"], dtype=np.float64)


def _suppresses_nothing(release: PublishedRelease) -> bool:
    return release.provenance is not None and not release.provenance["suppressed"]["trips"]


def possible_atoms(
    releases: Sequence[PublishedRelease], related: Sequence[Relation], complete: Sequence[Breakdown]
) -> list[frozenset[int]] | None:
    """Return the sets of releases, by number, to which a trip may belong exactly; None if there are too many."""
    known = {(each.one.number, each.other.number): each for each in related}
    atoms: list[frozenset[int]] = [frozenset()]
    for at, release in enumerate(releases):
        pairs = [(earlier.number, release.number) for earlier in releases[:at]]
        own = [known[pair] for both in pairs for pair in (both, both[::-1]) if pair in known]
        atoms = [*atoms, *(atom | {release.number} for atom in atoms)]
        atoms = [atom for atom in atoms if all(_is_possible(each, atom) for each in own)]
        if len(atoms) > MOST_ATOMS:
            return None
    numbers = {release.number for release in releases}
    for breakdown in complete:
        parts = {part.number for part in breakdown.parts}
        if parts | {breakdown.whole.number} <= numbers and not any(part.thinned for part in breakdown.parts):
            atoms = [atom for atom in atoms if breakdown.whole.number not in atom or atom & parts]
    return [atom for atom in atoms if atom]


def _inside_areas(
    atoms: Sequence[frozenset[int]], releases: Sequence[PublishedRelease], places: ZonePlaces
) -> list[frozenset[int]]:
    """Return atoms inside and outside each study area; those of a release that has the area are inside only."""
    found = list(atoms)
    for area, own in (places.areas_of(release.number for release in releases) or {}).items():
        found = [*(atom | {inside_mark(area)} for atom in found), *(atom for atom in found if not atom & own)]
    return found


def _is_possible(relation: Relation, atom: frozenset[int]) -> bool:
    """Return whether a trip can belong to an atom; a thinned release may lack any trip."""
    one, other = relation.one.number in atom, relation.other.number in atom
    if relation.kind == "disjoint":
        return not (one and other)
    if one and not other and relation.kind in ("part", "same"):
        return relation.other.thinned
    return not (other and not one and relation.kind == "same") or relation.one.thinned


def feasible_masses(rows: Ints, totals: Floats, rounding: float = 0) -> Floats | None:
    """Return non-negative masses of columns that add up to the rows; None if the system is too large.

    Any solution will do where the true masses are unknown: the mass of a disclosed group is the same in all of them.
    The one returned minimises the sum of absolute deviations, so that rounded weights are not infeasible. It is a
    vertex, whose masses are whole on two sides if the counts are.

    * ``rows``: for each column and each side, the number of its row; -1 for none.
    * ``totals``: the count of each row, by its number; ``rounding`` is their relative error.

    Raises `InconsistentCountsError` if there is no solution.
    """
    from scipy.sparse import coo_array

    column, side = np.nonzero(rows >= 0)
    numbers, row = np.unique(rows[column, side], return_inverse=True)
    counts = totals[numbers]
    if not (np.isfinite(counts) & (counts >= 0)).all():
        raise InconsistentCountsError
    component = np.zeros(len(numbers), dtype=np.int64)
    for number, columns in enumerate(split_components(rows)):
        own = np.searchsorted(numbers, np.unique(rows[columns][rows[columns] >= 0]))
        if rows.shape[1] > 2 and len(own) * len(columns) > MOST_VALUES:
            return None
        component[own] = number
    if not counts.any():
        return np.zeros(len(rows))
    matrix = coo_array((np.ones(len(row)), (row, column)), shape=(len(numbers), len(rows))).tocsr()
    masses = _least_deviations(matrix, counts)
    if masses is None:
        return None
    off = np.abs(matrix @ masses - counts)
    if (np.bincount(component, off) > (CLOSE + rounding) * np.bincount(component, counts)).any():
        raise InconsistentCountsError
    return masses


def _least_deviations(matrix: Any, counts: Floats) -> Floats | None:
    """Return the vertex with the least sum of absolute deviations, exact zeros included; None if the solver fails."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, hstack, identity

    size, columns = matrix.shape
    scale = 2.0 ** np.ceil(np.log2(counts.max() / _SCALE))
    slack = csr_array(identity(size))
    cost = np.concatenate([np.zeros(columns), np.ones(2 * size)])
    found = linprog(cost, A_eq=hstack([matrix, slack, -slack]), b_eq=counts / scale, method="highs-ds")
    if found.status != 0:
        return None
    masses: Floats = np.where(found.x[:columns] > _TINY, found.x[:columns], 0) * scale
    whole = np.rint(masses)
    return whole if np.array_equal(matrix @ whole, counts) else masses
