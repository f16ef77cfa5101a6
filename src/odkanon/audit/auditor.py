"""The audit, from folders to a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from duckdb import DuckDBPyConnection as Connection

from odkanon.audit.absence_bounds import find_absent_pairs
from odkanon.audit.counting.counted_measures import NAMES
from odkanon.audit.counting.records import Records, load_records
from odkanon.audit.counting.release_trips import (
    attribute_columns,
    counting_resolution,
    disclosed_area,
    needed_columns,
    release_area,
)
from odkanon.audit.counting.scan import TripsSource
from odkanon.audit.differences import find_breakdowns, find_total_leaks
from odkanon.audit.equation_systems import make_system
from odkanon.audit.file_checks import INDEX, check_files, check_index
from odkanon.audit.findings import Finding, ReleaseComparison, Report
from odkanon.audit.folder_audit import audit_folder, audit_recipes, releases_in
from odkanon.audit.pairwise_checks import ReleaseComparer, clusters_of
from odkanon.audit.published_counts import compare_numbers
from odkanon.audit.recount import recount
from odkanon.audit.relations import (
    CORRECTION,
    Relation,
    Span,
    are_linked,
    count_atoms,
    find_relations,
    find_unknown_relations,
)
from odkanon.audit.release_checks import check_homogeneity, check_margins, check_persons, check_rule, check_totals
from odkanon.audit.release_reader import PublishedRelease, read_release, reporting_damage
from odkanon.audit.row_nesting import check_overlap, load_attributes
from odkanon.audit.zone_geometry import ZonePlaces, check_outlines
from odkanon.core.parsing import parse_json
from odkanon.core.sql import connect
from odkanon.errors import (
    FileMissingError,
    InputError,
    InvalidValueError,
    OptionConflictError,
    UnknownNameError,
    UnreadableFileError,
)
from odkanon.release_format.names import RECIPE_SUFFIX
from odkanon.zoning.hierarchy import Hierarchy

MAX_NAME = 255  # the length of the longest possible file name
DECIDED = "decided flow by flow when the correction was made"
ROWS, NUMBERS = "all combinations of rows compared", "published numbers compared"
NEEDLESS, NOTHING = "nothing to compare", "not compared"
FOREIGN = (
    "{} was read by the program's own reader ({}), so an error of that reader cannot be found; give CSV, Parquet or "
    ".xlsx for an independent count"
)
LINKED = "each compared with its whole"


def audit_releases(
    folders: Sequence[Path | str],
    *,
    trips: TripsSource | Path | str | None = None,
    hierarchy: Hierarchy | None = None,
    cumulative: bool = False,
    disjoint: bool = False,
    k: int | None = None,
    least: Mapping[str, float] | None = None,
    root: Path | None = None,
) -> Report:
    r"""Audit releases from their files, as an attacker and as an accountant would.

    Parameters
    ----------
    folders : sequence of path
        Releases, folders of linked segments, or bare tables ``origin, destination, trips``; or one folder that has
        releases in it, or recipes: each is then compared with the trips that its recipe names.
    trips : TripsSource or path, optional
        The trips that the releases were made from; with a folder of releases, a folder in which to look for them.
        Every flow is then counted again, and releases are compared by the trips that they share.
    hierarchy : Hierarchy, optional
        The lookup table on which zones were formed, if they are not H3 cells; it defines which zone lies in which.
    cumulative : bool
        Treat releases of unknown relation as a growing series: each contains those with fewer trips.
    disjoint : bool
        Treat such releases as covering different trips.
    k : int, optional
        The least number in every flow, whatever a release promises; in [1, inf). It applies to each measure of the
        release's rule, or to trips if there is no rule.
    least : mapping of str to float, optional
        The same by measure, such as ``{"trips": 10, "persons": 5}``.
    root : Path, optional
        Name releases by their paths from this folder.

    Returns
    -------
    Report
        `Report.clean` is true if there are no findings.

    Examples
    --------
    A bare table promises nothing, so the auditor sets the rule.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from odkanon import audit_releases
    >>> with TemporaryDirectory() as folder:
    ...     table = Path(folder) / "flows.csv"
    ...     _ = table.write_text("origin,destination,trips\nA,B,25\nB,A,7\n")
    ...     report = audit_releases([table], k=10)
    >>> report.clean
    False
    >>> print(report.findings[0].message)
    1 flows are below your rule of 10 trips: B -> A has 7
    """
    if cumulative and disjoint:
        raise OptionConflictError.between(
            "cumulative", "disjoint", "releases cannot contain each other and be disjoint"
        )
    options = {"cumulative": cumulative, "disjoint": disjoint, "k": k, "least": least}
    if all(str(each).endswith(RECIPE_SUFFIX) for each in folders) and trips is None:
        return audit_recipes([Path(each) for each in folders], **options)
    if len(folders) == 1 and releases_in(Path(folders[0])):
        return audit_folder(Path(folders[0]), trips, **options)
    opened = open_releases(folders, trips=trips, hierarchy=hierarchy, k=k, least=least, root=root)
    return report_on(opened, cumulative=cumulative, disjoint=disjoint)


def report_on(
    opened: OpenReleases,
    *,
    cumulative: bool = False,
    disjoint: bool = False,
    spans: Mapping[str, Span] | None = None,
) -> Report:
    """Compare open releases, and return all findings; ``spans`` has the first and last start of trips, by release."""
    if (cumulative or disjoint) and len(opened.releases) == 1:
        option = "cumulative" if cumulative else "disjoint"
        raise OptionConflictError.between(option, "a single release", "it relates releases to each other")
    with reporting_damage(" or ".join(each.name for each in opened.releases)):
        compared, differences = compare_releases(
            opened, opened.releases, cumulative=cumulative, disjoint=disjoint, spans=spans
        )
    findings = sorted([*opened.findings, *differences], key=lambda each: each.severity)
    checks = ["files", "rule", "totals", "zones", "margins", "homogeneity", "persons"]
    checks += ["recount", "dominance"] if opened.source is not None else []
    checks += ["relation", "difference", "absence"] if len(opened.releases) > 1 else []
    names = tuple(each.name for each in opened.releases)
    foreign = None if opened.records is None else opened.records.foreign
    reading = None if foreign is None else FOREIGN.format(opened.source, foreign)
    return Report(names, opened.source, tuple(checks), tuple(findings), tuple(compared), reading)


@dataclass(frozen=True, eq=False)
class OpenReleases:
    """Releases in the database of an audit, each checked on its own."""

    # Has the published rows (``classes``) and the nesting of zones (``nodes``, ``above``); with trips, also the
    # table ``records`` and, for each release, its trips (``scope<number>``) and their rows (``member<number>``).
    connection: Connection
    releases: tuple[PublishedRelease, ...]
    places: ZonePlaces
    records: Records | None
    source: str | None  # the name of the trips
    exact: frozenset[int]  # the numbers of the releases that were made from these trips
    findings: tuple[Finding, ...]  # the findings on each release alone

    def count_atoms(self, releases: Sequence[PublishedRelease]) -> list[tuple[frozenset[int], int]]:
        """Return the sets of releases (and areas) to which some trip belongs exactly, with their numbers of trips."""
        exact = [each for each in releases if each.number in self.exact]
        return count_atoms(self.connection, exact, self.places.areas)


def open_releases(
    folders: Sequence[Path | str],
    *,
    trips: TripsSource | Path | str | None = None,
    hierarchy: Hierarchy | None = None,
    k: int | None = None,
    least: Mapping[str, float] | None = None,
    root: Path | None = None,
) -> OpenReleases:
    """Read releases and trips, and check each release on its own; see `audit_releases`."""
    if isinstance(trips, str | Path):
        trips = TripsSource(trips)
    connection = connect()
    thresholds = _check_thresholds(k, least)
    listed, findings = _expand_segments([Path(folder) for folder in folders])
    names = _short_names(listed) if root is None else [path.relative_to(root).as_posix() for path in listed]
    releases = [
        _apply_k(read_release(connection, at, path, name, thresholds), k)
        for at, (path, name) in enumerate(zip(listed, names, strict=True))
    ]
    trips = _counted_alike(trips, releases)
    hierarchy = trips.tree if trips is not None else hierarchy
    with reporting_damage(" or ".join(names)):
        places = ZonePlaces(connection, releases, hierarchy)
        load_attributes(connection, releases)
    for release in releases:
        with reporting_damage(release.name):
            findings += _check_release(connection, release, with_trips=trips is not None)
            finest = release.manifest.get("resolution")
            if trips is None and len(releases) > 1 and isinstance(finest, int):
                places.add_area(release.number, disclosed_area(release), finest, exact=False)
    if trips is None:
        return OpenReleases(connection, tuple(releases), places, None, None, frozenset(), tuple(findings))
    exact: set[int] = set()
    with reporting_damage(" or ".join(names)):
        wanted = {*needed_columns(releases, trips.filters), *attribute_columns(releases)}
        finest = counting_resolution(releases, trips)
    records = load_records(connection, trips, sorted(wanted), finest)
    places.add_nodes([places.name(leaf) for leaf in records.leaves])
    for release in releases:
        with reporting_damage(release.name):
            counted, same = recount(connection, release, records, trips)
            if same and len(releases) > 1:
                places.add_area(release.number, release_area(release, trips), finest)
        findings += counted
        exact |= {release.number} if same else set()
    return OpenReleases(connection, tuple(releases), places, records, trips.name, frozenset(exact), tuple(findings))


def _counted_alike(trips: TripsSource | None, releases: Sequence[PublishedRelease]) -> TripsSource | None:
    """Return the trips as the releases count them; raise if these count different things."""
    subjects = {release.subject for release in releases}
    if len(subjects) > 1:
        raise InputError("tables by one place and flows between two cannot be compared; audit each on its own")
    subject = next(iter(subjects))
    if trips is None or subject.place is None or trips.place is not None:
        return trips
    return replace(trips, place=subject.place, unit=subject.unit)


def _check_thresholds(k: int | None, least: Mapping[str, float] | None) -> dict[str, float]:
    """Return the auditor's thresholds by measure; k alone is one on trips."""
    thresholds = {**({} if k is None else {"trips": float(k)}), **(least or {})}
    for name, value in thresholds.items():
        if name not in NAMES:
            raise UnknownNameError.among("measure", name, NAMES)
        if not value > 0 or value == float("inf"):
            raise InvalidValueError.expected(f"the threshold on {name}", "a positive number", value)
    return thresholds


