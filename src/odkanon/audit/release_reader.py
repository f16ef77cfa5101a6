"""A release as it was written: the files of its folder, or a bare table, read without trusting any of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import ceil, isfinite
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from odkanon.audit.counting.scan import TripsSource, plain_path, scan_of
from odkanon.audit.findings import Finding, Severity
from odkanon.audit.own_counts import MEASURES, NAMES, Measure
from odkanon.core.parsing import parse_json
from odkanon.errors import InputError
from odkanon.read.tables.open_table import quote_name, quote_text
from odkanon.release_format.recipe import read_recipe

FILES = ("classes.csv", "classes.parquet", "zones.geojson", "release.json")
AXES = ("origin", "destination")
CONSTRAINTS = ("max_share", "min_destinations")
COLUMNS = (*AXES, *NAMES)
WORLD = "world"
BETWEEN = "\x1f"
"""Between the axes of what a row of a cube says of them; no text that people write has it."""

Zone = tuple[dict[str, Any], Any]
_DAMAGE = (KeyError, TypeError, AttributeError, ValueError, IndexError, ArithmeticError, RecursionError, duckdb.Error)


@dataclass(frozen=True, eq=False)
class Published:
    """A release on disk.

    Attributes
    ----------
    number : int
        Its number in the database of the audit.
    name : str
        What to call it.
    folder : Path
        Where it is; the file itself for a bare table.
    manifest : dict
        ``release.json``, which everybody reads.
    about : dict or None
        The steward's account of the same: that of the recipe, or of ``release.json`` where it holds one.
    recipe : dict
        All that the recipe says; empty without one.
    zones : dict
        For each axis, the properties and the geometry of each zone.
    measures : tuple of str
        What its flows are counted in.
    demanded : mapping of str to float
        Thresholds that the auditor asks for, whatever the release promises.
    bare : bool
        Whether it is a table without anything around it.
    """

    number: int
    name: str
    folder: Path
    manifest: dict[str, Any]
    about: dict[str, Any] | None
    recipe: dict[str, Any]
    zones: dict[str, list[Zone]]
    measures: tuple[str, ...]
    demanded: Mapping[str, float] = field(default_factory=dict)
    bare: bool = False

    @property
    def disclosed_thresholds(self) -> dict[str, float]:
        """The thresholds that it says it meets, by measure."""
        return {name: parse_number(self.manifest["rule"][name]) for name in NAMES if name in self.manifest["rule"]}

    @property
    def kept(self) -> dict[str, float]:
        """The thresholds in full, by measure, as its steward has them: one on weight is told as the rows tell of it."""
        rule = (self.about or {}).get("rule", {})
        return {name: parse_number(rule[name]) for name in NAMES if name in rule}

    @property
    def constraints(self) -> dict[str, float]:
        """What it says it keeps besides thresholds, by name."""
        return {
            name: parse_number(self.manifest["rule"][name]) for name in CONSTRAINTS if name in self.manifest["rule"]
        }

    @property
    def thresholds(self) -> dict[str, float]:
        """What its flows have to meet: the higher of what it promises and what the auditor asks for."""
        own = self.disclosed_thresholds
        return {
            name: max(own.get(name, 0), self.demanded.get(name, 0))
            for name in NAMES
            if name in own or name in self.demanded
        }

    @property
    def few(self) -> int:
        """Below how many trips a group is too small, whichever of trips, persons or households counts."""
        return ceil(max((value for name, value in self.thresholds.items() if name != "weight"), default=0))

    @property
    def mean_weight(self) -> float:
        """The mean weight of a trip that its rule was made with; 0 where nobody says.

        Without the recipe it is what the public threshold tells, which is rounded down.
        """
        rule = (self.about or self.manifest)["rule"]
        told = rule["weight"] / rule["k"] if "weight" in rule and rule.get("k") else 0
        return parse_number(rule.get("mean_weight") or told)

    @property
    def k(self) -> int:
        """What k the rule stands for; where nobody says, more than one."""
        rule = (self.about or {}).get("rule", {}) | self.manifest["rule"]
        return ceil(parse_number(rule.get("k", self.few or 2)))

    @property
    def parameters(self) -> dict[str, Any]:
        """How it was made, as far as it says."""
        parameters: dict[str, Any] = (self.about or self.manifest).get("parameters", {})
        return parameters

    @property
    def total(self) -> int | None:
        """Trips of the input that were not rejected; None where nobody says."""
        if self.about is None:
            return None
        account = self.about["input"]
        return int(account["trips"] - sum(part["trips"] for part in account["rejected"].values()))

    @property
    def sha256(self) -> str | None:
        """The digest of its input, where it is known."""
        return None if self.about is None else self.about["input"].get("sha256")

    @property
    def has_boxes(self) -> bool:
        """Whether zones are boxes instead of nodes of a hierarchy."""
        return any(is_box(about) for zones in self.zones.values() for about, _ in zones)

    @property
    def axes(self) -> tuple[str, ...]:
        """What its flows tell besides two places, such as a mode; nothing for most releases."""
        return tuple(str(axis["name"]) for axis in self.manifest.get("axes", []))

    @property
    def nested(self) -> bool:
        """Whether a row lists only the trips that no finer row inside it lists."""
        says = self.manifest.get("nested", self.manifest.get("parameters", {}).get("nested"))
        return bool(self.manifest.get("method") == "cascade" if says is None else says)

    @property
    def thinned(self) -> bool:
        """Whether pairs were taken out before flows were formed, so that a flow need not have all trips of its area."""
        return bool(self.parameters.get("suppress") == "before")

    @property
    def lists_all(self) -> bool:
        """Whether it tells everybody that no trip is missing from its rows."""
        return bool(self.manifest.get("unlisted", {}).get("at_most_trips") == 0)

    def leaves(self, axis: str) -> dict[str, int]:
        """Return how many places of the data each zone has, where that is told."""
        ids = [about["id"] for about, _ in self.zones[axis]]
        told = self.recipe.get("zones", {}).get(axis, {}).get("leaves")
        if told is None:
            told = [about.get("leaves") for about, _ in self.zones[axis]]
        return {zone: count for zone, count in zip(ids, told, strict=False) if count is not None}


@contextmanager
def as_damage(name: str) -> Iterator[None]:
    """Say of anything that goes wrong with what a release says of itself that the release was damaged."""
    try:
        yield
    except _DAMAGE as error:
        reason = str(error).splitlines()[0] if isinstance(error, duckdb.Error) else repr(error)
        raise InputError(
            f"{name} lacks something that every release has ({reason[:200]}); it was damaged or edited"
        ) from None


def parse_number(value: Any) -> float:
    """Return a number that a release tells; raise for anything else, which would become part of a query."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise TypeError(f"{value!r} is no number")
    return value


