"""The audit, from folders to a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb

from odkanon.audit.counting.records import Records, load_records
from odkanon.audit.counting.scan import TripsSource
from odkanon.audit.cube_rows import attribute_columns_of, load_attributes
from odkanon.audit.differences import families
from odkanon.audit.equation_systems import make_system
from odkanon.audit.file_checks import check_files, check_index
from odkanon.audit.findings import Comparison, Finding, Report
from odkanon.audit.own_counts import NAMES
from odkanon.audit.pairwise_checks import Comparing
from odkanon.audit.published_counts import compare_numbers
from odkanon.audit.recount import recount
from odkanon.audit.relations import Relation, comparison, relations, scopes, together, unknown
from odkanon.audit.release_checks import check_homogeneity, check_margins, check_persons, check_rule, check_totals
from odkanon.audit.release_reader import Published, as_damage, read_release
from odkanon.audit.segment_totals import find_column_leaks
from odkanon.audit.study_area import area_of, columns_needed, disclosed_area, finest_of
from odkanon.audit.zone_geometry import Places, check_outlines, check_overlap
from odkanon.core.parsing import parse_json
from odkanon.errors import InputError
from odkanon.read.tables.table import connect
from odkanon.zoning.hierarchy import Hierarchy

INDEX = "index.json"
MOST_LETTERS = 255
"""How many letters the name of a folder can have."""
ROWS, NUMBERS = "all combinations of rows compared", "published numbers compared"
NEEDLESS, NOTHING = "nothing to compare", "not compared"
TOGETHER = "each compared with its whole"


def audit_releases(
    folders: Sequence[Path | str],
    *,
    trips: TripsSource | Path | str | None = None,
    hierarchy: Hierarchy | None = None,
    cumulative: bool = False,
    disjoint: bool = False,
    k: int | None = None,
    least: Mapping[str, float] | None = None,
) -> Report:
    r"""Look at releases as an attacker and as an accountant would, from their files.

    Parameters
    ----------
    folders : sequence of path
        Releases, folders of segments released together, or bare tables ``origin, destination, trips``.
    trips : TripsSource or path, optional
        The trips that the releases were made of; every flow is then counted again, and releases are compared by the
        very trips that they are about.
    hierarchy : Hierarchy, optional
        The lookup table on which zones were formed, where they are no H3 cells; tells which zone lies in which.
    cumulative : bool
        Take releases that do not say how they are related for a series that grows: each contains those with fewer
        trips.
    disjoint : bool
        Take such releases to be about different trips.
    k : int, optional
        What every flow should be shared by, whatever a release promises; in [1, inf). It counts for each measure of
        the release's rule, for trips without one.
    least : mapping of str to float, optional
        The same by measure, such as ``{"trips": 10, "persons": 5}``.

    Returns
    -------
    Report
        `Report.clean` tells whether there are findings.

    Examples
    --------
    A bare table makes no promise; the auditor says what its flows should meet.

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
        raise InputError("releases cannot both contain each other and share no trips; say one of the two")
    opened = open_releases(folders, trips=trips, hierarchy=hierarchy, k=k, least=least)
    if (cumulative or disjoint) and len(opened.releases) == 1:
        raise InputError("how releases lie to each other can be said of several only; leave it out, or give the others")
    with as_damage(" or ".join(each.name for each in opened.releases)):
        compared, differences = compare_opened(opened, opened.releases, cumulative=cumulative, disjoint=disjoint)
    findings = sorted([*opened.findings, *differences], key=lambda each: each.severity)
    checks = ["files", "rule", "totals", "zones", "margins", "homogeneity", "persons"]
    checks += ["recount", "dominance"] if trips is not None else []
    checks += ["relation", "difference"] if len(opened.releases) > 1 else []
    names = tuple(each.name for each in opened.releases)
    return Report(names, opened.source, tuple(checks), tuple(findings), tuple(compared))


