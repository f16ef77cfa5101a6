"""A release folder as a Frictionless data package: what is in each file, in words that catalogues and programs read.

The descriptor is made of the promise, the rule, the method, the names of columns and the published zones, and of
nothing else: whatever a manifest may hold besides is not looked at.

References
----------
Data Package, https://datapackage.org
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from odkanon.methods.method_registry import words_for
from odkanon.model.measures import DISTINCT
from odkanon.release_format.names import CSV, MANIFEST, PARQUET, ZONES, sha256
from odkanon.zoning.spherical_geometry import list_polygons

FILES: dict[str, tuple[str, str, str]] = {
    CSV: ("flows", "csv", "text/csv"),
    PARQUET: ("flows-parquet", "parquet", "application/vnd.apache.parquet"),
    ZONES: ("zones", "geojson", "application/geo+json"),
    MANIFEST: ("account", "json", "application/json"),
}
"""What is described: the name of the resource, its format and its media type. The page may be made anew any time."""

TITLES = {
    CSV: "Flows between zones",
    PARQUET: "The same flows as Parquet",
    ZONES: "Zones, with their outlines",
    MANIFEST: "What was asked, published and left out",
}
COLUMNS: dict[str, tuple[str, str]] = {
    "origin": ("string", "Zone where the trips start; an id of zones.geojson with axis origin"),
    "destination": ("string", "Zone where the trips end; an id of zones.geojson with axis destination"),
    "trips": ("integer", "Observed trips; unit: trip"),
    "weight": ("number", "Sum of the weights of these trips; unit: trips of the population that they stand for"),
} | {name: ("integer", f"Number of {measure.title} behind these trips") for name, measure in DISTINCT.items()}

_KIND = ("string", "What kind of trips; any where that was given up")


def describe_package(
    name: str,
    about: Mapping[str, Any],
    *,
    columns: Sequence[str],
    zones: Iterable[Mapping[str, Any]],
    files: Mapping[str, tuple[int, str]],
    licence: str | None = None,
) -> dict[str, Any]:
    """Describe a release folder as a data package.

    Parameters
    ----------
    name : str
        Of the release, such as that of its folder.
    about : mapping
        The public manifest. Only ``statement``, ``rule`` and ``method`` are looked at.
    columns : sequence of str
        Of ``classes.csv``, in order.
    zones : iterable of mapping
        The features of ``zones.geojson``; their outlines give the extent.
    files : mapping of str to (int, str)
        For each file that is described, its size in bytes and its SHA-256; those of `FILES` only.
    licence : str, optional
        Under which the data is published, by its SPDX name.

    Returns
    -------
    dict
        Ready for ``datapackage.json``. The thresholds of the rule are constraints of the columns, so that whoever
        validates the package checks the promise on the published numbers, too.

    Examples
    --------
    >>> about = {"statement": "Every published flow is shared by at least 10 trips.", "rule": {"trips": 10}}
    >>> made = describe_package(
    ...     "Paris 2024",
    ...     about | {"method": "oigh"},
    ...     columns=["origin", "destination", "trips"],
    ...     zones=[],
    ...     files={"classes.csv": (2048, "00ff")},
    ... )
    >>> made["name"], made["resources"][0]["schema"]["fields"][2]["constraints"]["minimum"]
    ('paris-2024', 10)
    """
    method, rule = str(about["method"]), about["rule"]
    package: dict[str, Any] = {
        "profile": "data-package",
        "name": _slug(name),
        "title": f"Origin-destination matrix: {name}",
        "description": str(about["statement"]),
        "keywords": ["origin-destination", "mobility", "k-anonymity"],
        "method": {"name": method, **words_for(method)},
        "promise": {measure: rule[measure] for measure in COLUMNS if measure in rule},
        "resources": [_resource(file, *files[file], columns=columns, rule=rule) for file in FILES if file in files],
    }
    box = _extent(zones)
    return package | ({} if box is None else {"spatial": {"bbox": box}}) | _licences(licence)


def package_of(
    folder: Path, name: str, about: Mapping[str, Any], columns: Sequence[str], zones: Iterable[Mapping[str, Any]]
) -> dict[str, Any]:
    """Describe the files of a release that were written into a folder; see `describe_package`."""
    files = {file: ((folder / file).stat().st_size, sha256(folder / file)) for file in FILES}
    return describe_package(name, about, columns=columns, zones=zones, files=files)


def _licences(licence: str | None) -> dict[str, Any]:
    return {} if licence is None else {"licenses": [{"name": licence}]}


def _slug(name: str) -> str:
    """Return a name as data packages take it: small letters, digits, dots and dashes."""
    return re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-") or "release"


def _resource(file: str, size: int, digest: str, *, columns: Sequence[str], rule: Mapping[str, Any]) -> dict[str, Any]:
    name, kind, media = FILES[file]
    resource: dict[str, Any] = {
        "name": name,
        "title": TITLES[file],
        "path": file,
        "format": kind,
        "mediatype": media,
        "bytes": size,
        "hash": f"sha256:{digest}",
    }
    if kind == "parquet":
        # As a table it would be read in pieces, and its size and digest could not be checked.
        return resource | {"type": "file"}
    if kind != "csv":
        return resource
    fields = [_field(column, rule) for column in columns]
    key = [column for column in columns if COLUMNS.get(column, _KIND)[0] == "string"]
    schema = {"fields": fields, "primaryKey": key, "missingValues": [""]}
    return resource | {"profile": "tabular-data-resource", "encoding": "utf-8", "schema": schema}


def _field(column: str, rule: Mapping[str, Any]) -> dict[str, Any]:
    kind, meaning = COLUMNS.get(column, _KIND)
    constraints: dict[str, Any] = {"required": True}
    # A threshold on weight has gone through decimals, and a hair below it is not below.
    if kind == "integer" and column in rule:
        constraints["minimum"] = rule[column]
    return {"name": column, "type": kind, "description": meaning, "constraints": constraints}


def _extent(zones: Iterable[Mapping[str, Any]]) -> list[float] | None:
    """Return west, south, east and north of all outlines; None where there are none."""
    # Holes lie inside.
    points = [point for zone in zones for rings in list_polygons(zone.get("geometry")) for point in rings[0]]
    if not points:
        return None
    lons, lats = [point[0] for point in points], [point[1] for point in points]
    return [min(lons), min(lats), max(lons), max(lats)]