def is_box(about: Mapping[str, Any]) -> bool:
    """Tell whether a zone is a box: it says so, or it is neither a cell, nor several, nor a node of a table."""
    if "kind" in about:
        return bool(about["kind"] == "box")
    return about["id"] != WORLD and all(about.get(name) is None for name in ("resolution", "level", "cells", "places"))


def read_release(
    connection: duckdb.DuckDBPyConnection, number: int, path: Path, name: str, demanded: Mapping[str, float]
) -> Published:
    """Read a folder or a bare table, and put its flows into the table ``classes``; raise where that cannot be done."""
    connection.execute(
        "CREATE TABLE IF NOT EXISTS classes (release INTEGER, origin VARCHAR, destination VARCHAR, kind VARCHAR, "
        f"{', '.join(f'{measure.name} {measure.kind}' for measure in MEASURES)})"
    )
    if path.is_file():
        return _read_table(connection, number, path, name, demanded)
    for file in FILES:
        if not (path / file).is_file():
            raise InputError(f"{name} is not a complete release: it has no {file}")
    manifest, recipe = read_json(path / "release.json"), read_recipe(path) or {}
    with as_damage(name):
        zones: dict[str, list[Zone]] = {axis: [] for axis in AXES}
        for feature in read_json(path / "zones.geojson")["features"]:
            zones[feature["properties"]["axis"]].append((feature["properties"], feature.get("geometry")))
        axes = [str(axis["name"]) for axis in manifest.get("axes", [])]
        measures = _load_classes(connection, number, path / "classes.parquet", axes)
        about = recipe.get("about") or (manifest if "input" in manifest else None)
        published = Published(number, name, path, manifest, about, recipe, zones, measures, demanded)
        _ = published.thresholds, published.kept, published.constraints, published.k, published.mean_weight
        _ = published.total, published.has_boxes, published.axes
        _ = [parse_number(value) for value in manifest["rule"].values()]
        return published