@dataclass(frozen=True, eq=False)
class Opened:
    """Releases in the database of an audit, each looked at by itself.

    Attributes
    ----------
    connection : DuckDBPyConnection
        Has the published rows (``classes``), where zones lie (``nodes``, ``above``), and with trips the table
        ``records`` and for each release ``scope<number>`` and ``member<number>``: its trips, and the row of each.
    releases : tuple of Published
        What was read.
    places : Places
        Where their zones lie.
    records : Records or None
        The trips.
    source : str or None
        What to call the trips.
    exact : set of int
        The releases that were made of these trips, by number.
    findings : tuple of Finding
        What each release gives away by itself.
    """

    connection: duckdb.DuckDBPyConnection
    releases: tuple[Published, ...]
    places: Places
    records: Records | None
    source: str | None
    exact: frozenset[int]
    findings: tuple[Finding, ...]


def open_releases(
    folders: Sequence[Path | str],
    *,
    trips: TripsSource | Path | str | None = None,
    hierarchy: Hierarchy | None = None,
    k: int | None = None,
    least: Mapping[str, float] | None = None,
) -> Opened:
    """Read releases and trips, and look at each release by itself; see `audit_releases`."""
    if isinstance(trips, str | Path):
        trips = TripsSource(trips)
    connection = connect()
    asked = _own_rule(k, least)
    listed, findings = _expand([Path(folder) for folder in folders])
    names = _short_names(listed)
    releases = [
        _demand(read_release(connection, at, path, name, asked), k)
        for at, (path, name) in enumerate(zip(listed, names, strict=True))
    ]
    hierarchy = trips.tree if trips is not None else hierarchy
    with as_damage(" or ".join(names)):
        places = Places(connection, releases, hierarchy)
        load_attributes(connection, releases)
    for release in releases:
        with as_damage(release.name):
            findings += _look_at(connection, release, with_trips=trips is not None)
            finest = release.manifest.get("resolution")
            if trips is None and len(releases) > 1 and isinstance(finest, int):
                places.add_area(release.number, disclosed_area(release), finest, exact=False)
    exact: set[int] = set()
    records = None
    if trips is not None:
        with as_damage(" or ".join(names)):
            wanted = {*columns_needed(releases, trips.filters), *attribute_columns_of(releases)}
            finest = finest_of(releases, trips)
        records = load_records(connection, trips, sorted(wanted), finest)
        places.add_nodes([places.name(leaf) for leaf in records.leaves])
        for release in releases:
            with as_damage(release.name):
                counted, same = recount(connection, release, records, trips)
                if same and len(releases) > 1:
                    places.add_area(release.number, area_of(release, trips), finest)
            findings += counted
            exact |= {release.number} if same else set()
    source = None if trips is None else trips.name
    return Opened(connection, tuple(releases), places, records, source, frozenset(exact), tuple(findings))


def _own_rule(k: int | None, least: Mapping[str, float] | None) -> dict[str, float]:
    """Return the thresholds that the auditor asks for; k is one on trips where a table does not say what it counts."""
    demanded = {**({} if k is None else {"trips": float(k)}), **(least or {})}
    for name, value in demanded.items():
        if name not in NAMES:
            raise InputError(f"{name!r} is nothing that can be counted; choose among {', '.join(NAMES)}")
        if not value > 0 or value == float("inf"):
            raise InputError(f"the least {name} of a flow must be a positive number, not {value}")
    return demanded


def _demand(release: Published, k: int | None) -> Published:
    """Turn the auditor's k into thresholds on what the release counts."""
    if k is None or not release.disclosed_thresholds:
        return release
    mean = release.mean_weight
    by_k = {
        name: k * mean if name == "weight" else float(k)
        for name in release.disclosed_thresholds
        if mean or name != "weight"
    }
    by_k = by_k or {"trips": float(k)}
    given = {name: value for name, value in release.demanded.items() if name != "trips" or value != k}
    return replace(release, demanded={**by_k, **given})


