"""A release folder as a Frictionless data package, which data catalogues read.

The descriptor is derived from the statement, the rule, the method, the names of columns and the published zones only;
anything else in a manifest is ignored.

References
----------
Data Package, https://datapackage.org
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from odkanon.core.parsing import parse_json
from odkanon.model.axes import Subject
from odkanon.model.measures import AT_CAP, DISTINCT, STANDARD_ERROR
from odkanon.release_format.names import (
    CSV,
    MANIFEST,
    MATRIX,
    MATRIX_PARQUET,
    MATRIX_ZONES,
    PACKAGE,
    PARQUET,
    ZONES,
    sha256,
)
from odkanon.zoning.spherical_geometry import list_polygons

RESOURCES: dict[str, tuple[str, str, str, str]] = {
    CSV: ("flows", "csv", "text/csv", "Flows between zones"),
    PARQUET: ("flows-parquet", "parquet", "application/vnd.apache.parquet", "The same flows as Parquet"),
    ZONES: ("zones", "geojson", "application/geo+json", "Zones, with their outlines"),
    MATRIX: ("matrix", "csv", "text/csv", "Estimated flows between places, with bounds"),
    MATRIX_PARQUET: ("matrix-parquet", "parquet", "application/vnd.apache.parquet", "The same estimates as Parquet"),
    MATRIX_ZONES: ("matrix-zones", "geojson", "application/geo+json", "The places of the matrix"),
    MANIFEST: ("account", "json", "application/json", "What was asked, published and left out"),
}
"""Name, format, media type and title of each described file. The page is left out: it can be rebuilt at any time."""

COLUMNS: dict[str, tuple[str, str]] = {
    "origin": ("string", "Zone where the trips start; an id of zones.geojson with axis origin"),
    "destination": ("string", "Zone where the trips end; an id of zones.geojson with axis destination"),
    "trips": ("integer", "Trips of the input; unit: trip"),
    "weight": ("number", "Sum of the weights of these trips; unit: trips of the population that they stand for"),
} | {name: ("integer", f"Number of {measure.title} behind these trips") for name, measure in DISTINCT.items()}

AT_CAP_MEANING = (
    "whether the row lists as many trips as it may without showing that some group is below the rule: at least so many "
    "trips are then in it and in no finer row, otherwise exactly so many"
)
HIDDEN_WEIGHT = (
    "of a row at its cap, and of the next row above one, the mean weight of a trip in the other rows times its trips"
)
"""The published weight where the true one would disclose how many trips are listed elsewhere."""
_NESTED_COLUMNS: dict[str, tuple[str, str]] = {
    "trips": (
        "integer",
        "Trips of the input that no finer row lists, at least so many where at_cap is true; unit: trip",
    ),
    "weight": (
        "number",
        "Sum of the weights of these trips; " + HIDDEN_WEIGHT + "; unit: trips of the population that they stand for",
    ),
    AT_CAP: ("boolean", AT_CAP_MEANING[0].upper() + AT_CAP_MEANING[1:]),
}
"""The meaning of columns where rows nest."""
STANDARD_ERROR_MEANING = "standard error of the estimated trips: of the noise, of chance and of the model together"
_NOISY_COLUMNS: dict[str, tuple[str, str]] = {
    "trips": ("integer", "Estimated trips that are not between the zones of a finer row; unit: trip"),
    STANDARD_ERROR: ("number", STANDARD_ERROR_MEANING[0].upper() + STANDARD_ERROR_MEANING[1:]),
}
"""The meaning of columns where noise was added."""

MATRIX_COLUMNS: dict[str, tuple[str, str]] = {
    "origin": ("string", "Place where the trips start"),
    "destination": ("string", "Place where the trips end"),
    "estimate": ("number", "Estimated trips, computed from the published flows alone"),
    "low": ("integer", "There are certainly at least so many of the published trips"),
    "high": ("integer", "There are certainly no more trips; empty where the release does not bound what is left out"),
    "interval_low": ("integer", "Lower end of an interval that contains the number of trips in four of five cases"),
    "interval_high": ("integer", "Upper end of that interval"),
    "sure": ("number", "Share of the estimate that is sure: low divided by estimate"),
    "weight": ("number", "Estimated sum of the weights of these trips"),
}
"""The meaning of the columns of the matrix."""
_UNTITLED = "Origin-destination matrix: "

_ATTRIBUTE = ("string", "What kind of trips; any where the attribute was dropped")
_PLACE = ("string", "Zone of the trips; an id of zones.geojson")


def describe_columns(subject: Subject, columns: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return the type and the meaning of the columns of a release."""
    known = COLUMNS | (_NESTED_COLUMNS if AT_CAP in columns else {})
    known |= _NOISY_COLUMNS if STANDARD_ERROR in columns else {}
    if subject.place is not None:
        known = known | {"origin": _PLACE}
    described = {subject.column(name): meaning for name, meaning in known.items()}
    found = {name: described.get(name, _ATTRIBUTE) for name in columns}
    return {name: (kind, subject.words(meaning)) for name, (kind, meaning) in found.items()}


