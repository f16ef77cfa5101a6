"""A release as it was written: the files of its folder, read without trusting any of them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from odkanon.audit.report import Finding, Severity
from odkanon.errors import InputError
from odkanon.methods.registry import METHODS
from odkanon.publish.recipe import read_recipe, with_leaves
from odkanon.read.tables.open import quote_text

FILES = ("classes.csv", "classes.parquet", "zones.geojson", "release.json")
AXES = ("origin", "destination")
COLUMNS = ("origin", "destination", "trips", "weight", "persons")


@dataclass(frozen=True, eq=False)
class Published:
    """A release on disk.

    Attributes
    ----------
    number : int
        Its number in the database of the audit.
    name : str
        What to call it.
    manifest : dict
        ``release.json``.
    zones : dict
        For each axis, the properties and the geometry of each zone.
    measures : tuple of str
        What its flows are counted in: trips, weight, persons.
    """

    number: int
    name: str
    folder: Path
    manifest: dict[str, Any]
    zones: dict[str, list[tuple[dict[str, Any], Any]]]
    measures: tuple[str, ...]

    @property
    def thresholds(self) -> dict[str, float]:
        """The thresholds of the rule, by measure."""
        return {
            name: self.manifest["rule"][name]
            for name in ("trips", "weight", "persons")
            if name in self.manifest["rule"]
        }

    @property
    def k(self) -> int:
        """What k the rule stands for."""
        return ceil(float(self.manifest["rule"]["k"]))

    @property
    def nested(self) -> bool:
        """Whether a flow may lie in another, and then tells only what the finer one does not."""
        method = METHODS.get(str(self.manifest.get("method")))
        return method is not None and method.nested

    @property
    def parameters(self) -> dict[str, Any]:
        """How it was made."""
        parameters: dict[str, Any] = self.manifest.get("parameters", {})
        return parameters

    @property
    def total(self) -> int:
        """Trips of the input that were not rejected."""
        account = self.manifest["input"]
        return int(account["trips"] - sum(part["trips"] for part in account["rejected"].values()))

    @property
    def has_boxes(self) -> bool:
        """Whether zones are boxes instead of nodes of a hierarchy."""
        return any(about.get("leaves") is None for zones in self.zones.values() for about, _ in zones)


def read_folder(connection: duckdb.DuckDBPyConnection, number: int, folder: Path, name: str) -> Published:
    """Read a release and put its flows into the table ``classes``; raise where a file cannot be read at all."""
    for file in FILES:
        if not (folder / file).is_file():
            raise InputError(f"{name} is not a complete release: it has no {file}")
    manifest, recipe = _json(folder / "release.json"), read_recipe(folder)
    try:
        features = _json(folder / "zones.geojson")["features"]
        if recipe is not None:
            manifest, features = {**recipe["about"], **manifest}, with_leaves(features, recipe["zones"])
        zones: dict[str, list[tuple[dict[str, Any], Any]]] = {axis: [] for axis in AXES}
        for feature in features:
            zones[feature["properties"]["axis"]].append((feature["properties"], feature.get("geometry")))
        measures = _load_classes(connection, number, folder / "classes.parquet")
        published = Published(number, name, folder, manifest, zones, measures)
        _ = published.thresholds, published.k, published.total
        return published
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{name} lacks something that every release has ({error}); it was damaged or edited") from None


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise InputError(f"{path} cannot be read ({error}); the file is truncated or damaged") from None


def _load_classes(connection: duckdb.DuckDBPyConnection, number: int, path: Path) -> tuple[str, ...]:
    connection.execute(
        "CREATE TABLE IF NOT EXISTS classes (release INTEGER, origin VARCHAR, destination VARCHAR, trips BIGINT, "
        "weight DOUBLE, persons BIGINT)"
    )
    scan = f"read_parquet({quote_text(str(path))}, hive_partitioning = false)"
    try:
        present = [row[0] for row in connection.execute(f"DESCRIBE SELECT * FROM {scan}").fetchall()]
        if present[:3] != list(COLUMNS[:3]):
            raise InputError(f"{path} has the columns {', '.join(present)} instead of origin, destination, trips, ...")
        columns = [name if name in present else f"NULL AS {name}" for name in COLUMNS]
        connection.execute(f"INSERT INTO classes SELECT {number}, {', '.join(columns)} FROM {scan}")
    except duckdb.Error as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{path} cannot be read ({reason}); the file is truncated or damaged") from None
    return tuple(name for name in COLUMNS[2:] if name in present)


def check_files(connection: duckdb.DuckDBPyConnection, release: Published) -> list[Finding]:
    """Compare the files of a release with their digests and with each other."""
    findings = []
    for file, digest in release.manifest.get("files", {}).items():
        path = release.folder / file
        if not path.is_file():
            findings.append(_about(release, f"{file} is listed in release.json but missing"))
        elif hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            findings.append(_about(release, f"{file} was changed after it was written: its sha256 is another one"))
    if "files" not in release.manifest:
        findings.append(_about(release, "release.json lists no digests, so edits of single files cannot be told"))
    return findings + _compare_csv(connection, release)


def _compare_csv(connection: duckdb.DuckDBPyConnection, release: Published) -> list[Finding]:
    """Compare classes.csv with classes.parquet, flow by flow."""
    names = ["origin", "destination", *release.measures]
    path = release.folder / "classes.csv"
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    if not lines or lines[0].split(",") != names:
        return [_about(release, f"classes.csv does not begin with the columns {', '.join(names)}")]
    columns = ", ".join(f"'{name}': 'VARCHAR'" for name in names)
    scan = (
        f"read_csv({quote_text(str(path))}, auto_detect=false, header=true, delim=',', quote='\"', escape='\"', "
        f"columns={{{columns}}}, null_padding=true, ignore_errors=true)"
    )
    counted = connection.execute(
        f"SELECT (SELECT count(*) FROM {scan}), (SELECT count(*) FROM classes WHERE release = {release.number})"
    ).fetchall()[0]
    differs = " OR ".join(
        f"abs(TRY_CAST(c.{name} AS DOUBLE) - p.{name}) > 1e-9 * abs(p.{name}) OR TRY_CAST(c.{name} AS DOUBLE) IS NULL"
        for name in release.measures
    )
    other = connection.execute(
        f"SELECT coalesce(c.origin, p.origin), coalesce(c.destination, p.destination), c.trips, p.trips FROM {scan} c "
        f"FULL JOIN (FROM classes WHERE release = {release.number}) p USING (origin, destination) "
        f"WHERE p.trips IS NULL OR {differs} ORDER BY 1, 2"
    ).fetchall()
    if not other and counted[0] == counted[1]:
        return []
    if counted[0] != counted[1]:
        text = f"classes.csv has {counted[0]:,} flows and classes.parquet {counted[1]:,}: one was cut short or added to"
    else:
        text = "classes.csv and classes.parquet disagree"
    if other:
        origin, destination, in_csv, in_parquet = other[0]
        text += f"; {origin} -> {destination} has {in_csv or 'no'} trips in the one, {in_parquet or 'no'} in the other"
    return [_about(release, text, tuple({"origin": row[0], "destination": row[1]} for row in other))]


def _about(release: Published, message: str, details: tuple[dict[str, Any], ...] = ()) -> Finding:
    severity: Any = "note" if "no digests" in message else "finding"
    return Finding("files", (release.name,), message, severity, details)


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
