"""Releases of trips that are known, compared: every group that their rows show together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import duckdb
import numpy as np

from odkanon.audit.checks import show
from odkanon.audit.folder import Published
from odkanon.audit.measures import MEASURES
from odkanon.audit.places import Places
from odkanon.audit.relations import Relation, together
from odkanon.audit.report import Finding
from odkanon.audit.shown import Group, System, small_groups
from odkanon.audit.systems import Rows, distinct_in, make_system, number_rows

MOST_SIDES = 4
"""Of how many releases that all overlap combinations are tried at once."""

Sides = list[list[Published]]


class Comparing:
    """All that is needed to compare releases whose trips are known."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, places: Places, atoms: Sequence[tuple[frozenset[int], int]]
    ) -> None:
        self._connection, self._places = connection, places
        self._atoms = [members for members, _ in atoms]
        self._rows: Rows = number_rows(connection)
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
                for two in _two_sides(cluster, pairs):
                    findings += self._look(two)[0]
            if undecided and len(sides) > 2:
                findings.append(_untried(cluster))
        return list({(each.releases, each.message): each for each in findings}.values())

    def _look(self, sides: Sides) -> tuple[list[Finding], int]:
        system = make_system(self._connection, self._places, sides, self._atoms)
        groups, undecided = small_groups(system)
        found = [self._finding(system, sides, group) for group in groups]
        return [each for each in found if each is not None], undecided

    def _finding(self, system: System, sides: Sides, group: Group) -> Finding | None:
        """Return what to say of a group; None where it has enough persons after all."""
        trips = int(system.mass[group.columns, 0].sum())
        what = f"{trips:,} trips"
        releases = [release for side in sides for release in side]
        if not trips:
            return None
        if trips >= system.least[0]:
            told = self._too_few(system, sides, group, releases)
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

    def _too_few(self, system: System, sides: Sides, group: Group, releases: Sequence[Published]) -> str | None:
        at = 0
        for measure in MEASURES:
            least = max(release.thresholds.get(measure.name, 0) for release in releases)
            if measure.name == "trips" or not least:
                continue
            if measure.adds_up:
                at += 1
                weight = float(system.mass[group.columns, at].sum())
                if weight < system.least[at]:
                    return f" of {measure.name} {show(weight)}, below {show(least)},"
                continue
            count = distinct_in(self._connection, sides, system.rows[group.columns], measure.column)
            if count < least:
                return f" of {count:,} {measure.name}"
        return None

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
                for side, rest in ((first, second), (second, first)):
                    if release not in rest and release not in side and _fits(release, side, pairs):
                        side.append(release)
                        break
            key = tuple(sorted((frozenset(r.number for r in side) for side in (first, second)), key=sorted))
            found.setdefault(key, [first, second])
    return list(found.values())


def _untried(cluster: Sequence[Published]) -> Finding:
    names = tuple(release.name for release in cluster)
    text = (
        f"{len(cluster)} releases share trips with each other in so many ways that only two kinds of tables at a time "
        "were combined, not all at once"
    )
    return Finding("relation", names, text, "note" if together(*cluster) else "finding")
