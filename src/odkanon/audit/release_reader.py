"""A release as written: the files of its folder, or a bare table, read without trusting any of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import ceil, isfinite
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from duckdb import DuckDBPyConnection as Connection

from odkanon.audit.counting.counted_measures import MEASURES, NAMES, AuditMeasure
from odkanon.audit.counting.scan import TripsSource, open_scan, plain_path
from odkanon.audit.findings import Finding, Severity
from odkanon.core.parsing import parse_json
from odkanon.core.sql import quote_name, quote_text
from odkanon.errors import ColumnNotFoundError, DamagedReleaseError, InputError, UnreadableFileError
from odkanon.model.axes import Subject
from odkanon.release_format.recipe import read_recipe

FILES = ("classes.csv", "classes.parquet", "zones.geojson", "release.json")
AXES = ("origin", "destination")
CONSTRAINTS = ("max_share", "min_destinations")
COLUMNS = (*AXES, *NAMES)
WORLD = "world"
BETWEEN = "\x1f"
"""The separator between values of further axes in the attributes of a row; no value contains it."""

Zone = tuple[dict[str, Any], Any]  # the properties and the geometry of a zone
_DAMAGE = (KeyError, TypeError, AttributeError, ValueError, IndexError, ArithmeticError, RecursionError, duckdb.Error)
_DAMAGED = "the file is truncated or damaged"


@dataclass(frozen=True, eq=False)
class PublishedRelease:
    """A release on disk."""

    number: int  # its number in the database of the audit
    name: str  # its name in messages
    folder: Path  # its folder; the file of a bare table
    manifest: dict[str, Any]  # ``release.json``, the public manifest
    # The steward's full manifest: from the recipe, or ``release.json`` itself if that includes the input.
    provenance: dict[str, Any] | None
    recipe: dict[str, Any]  # empty if there is none
    zones: dict[str, list[Zone]]  # by axis
    measures: tuple[str, ...]  # the measures that its flows publish
    auditor_thresholds: Mapping[str, float] = field(default_factory=dict)  # by measure
    bare: bool = False  # whether it is a bare table
    subject: Subject = field(default_factory=Subject)  # what it counts, and by which places

    @property
    def disclosed_thresholds(self) -> dict[str, float]:
        """The published thresholds, by measure."""
        return _numbers(self.manifest["rule"], NAMES)

    @property
    def exact_thresholds(self) -> dict[str, float]:
        """The steward's thresholds, by measure; a published one on weight may be rounded down."""
        return _numbers((self.provenance or {}).get("rule", {}), NAMES)

    @property
    def constraints(self) -> dict[str, float]:
        """The published constraints, by name."""
        return _numbers(self.manifest["rule"], CONSTRAINTS)

    @property
    def thresholds(self) -> dict[str, float]:
        """The thresholds to check: the higher of the published one and the auditor's."""
        own = self.disclosed_thresholds
        return {
            name: max(own.get(name, 0), self.auditor_thresholds.get(name, 0))
            for name in NAMES
            if name in own or name in self.auditor_thresholds
        }

    @property
    def min_trips(self) -> int:
        """The number of trips below which a group violates a threshold on trips, persons or households."""
        return ceil(max((value for name, value in self.thresholds.items() if name != "weight"), default=0))

    @property
    def mean_weight(self) -> float:
        """The mean weight of a trip in the rule; 0 if unknown.

        Without the recipe it follows from the published threshold, which is rounded down.
        """
        rule = (self.provenance or self.manifest)["rule"]
        implied = rule["weight"] / rule["k"] if "weight" in rule and rule.get("k") else 0
        return parse_number(rule.get("mean_weight") or implied)

    @property
    def k(self) -> int:
        """The k of the rule; at least 2 if unknown."""
        rule = (self.provenance or {}).get("rule", {}) | self.manifest["rule"]
        return ceil(parse_number(rule.get("k", self.min_trips or 2)))

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of its method, as far as they are recorded."""
        parameters: dict[str, Any] = (self.provenance or self.manifest).get("parameters", {})
        return parameters

    @property
    def total(self) -> int | None:
        """The trips of the input that were not rejected; None if unknown."""
        if self.provenance is None:
            return None
        given = self.provenance["input"]
        return int(given["trips"] - sum(part["trips"] for part in given["rejected"].values()))

    @property
    def sha256(self) -> str | None:
        """The digest of its input, if known."""
        return None if self.provenance is None else self.provenance["input"].get("sha256")

    @property
    def has_boxes(self) -> bool:
        """Whether zones are boxes instead of nodes of a hierarchy."""
        return any(is_box(properties) for zones in self.zones.values() for properties, _ in zones)

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes of its rows other than origin and destination, such as a mode; empty for most releases."""
        return tuple(str(axis["name"]) for axis in self.manifest.get("axes", []))

    @property
    def nested(self) -> bool:
        """Whether a row counts only the trips that no finer row inside it counts."""
        nested = self.manifest.get("nested", self.manifest.get("parameters", {}).get("nested"))
        return bool(self.manifest.get("method") == "cascade" if nested is None else nested)

    @property
    def thinned(self) -> bool:
        """Whether pairs were suppressed before flows were formed, so that a flow may lack trips of its area."""
        return bool(self.parameters.get("suppress") == "before")

    @property
    def lists_all(self) -> bool:
        """Whether it publishes that its rows list every trip."""
        return bool(self.manifest.get("unlisted", {}).get("at_most_trips") == 0)

    def leaves(self, axis: str) -> dict[str, int]:
        """Return the number of leaves in each zone, where it is recorded."""
        ids = [properties["id"] for properties, _ in self.zones[axis]]
        leaves = self.recipe.get("zones", {}).get(axis, {}).get("leaves")
        if leaves is None:
            leaves = [properties.get("leaves") for properties, _ in self.zones[axis]]
        return {zone: count for zone, count in zip(ids, leaves, strict=False) if count is not None}


