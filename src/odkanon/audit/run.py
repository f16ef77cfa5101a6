"""The audit, from folders to a report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import duckdb

from odkanon.audit.checks import check_homogeneity, check_margins, check_persons, check_rule, check_totals
from odkanon.audit.columns import find_column_leaks
from odkanon.audit.differences import find_differences
from odkanon.audit.folder import Published, check_files, read_folder
from odkanon.audit.places import Places, check_outlines, check_overlap
from odkanon.audit.recount import recount
from odkanon.audit.report import Finding, Report
from odkanon.audit.scope import attributes_of, families, filter_of
from odkanon.audit.trips import Pass, TripsSource, load_records
from odkanon.errors import InputError
from odkanon.zoning.hierarchy import Hierarchy

INDEX = "index.json"


def audit(
    folders: Sequence[Path | str],
    *,
    trips: TripsSource | None = None,
    hierarchy: Hierarchy | None = None,
    cumulative: bool = False,
) -> Report:
    """Look at releases as an attacker and as an accountant would, from their files.

    Parameters
    ----------
    folders : sequence of path
        Releases, or folders of segments released together.
    trips : TripsSource, optional
        The trips that the releases were made of; every flow is then counted again.
    hierarchy : Hierarchy, optional
        The lookup table on which zones were formed, where they are no H3 cells; tells which zone lies in which.
    cumulative : bool
        Take every release for a part of each one with more trips, as in a series that grows.

    Returns
    -------
    Report
        `Report.clean` tells whether there are findings.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from odkanon import Rule, anonymize, build_od, make_survey, read_trips
    >>> release = anonymize(build_od(read_trips(make_survey()), resolution=7), Rule(trips=10))
    >>> with TemporaryDirectory() as folder:
    ...     audit([release.save(Path(folder) / "release")]).clean
    True
    """
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
    listed, findings = _expand([Path(folder) for folder in folders])
    names = _short_names(listed)
    releases = [
        read_folder(connection, at, path, name) for at, (path, name) in enumerate(zip(listed, names, strict=True))
    ]
    hierarchy = trips.tree if trips is not None else hierarchy
    places = Places(connection, releases, hierarchy)
    for release in releases:
        findings += _look_at(connection, release, with_trips=trips is not None)
    exact: set[int] = set()
    if trips is not None:
        readings = _read(connection, releases, trips, places)
        for release, reading in zip(releases, readings, strict=True):
            findings += recount(connection, release, reading, trips)
        exact = {release.number for release, reading in zip(releases, readings, strict=True) if reading is readings[0]}
    related = families(releases, cumulative=cumulative)
    findings += find_differences(connection, related, exact=exact)
    findings += find_column_leaks(connection, related)
    findings.sort(key=lambda each: each.severity)
    checks = ["files", "rule", "totals", "zones", "margins", "homogeneity", "persons"]
    checks += ["recount", "dominance"] if trips is not None else []
    checks += ["difference"] if len(releases) > 1 else []
    return Report(tuple(names), None if trips is None else trips.name, tuple(checks), tuple(findings))


def _look_at(connection: duckdb.DuckDBPyConnection, release: Published, *, with_trips: bool) -> list[Finding]:
    try:
        findings = check_files(connection, release)
        findings += check_rule(connection, release)
        findings += check_totals(connection, release)
        findings += check_margins(connection, release)
        findings += check_outlines(release)
        findings += check_overlap(connection, release)
        findings += check_homogeneity(connection, release)
        return findings if with_trips else findings + check_persons(connection, release)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InputError(f"{release.name} lacks something that every release has ({error!r}); it was damaged") from None


def _expand(folders: list[Path]) -> tuple[list[Path], list[Finding]]:
    """Replace folders of segments by the releases in them."""
    listed: list[Path] = []
    findings = []
    for folder in folders:
        if not folder.is_dir():
            raise InputError(f"there is no folder {folder}; give the folders of releases")
        if not (folder / INDEX).is_file():
            listed.append(folder)
            continue
        try:
            index = json.loads((folder / INDEX).read_text(encoding="utf-8"))
            inside = [index["whole"], *(part["folder"] for part in index["segments"] if part["folder"])]
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{folder / INDEX} cannot be read ({error}); the file is truncated or damaged") from None
        listed += [folder / name for name in inside]
        extra = sorted({path.name for path in folder.iterdir() if path.is_dir()} - set(inside))
        findings += [
            Finding("files", (str(folder),), f"{name} is not listed in index.json: it was added") for name in extra
        ]
    return listed, findings


def _short_names(paths: Sequence[Path]) -> list[str]:
    """Return the last parts of paths, as many as it takes to tell them apart."""
    resolved = [path.resolve().parts for path in paths]
    for length in range(1, max(map(len, resolved)) + 1):
        names = ["/".join(parts[-length:]) for parts in resolved]
        if len(set(names)) == len(names):
            return names
    raise InputError("a release is given twice; name each folder once")


def _read(
    connection: duckdb.DuckDBPyConnection, releases: Sequence[Published], trips: TripsSource, places: Places
) -> list[Pass]:
    """Read the trips once for each filter that releases were made with."""
    attributes = attributes_of(releases)
    by_filter: dict[Sequence[str] | str | None, Pass] = {}
    for release in releases:
        where = trips.filters or filter_of(release)
        if where not in by_filter:
            by_filter[where] = load_records(connection, trips, len(by_filter), where, attributes)
            places.add_nodes([places.name(leaf) for leaf in by_filter[where].leaves])
    return [by_filter[trips.filters or filter_of(release)] for release in releases]