def read_json(path: Path) -> Any:
    """Read a JSON file, or say that it is damaged."""
    try:
        return parse_json(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise InputError(f"{path} cannot be read ({error}); the file is truncated or damaged") from None


def _load_classes(
    connection: duckdb.DuckDBPyConnection, number: int, path: Path, axes: Sequence[str]
) -> tuple[str, ...]:
    scan = f"read_parquet({plain_path(path)}, hive_partitioning=false)"
    try:
        present = [row[0] for row in connection.execute(f"DESCRIBE SELECT * FROM {scan}").fetchall()]
        wanted = [*AXES, *axes, NAMES[0]]
        if present[: len(wanted)] != wanted:
            raise InputError(f"{path} has the columns {', '.join(present)} instead of {', '.join(wanted)}, ...")
        columns = [name if name in present else f"NULL AS {name}" for name in NAMES]
        connection.execute(
            f"INSERT INTO classes SELECT {number}, {', '.join([*AXES, attribute_sql(axes), *columns])} FROM {scan}"
        )
    except duckdb.Error as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{path} cannot be read ({reason}); the file is truncated or damaged") from None
    return tuple(name for name in NAMES if name in present)


def attribute_sql(axes: Sequence[str]) -> str:
    """Return, in SQL, what a row says of all axes but the two places, as one text."""
    parts = [f"{quote_text(name + '=')} || {quote_name(name)}" for name in axes]
    return f" || {quote_text(BETWEEN)} || ".join(parts) or "''"


def _read_table(
    connection: duckdb.DuckDBPyConnection, number: int, path: Path, name: str, demanded: Mapping[str, float]
) -> Published:
    """Read a table of flows that makes no promise; the auditor says what it should meet."""
    if not demanded:
        raise InputError(
            f"{name} is a table without a release around it, so it promises nothing; say what its flows should meet, "
            "such as k = 10"
        )
    scan = scan_of(connection, TripsSource(path, kind="od"))
    lower = {column.lower(): column for column in scan.columns}
    found = {**{column: lower[column] for column in COLUMNS if column in lower}, **scan.found}
    absent = [column for column in COLUMNS[:3] if column not in found]
    if absent:
        raise InputError(f"{name} has no column {absent[0]!r}; a table of flows has origin, destination and trips")
    sql = {"kind": "''"} | {column: f"trim(CAST({quote_name(found[column])} AS VARCHAR))" for column in AXES}
    sql |= {
        measure.name: _number(quote_name(found[measure.name]), measure) for measure in MEASURES if measure.name in found
    }
    values = ", ".join(sql.get(column, f"NULL AS {column}") for column in (*AXES, "kind", *NAMES))
    before = _unread(connection)
    connection.execute(f"INSERT INTO classes SELECT {number}, {values} FROM {scan.sql}")
    words = [
        f"({quote_name(found[each.name])} IS NOT NULL AND TRY_CAST({quote_name(found[each.name])} AS DOUBLE) IS NULL)"
        for each in MEASURES
        if each.name in found
    ]
    wrong = f"SELECT n + 1 FROM (SELECT *, row_number() OVER () AS n FROM {scan.sql}) WHERE {' OR '.join(words)}"
    unread = _unread(connection)[len(before) :] or [row[0] for row in connection.execute(wrong).fetchall()]
    if unread:
        raise InputError(
            f"line {unread[0]} of {name} cannot be read ({len(unread):,} in all): it has too many values, too few, or "
            "one that is no number"
        )
    zones: dict[str, list[Zone]] = {}
    for axis in AXES:
        ids = connection.execute(
            f"SELECT DISTINCT {axis} FROM classes WHERE release = {number} AND {axis} IS NOT NULL ORDER BY 1"
        ).fetchall()
        zones[axis] = [({"id": row[0], "axis": axis, "kind": "place"}, None) for row in ids]
    measures = tuple(column for column in NAMES if column in found)
    return Published(number, name, path, {"rule": {}}, None, {}, zones, measures, demanded, bare=True)


def _number(column: str, measure: Measure) -> str:
    """Return, in SQL, a number of a table, nothing where it is none; a fraction of a trip is no trip."""
    value = f"TRY_CAST({column} AS DOUBLE)"
    whole = f"floor({value})" if measure.kind == "BIGINT" else value
    return f"CASE WHEN isfinite({value}) THEN TRY_CAST({whole} AS {measure.kind}) END"


def _unread(connection: duckdb.DuckDBPyConnection) -> list[int]:
    """Return the lines of all files read so far that could not be."""
    known = connection.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = 'reject_errors'").fetchall()
    if not known:
        return []
    lines = connection.execute("SELECT DISTINCT scan_id, line FROM reject_errors ORDER BY 1, 2").fetchall()
    return [line for _, line in lines]


def rows(connection: duckdb.DuckDBPyConnection, query: str) -> tuple[dict[str, Any], ...]:
    """Return the rows of a query as dictionaries."""
    table: pa.Table = connection.sql(query).to_arrow_table()
    return tuple(table.to_pylist())


def finding_on(
    check: str,
    release: Published,
    message: str,
    severity: Severity = "finding",
    details: tuple[dict[str, Any], ...] = (),
) -> Finding:
    """Return a finding about one release."""
    return Finding(check, (release.name,), message, severity, details)