@contextmanager
def reporting_damage(name: str) -> Iterator[None]:
    """Convert any error from unexpected contents of a release into one about a damaged release."""
    try:
        yield
    except _DAMAGE as error:
        reason = str(error).splitlines()[0] if isinstance(error, duckdb.Error) else repr(error)
        raise DamagedReleaseError.because(
            name, f"lacks something that every release has ({reason[:200]})", advice="it was damaged or edited"
        ) from None


def parse_number(value: Any) -> float:
    """Return a number from a release; raise for anything else, which would become part of a query."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise TypeError(f"{value!r} is not a number")
    return value


def _numbers(rule: Mapping[str, Any], names: Sequence[str]) -> dict[str, float]:
    return {name: parse_number(rule[name]) for name in names if name in rule}


def is_box(properties: Mapping[str, Any]) -> bool:
    """Return whether a zone is a box: it is declared one, or is neither made of cells nor a node of a table."""
    if "kind" in properties:
        return bool(properties["kind"] == "box")
    others = ("resolution", "level", "cells", "places")
    return properties["id"] != WORLD and all(properties.get(name) is None for name in others)


def read_release(
    connection: Connection, number: int, path: Path, name: str, thresholds: Mapping[str, float]
) -> PublishedRelease:
    """Read a folder or a bare table, and insert its flows into the table ``classes``."""
    connection.execute(
        "CREATE TABLE IF NOT EXISTS classes (release INTEGER, origin VARCHAR, destination VARCHAR, attributes VARCHAR, "
        f"{', '.join(f'{measure.name} {measure.sql_type}' for measure in MEASURES)})"
    )
    if path.is_file():
        return _read_table(connection, number, path, name, thresholds)
    for file in FILES:
        if not (path / file).is_file():
            raise DamagedReleaseError.because(
                name, f"is not a complete release: it has no {file}", advice="save it again"
            )
    manifest, recipe = read_json(path / "release.json"), read_recipe(path) or {}
    if isinstance(manifest, dict) and "noise" in manifest:
        raise InputError(
            f"the rows of {name} are estimates with noise, so there are no counts to check or to attack; its promise "
            "rests on how the noise was drawn, which the tests of the program examine"
        )
    with reporting_damage(name):
        subject = Subject.from_dict(manifest)
        manifest = _plain(manifest, subject)
        zones = _read_zones(read_json(path / "zones.geojson")["features"], subject)
        axes = [str(axis["name"]) for axis in manifest.get("axes", [])]
        measures = _load_classes(connection, number, path / "classes.parquet", axes, subject)
        provenance = recipe.get("about") or (manifest if "input" in manifest else None)
        release = PublishedRelease(
            number, name, path, manifest, provenance, recipe, zones, measures, thresholds, subject=subject
        )
        # Raise now if one of these is damaged.
        _ = release.thresholds, release.exact_thresholds, release.constraints, release.k, release.mean_weight
        _ = release.total, release.has_boxes, release.axes, [*map(parse_number, manifest["rule"].values())]
        return release


def read_json(path: Path) -> Any:
    """Read a JSON file; raise if it is damaged."""
    try:
        return parse_json(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise UnreadableFileError.because(path, error, advice=_DAMAGED) from None


def _plain(manifest: dict[str, Any], subject: Subject) -> dict[str, Any]:
    """Return a manifest with our names of axes and measures, whatever it counts."""
    parts = ("rule", "published", "unlisted", "quality")
    return manifest | {name: subject.ours(manifest[name]) for name in parts if manifest.get(name) is not None}


def _read_zones(features: Sequence[Mapping[str, Any]], subject: Subject) -> dict[str, list[Zone]]:
    """Return the zones of each axis; at the other end of a table by one place is the world."""
    zones: dict[str, list[Zone]] = {subject.column(axis): [] for axis in subject.axes}
    for feature in features:
        own = subject.ours(feature["properties"])
        zones[own["axis"]].append((own, feature.get("geometry")))
    if subject.place is None:
        return zones
    world = {"axis": AXES[1], "id": WORLD, "kind": "place"}
    return {AXES[0]: zones[subject.place], AXES[1]: [(world, None)]}


def _load_classes(
    connection: Connection, number: int, path: Path, axes: Sequence[str], subject: Subject
) -> tuple[str, ...]:
    scan = f"read_parquet({plain_path(path)}, hive_partitioning=false)"
    try:
        present = [row[0] for row in connection.execute(f"DESCRIBE SELECT * FROM {scan}").fetchall()]
        wanted = [*subject.places, *axes, subject.unit]
        if present[: len(wanted)] != wanted:
            raise DamagedReleaseError.because(
                path, f"has the columns {', '.join(present)} instead of {', '.join(wanted)}, ..."
            )
        published = {name: subject.column(name) for name in NAMES}
        columns = [quote_name(each) if each in present else f"NULL AS {name}" for name, each in published.items()]
        selected = ", ".join([*end_columns(subject), attribute_sql(axes), *columns])
        connection.execute(f"INSERT INTO classes SELECT {number}, {selected} FROM {scan}")
    except duckdb.Error as error:
        raise UnreadableFileError.because(path, error, advice=_DAMAGED) from None
    return tuple(name for name in NAMES if subject.column(name) in present)


def end_columns(subject: Subject) -> list[str]:
    """Return, in SQL, the two ends of the rows of a release."""
    return [*map(quote_name, subject.places), *([quote_text(WORLD)] if subject.place is not None else [])]


def attribute_sql(axes: Sequence[str]) -> str:
    """Return, in SQL, the values of a row on its further axes as one text."""
    parts = [f"{quote_text(name + '=')} || {quote_name(name)}" for name in axes]
    return f" || {quote_text(BETWEEN)} || ".join(parts) or "''"


def _read_table(
    connection: Connection, number: int, path: Path, name: str, thresholds: Mapping[str, float]
) -> PublishedRelease:
    """Read a bare table of flows, which promises nothing; the auditor sets its thresholds."""
    if not thresholds:
        raise InputError(f"{name} is a bare table, which promises nothing; set the rule to check, such as k = 10")
    scan = open_scan(connection, TripsSource(path, kind="od"))
    lower = {column.lower(): column for column in scan.columns}
    found = {**{column: lower[column] for column in COLUMNS if column in lower}, **scan.found}
    absent = [column for column in COLUMNS[:3] if column not in found]
    if absent:
        raise ColumnNotFoundError.from_missing(
            name, absent[0], scan.columns, purpose="(a table of flows has origin, destination and trips)"
        )
    own = {measure: quote_name(found[measure.name]) for measure in MEASURES if measure.name in found}
    sql = {"attributes": "''"} | {column: f"trim(CAST({quote_name(found[column])} AS VARCHAR))" for column in AXES}
    sql |= {measure.name: _number(column, measure) for measure, column in own.items()}
    values = ", ".join(sql.get(column, f"NULL AS {column}") for column in (*AXES, "attributes", *NAMES))
    before = _rejected_lines(connection)
    connection.execute(f"INSERT INTO classes SELECT {number}, {values} FROM {scan.sql}")
    invalid = " OR ".join(f"({column} IS NOT NULL AND TRY_CAST({column} AS DOUBLE) IS NULL)" for column in own.values())
    wrong = f"SELECT n + 1 FROM (SELECT *, row_number() OVER () AS n FROM {scan.sql}) WHERE {invalid}"
    unread = _rejected_lines(connection)[len(before) :] or [row[0] for row in connection.execute(wrong).fetchall()]
    if unread:
        raise InputError(
            f"line {unread[0]} of {name} cannot be read (1 of {len(unread):,} such lines): it has too many values, "
            "too few, or one that is not a number"
        )
    ids = f"SELECT DISTINCT {{0}} FROM classes WHERE release = {number} AND {{0}} IS NOT NULL ORDER BY 1"
    zones: dict[str, list[Zone]] = {
        axis: [
            ({"id": zone, "axis": axis, "kind": "place"}, None)
            for (zone,) in connection.execute(ids.format(axis)).fetchall()
        ]
        for axis in AXES
    }
    measures = tuple(measure.name for measure in own)
    return PublishedRelease(number, name, path, {"rule": {}}, None, {}, zones, measures, thresholds, bare=True)


def _number(column: str, measure: AuditMeasure) -> str:
    """Return, in SQL, a number of a table, null if it is none; fractions of a trip are dropped."""
    value = f"TRY_CAST({column} AS DOUBLE)"
    whole = f"floor({value})" if measure.sql_type == "BIGINT" else value
    return f"CASE WHEN isfinite({value}) THEN TRY_CAST({whole} AS {measure.sql_type}) END"


def _rejected_lines(connection: Connection) -> list[int]:
    """Return the lines that could not be read in all files so far."""
    known = connection.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = 'reject_errors'").fetchall()
    if not known:
        return []
    lines = connection.execute("SELECT DISTINCT scan_id, line FROM reject_errors ORDER BY 1, 2").fetchall()
    return [line for _, line in lines]


def load_arrow(connection: Connection, statement: str, columns: Mapping[str, Any]) -> None:
    """Run a statement that reads some columns as the table ``incoming``."""
    connection.register("incoming", pa.table(dict(columns)))
    connection.execute(statement)
    connection.unregister("incoming")


def rows(connection: Connection, query: str) -> tuple[dict[str, Any], ...]:
    """Return the rows of a query as dictionaries."""
    table: pa.Table = connection.sql(query).to_arrow_table()
    return tuple(table.to_pylist())


def finding_on(
    check: str,
    release: PublishedRelease,
    message: str,
    severity: Severity = "finding",
    details: tuple[dict[str, Any], ...] = (),
) -> Finding:
    """Return a finding about one release."""
    return Finding(check, (release.name,), release.subject.words(message), severity, details)
