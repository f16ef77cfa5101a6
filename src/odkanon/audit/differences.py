"""What several releases give away together by their published numbers, where the trips are not given.

Where all combinations can be tried, they are (`odkanon.audit.published_counts`). Else, and for releases of which it
is only known that they grow, three ways to subtract are tried, for a whole and disjoint parts of it (the same trips
on other zones count as a part):

* a flow of the whole minus all flows of the parts inside it: who is in none of the parts' flows;
* the same block in every one of a complete set of parts, minus all flows of the whole inside it: whom the whole
  suppressed there;
* all flows of a whole that suppresses nothing inside a block of a part, minus that block: who is not of the part.

Zones nest by their nodes, so the zonings need not be the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import duckdb

from odkanon.audit.findings import Finding
from odkanon.audit.own_counts import MEASURES, NAMES
from odkanon.audit.relations import Relation, together
from odkanon.audit.release_checks import show
from odkanon.audit.release_reader import AXES, Published, rows


@dataclass(frozen=True)
class Family:
    """A release and others that are disjoint parts of it.

    Attributes
    ----------
    whole : Published
        The release of all.
    parts : tuple of Published
        Of some; no trip is in two of them.
    complete : bool
        Whether the parts are all there is.
    same : bool
        Whether the only part has the very same trips, on other zones.
    """

    whole: Published
    parts: tuple[Published, ...]
    complete: bool
    same: bool = False

    @property
    def few(self) -> int:
        """Below how many trips a group is too small, by the strictest of their rules."""
        return max(each.few for each in (self.whole, *self.parts))

    @property
    def weight(self) -> float:
        """Below which weight a group is too small; 0 where none of them counts it."""
        return max(each.thresholds.get("weight", 0) for each in (self.whole, *self.parts))


def families(related: Sequence[Relation]) -> list[Family]:
    """Return which releases are disjoint parts of which."""
    apart = {frozenset(each.names) for each in related if each.kind == "disjoint"}
    parts: dict[str, list[Published]] = {}
    found = []
    for each in related:
        if each.kind == "same" or (each.kind == "overlap" and each.how == "as you say"):
            same = each.kind == "same"
            found += [Family(each.one, (each.other,), False, same), Family(each.other, (each.one,), False, same)]
        elif each.kind == "part":
            parts.setdefault(each.other.name, []).append(each.one)
    wholes = {each.other.name: each.other for each in related if each.kind == "part"}
    for name, inside in parts.items():
        groups = {tuple(sorted(_with(part, inside, apart), key=lambda each: each.number)) for part in inside}
        groups |= set(_halves(wholes[name], inside))
        found += [_family(wholes[name], group) for group in sorted(groups, key=lambda g: [r.number for r in g])]
    return found


def _with(part: Published, others: Sequence[Published], apart: set[frozenset[str]]) -> list[Published]:
    """Return a part and as many others as share no trips with it or with each other."""
    chosen = [part]
    for other in others:
        if all(frozenset((other.name, each.name)) in apart for each in chosen):
            chosen.append(other)
    return chosen


def _family(whole: Published, parts: Sequence[Published]) -> Family:
    totals = [part.total for part in parts]
    complete = None not in totals and sum(filter(None, totals)) == whole.total
    return Family(whole, tuple(parts), complete)


def _halves(whole: Published, parts: Sequence[Published]) -> list[tuple[Published, Published]]:
    """Return pairs of parts whose trips add up to the whole: one is probably the complement of the other.

    Segments of one run say their dimensions; of two dimensions, neither is the other's complement.
    """
    return [
        (one, other)
        for one, other in combinations(parts, 2)
        if None not in (one.total, other.total, whole.total)
        and (one.total or 0) + (other.total or 0) == whole.total
        and not (together(one, other) and one.parameters.get("dimension") != other.parameters.get("dimension"))
    ]


def find_differences(connection: duckdb.DuckDBPyConnection, found: Sequence[Family]) -> list[Finding]:
    """Return differences of published numbers that isolate a group with 0 < mass < threshold."""
    findings: list[Finding] = []
    for family in found:
        whole, parts = family.whole, family.parts
        _nest(connection, whole, parts)
        findings += _remainders(connection, family)
        if family.same:
            continue  # the other way round is a family of its own
        if family.complete:
            findings += _suppressed_in_whole(connection, family)
        if whole.about is not None and whole.about["suppressed"]["trips"] == 0:
            findings += _outside_the_part(connection, family)
    return _distinct(findings)


def find_few_contributors(connection: duckdb.DuckDBPyConnection, found: Sequence[Family]) -> list[Finding]:
    """Return flows less flows inside them that leave trips enough, but perhaps too few persons or households.

    Heads do not add up, so that more may be left than the numbers of the flows say; without trips nobody knows.
    """
    findings: list[Finding] = []
    for family in found:
        everyone = (family.whole, *family.parts)
        for contributors in (each.name for each in MEASURES if not each.adds_up):
            least = max(each.thresholds.get(contributors, 0) for each in everyone)
            if least and all(contributors in each.measures for each in everyone) and not together(*everyone):
                _nest(connection, family.whole, family.parts)
                findings += _few_contributors(connection, family, contributors, least)
    return _distinct(findings)


def _few_contributors(
    connection: duckdb.DuckDBPyConnection, family: Family, contributors: str, least: float
) -> list[Finding]:
    left = rows(
        connection,
        "SELECT a.origin, a.destination, (a.trips - sum(n.trips))::BIGINT AS rest, "
        f"(a.{contributors} - sum(n.{contributors}))::BIGINT AS heads, list(DISTINCT n.release ORDER BY n.release) AS "
        f"parts FROM classes a JOIN ({_inside([part.number for part in family.parts], family.whole.number)}) n "
        f"ON a.origin = n.outer_origin AND a.destination = n.outer_destination WHERE a.release = {family.whole.number} "
        f"GROUP BY a.origin, a.destination, a.trips, a.{contributors} HAVING count(*) = count(DISTINCT n.release) "
        f"AND rest >= {family.few} AND heads < {least} ORDER BY 1, 2",
    )
    names = {part.number: part.name for part in family.parts}
    return [
        _difference(
            (family.whole.name, *(names[number] for number in row["parts"])),
            f"{row['origin']} -> {row['destination']}: {family.whole.name} - "
            f"{' - '.join(names[number] for number in row['parts'])} = {row['rest']:,} trips of somebody else, by the "
            f"numbers of perhaps {max(row['heads'], 1):,} {contributors}; give the trips to count them",
            row,
        )
        for row in left
    ]


def _distinct(findings: list[Finding]) -> list[Finding]:
    return list({(each.releases, each.message): each for each in findings}.values())


def _nest(connection: duckdb.DuckDBPyConnection, whole: Published, parts: Sequence[Published]) -> None:
    """Make the table ``nested``: which zone of a part lies in which zone of the whole, and the other way round."""
    connection.execute(
        "CREATE TABLE IF NOT EXISTS nested (axis VARCHAR, inner_release INTEGER, inside VARCHAR, "
        "outer_release INTEGER, outside VARCHAR)"
    )
    for part in parts:
        for one, other in ((part.number, whole.number), (whole.number, part.number)):
            known = rows(
                connection, f"SELECT 1 FROM nested WHERE inner_release = {one} AND outer_release = {other} LIMIT 1"
            )
            if not known:
                connection.execute(
                    "INSERT INTO nested SELECT i.axis, i.release, i.zone, o.release, o.zone FROM nodes i "
                    "JOIN above a ON a.node = i.node JOIN nodes o ON o.node = a.ancestor AND o.axis = i.axis "
                    f"WHERE i.release = {one} AND o.release = {other} "
                    "GROUP BY ALL HAVING count(DISTINCT i.node) = any_value(i.size)"
                )


def _inside(inner: Sequence[int], outer: int) -> str:
    """Return, in SQL, the flows of some releases with the flow of another one in which they lie."""
    joins = " ".join(
        f"JOIN nested {axis[0]} ON {axis[0]}.axis = '{axis}' AND {axis[0]}.inner_release = b.release "
        f"AND {axis[0]}.inside = b.{axis} AND {axis[0]}.outer_release = {outer}"
        for axis in AXES
    )
    counted = ", ".join(f"b.{name}" for name in NAMES)
    return (
        f"SELECT b.release, b.origin, b.destination, {counted}, o.outside AS outer_origin, "
        f"d.outside AS outer_destination FROM classes b {joins} WHERE b.release IN ({', '.join(map(str, inner))})"
    )


def _small(family: Family) -> str:
    """Return the SQL condition that a rest is not empty and below the rule; as many persons need as many trips."""
    return f"rest > 0 AND (rest < {family.few} OR rest_weight < {family.weight} * (1 - 1e-9))"


def _remainders(connection: duckdb.DuckDBPyConnection, family: Family) -> list[Finding]:
    whole = family.whole
    left = rows(
        connection,
        "SELECT a.origin, a.destination, a.trips, sum(n.trips)::BIGINT AS known, "
        "(a.trips - sum(n.trips))::BIGINT AS rest, a.weight - sum(n.weight) AS rest_weight, count(*) AS flows, "
        "list(DISTINCT n.release ORDER BY n.release) AS parts "
        f"FROM classes a JOIN ({_inside([part.number for part in family.parts], whole.number)}) n "
        f"ON a.origin = n.outer_origin AND a.destination = n.outer_destination WHERE a.release = {whole.number} "
        f"GROUP BY a.origin, a.destination, a.trips, a.weight HAVING {_small(family)} "
        "ORDER BY 1, 2",
    )
    names = {part.number: part.name for part in family.parts}
    return [_remainder(family, row, names) for row in left]


def _remainder(family: Family, row: dict[str, Any], names: dict[int, str]) -> Finding:
    involved = [names[number] for number in row["parts"]]
    flows = "" if row["flows"] == len(involved) else f" ({row['flows']} flows inside it)"
    text = (
        f"{row['origin']} -> {row['destination']}: {family.whole.name} {row['trips']:,} - {' - '.join(involved)}"
        f"{flows} {row['known']:,} = {_group(row, family)} of somebody else"
    )
    return _difference((family.whole.name, *involved), text, row)


def _group(row: dict[str, Any], family: Family) -> str:
    """Return the mass of a group, in the measure in which it is too small."""
    if row["rest"] < family.few:
        return f"{row['rest']:,} trips"
    return f"{row['rest']:,} trips of weight {show(row['rest_weight'])}, below {show(family.weight)},"


def _suppressed_in_whole(connection: duckdb.DuckDBPyConnection, family: Family) -> list[Finding]:
    """Subtract the whole from its parts, where all of them publish the same block."""
    whole, parts = family.whole, family.parts
    numbers = ", ".join(str(part.number) for part in parts)
    left = rows(
        connection,
        "SELECT p.origin, p.destination, p.trips, w.known, (p.trips - w.known)::BIGINT AS rest, "
        "p.weight - w.weight AS rest_weight FROM (SELECT origin, destination, sum(trips)::BIGINT AS trips, "
        f"sum(weight) AS weight FROM classes WHERE release IN ({numbers}) GROUP BY 1, 2 "
        f"HAVING count(*) = {len(parts)}) p JOIN (SELECT outer_origin, outer_destination, "
        "sum(trips)::BIGINT AS known, sum(weight) AS weight FROM "
        f"({_inside([whole.number], parts[0].number)}) GROUP BY 1, 2) w ON w.outer_origin = p.origin "
        f"AND w.outer_destination = p.destination WHERE {_small(family)} ORDER BY 1, 2",
    )
    names = tuple(part.name for part in parts)
    return [
        _difference(
            (*names, whole.name),
            f"{row['origin']} -> {row['destination']}: {' + '.join(names)} {row['trips']:,} - {whole.name} "
            f"{row['known']:,} = {_group(row, family)} that {whole.name} suppressed",
            row,
        )
        for row in left
    ]


def _outside_the_part(connection: duckdb.DuckDBPyConnection, family: Family) -> list[Finding]:
    """Subtract a block of a part from all flows of the whole inside it, where the whole suppresses nothing."""
    whole, found = family.whole, []
    for part in family.parts:
        straddling = " AND ".join(
            f"NOT EXISTS (SELECT 1 FROM nested s WHERE s.axis = '{axis}' AND s.inner_release = {part.number} "
            f"AND s.inside = b.{axis} AND s.outer_release = {whole.number} AND s.outside <> b.{axis})"
            for axis in AXES
        )
        found += [
            _difference(
                (whole.name, part.name),
                f"{row['origin']} -> {row['destination']}: {whole.name} {row['trips']:,} - {part.name} "
                f"{row['known']:,} = {_group(row, family)} of somebody else",
                row,
            )
            for row in rows(
                connection,
                "SELECT b.origin, b.destination, b.trips AS known, sum(n.trips)::BIGINT AS trips, "
                "(sum(n.trips) - b.trips)::BIGINT AS rest, sum(n.weight) - b.weight AS rest_weight FROM classes b "
                f"JOIN ({_inside([whole.number], part.number)}) n ON b.origin = n.outer_origin "
                f"AND b.destination = n.outer_destination WHERE b.release = {part.number} AND {straddling} "
                f"GROUP BY b.origin, b.destination, b.trips, b.weight HAVING {_small(family)} "
                "ORDER BY 1, 2",
            )
        ]
    return found


def _difference(releases: tuple[str, ...], message: str, row: dict[str, Any]) -> Finding:
    return Finding("difference", releases, message, details=(row,))
