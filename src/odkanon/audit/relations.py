"""Which releases are about the same trips: by the trips themselves, or as far as the releases say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Literal

import duckdb

from odkanon.audit.conditions import ages_of
from odkanon.audit.findings import Comparison, Finding
from odkanon.audit.release_reader import Published
from odkanon.audit.study_area import OTHER, apart_in_time, hides_filter, plain_value, read_alike, segment_of
from odkanon.core.parsing import parse_json
from odkanon.release_format.recipe import recipe_path

CLOCKED = ("hour", "start_time", "end_time")
"""What a clock says of a trip."""
_TIME = re.compile(r"\d:\d\d|\d{4}-?\d\d-?\d\d|\d{4}-?W\d")

TOO_MANY = "against what you say, by their totals"
"""How it is known that releases share trips though the auditor says that they do not."""

RelationKind = Literal["disjoint", "same", "part", "overlap", "unknown"]


@dataclass(frozen=True)
class Relation:
    """How the trips of two releases lie to each other.

    Attributes
    ----------
    one, other : Published
        For a part: the part, and that of which it is one.
    kind : {"disjoint", "same", "part", "overlap", "unknown"}
        Whether they share no trips, all, all of ``one``, or some.
    how : str
        From where it is known.
    """

    one: Published
    other: Published
    kind: RelationKind
    how: str

    @property
    def names(self) -> tuple[str, str]:
        """What to call the two."""
        return self.one.name, self.other.name


def inside_mark(area: int) -> int:
    """Return the number that marks, among releases, an area; see `odkanon.audit.zone_geometry.Places`."""
    return -1 - area


def scopes(
    connection: duckdb.DuckDBPyConnection, releases: Iterable[Published], areas: Iterable[int]
) -> list[tuple[frozenset[int], int]]:
    """Return for which sets of releases, and inside which areas, there are trips of just these, and how many."""
    tables = [f"SELECT trip, {each.number} AS release FROM scope{each.number}" for each in releases]
    if not tables:
        return []
    for area in areas:
        ends = " AND ".join(f"{end} IN (SELECT leaf FROM area{area})" for end in ("origin", "destination"))
        tables.append(f"SELECT DISTINCT trip, {inside_mark(area)} FROM records WHERE {ends}")
    counted = connection.execute(
        "SELECT members, count(*) FROM (SELECT list(release ORDER BY release) AS members "
        f"FROM ({' UNION ALL '.join(tables)}) GROUP BY trip HAVING max(release) >= 0) GROUP BY 1 ORDER BY 1"
    ).fetchall()
    return [(frozenset(members), int(count)) for members, count in counted]


def relations(
    releases: Sequence[Published],
    known: Sequence[tuple[frozenset[int], int]],
    exact: AbstractSet[int],
    *,
    cumulative: bool,
    disjoint: bool,
) -> list[Relation]:
    """Return how each two releases lie to each other.

    Parameters
    ----------
    known : sequence
        What `scopes` returns, for the releases in ``exact``.
    exact : set of int
        Numbers of the releases whose trips were found.
    cumulative, disjoint : bool
        What the auditor says of releases that do not tell: that they contain those with fewer trips, or share none.
    """
    found = []
    for one, other in combinations(releases, 2):
        if {one.number, other.number} <= exact:
            found.append(_by_trips(one, other, known))
            continue
        told = _told(one, other)
        if told.kind == "unknown" and disjoint:
            wrong = _too_many(one, other)
            told = Relation(one, other, "unknown" if wrong else "disjoint", TOO_MANY if wrong else "as you say")
        elif told.kind == "unknown" and cumulative and one.total is not None and other.total is not None:
            # With as many trips each may have some that the other has not: one was swapped.
            part, whole = (one, other) if one.total <= other.total else (other, one)
            told = Relation(part, whole, "overlap" if one.total == other.total else "part", "as you say")
        found.append(told)
    return found


def _too_many(one: Published, other: Published) -> bool:
    """Tell whether two releases of one file have more trips together than the file, so that they share some."""
    if one.sha256 is None or one.sha256 != other.sha256:
        return False
    there = max(int(each.about["input"]["trips"]) for each in (one, other) if each.about is not None)
    return sum(each.total for each in (one, other) if each.total is not None) > there


def _by_trips(one: Published, other: Published, known: Sequence[tuple[frozenset[int], int]]) -> Relation:
    both = sum(count for members, count in known if {one.number, other.number} <= members)
    first = sum(count for members, count in known if one.number in members)
    second = sum(count for members, count in known if other.number in members)
    how = "by the trips"
    if both == 0:
        return Relation(one, other, "disjoint", how)
    if both == first:
        return Relation(one, other, "same" if both == second else "part", how)
    return Relation(other, one, "part", how) if both == second else Relation(one, other, "overlap", how)


def _told(one: Published, other: Published) -> Relation:
    """Return what two releases say: parts of one file are told apart by segments and filters on one attribute."""
    how = "by what they say"
    if apart_in_time(one, other):
        return Relation(one, other, "disjoint", "by their periods")
    if one.sha256 is None or one.sha256 != other.sha256 or hides_filter(one) or hides_filter(other):
        return Relation(one, other, "unknown", how)
    first, second = segment_of(one), segment_of(other)
    if not (read_alike(one, other) or together(one, other)):
        return Relation(one, other, "unknown", how)
    common = [name for name in first.keys() & second.keys() if first[name] != second[name]]
    if any(_exclude(name, first[name], second[name]) for name in common) or (common and together(one, other)):
        return Relation(one, other, "disjoint", how)
    if first == second:
        return Relation(one, other, "same" if one.total == other.total else "unknown", how)
    for part, whole, inner, outer in ((one, other, first, second), (other, one, second, first)):
        if outer.items() <= inner.items() and (part.total or 0) <= (whole.total or 0):
            return Relation(part, whole, "part", how)
    kind: RelationKind = "overlap" if together(one, other) else "unknown"
    return Relation(one, other, kind, "released linked" if kind == "overlap" else how)


def _exclude(name: str, one: str, other: str) -> bool:
    """Tell whether two values of an attribute exclude each other, whoever made the releases.

    Hours do not, as clocks may differ, nor does what is left over: of another run, that may be anything.
    """
    one, other = (plain_value(value) for value in (one, other))
    if name in CLOCKED or {one, other} & {OTHER, ""} or one.casefold() == other.casefold():
        return False
    if name != "age":
        # A day, or a time of day, may be part of a time that is written otherwise.
        return not any(map(_TIME.search, (one, other)))
    ages = ages_of(one), ages_of(other)
    if None in ages:
        # What is no age, such as -1 or a word, is missing, too.
        return "missing" in (one, other) and ages != (None, None)
    (low, high), (least, most) = ages  # type: ignore[misc]
    return bool(high < least or most < low)


def together(*releases: Published) -> bool:
    """Tell whether releases were made in one run, as segments that stay safe side by side.

    Those have one recipe for all; a release with one of its own was made by itself, whatever an index lists.
    """
    folders = {each.folder.resolve().parent for each in releases}
    alone = any(recipe_path(path).is_file() for each in releases for path in (each.folder, each.folder.resolve()))
    return len(folders) == 1 and not alone and {each.folder.resolve().name for each in releases} <= listed_in(*folders)


def listed_in(folder: Path) -> set[str]:
    """Return the names of the releases that the index of a folder lists as made in one run."""
    try:
        index = parse_json((folder / "index.json").read_text(encoding="utf-8"))
        return {index["whole"], *(part["folder"] for part in index["segments"] if part["folder"])}
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def unknown(found: Sequence[Relation]) -> list[Finding]:
    """Return a finding for each two releases of which it is not known whether they share trips."""
    return [Finding("relation", each.names, _why_unknown(each)) for each in found if each.kind == "unknown"]


def _why_unknown(relation: Relation) -> str:
    names = f"{relation.one.name} and {relation.other.name}"
    if relation.how == TOO_MANY:
        return (
            f"{names} have more trips together than the file that both were made of, so they share some, and "
            "--disjoint is wrong; give the trips"
        )
    return (
        f"whether {names} are about the same trips is not known, so they cannot be compared; give the trips, or say "
        "--disjoint if they are about different trips"
    )


def comparison(relation: Relation, compared: str) -> Comparison:
    """Return what a report says of two releases."""
    return Comparison(relation.names, relation.kind, relation.how, compared)
