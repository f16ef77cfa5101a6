"""Subtractions of published counts that isolate a small group, where the trips are not given.

`odkanon.audit.published_counts` tries all combinations of rows where they can be enumerated. Otherwise, and where
releases are only known to grow, disjoint parts are compared with their whole by three subtractions; a release of the
same trips on other zones counts as a part:

* a flow of the whole minus all flows of the parts inside it: trips in no flow of the parts;
* one block published by every one of a complete set of parts, minus all flows of the whole inside it: trips that the
  whole suppressed there;
* all flows of a whole without suppression inside a block of a part, minus that block: trips outside the part.

A fourth way uses totals: the suppressed trips of a segment, minus those that its flows already disclose. Zones nest by
their nodes, so zonings need not be the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from duckdb import DuckDBPyConnection as Connection

from odkanon.audit.counting.counted_measures import MEASURES, measures_named
from odkanon.audit.findings import Finding
from odkanon.audit.relations import BY_CLAIM, Relation, are_linked
from odkanon.audit.release_checks import format_mass
from odkanon.audit.release_reader import AXES, PublishedRelease, rows
from odkanon.audit.row_nesting import nest_zones, rows_inside
from odkanon.core.arrays import Ints

(WEIGHT,) = measures_named(["weight"])


@dataclass(frozen=True)
class Breakdown:
    """A release and others that are disjoint parts of it."""

    whole: PublishedRelease  # the release of all trips
    parts: tuple[PublishedRelease, ...]  # releases of some of them; no trip is in two parts
    complete: bool  # whether the parts make up the whole
    same: bool = False  # whether the only part covers the same trips, on other zones

    @property
    def min_trips(self) -> int:
        """The number of trips below which a group is too small, by the strictest rule."""
        return max(each.min_trips for each in (self.whole, *self.parts))

    @property
    def min_weight(self) -> float:
        """The weight below which a group is too small; 0 if no rule has a threshold on weight."""
        return max(each.thresholds.get("weight", 0) for each in (self.whole, *self.parts))


def find_breakdowns(related: Sequence[Relation]) -> list[Breakdown]:
    """Return the releases that are broken down by others."""
    apart = {frozenset(each.names) for each in related if each.kind == "disjoint"}
    parts: dict[str, list[PublishedRelease]] = {}
    found = []
    for each in related:
        if each.kind == "same" or (each.kind == "overlap" and each.how == BY_CLAIM):
            same = each.kind == "same"
            found += [Breakdown(each.one, (each.other,), False, same), Breakdown(each.other, (each.one,), False, same)]
        elif each.kind == "part":
            parts.setdefault(each.other.name, []).append(each.one)
    wholes = {each.other.name: each.other for each in related if each.kind == "part"}
    for name, inside in parts.items():
        groups = {tuple(sorted(_disjoint_with(part, inside, apart), key=lambda each: each.number)) for part in inside}
        groups |= set(_complementary_parts(wholes[name], inside))
        for group in sorted(groups, key=lambda each: [release.number for release in each]):
            totals = [part.total for part in group]
            complete = None not in totals and sum(filter(None, totals)) == wholes[name].total
            found.append(Breakdown(wholes[name], group, complete))
    return found


def _disjoint_with(
    part: PublishedRelease, others: Sequence[PublishedRelease], apart: set[frozenset[str]]
) -> list[PublishedRelease]:
    """Return a part and, greedily, others that share no trips with it or with each other."""
    chosen = [part]
    for other in others:
        if all(frozenset((other.name, each.name)) in apart for each in chosen):
            chosen.append(other)
    return chosen


def _complementary_parts(
    whole: PublishedRelease, parts: Sequence[PublishedRelease]
) -> list[tuple[PublishedRelease, PublishedRelease]]:
    """Return pairs of parts whose trips add up to the whole, which are probably complements.

    Linked segments state their dimensions; segments of two dimensions are no complements.
    """
    return [
        (one, other)
        for one, other in combinations(parts, 2)
        if None not in (one.total, other.total, whole.total)
        and (one.total or 0) + (other.total or 0) == whole.total
        and not (are_linked(one, other) and one.parameters.get("dimension") != other.parameters.get("dimension"))
    ]


def find_differences(connection: Connection, found: Sequence[Breakdown]) -> list[Finding]:
    """Return differences of published counts that isolate a group with 0 < mass < threshold."""
    findings: list[Finding] = []
    for breakdown in found:
        findings += _whole_minus_parts(connection, breakdown)
        if breakdown.same:
            continue  # the reverse is a breakdown of its own
        if breakdown.complete:
            findings += _parts_minus_whole(connection, breakdown)
        provenance = breakdown.whole.provenance
        if provenance is not None and provenance["suppressed"]["trips"] == 0:
            findings += _whole_minus_block(connection, breakdown)
    return _distinct(findings)


def find_few_contributors(connection: Connection, found: Sequence[Breakdown]) -> list[Finding]:
    """Return differences that leave enough trips, but perhaps too few persons or households.

    Distinct contributors do not add up: more may remain than the difference of the counts, which only the trips show.
    """
    findings: list[Finding] = []
    for breakdown in found:
        releases = (breakdown.whole, *breakdown.parts)
        for contributors in (each.name for each in MEASURES if not each.adds_up):
            least = max(each.thresholds.get(contributors, 0) for each in releases)
            if least and all(contributors in each.measures for each in releases) and not are_linked(*releases):
                findings += _few_contributors(connection, breakdown, contributors, least)
    return _distinct(findings)


def _few_contributors(connection: Connection, breakdown: Breakdown, contributors: str, least: float) -> list[Finding]:
    left = rows(
        connection,
        "SELECT a.origin, a.destination, (a.trips - sum(n.trips))::BIGINT AS rest, "
        f"(a.{contributors} - sum(n.{contributors}))::BIGINT AS others, "
        f"list(DISTINCT n.release ORDER BY n.release) AS parts {_flows_with_inner(connection, breakdown)} "
        f"GROUP BY a.origin, a.destination, a.trips, a.{contributors} HAVING count(*) = count(DISTINCT n.release) "
        f"AND rest >= {breakdown.min_trips} AND others < {least} ORDER BY 1, 2",
    )
    names = {part.number: part.name for part in breakdown.parts}
    return [
        _difference(
            (breakdown.whole.name, *(names[number] for number in row["parts"])),
            f"{row['origin']} -> {row['destination']}: {breakdown.whole.name} - "
            f"{' - '.join(names[number] for number in row['parts'])} = {row['rest']:,} trips of somebody else, by the "
            f"numbers of perhaps {max(row['others'], 1):,} {contributors}; give the trips to count them",
            row,
        )
        for row in left
    ]


def _flows_with_inner(connection: Connection, breakdown: Breakdown) -> str:
    """Return, in SQL, each flow ``a`` of the whole with each flow ``n`` of the parts inside it."""
    inside = rows_inside(connection, [part.number for part in breakdown.parts], breakdown.whole.number)
    return f"FROM classes a JOIN ({inside}) n ON n.outer_class = a.rowid"


def _distinct(findings: list[Finding]) -> list[Finding]:
    return list({(each.releases, each.message): each for each in findings}.values())


def _is_small(breakdown: Breakdown) -> str:
    """Return the SQL condition that a remainder is not empty and below the rule."""
    # Published weights are rounded: the remainder is known to be too light only beyond the error of what is subtracted.
    weight = f"rest_weight + rest_error < {breakdown.min_weight} * (1 - 1e-9)"
    return f"rest > 0 AND (rest < {breakdown.min_trips} OR {weight})"


def _whole_minus_parts(connection: Connection, breakdown: Breakdown) -> Iterator[Finding]:
    left = rows(
        connection,
        "SELECT a.origin, a.destination, a.trips, sum(n.trips)::BIGINT AS known, "
        "(a.trips - sum(n.trips))::BIGINT AS rest, a.weight - sum(n.weight) AS rest_weight, "
        f"{WEIGHT.rounding} * (a.weight + sum(n.weight)) AS rest_error, count(*) AS flows, "
        f"list(DISTINCT n.release ORDER BY n.release) AS parts {_flows_with_inner(connection, breakdown)} "
        f"GROUP BY a.origin, a.destination, a.trips, a.weight HAVING {_is_small(breakdown)} "
        "ORDER BY 1, 2",
    )
    names = {part.number: part.name for part in breakdown.parts}
    for row in left:
        involved = [names[number] for number in row["parts"]]
        flows = "" if row["flows"] == len(involved) else f" ({row['flows']} flows inside it)"
        text = (
            f"{row['origin']} -> {row['destination']}: {breakdown.whole.name} {row['trips']:,} - {' - '.join(involved)}"
            f"{flows} {row['known']:,} = {_group_size(row, breakdown)} of somebody else"
        )
        yield _difference((breakdown.whole.name, *involved), text, row)


def _group_size(row: dict[str, Any], breakdown: Breakdown) -> str:
    """Return the size of a group in the measure in which it is too small."""
    if row["rest"] < breakdown.min_trips:
        return f"{row['rest']:,} trips"
    least = format_mass(breakdown.min_weight)
    return f"{row['rest']:,} trips of weight {format_mass(row['rest_weight'])}, below {least},"


def _parts_minus_whole(connection: Connection, breakdown: Breakdown) -> Iterator[Finding]:
    """Subtract the whole from its parts where all of them publish the same block."""
    whole, parts = breakdown.whole, breakdown.parts
    numbers = ", ".join(str(part.number) for part in parts)
    left = rows(
        connection,
        "SELECT p.origin, p.destination, p.trips, w.known, (p.trips - w.known)::BIGINT AS rest, "
        f"p.weight - w.weight AS rest_weight, {WEIGHT.rounding} * (p.weight + w.weight) AS rest_error "
        "FROM (SELECT origin, destination, sum(trips)::BIGINT AS trips, "
        f"sum(weight) AS weight FROM classes WHERE release IN ({numbers}) GROUP BY 1, 2 "
        f"HAVING count(*) = {len(parts)}) p JOIN (SELECT outer_origin, outer_destination, "
        "sum(trips)::BIGINT AS known, sum(weight) AS weight FROM "
        f"({rows_inside(connection, [whole.number], parts[0].number)}) GROUP BY 1, 2) w ON w.outer_origin = p.origin "
        f"AND w.outer_destination = p.destination WHERE {_is_small(breakdown)} ORDER BY 1, 2",
    )
    names = tuple(part.name for part in parts)
    for row in left:
        text = (
            f"{row['origin']} -> {row['destination']}: {' + '.join(names)} {row['trips']:,} - {whole.name} "
            f"{row['known']:,} = {_group_size(row, breakdown)} that {whole.name} suppressed"
        )
        yield _difference((*names, whole.name), text, row)


def _whole_minus_block(connection: Connection, breakdown: Breakdown) -> Iterator[Finding]:
    """Subtract a block of a part from all flows inside it of a whole that suppresses nothing."""
    whole = breakdown.whole
    for part in breakdown.parts:
        nest_zones(connection, part.number, whole.number)
        straddling = " AND ".join(
            f"NOT EXISTS (SELECT 1 FROM zone_nesting s WHERE s.axis = '{axis}' AND s.inner_release = {part.number} "
            f"AND s.inside = b.{axis} AND s.outer_release = {whole.number} AND s.outside <> b.{axis})"
            for axis in AXES
        )
        left = rows(
            connection,
            "SELECT b.origin, b.destination, b.trips AS known, sum(n.trips)::BIGINT AS trips, "
            "(sum(n.trips) - b.trips)::BIGINT AS rest, sum(n.weight) - b.weight AS rest_weight, "
            f"{WEIGHT.rounding} * (sum(n.weight) + b.weight) AS rest_error FROM classes b "
            f"JOIN ({rows_inside(connection, [whole.number], part.number)}) n ON n.outer_class = b.rowid "
            f"WHERE {straddling} GROUP BY b.origin, b.destination, b.trips, b.weight "
            f"HAVING {_is_small(breakdown)} ORDER BY 1, 2",
        )
        for row in left:
            text = (
                f"{row['origin']} -> {row['destination']}: {whole.name} {row['trips']:,} - {part.name} "
                f"{row['known']:,} = {_group_size(row, breakdown)} of somebody else"
            )
            yield _difference((whole.name, part.name), text, row)


def _difference(releases: tuple[str, ...], message: str, row: dict[str, Any]) -> Finding:
    return Finding("difference", releases, message, details=(row,))


def find_total_leaks(connection: Connection, breakdowns: Sequence[Breakdown]) -> list[Finding]:
    """Return the groups that totals disclose, for complete sets of parts on the zones of their whole.

    The suppressed trips of a part are known in total. So are those in flows that all other parts publish. Subtracting
    these leaves the trips of the part in the flows that it shares with other unpublished parts.
    """
    return [
        finding
        for breakdown in breakdowns
        if breakdown.complete
        and not breakdown.same
        # Others can subtract only the totals in the folders.
        and all("suppressed" in each.manifest for each in (breakdown.whole, *breakdown.parts))
        for finding in _total_leaks(connection, breakdown)
    ]


def _total_leaks(connection: Connection, breakdown: Breakdown) -> Iterator[Finding]:
    whole, parts = breakdown.whole, breakdown.parts
    published = _trips_by_part(connection, whole, parts)
    if published is None:
        return
    totals, trips = published
    residual = totals - trips.sum(axis=1)
    hidden = (trips == 0) & (residual > 0)[:, None]
    outside = int(whole.manifest["suppressed"]["trips"])
    single = hidden & (hidden.sum(axis=1) == 1)[:, None]
    suppressed = np.array([part.manifest["suppressed"]["trips"] for part in parts], dtype=np.int64)
    own = suppressed - (single * residual[:, None]).sum(axis=0)
    shared = (hidden & ~single).sum(axis=0)
    others = ((hidden & ~single) * residual[:, None]).sum(axis=0) + outside - own
    for at, part in enumerate(parts):
        for group, who in ((own[at], part.name), (others[at], f"all but {part.name}")):
            if 0 < group < breakdown.min_trips and shared[at]:
                text = (
                    f"the suppressed trips of {part.name}, less the flows where nothing else is missing, leave "
                    f"{group:,} trips of {who} in {shared[at]:,} flows"
                )
                yield Finding("difference", (whole.name, part.name), text)


def _trips_by_part(
    connection: Connection, whole: PublishedRelease, parts: Sequence[PublishedRelease]
) -> tuple[Ints, Ints] | None:
    """Return the trips of each flow of the whole and of each part in it; None if the zones differ."""
    columns = ", ".join(
        f"coalesce(sum(trips) FILTER (release = {part.number}), 0)::BIGINT AS p{at}" for at, part in enumerate(parts)
    )
    numbers = ", ".join(str(each.number) for each in (whole, *parts))
    table = connection.sql(
        f"SELECT coalesce(sum(trips) FILTER (release = {whole.number}), 0)::BIGINT AS whole, {columns} FROM classes "
        f"WHERE release IN ({numbers}) GROUP BY origin, destination"
    ).fetchnumpy()
    totals = np.asarray(table["whole"], dtype=np.int64)
    if not totals.all() or not len(totals):
        return None
    return totals, np.column_stack([np.asarray(table[f"p{at}"], dtype=np.int64) for at in range(len(parts))])