def _apply_k(release: PublishedRelease, k: int | None) -> PublishedRelease:
    """Turn the auditor's k into thresholds on the measures of a release."""
    if k is None or not release.disclosed_thresholds:
        return release
    unit = dict.fromkeys(release.disclosed_thresholds, 1.0) | {"weight": release.mean_weight}
    by_k = {name: k * unit[name] for name in release.disclosed_thresholds if unit[name]} or {"trips": float(k)}
    given = {name: value for name, value in release.auditor_thresholds.items() if name != "trips" or value != k}
    return replace(release, auditor_thresholds={**by_k, **given})


def compare_releases(
    opened: OpenReleases,
    releases: Sequence[PublishedRelease],
    *,
    cumulative: bool = False,
    disjoint: bool = False,
    spans: Mapping[str, Span] | None = None,
) -> tuple[list[ReleaseComparison], list[Finding]]:
    """Compare each two of some releases as well as possible: by trips, by published counts, or not at all."""
    connection, places, exact = opened.connection, opened.places, opened.exact
    atoms = opened.count_atoms(releases)
    related = find_relations(releases, atoms, exact, cumulative=cumulative, disjoint=disjoint, spans=spans)
    methods = [_comparison_method(each, exact, places) for each in related]
    comparisons = [
        ReleaseComparison(each.names, each.kind, each.how, method)
        for each, method in zip(related, methods, strict=True)
    ]
    by_trips, by_numbers = (
        [each for each, own in zip(related, methods, strict=True) if own == method] for method in (ROWS, NUMBERS)
    )
    findings = find_unknown_relations(related)
    for each, method in zip(related, methods, strict=True):
        if method == DECIDED:
            text = (
                f"{' and '.join(each.names)}: one corrects the other; that all changes meet the rule was decided from "
                "both files of trips when it was made, and does not follow from the tables"
            )
            findings.append(Finding("relation", each.names, text, "note"))
        elif method == NOTHING and each.kind != "unknown":
            text = f"{each.one.name} and {each.other.name} share trips, but on such zones they cannot be compared"
            text += "" if places.comparable(each.one, each.other) else "; give the lookup table of their zones"
            findings.append(Finding("relation", each.names, text))
    known = [members for members, _ in atoms]
    if by_trips:
        comparer = ReleaseComparer(connection, lambda sides: make_system(connection, places, sides, known))
        findings += comparer.compare(by_trips)
        for cluster, _ in clusters_of(by_trips):
            findings += find_absent_pairs(connection, places, [each for each in cluster if not each.has_boxes], known)
    if by_numbers:
        findings += compare_numbers(connection, places, by_numbers, related)
    whole = find_breakdowns([each for each in related if each.kind in ("part", "disjoint")])
    return comparisons, findings + find_total_leaks(connection, whole)


