"""Releases of trips that are known, compared: every group that their rows show together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

import duckdb
import numpy as np

from odkanon.audit.differencing.equations import Group, System
from odkanon.audit.differencing.feasible_solution import DoNotFitError
from odkanon.audit.differencing.groups import small_groups
from odkanon.audit.equation_systems import Rows, highest, make_system, number_rows
from odkanon.audit.findings import Finding, Severity
from odkanon.audit.relations import Relation, together
from odkanon.audit.release_checks import show
from odkanon.audit.release_reader import Published
from odkanon.audit.zone_geometry import Places

MOST_SIDES = 4
"""Of how many releases that all overlap combinations are tried at once."""

Sides = list[list[Published]]


class Comparing:
    """All that is needed to compare releases.

    Parameters
    ----------
    make : callable
        Returns the rows of some releases as a system, after they were numbered through; None where that is too much.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, make: Callable[[Sides], System | None]) -> None:
        self._rows: Rows = number_rows(connection)
        self._make = make
        self._names: dict[int, str] = {}

    def compare(self, related: Sequence[Relation]) -> list[Finding]:
        """Return each group below the rule that releases show which share trips."""
        findings: list[Finding] = []
        for cluster, pairs in _clusters([each for each in related if each.kind != "disjoint"]):
            self._names |= {each.number: each.name for each in cluster}
            sides = _colours(cluster, pairs)
            undecided = 1
            if 2 < len(sides) <= MOST_SIDES:
                found, undecided = self._look(sides)
                findings += found
            if undecided:
                looked = [self._look(two) for two in _two_sides(cluster, pairs)]
                findings += [finding for found, _ in looked for finding in found]
                findings += _not_tried(cluster, len(sides) > 2, any(unsure for _, unsure in looked))
        return list({(each.releases, each.message): each for each in findings}.values())

    def _look(self, sides: Sides) -> tuple[list[Finding], int]:
        try:
            system = self._make(sides)
        except DoNotFitError:
            return [_contradiction([release for side in sides for release in side])], 0
        if system is None:
            return [], 1
        groups, undecided = small_groups(system)
        found = [self._finding(system, sides, group) for group in groups]
        return [each for each in found if each is not None], undecided

    def _finding(self, system: System, sides: Sides, group: Group) -> Finding | None:
        """Return what to say of a group; None where it has enough persons after all."""
        trips = round(float(system.mass[group.columns, 0].sum()))
        what = f"{trips:,} trips"
        releases = [release for side in sides for release in side]
        if not trips:
            return None
        if trips >= system.least[0]:
            told = _too_few(system, group, releases)
            if told is None:
                return None
            what += told
        terms = [*self._terms(group.plus, " + "), *(f"- {term}" for term in self._terms(group.minus, " - "))]
        involved = sorted({int(self._rows.release[row]) for row in (*group.plus, *group.minus)})
        if not terms:
            inside = system.rows[group.columns]
            involved = sorted({int(self._rows.release[row]) for row in inside[inside >= 0]})
            terms = [f"a combination of {', '.join(self._names[each] for each in involved)}"]
        first = group.plus[0] if group.plus else int(system.rows[group.columns].max())
        place = {"origin": self._rows.origin[first], "destination": self._rows.destination[first], "rest": trips}
        text = f"{place['origin']} -> {place['destination']}: {' '.join(terms)} = {what} of somebody else"
        details = {**place, "plus": self._flows(group.plus), "minus": self._flows(group.minus)}
        return Finding("difference", tuple(self._names[each] for each in involved), text, details=(details,))

    def _flows(self, rows: Sequence[int]) -> list[tuple[str, str, str]]:
        """Return rows as release, origin and destination."""
        return [
            (self._names[int(self._rows.release[row])], self._rows.origin[row], self._rows.destination[row])
            for row in rows
        ]

    def _terms(self, rows: Sequence[int], sign: str) -> list[str]:
        """Return rows added up by release, as text."""
        by_release: dict[int, list[int]] = {}
        for row in rows:
            by_release.setdefault(int(self._rows.release[row]), []).append(row)
        terms = []
        for at, (release, own) in enumerate(by_release.items()):
            flows = "" if len(own) == 1 else f" ({len(own)} flows)"
            count = int(self._rows.trips[np.array(own)].sum())
            plus = "+ " if at and sign == " + " else ""
            terms.append(f"{plus}{self._names[release]}{flows} {count:,}")
        return terms


