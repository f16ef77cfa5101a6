"""Releases whose trips are not known as equations: from what they say of each other, and their published numbers."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import numpy as np

from odkanon.audit.differences import Family, families, find_differences, find_few_contributors
from odkanon.audit.differencing.equations import System
from odkanon.audit.differencing.feasible_solution import Floats, some_masses
from odkanon.audit.equation_systems import highest, possible_columns
from odkanon.audit.findings import Finding
from odkanon.audit.pairwise_checks import Comparing
from odkanon.audit.relations import Relation, inside_mark
from odkanon.audit.release_reader import Published
from odkanon.audit.zone_geometry import Places

MOST_ATOMS = 1 << 10
"""How many sets of releases a trip may be about, before that is too many to try."""


def compare_numbers(
    connection: duckdb.DuckDBPyConnection, places: Places, told: Sequence[Relation], related: Sequence[Relation]
) -> list[Finding]:
    """Return what releases give away of which it is told, but not known by the trips, how these lie to each other.

    Parameters
    ----------
    told : sequence of Relation
        The two that can be compared by their numbers.
    related : sequence of Relation
        What is known of each two.
    """
    apart = [each for each in related if each.kind == "disjoint"]
    swapped = [each for each in told if each.kind == "overlap"]
    certain = [each for each in told if each.kind != "overlap"]
    members = {release.number for each in certain for release in (each.one, each.other)}
    between = [each for each in related if {each.one.number, each.other.number} <= members]
    found = Comparing(connection, Told(connection, places, between)).compare(between)
    rough = [*swapped, *(certain if any(each.check == "relation" for each in found) else ())]
    found += find_few_contributors(connection, families([*told, *apart]))
    return found + find_differences(connection, families([*rough, *apart]))


class Told:
    """Makes the systems of releases that say how their trips lie to each other.

    Parameters
    ----------
    related : sequence of Relation
        What is known of each two of them.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, places: Places, related: Sequence[Relation]) -> None:
        self._connection, self._places = connection, places
        self._related = related
        self._complete = [each for each in families(related) if each.complete]

    def __call__(self, sides: Sequence[Sequence[Published]]) -> System | None:
        """Return the rows of some releases as a system; None where that is too much to try.

        Raises
        ------
        DoNotFitError
            Where their numbers contradict what is known of them.
        """
        releases = [release for side in sides for release in side]
        atoms = possible_atoms(releases, self._related, self._complete)
        atoms = None if atoms is None else _inside_areas(atoms, releases, self._places)
        listed = {each.number for each in releases if _suppresses_nothing(each)}
        rows = None if atoms is None else possible_columns(self._connection, self._places, sides, atoms, listed)
        if rows is None:
            return None
        names = ["trips"]
        if any("weight" in each.thresholds for each in releases) and all(
            "weight" in each.measures for each in releases
        ):
            names.append("weight")
        # Trips are whole, so that half a trip less is less, after sums of floats, too.
        few = max(each.few for each in releases) - 0.5
        least = [few if name == "trips" else highest(releases, name) * (1 - 1e-9) for name in names]
        masses = [found for name in names if (found := some_masses(rows, self._totals(name))) is not None]
        if len(masses) < len(names):
            return None
        return System(rows, tuple(names), np.column_stack(masses), np.array(least))

    def _totals(self, name: str) -> Floats:
        found = self._connection.sql(
            f"SELECT coalesce(CAST({name} AS DOUBLE), 'nan') AS total FROM numbered ORDER BY number"
        )
        return np.asarray(found.fetchnumpy()["total"], dtype=np.float64)


def _suppresses_nothing(release: Published) -> bool:
    return release.about is not None and not release.about["suppressed"]["trips"]


def possible_atoms(
    releases: Sequence[Published], related: Sequence[Relation], complete: Sequence[Family]
) -> list[frozenset[int]] | None:
    """Return which releases, by number, a trip may be about all at once; None where there are too many ways."""
    known = {(each.one.number, each.other.number): each for each in related}
    atoms: list[frozenset[int]] = [frozenset()]
    for at, release in enumerate(releases):
        pairs = [(earlier.number, release.number) for earlier in releases[:at]]
        told = [known[pair] for both in pairs for pair in (both, both[::-1]) if pair in known]
        atoms = [*atoms, *(atom | {release.number} for atom in atoms)]
        atoms = [atom for atom in atoms if all(_may_be(each, atom) for each in told)]
        if len(atoms) > MOST_ATOMS:
            return None
    numbers = {release.number for release in releases}
    for family in complete:
        parts = {part.number for part in family.parts}
        if parts | {family.whole.number} <= numbers and not any(part.thinned for part in family.parts):
            atoms = [atom for atom in atoms if family.whole.number not in atom or atom & parts]
    return [atom for atom in atoms if atom]


def _inside_areas(
    atoms: Sequence[frozenset[int]], releases: Sequence[Published], places: Places
) -> list[frozenset[int]]:
    """Return atoms with the areas that their trips may be in: that of a release, and of others in it or not."""
    found = list(atoms)
    for area, own in (places.areas_of(release.number for release in releases) or {}).items():
        found = [*(atom | {inside_mark(area)} for atom in found), *(atom for atom in found if not atom & own)]
    return found


def _may_be(relation: Relation, atom: frozenset[int]) -> bool:
    """Tell whether a trip can be about these releases; of a thinned one, any may be missing."""
    one, other = relation.one.number in atom, relation.other.number in atom
    if relation.kind == "disjoint":
        return not (one and other)
    if one and not other and relation.kind in ("part", "same"):
        return relation.other.thinned
    return not (other and not one and relation.kind == "same") or relation.one.thinned