def _comparison_method(relation: Relation, exact: frozenset[int], places: ZonePlaces) -> str:
    both = (relation.one, relation.other)
    if relation.kind == "disjoint":
        return NEEDLESS
    if relation.how == CORRECTION:
        return DECIDED
    if relation.kind == "unknown" or any(each.nested for each in both):
        return NOTHING
    if {each.number for each in both} <= exact and not any(each.thinned for each in both):
        return ROWS
    if any(each.has_boxes for each in both):
        return NOTHING
    if relation.how == "released linked":
        return LINKED
    return NUMBERS if are_linked(*both) or places.comparable(*both) else NOTHING


def _check_release(connection: Connection, release: PublishedRelease, *, with_trips: bool) -> Iterator[Finding]:
    of_rule = [*check_rule(connection, release, with_trips=with_trips)]
    if not release.bare:
        yield from check_files(connection, release)
    yield from of_rule
    if not release.bare:
        yield from check_totals(connection, release)
        yield from check_margins(connection, release)
        yield from check_outlines(release)
    yield from check_overlap(connection, release)
    yield from check_homogeneity(connection, release)
    if not with_trips:
        yield from check_persons(connection, release)


def _expand_segments(folders: list[Path]) -> tuple[list[Path], list[Finding]]:
    """Replace folders of linked segments by the releases in them."""
    listed: list[Path] = []
    findings = []
    for folder in folders:
        if not folder.exists():
            raise FileMissingError.at(folder, what="folder", advice="give the folders of releases")
        if not (folder / INDEX).is_file():
            listed.append(folder)
            continue
        try:
            index = parse_json((folder / INDEX).read_text(encoding="utf-8"))
            inside = [index["whole"], *(part["folder"] for part in index["segments"] if part["folder"])]
            invalid = [name for name in inside if Path(name).name != name or len(name) > MAX_NAME]
            if invalid:
                raise ValueError(f"{invalid[0]!r:.100} is no name of a folder in it")
        except (ValueError, KeyError, TypeError) as error:
            raise UnreadableFileError.because(
                folder / INDEX, error, advice="the file is truncated or damaged"
            ) from None
        listed += [folder / name for name in inside]
        extra = sorted({path.name for path in folder.iterdir()} - {*inside, INDEX})
        findings += [
            Finding("files", (str(folder),), f"{name} is not listed in index.json: it was added") for name in extra
        ]
        findings += check_index(folder)
    return listed, findings


def _short_names(paths: Sequence[Path]) -> list[str]:
    """Return the shortest endings of some paths that are all different."""
    resolved = [path.resolve().parts for path in paths]
    for length in range(1, max(map(len, resolved)) + 1):
        names = ["/".join(parts[-length:]) for parts in resolved]
        if len(set(names)) == len(names):
            return names
    raise InputError("a release is given twice; name each folder once")