def compare_opened(
    opened: Opened, releases: Sequence[Published], *, cumulative: bool = False, disjoint: bool = False
) -> tuple[list[Comparison], list[Finding]]:
    """Compare each two of some releases as well as can be: by trips, by published numbers, or not at all."""
    connection, places, exact = opened.connection, opened.places, opened.exact
    atoms = scopes(connection, [each for each in releases if each.number in exact], places.areas)
    related = relations(releases, atoms, exact, cumulative=cumulative, disjoint=disjoint)
    by_trips, by_numbers, comparisons, findings = [], [], [], unknown(related)
    for each in related:
        done = _how(each, exact, places)
        comparisons.append(comparison(each, done))
        if done == ROWS:
            by_trips.append(each)
        elif done == NUMBERS:
            by_numbers.append(each)
        elif done == NOTHING and each.kind != "unknown":
            text = f"{each.one.name} and {each.other.name} share trips, but on such zones they cannot be compared"
            text += "" if places.comparable(each.one, each.other) else "; give the lookup table of their zones"
            findings.append(Finding("relation", each.names, text))
    known = [members for members, _ in atoms]
    if by_trips:
        findings += Comparing(connection, lambda sides: make_system(connection, places, sides, known)).compare(by_trips)
    if by_numbers:
        findings += compare_numbers(connection, places, by_numbers, related)
    whole = families([each for each in related if each.kind in ("part", "disjoint")])
    return comparisons, findings + find_column_leaks(connection, whole)


def _how(relation: Relation, exact: frozenset[int], places: Places) -> str:
    """Return how two releases can be compared."""
    both = (relation.one, relation.other)
    if relation.kind == "disjoint":
        return NEEDLESS
    if relation.kind == "unknown" or any(each.nested for each in both):
        return NOTHING
    if {each.number for each in both} <= exact and not any(each.thinned for each in both):
        return ROWS
    if any(each.has_boxes for each in both):
        return NOTHING
    if relation.how == "released linked":
        return TOGETHER
    return NUMBERS if together(*both) or places.comparable(*both) else NOTHING


def _look_at(connection: duckdb.DuckDBPyConnection, release: Published, *, with_trips: bool) -> list[Finding]:
    findings = check_rule(connection, release, with_trips=with_trips)
    if not release.bare:
        findings = check_files(connection, release) + findings
        findings += check_totals(connection, release)
        findings += check_margins(connection, release)
        findings += check_outlines(release)
    findings += check_overlap(connection, release)
    findings += check_homogeneity(connection, release)
    return findings if with_trips else findings + check_persons(connection, release)


def _expand(folders: list[Path]) -> tuple[list[Path], list[Finding]]:
    """Replace folders of segments by the releases in them."""
    listed: list[Path] = []
    findings = []
    for folder in folders:
        if folder.is_file():
            listed.append(folder)
            continue
        if not folder.is_dir():
            raise InputError(f"there is no folder {folder}; give the folders of releases")
        if not (folder / INDEX).is_file():
            listed.append(folder)
            continue
        try:
            index = parse_json((folder / INDEX).read_text(encoding="utf-8"))
            inside = [index["whole"], *(part["folder"] for part in index["segments"] if part["folder"])]
            strange = [name for name in inside if Path(name).name != name or len(name) > MOST_LETTERS]
            if strange:
                raise ValueError(f"{strange[0]!r:.100} is no name of a folder in it")
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{folder / INDEX} cannot be read ({error}); the file is truncated or damaged") from None
        listed += [folder / name for name in inside]
        extra = sorted({path.name for path in folder.iterdir()} - {*inside, INDEX})
        findings += [
            Finding("files", (str(folder),), f"{name} is not listed in index.json: it was added") for name in extra
        ]
        findings += check_index(folder)
    return listed, findings


def _short_names(paths: Sequence[Path]) -> list[str]:
    """Return the last parts of paths, as many as it takes to tell them apart."""
    resolved = [path.resolve().parts for path in paths]
    for length in range(1, max(map(len, resolved)) + 1):
        names = ["/".join(parts[-length:]) for parts in resolved]
        if len(set(names)) == len(names):
            return names
    raise InputError("a release is given twice; name each folder once")
