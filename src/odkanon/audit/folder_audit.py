"""The audit of a folder of releases or of recipes, which name the trips of each release and how they were read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odkanon.audit.findings import Finding, Report
from odkanon.audit.relations import Span
from odkanon.errors import InputError
from odkanon.read.input_spec import InputSpec, recipe_folder, spec_from_recipe
from odkanon.release_format.names import INDEX, MANIFEST, sha256
from odkanon.release_format.recipe import described_folder, read_recipe

if TYPE_CHECKING:
    from odkanon.audit.auditor import OpenReleases

BETWEEN_RELEASES = ("relation", "difference", "absence")  # the checks that compare releases
_OWN = ("where", "since", "until")  # reading options in which releases of the same trips may differ


@dataclass
class SharedTrips:
    """Releases that were made from the same trips."""

    spec: InputSpec | None  # the trips, and how they are read; None if they were not found
    wanted: str | None  # what to look for, if they were not found
    folders: list[Path] = field(default_factory=list)


def releases_in(folder: Path) -> list[Path]:
    """Return the releases in a folder that is not itself one; linked releases count as one."""
    if not folder.is_dir() or any((folder / name).is_file() for name in (MANIFEST, INDEX)):
        return []
    inside = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    return [path for path in inside if any((path / name).is_file() for name in (MANIFEST, INDEX))]


def group_by_trips(folders: Iterable[Path], places: Sequence[Path] = ()) -> list[SharedTrips]:
    """Group releases by the trips that they were made from, which are identified by their digest.

    A file is expected where the recipe has it; if it was moved, in ``places``, or beside the release.
    """
    groups: dict[str, SharedTrips] = {}
    digests: dict[Path, str] = {}
    for folder in folders:
        recipe = read_recipe(folder) or {}
        read = {name: value for name, value in recipe.get("input", {}).items() if name not in _OWN}
        key = json.dumps(read, sort_keys=True) if read else str(folder)
        if key not in groups:
            groups[key] = _find_trips(recipe, folder.absolute().parent, [*places, folder.absolute().parent], digests)
        groups[key].folders.append(folder)
    return list(groups.values())


def _find_trips(recipe: dict[str, Any], beside: Path, places: Sequence[Path], digests: dict[Path, str]) -> SharedTrips:
    digest, source = recipe.get("input", {}).get("sha256"), recipe.get("input", {}).get("source")
    if digest is None or source is None:
        return SharedTrips(None, None)
    named = [source] if isinstance(source, str) else [str(each) for each in source]
    several, folder = len(named) > 1 or has_magic(named[0]), recipe_folder(recipe, beside)
    for start in (folder, *places):
        paths = [start / (name if start == folder else Path(name).name) for name in named]
        if all(map(_is_there, paths)) and (several or _digest(paths[0], digests) == digest):
            return SharedTrips(_spec(recipe, beside, paths), None)
    for path in (path for place in places for path in sorted(place.iterdir()) if path.is_file()):
        if _digest(path, digests) == digest:  # renamed
            return SharedTrips(_spec(recipe, beside, [path]), None)
    return SharedTrips(None, ", ".join(named))


def _is_there(path: Path) -> bool:
    return path.is_file() or (has_magic(str(path)) and bool(glob(str(path), recursive=True)))


def _digest(path: Path, digests: dict[Path, str]) -> str:
    if path not in digests:
        digests[path] = sha256(path)
    return digests[path]


def _spec(recipe: dict[str, Any], beside: Path, paths: Sequence[Path]) -> InputSpec | None:
    try:
        spec = spec_from_recipe(recipe, beside, paths[0] if len(paths) == 1 else list(paths))
    except InputError:  # an area or a lookup table that was never a file
        return None
    return replace(spec, where=None, since=None, until=None)


def audit_folder(folder: Path, trips: InputSpec | Path | str | None, **options: Any) -> Report:
    """Audit all releases in a folder, each with its own trips, and all of them against each other.

    * ``trips``: another folder with trips, for files that are no longer where the recipes have them.
    * ``options``: ``cumulative``, ``disjoint``, ``k`` and ``least``; see `odkanon.audit_releases`.
    """
    given = trips.source if isinstance(trips, InputSpec) else trips
    if given is not None and not (isinstance(given, str | Path) and Path(given).is_dir()):
        raise InputError(
            f"the recipes in {folder} name the trips of each release; give a folder with trips, or none, instead of "
            f"{given}"
        )
    return _audit_groups(releases_in(folder), [] if given is None else [Path(given)], folder, options)


def audit_recipes(recipes: Sequence[Path], **options: Any) -> Report:
    """Audit the releases of some recipes, each with the trips that its recipe names; see `audit_folder`."""
    return _audit_groups([described_folder(path) for path in recipes], (), None, options)


def _audit_groups(
    releases: Sequence[Path], places: Sequence[Path], root: Path | None, options: dict[str, Any]
) -> Report:
    """Audit releases by the trips that their recipes name; in messages, each is named by its path from ``root``."""
    from odkanon.audit.auditor import open_releases, report_on

    related = {name: options.pop(name, False) for name in ("cumulative", "disjoint")}
    groups = group_by_trips(releases, places)
    parts: list[Report] = []
    findings: list[Finding] = []
    spans: dict[str, Span] = {}
    for group in groups:
        several = related if len(group.folders) > 1 else {}  # neither option applies to a single release
        opened = open_releases(group.folders, trips=group.spec, root=root, **options)
        parts.append(report_on(opened, **several))
        spans |= _spans(opened)
        if group.spec is None:
            text = "the trips behind it were not found, so its rows were not counted again"
            text += f"; looked for {group.wanted}" if group.wanted else ""
            findings += [Finding("recount", (name,), text, "note") for name in parts[-1].releases]
    findings += [each for part in parts for each in part.findings]
    compared = [each for part in parts for each in part.compared]
    if len(groups) > 1:
        joint = report_on(
            open_releases([each for group in groups for each in group.folders], root=root), **related, spans=spans
        )
        home = {name: at for at, part in enumerate(parts) for name in part.releases}
        compared += [each for each in joint.compared if len({home[name] for name in each.releases}) > 1]
        between = [each for each in joint.findings if each.check in BETWEEN_RELEASES]
        findings += [each for each in between if len({home[name] for name in each.releases}) > 1]
    names = tuple(name for part in parts for name in part.releases)
    checks = [*(check for part in parts for check in part.checks), *(BETWEEN_RELEASES if len(names) > 1 else ())]
    return Report(
        names,
        ", ".join(str(part.trips) for part in parts if part.trips is not None) or None,
        tuple(dict.fromkeys(checks)),
        tuple(sorted(findings, key=lambda each: each.severity)),
        tuple(compared),
        next((part.reading for part in parts if part.reading is not None), None),
    )


def _spans(opened: OpenReleases) -> dict[str, Span]:
    """Return the first and the last start of the trips of each release, where all of them have one."""
    found = {}
    for release in (each for each in opened.releases if each.number in opened.exact):
        first, last, complete = opened.connection.execute(
            f"SELECT min(start_time), max(start_time), count(start_time) = count(*) FROM scope{release.number}"
        ).fetchall()[0]
        if complete and first is not None:
            found[release.name] = first, last
    return found
