"""Releases that share trips, compared: every group that their rows disclose by sums and differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

import numpy as np
from duckdb import DuckDBPyConnection as Connection

from odkanon.audit.differencing import equations
from odkanon.audit.differencing.equations import (
    DisclosedGroup,
    EquationSystem,
    InconsistentCountsError,
    comparable_components,
    enumerate_groups,
)
from odkanon.audit.differencing.min_cut import find_least_cuts
from odkanon.audit.equation_systems import Sides, make_system, number_rows, strictest_threshold
from odkanon.audit.findings import Finding, Severity
from odkanon.audit.relations import Relation, are_linked
from odkanon.audit.release_checks import format_mass
from odkanon.audit.release_reader import PublishedRelease
from odkanon.audit.zone_geometry import ZonePlaces

MOST_SIDES = 4  # more sides are combined two at a time
MOST_WORK = 1 << 30  # the most values in combinations of rows; with more, components are not enumerated


class ReleaseComparer:
    """Compares releases by systems of their rows, which ``make`` returns; None for a system that is too large."""

    def __init__(self, connection: Connection, make: Callable[[Sides], EquationSystem | None]) -> None:
        self._rows = number_rows(connection)
        self._make = make
        self._names: dict[int, str] = {}

    def compare(self, related: Sequence[Relation]) -> list[Finding]:
        """Return each group below the rule that releases which share trips disclose."""
        findings: list[Finding] = []
        for cluster, pairs in clusters_of([each for each in related if each.kind != "disjoint"]):
            self._names |= {each.number: each.name for each in cluster}
            sides = _assign_sides(cluster, pairs)
            undecided = 1
            if 2 < len(sides) <= MOST_SIDES:
                found, undecided = self._search(sides)
                findings += found
            if undecided:
                searched = [self._search(two) for two in _two_sides(cluster, pairs)]
                findings += [finding for found, _ in searched for finding in found]
                findings += _report_undecided(cluster, len(sides) > 2, any(unsure for _, unsure in searched))
        return list({(each.releases, each.message): each for each in findings}.values())

    def _search(self, sides: Sides) -> tuple[list[Finding], int]:
        try:
            system = self._make(sides)
        except InconsistentCountsError:
            return [_contradiction([release for side in sides for release in side])], 0
        if system is None:
            return [], 1
        groups, undecided = find_small_groups(system)
        found = [self._finding(system, sides, group) for group in groups]
        return [each for each in found if each is not None], undecided

    def _finding(self, system: EquationSystem, sides: Sides, group: DisclosedGroup) -> Finding | None:
        """Return the finding for a group; None if it meets the rule after all."""
        trips = round(float(system.mass[group.columns, 0].sum()))
        what = f"{trips:,} trips"
        releases = [release for side in sides for release in side]
        if not trips:
            return None
        if trips >= system.least[0]:
            shortfall = _shortfall(system, group, releases)
            if shortfall is None:
                return None
            what += shortfall
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
        """Return the sums of rows by release, as text."""
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


def find_small_groups(system: EquationSystem) -> tuple[list[DisclosedGroup], int]:
    """Return the smallest groups that may be too small, and the number of components that remain undecided."""
    found: list[DisclosedGroup] = []
    undecided = 0
    work = 0
    for columns in comparable_components(system.rows):
        part = system.take(columns)
        filled = part.mass[:, 0] > 0
        if not part.maybe_small(part.mass[filled], part.counts()[filled]).any():
            continue
        work += len(part.rows) * equations.MOST_STATES if len(part.rows) > equations.MOST_ROWS else 0
        groups = enumerate_groups(part) if work < MOST_WORK else None
        if groups is None:
            groups, decided = find_least_cuts(part) if part.rows.shape[1] == 2 else ([], False)
            undecided += not decided
        found += [DisclosedGroup(columns[group.columns], group.plus, group.minus) for group in groups]
    return found, undecided


def _shortfall(system: EquationSystem, group: DisclosedGroup, releases: Sequence[PublishedRelease]) -> str | None:
    """Return in which measure a group with enough trips is below the rule; None if it meets it."""
    for at, name in enumerate(system.names):
        mass = float(system.mass[group.columns, at].sum())
        if mass < system.least[at]:
            return f" of {name} {format_mass(mass)}, below {format_mass(strictest_threshold(releases, name))},"
    for contributors in system.contributors:
        count = contributors.count_distinct(group.columns)
        if count < contributors.least:
            return f" of {count:,} {contributors.name}"
    return None


def overlapping_systems(
    connection: Connection, places: ZonePlaces, atoms: Sequence[tuple[frozenset[int], int]], related: Sequence[Relation]
) -> Iterator[EquationSystem]:
    """Yield the rows of each cluster of releases that share trips, as one system."""
    number_rows(connection)
    for cluster, pairs in clusters_of([each for each in related if each.kind != "disjoint"]):
        yield make_system(connection, places, _assign_sides(cluster, pairs), [members for members, _ in atoms])


def clusters_of(related: Sequence[Relation]) -> list[tuple[list[PublishedRelease], set[frozenset[int]]]]:
    """Return the clusters of releases connected by shared trips, with the pairs that share some."""
    pairs = {frozenset((each.one.number, each.other.number)) for each in related}
    releases = {release.number: release for each in related for release in (each.one, each.other)}
    label = {number: number for number in releases}
    for _ in releases:
        for pair in pairs:
            lowest = min(label[number] for number in pair)
            label |= dict.fromkeys(pair, lowest)
    clusters: dict[int, list[PublishedRelease]] = {}
    for number in sorted(releases):
        clusters.setdefault(label[number], []).append(releases[number])
    return [(cluster, {p for p in pairs if p <= {r.number for r in cluster}}) for cluster in clusters.values()]


def _fits(release: PublishedRelease, side: Sequence[PublishedRelease], pairs: set[frozenset[int]]) -> bool:
    return all(frozenset((release.number, other.number)) not in pairs for other in side)


def _assign_sides(cluster: Sequence[PublishedRelease], pairs: set[frozenset[int]]) -> list[list[PublishedRelease]]:
    """Return the releases on greedily few sides, those of a side sharing no trips."""
    sides: list[list[PublishedRelease]] = []
    for release in cluster:
        side = next((each for each in sides if _fits(release, each, pairs)), None)
        if side is None:
            sides.append([release])
        else:
            side.append(release)
    return sides


def _two_sides(cluster: Sequence[PublishedRelease], pairs: set[frozenset[int]]) -> list[Sides]:
    """Return, for each two releases that share trips, two maximal sides around them."""
    found: dict[tuple[frozenset[int], ...], Sides] = {}
    for one, other in combinations(cluster, 2):
        if frozenset((one.number, other.number)) in pairs:
            first, second = [one], [other]
            for release in cluster:
                for side, opposite in ((first, second), (second, first)):
                    if release not in opposite and release not in side and _fits(release, side, pairs):
                        side.append(release)
                        break
            key = tuple(sorted((frozenset(r.number for r in side) for side in (first, second)), key=sorted))
            found.setdefault(key, [first, second])
    return list(found.values())


def _contradiction(releases: Sequence[PublishedRelease]) -> Finding:
    names = tuple(release.name for release in releases)
    text = (
        f"the numbers of {' and '.join(names)} contradict what is known of their trips, so that they cannot be "
        "compared: they were changed, or made on other places; give the trips"
    )
    return Finding("relation", names, text)


def _report_undecided(cluster: Sequence[PublishedRelease], many_sides: bool, unsure: bool) -> Iterator[Finding]:
    names = tuple(release.name for release in cluster)
    severity: Severity = "note" if are_linked(*cluster) else "finding"
    texts = ["only two kinds of tables at a time were combined, not all at once"] if many_sides else []
    texts += ["it could not be decided whether a group of too few can be worked out"] if unsure else []
    for text in texts:
        ways = f"{len(cluster)} releases share trips with each other in so many ways that {text}"
        yield Finding("relation", names, ways, severity)
