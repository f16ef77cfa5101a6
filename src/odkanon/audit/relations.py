"""How the trips of two releases relate: by the trips themselves, otherwise by what recipes and manifests state."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import date, datetime
from itertools import combinations
from pathlib import Path
from typing import Literal

from duckdb import DuckDBPyConnection as Connection

from odkanon.audit.counting.conditions import equality, parse_age_band
from odkanon.audit.counting.release_trips import file_digest, release_filters
from odkanon.audit.findings import Finding
from odkanon.audit.release_reader import PublishedRelease
from odkanon.core.parsing import parse_json
from odkanon.read.tables.filters import FILTERED
from odkanon.release_format.recipe import recipe_path

OTHER = "other"  # the segment of values that have too few trips for a table of their own
TIME_ATTRIBUTES = ("hour", "start_time", "end_time")
BY_CLAIM = "as claimed"
CORRECTION = "as a correction"
"""How a relation is known if one release states that it corrects the other."""
BY_TIMES = "by the times of their trips"
TOO_MANY = "against your claim, by their totals"
"""How a relation is known if the totals contradict an auditor who claims that releases share no trips."""

_OPTIONS = ("columns", "crs", "kind", "timezone", "decimal", "time_format", "encoding", "delimiter", "sheet", "within")
"""Reading options that decide which trips there are and what a filter means."""
_FILES = ("within", "hierarchy")  # reading options that name files
_TIME = re.compile(r"\d:\d\d|\d{4}-?\d\d-?\d\d|\d{4}-?W\d")

Span = tuple[datetime, datetime]
RelationKind = Literal["disjoint", "same", "part", "overlap", "unknown"]


@dataclass(frozen=True)
class Relation:
    """How the trips of two releases relate."""

    one: PublishedRelease  # the part, if one is part of the other
    other: PublishedRelease
    kind: RelationKind  # whether they share no trips, all, all of ``one``, or some
    how: str  # the source of that knowledge

    @property
    def names(self) -> tuple[str, str]:
        """The names of the two releases."""
        return self.one.name, self.other.name


def inside_mark(area: int) -> int:
    """Return the number that stands for an area among release numbers; see `odkanon.audit.zone_geometry.ZonePlaces`."""
    return -1 - area


def count_atoms(
    connection: Connection, releases: Iterable[PublishedRelease], areas: Iterable[int]
) -> list[tuple[frozenset[int], int]]:
    """Return the sets of releases (and areas) to which some trip belongs exactly, each with its number of trips."""
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


def find_relations(
    releases: Sequence[PublishedRelease],
    atoms: Sequence[tuple[frozenset[int], int]],
    exact: AbstractSet[int],
    *,
    cumulative: bool,
    disjoint: bool,
    spans: Mapping[str, Span] | None = None,
) -> list[Relation]:
    """Return the relation of each two releases.

    Those in ``exact`` are related by their trips, which `count_atoms` counted; the others by what they state, or by
    ``spans``, the first and the last start of the trips of each, which were read elsewhere. Failing that, the claim of
    the auditor counts: that each contains those with fewer trips, or that they share none.
    """
    spans = spans or {}
    found = []
    for one, other in combinations(releases, 2):
        if {one.number, other.number} <= exact:
            found.append(_relate_by_trips(one, other, atoms))
            continue
        relation = _relate_by_statements(one, other)
        if relation.kind == "unknown" and _follow(one, other, spans):
            relation = Relation(one, other, "disjoint", BY_TIMES)
        if relation.kind == "unknown" and disjoint:
            wrong = _exceed_input(one, other)
            relation = Relation(one, other, "unknown" if wrong else "disjoint", TOO_MANY if wrong else BY_CLAIM)
        elif relation.kind == "unknown" and cumulative and one.total is not None and other.total is not None:
            # With equal totals, each may have trips that the other lacks: some were replaced.
            part, whole = (one, other) if one.total <= other.total else (other, one)
            relation = Relation(part, whole, "overlap" if one.total == other.total else "part", BY_CLAIM)
        found.append(relation)
    return found


def _follow(one: PublishedRelease, other: PublishedRelease, spans: Mapping[str, Span]) -> bool:
    """Return whether all trips of one of two releases start after all of the other, on the same clock."""
    first, second = spans.get(one.name), spans.get(other.name)
    if first is None or second is None or _clock(one) != _clock(other):
        return False
    return first[1] < second[0] or second[1] < first[0]


def _exceed_input(one: PublishedRelease, other: PublishedRelease) -> bool:
    """Return whether two releases of one file have more trips than the file, and so must share some."""
    if one.sha256 is None or one.sha256 != other.sha256:
        return False
    most = max(int(each.provenance["input"]["trips"]) for each in (one, other) if each.provenance is not None)
    return sum(each.total for each in (one, other) if each.total is not None) > most


def _relate_by_trips(
    one: PublishedRelease, other: PublishedRelease, atoms: Sequence[tuple[frozenset[int], int]]
) -> Relation:
    both = sum(count for members, count in atoms if {one.number, other.number} <= members)
    first, second = (sum(count for members, count in atoms if each.number in members) for each in (one, other))
    how = "by the trips"
    if both == 0:
        return Relation(one, other, "disjoint", how)
    if both == first:
        return Relation(one, other, "same" if both == second else "part", how)
    return Relation(other, one, "part", how) if both == second else Relation(one, other, "overlap", how)


def _states(one: PublishedRelease, how: str, other: PublishedRelease) -> bool:
    """Return whether a release corrects or adds to another by name, and its recipe confirms it."""
    stated = one.manifest.get("parameters", {}).get(how)
    return bool(stated == other.name and one.parameters.get(how) == stated)


def _relate_by_statements(one: PublishedRelease, other: PublishedRelease) -> Relation:
    """Return the relation by the periods, segments and filters that recipes and manifests state."""
    how = "by their statements"
    if _states(one, "corrects", other) or _states(other, "corrects", one):
        return Relation(one, other, "overlap", CORRECTION)
    if _states(one, "adds_to", other) or _states(other, "adds_to", one):
        return Relation(one, other, "disjoint", how)
    if have_disjoint_periods(one, other):
        return Relation(one, other, "disjoint", "by their periods")
    if one.sha256 is None or one.sha256 != other.sha256 or has_unknown_filter(one) or has_unknown_filter(other):
        return Relation(one, other, "unknown", how)
    first, second = release_segment(one), release_segment(other)
    if not (read_identically(one, other) or are_linked(one, other)):
        return Relation(one, other, "unknown", how)
    common = [name for name in first.keys() & second.keys() if first[name] != second[name]]
    if any(_exclude(name, first[name], second[name]) for name in common) or (common and are_linked(one, other)):
        return Relation(one, other, "disjoint", how)
    if first == second:
        return Relation(one, other, "same" if one.total == other.total else "unknown", how)
    for part, whole, inner, outer in ((one, other, first, second), (other, one, second, first)):
        if outer.items() <= inner.items() and (part.total or 0) <= (whole.total or 0):
            return Relation(part, whole, "part", how)
    kind: RelationKind = "overlap" if are_linked(one, other) else "unknown"
    return Relation(one, other, kind, "released linked" if kind == "overlap" else how)


def _exclude(name: str, one: str, other: str) -> bool:
    """Return whether two values of an attribute exclude each other, whatever run they come from.

    Hours do not, since clocks may differ, nor does the segment of other values, which differs between runs.
    """
    one, other = (plain_value(value) for value in (one, other))
    if name in TIME_ATTRIBUTES or {one, other} & {OTHER, ""} or one.casefold() == other.casefold():
        return False
    if name != "age":
        # A date or a time of day may be part of a time written in another format.
        return not any(map(_TIME.search, (one, other)))
    ages = parse_age_band(one), parse_age_band(other)
    if None in ages:
        # Anything that is not an age, such as -1 or a word, counts as missing.
        return "missing" in (one, other) and ages != (None, None)
    (low, high), (least, most) = ages  # type: ignore[misc]
    return bool(high < least or most < low)


def have_disjoint_periods(one: PublishedRelease, other: PublishedRelease) -> bool:
    """Return whether the stated periods of two releases exclude each other, on the same clock."""
    first, second = (release.manifest.get("period", {}) for release in (one, other))
    if not first or not second or first.get("timezone") != second.get("timezone"):
        return False
    if one.recipe and other.recipe and _clock(one) != _clock(other):
        return False
    days = ((before.get("until"), after.get("since")) for before, after in ((first, second), (second, first)))
    try:
        return any(date.fromisoformat(until) <= date.fromisoformat(since) for until, since in days if until and since)
    except (ValueError, TypeError):
        return False


def _clock(release: PublishedRelease) -> tuple[object, ...]:
    """Return what decides on which day a trip starts: the column of its start, and how that is read.

    For a trip over midnight, the column of its end would give another day. Columns may be mapped either way round.
    """
    source = release.recipe.get("input", {})
    columns = source.get("columns") or {}
    mapped = {theirs: ours for ours, theirs in columns.items()} | columns
    return mapped.get("start_time"), source.get("time_format"), source.get("timezone")


def read_identically(one: PublishedRelease, other: PublishedRelease) -> bool:
    """Return whether two releases read a file with the same options, up to filters and segments."""
    sources = [each.recipe.get("input", {}) for each in (one, other)]
    first, second = ({name: each.get(name) for name in _OPTIONS} for each in sources)
    first["table"], second["table"] = (Path(str(each.get("hierarchy"))).name for each in sources)
    known = not str(first["within"]).endswith(" in memory")
    digests = ({file_digest(one, name), file_digest(other, name)} - {None} for name in _FILES)
    if any(len(each) > 1 for each in digests):
        return False
    return first == second and known and one.parameters.get("left_out") == other.parameters.get("left_out")


def share_lookup_table(one: PublishedRelease, other: PublishedRelease) -> bool:
    """Return whether two releases were made on one lookup table, as far as is known."""
    paths = [str(each.recipe.get("input", {}).get("hierarchy")) for each in (one, other)]
    digests = [file_digest(each, "hierarchy") for each in (one, other)]
    if None not in digests:
        return digests[0] == digests[1]
    return paths[0] == paths[1] and not paths[0].endswith(" in memory")


def has_unknown_filter(release: PublishedRelease) -> bool:
    """Return whether rows were rejected by a filter that the recipe does not state."""
    provenance = release.provenance
    return provenance is not None and FILTERED in provenance["input"]["rejected"] and not release_filters(release)


def release_segment(release: PublishedRelease) -> dict[str, str]:
    """Return the segment and the filters of a release as ``{attribute: value}``."""
    segment = {name: str(label) for name, label in release.parameters.get("segment", {}).items()}
    for where in release_filters(release):
        equal = equality(where)
        segment |= {equal[0]: plain_value(equal[1])} if equal else {f"filter {where}": "yes"}
    return segment


def plain_value(value: object) -> str:
    """Return a value of a filter as segments write it: ``1`` for ``1.0``, ``true`` and ``01``, without outer spaces."""
    text = str(value).strip()
    try:
        return f"{float({'true': '1', 'false': '0'}.get(text.casefold(), text)):.17g}"
    except ValueError:
        return text


def are_linked(*releases: PublishedRelease) -> bool:
    """Return whether releases are linked tables: segments of one run, protected against each other.

    Linked tables have one recipe for the whole folder. A release with its own recipe is not linked, even if an index
    lists it.
    """
    paths = [each.folder.resolve() for each in releases]
    folders, names = {path.parent for path in paths}, {path.name for path in paths}
    separate = any(recipe_path(path).is_file() for path in [*paths, *(each.folder for each in releases)])
    return len(folders) == 1 and not separate and names <= linked_names(*folders)


def linked_names(folder: Path) -> set[str]:
    """Return the names of the linked releases in the index of a folder."""
    try:
        index = parse_json((folder / "index.json").read_text(encoding="utf-8"))
        return {index["whole"], *(part["folder"] for part in index["segments"] if part["folder"])}
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def find_unknown_relations(related: Sequence[Relation]) -> list[Finding]:
    """Return a finding for each pair of releases that may or may not share trips."""
    return [Finding("relation", each.names, _explain_unknown(each)) for each in related if each.kind == "unknown"]


def _explain_unknown(relation: Relation) -> str:
    names = " and ".join(relation.names)
    if relation.how == TOO_MANY:
        return (
            f"{names} jointly have more trips than the file that both were made of, so they share some, and "
            "--disjoint is wrong; give the trips"
        )
    return (
        f"whether {names} share trips is not known, so they cannot be compared; give all trips of both together, or "
        "--disjoint if they share none"
    )