def describe_package(
    name: str,
    manifest: Mapping[str, Any],
    *,
    method: Mapping[str, str],
    columns: Sequence[str],
    zones: Iterable[Mapping[str, Any]],
    files: Mapping[str, tuple[int, str]],
    texts: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the descriptor of a release folder, the content of ``datapackage.json``.

    The thresholds of the rule become constraints of the columns, so that a validator of data packages also checks
    the published numbers against the rule.

    * ``name``: the name of the release.
    * ``manifest``: the public manifest; ``statement``, ``rule``, ``method`` and, of noise, ``parameters`` are used.
    * ``method``: the ``title`` and the ``hint`` of the method.
    * ``columns``: the columns of ``classes.csv``, in order.
    * ``zones``: the features of ``zones.geojson``; their outlines give the extent.
    * ``files``: the size in bytes and the SHA-256 of each file to describe, by its name in `RESOURCES`.
    * ``texts``: what the steward calls the release: ``title``, ``source``, ``period``, ``licence`` and ``language``.

    Examples
    --------
    >>> manifest = {"statement": "Every published flow is shared by at least 10 trips.", "rule": {"trips": 10}}
    >>> package = describe_package(
    ...     "Paris 2024",
    ...     manifest | {"method": "oigh"},
    ...     method={"title": "OIGH", "hint": "uniform levels"},
    ...     columns=["origin", "destination", "trips"],
    ...     zones=[],
    ...     files={"classes.csv": (2048, "00ff")},
    ... )
    >>> package["name"], package["resources"][0]["schema"]["fields"][2]["constraints"]["minimum"]
    ('paris-2024', 10)
    """
    rule, subject = manifest["rule"], Subject.from_dict(manifest)
    meanings = describe_columns(subject, columns)
    matrix = {name: meaning for name, meaning in MATRIX_COLUMNS.items() if name != "weight" or name in columns}
    content = dict.fromkeys(RESOURCES, (meanings, rule)) | {MATRIX: (matrix, {})}
    described = [_resource(file, *files[file], subject, *content[file]) for file in RESOURCES if file in files]
    noisy = STANDARD_ERROR in columns
    promised = "differential privacy" if noisy else "k-anonymity"
    package: dict[str, Any] = {
        "profile": "data-package",
        "name": _slug(name),
        "title": f"{_UNTITLED}{name}" if subject.place is None else f"{subject.unit} by {subject.place}: {name}",
        "description": str(manifest["statement"]),
        "keywords": ["origin-destination", "mobility", promised] if subject.place is None else [subject.unit, promised],
        "method": {"name": str(manifest["method"]), **{part: subject.words(text) for part, text in method.items()}},
        "promise": dict(manifest["parameters"])
        if noisy
        else {measure: rule[measure] for measure in map(subject.column, COLUMNS) if measure in rule},
        "resources": described,
    }
    package |= _stated(texts or {})
    extent = _extent(zones)
    return package | ({} if extent is None else {"spatial": {"bbox": extent}})


def _stated(texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the properties of a package that the steward states."""
    found: dict[str, Any] = {name: texts[name] for name in ("title", "period", "language") if name in texts}
    if "source" in texts:
        found["sources"] = [{"title": texts["source"]}]
    if "licence" in texts:
        address = "path" if re.match(r"https?://\S+$", texts["licence"]) else "name"
        name = texts["licence"] if address == "path" else _slug(texts["licence"])
        found["licenses"] = [{address: name, "title": texts["licence"]}]
    return found


def read_texts(folder: Path) -> dict[str, str]:
    """Return what the steward stated about a release in its data package; nothing if there is none."""
    try:
        package = parse_json((folder / PACKAGE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(package, dict):
        return {}
    lists = {"source": package.get("sources"), "licence": package.get("licenses")}
    found = {name: each[0].get("title") for name, each in lists.items() if isinstance(each, list) and each}
    found |= {name: package.get(name) for name in ("title", "period", "language")}
    if str(found["title"]).startswith(_UNTITLED):
        del found["title"]
    return {name: text for name, text in found.items() if isinstance(text, str)}


def size_and_digest(folder: Path) -> dict[str, tuple[int, str]]:
    """Return the size in bytes and the SHA-256 of each file that a package describes."""
    present = [file for file in RESOURCES if (folder / file).exists()]
    return {file: ((folder / file).stat().st_size, sha256(folder / file)) for file in present}


def _slug(name: str) -> str:
    """Return a name as data packages require it: lower-case letters, digits, dots, dashes and underscores."""
    return re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-") or "release"


def _resource(
    file: str, size: int, digest: str, subject: Subject, columns: Mapping[str, tuple[str, str]], rule: Mapping[str, Any]
) -> dict[str, Any]:
    name, file_format, media_type, title = (subject.words(text) for text in RESOURCES[file])
    resource: dict[str, Any] = {
        "name": name,
        "title": title,
        "path": file,
        "format": file_format,
        "mediatype": media_type,
        "bytes": size,
        "hash": f"sha256:{digest}",
    }
    if file_format == "parquet":
        # Validators read a tabular resource in pieces, and then cannot check its size and digest.
        return resource | {"type": "file"}
    if file_format != "csv":
        return resource
    fields = [_field(column, *meaning, rule) for column, meaning in columns.items()]
    key = [column for column, (kind, _) in columns.items() if kind == "string"]
    schema = {"fields": fields, "primaryKey": key, "missingValues": [""]}
    return resource | {"profile": "tabular-data-resource", "encoding": "utf-8", "schema": schema}


def _field(column: str, field_type: str, meaning: str, rule: Mapping[str, Any]) -> dict[str, Any]:
    constraints: dict[str, Any] = {"required": column != "high"}
    # Thresholds on weight are left out: they were rounded to decimals.
    if field_type == "integer" and column in rule:
        constraints["minimum"] = rule[column]
    return {"name": column, "type": field_type, "description": meaning, "constraints": constraints}


def _extent(zones: Iterable[Mapping[str, Any]]) -> list[float] | None:
    """Return west, south, east and north of all outlines; None where there are none."""
    outer_rings = (rings[0] for zone in zones for rings in list_polygons(zone.get("geometry")))
    points = [point for ring in outer_rings for point in ring]
    if not points:
        return None
    lons, lats = [point[0] for point in points], [point[1] for point in points]
    return [min(lons), min(lats), max(lons), max(lats)]
