"""Releases as folders: all of it or nothing, the same bytes for the same input."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from odkanon._version import __version__
from odkanon.core.arrays import Codes, group_sum
from odkanon.core.outputs import move_into_place, partial_folder, restore
from odkanon.core.weights import from_units
from odkanon.errors import InputError, RefusedError
from odkanon.model.measures import HEADS
from odkanon.model.release import Release
from odkanon.model.rule import Rule
from odkanon.publish.report import SavedRelease, is_built, page_of
from odkanon.quality.privacy import privacy
from odkanon.quality.utility import utility
from odkanon.read.tables.open import write_csv
from odkanon.zoning.zones import Zones

MANIFEST = "release.json"


def save_release(release: Release, folder: Path, *, force: bool = False) -> Path:
    """Write a release as a folder, all or nothing.

    The files are ``classes.csv``, ``classes.parquet``, ``zones.geojson``, ``release.json`` and, where this
    installation carries the built page, ``report.html``. They are written into a hidden folder beside the
    target, which then takes its place: whoever kills the run finds the earlier release, the new one, or none.

    Parameters
    ----------
    force : bool
        Replace an earlier release. Anything that is not a release is never replaced.
    """
    if release.refusal:
        raise RefusedError(f"nothing can be published: {release.refusal}")
    check_target(folder, force=force)
    with partial_folder(folder) as partial:
        _write_files(release, partial, folder.name)
        move_into_place(partial, folder)
    return folder


def check_target(folder: Path, *, force: bool) -> None:
    """Raise if a release cannot go to this folder; worth asking before the work begins."""
    restore(folder)
    if not folder.exists():
        return
    is_release = folder.is_dir() and ((folder / MANIFEST).is_file() or not any(folder.iterdir()))
    if not is_release:
        raise InputError(f"{folder} exists and is not a release; choose another folder")
    if not force:
        raise InputError(f"{folder} exists already; choose another folder, or replace it with --force")


def _write_files(release: Release, folder: Path, name: str) -> None:
    table, zones, about = classes_table(release), zones_geojson(release), manifest(release)
    pyarrow.parquet.write_table(table, folder / "classes.parquet")
    write_csv(table, folder / "classes.csv")
    write_json(folder / "zones.geojson", zones, indent=None)
    about["files"] = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}
    write_json(folder / MANIFEST, about, indent=2)
    if is_built():
        page = page_of([SavedRelease(name, about, zones["features"], table.to_pydict())])
        (folder / "report.html").write_text(page, encoding="utf-8")


def write_json(path: Path, content: Mapping[str, Any], indent: int | None) -> None:
    """Write JSON as UTF-8, ending in a newline."""
    separators = (",", ":") if indent is None else None
    text = json.dumps(content, indent=indent, separators=separators, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


def classes_table(release: Release) -> pa.Table:
    """Return the published classes as a table: ``origin, destination, trips`` and, where known, ``weight, persons``."""
    classes = release.classes
    columns: dict[str, Any] = {
        "origin": release.origins.ids[classes.origin].tolist(),
        "destination": release.destinations.ids[classes.destination].tolist(),
        "trips": classes.trips,
    }
    if classes.weight is not None:
        columns["weight"] = from_units(classes.weight, classes.scale)
    return pa.table(columns | dict(classes.heads))


def zones_geojson(release: Release) -> dict[str, Any]:
    """Return every zone of both axes as GeoJSON, with what is published of it."""
    features = [
        *_features(release, "origin", release.origins, release.classes.origin),
        *_features(release, "destination", release.destinations, release.classes.destination),
    ]
    return {"type": "FeatureCollection", "features": features}


def _features(release: Release, axis: str, zones: Zones, zone_of_class: Codes) -> list[dict[str, Any]]:
    masses: dict[str, Any] = {"trips": group_sum(zone_of_class, len(zones), release.classes.trips)}
    if release.classes.weight is not None:
        weight = group_sum(zone_of_class, len(zones), release.classes.weight)
        masses["weight"] = from_units(weight, release.classes.scale)
    return [
        {
            "type": "Feature",
            "properties": {
                "axis": axis,
                **zones.describe(zone),
                **{name: values[zone].item() for name, values in masses.items()},
            },
            "geometry": zones.geometry(zone),
        }
        for zone in range(len(zones))
    ]


def manifest(release: Release, *, with_limit: bool = True) -> dict[str, Any]:
    """Return all that is said about a release: input, rule, method, what was published, and how good it is.

    Parameters
    ----------
    with_limit : bool
        Find out how good it could be at best, which takes longer than all the rest.
    """
    whole, classes, suppressed = release.input, release.classes, release.suppressed
    weight = None if classes.weight is None else int(classes.weight.sum())
    measures = [measure for measure in ("trips", "weight") if measure in whole.measures]
    return {
        "version": __version__,
        "statement": statement(release.rule),
        "input": _input(release),
        "rule": _rule(release),
        "method": release.method,
        "parameters": dict(release.parameters),
        "published": {
            "classes": len(classes),
            "origins": len(release.origins),
            "destinations": len(release.destinations),
            **_masses(release, int(classes.trips.sum()), weight),
        },
        "suppressed": {"pairs": suppressed.pairs, **_masses(release, suppressed.trips, suppressed.weight)},
        "utility": {measure: asdict(utility(whole, release, measure=measure)) for measure in measures},
        "limit": limit_account(release) if with_limit else None,
        "privacy": {measure: asdict(report) for measure, report in privacy(release).items()},
        "seconds": round(release.seconds, 6),
    }


def statement(rule: Rule) -> str:
    """Return the promise of a rule in one plain sentence."""
    parts = {
        "trips": lambda value: f"{value:,} trips",
        "weight": lambda value: f"a weight of {float(value):,.10g} (people that the trips stand for)",
    } | {name: lambda value, name=name: f"{value:,} {HEADS[name].title}" for name in HEADS}
    told = " and ".join(parts[measure](value) for measure, value in rule.thresholds.items())
    return f"Every published flow is shared by at least {told}."


def _masses(release: Release, trips: int, weight: int | None) -> dict[str, Any]:
    masses: dict[str, Any] = {"trips": trips}
    if weight is not None:
        masses["weight"] = from_units(weight, release.input.scale)
    masses["share"] = trips / release.input.trips
    return masses


def _input(release: Release) -> dict[str, Any]:
    whole, scale = release.input, release.input.scale
    rejected = whole.source.rejected
    account: dict[str, Any] = {"rows": whole.source.rows, "pairs": whole.pairs}
    account["trips"] = whole.trips + sum(part.trips for part in rejected.values())
    if whole.weight is not None:
        account["weight"] = from_units(whole.weight + sum(part.weight for part in rejected.values()), scale)
    account |= whole.heads
    account["sha256"] = whole.source.sha256
    account["rejected"] = {
        reason: {"rows": part.rows, "trips": part.trips}
        | ({} if whole.weight is None else {"weight": from_units(part.weight, scale)})
        for reason, part in rejected.items()
    }
    return account


def limit_account(release: Release) -> dict[str, float | None] | None:
    """Return what no release of the same input under the same rule can beat."""
    found = release.limit
    return None if found is None else {"g": found.g, "c_avg": found.c_avg}


def _rule(release: Release) -> dict[str, Any]:
    rule = release.rule
    thresholds = {name: float(value) if name == "weight" else int(value) for name, value in rule.thresholds.items()}
    k = rule.k_of("trips", release.input.mean_weight if release.input.weight is not None else None)
    return {"k": int(k) if k.denominator == 1 else float(k), **thresholds}