def _too_few(system: System, group: Group, releases: Sequence[Published]) -> str | None:
    """Return of what a group has too little though it has trips enough; None where it meets the rule."""
    for at, name in enumerate(system.names):
        mass = float(system.mass[group.columns, at].sum())
        if mass < system.least[at]:
            return f" of {name} {show(mass)}, below {show(highest(releases, name))},"
    for contributors in system.contributors:
        count = contributors.among(group.columns)
        if count < contributors.least:
            return f" of {count:,} {contributors.name}"
    return None


def overlapping(
    connection: duckdb.DuckDBPyConnection,
    places: Places,
    atoms: Sequence[tuple[frozenset[int], int]],
    related: Sequence[Relation],
) -> Iterator[System]:
    """Yield the rows of each set of releases that hang together by shared trips, as one system."""
    number_rows(connection)
    for cluster, pairs in _clusters([each for each in related if each.kind != "disjoint"]):
        yield make_system(connection, places, _colours(cluster, pairs), [members for members, _ in atoms])


def _clusters(related: Sequence[Relation]) -> list[tuple[list[Published], set[frozenset[int]]]]:
    """Return the releases that hang together by shared trips, and which two of them do."""
    pairs = {frozenset((each.one.number, each.other.number)) for each in related}
    releases = {release.number: release for each in related for release in (each.one, each.other)}
    label = {number: number for number in releases}
    for _ in releases:
        for pair in pairs:
            lowest = min(label[number] for number in pair)
            label |= dict.fromkeys(pair, lowest)
    clusters: dict[int, list[Published]] = {}
    for number in sorted(releases):
        clusters.setdefault(label[number], []).append(releases[number])
    return [(cluster, {p for p in pairs if p <= {r.number for r in cluster}}) for cluster in clusters.values()]


def _fits(release: Published, side: Sequence[Published], pairs: set[frozenset[int]]) -> bool:
    return all(frozenset((release.number, other.number)) not in pairs for other in side)


def _colours(cluster: Sequence[Published], pairs: set[frozenset[int]]) -> Sides:
    """Return the releases on as few sides as a simple search finds, those of a side sharing no trips."""
    sides: Sides = []
    for release in cluster:
        side = next((each for each in sides if _fits(release, each, pairs)), None)
        if side is None:
            sides.append([release])
        else:
            side.append(release)
    return sides


def _two_sides(cluster: Sequence[Published], pairs: set[frozenset[int]]) -> list[Sides]:
    """Return, for each two releases that share trips, two sides around them that are as large as can be."""
    found: dict[tuple[frozenset[int], ...], Sides] = {}
    for one, other in combinations(cluster, 2):
        if frozenset((one.number, other.number)) in pairs:
            first, second = [one], [other]
            for release in cluster:
                for side, residual in ((first, second), (second, first)):
                    if release not in residual and release not in side and _fits(release, side, pairs):
                        side.append(release)
                        break
            key = tuple(sorted((frozenset(r.number for r in side) for side in (first, second)), key=sorted))
            found.setdefault(key, [first, second])
    return list(found.values())


def _contradiction(releases: Sequence[Published]) -> Finding:
    names = tuple(release.name for release in releases)
    text = (
        f"the numbers of {' and '.join(names)} contradict what is known of their trips, so that they cannot be "
        "compared: they were changed, or made on other places; give the trips"
    )
    return Finding("relation", names, text)


def _not_tried(cluster: Sequence[Published], many_sides: bool, unsure: bool) -> Iterator[Finding]:
    names = tuple(release.name for release in cluster)
    severity: Severity = "note" if together(*cluster) else "finding"
    ways = f"{len(cluster)} releases share trips with each other in so many ways that"
    if many_sides:
        text = f"{ways} only two kinds of tables at a time were combined, not all at once"
        yield Finding("relation", names, text, severity)
    if unsure:
        text = f"{ways} it could not be decided whether a group of too few can be worked out"
        yield Finding("relation", names, text, severity)
