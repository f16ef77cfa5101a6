"""The files of a release against their digests, against each other, and against the recipe."""

from __future__ import annotations

import csv
import hashlib
from pathlib import Path

import duckdb

from odkanon.audit.counting.scan import plain_path
from odkanon.audit.findings import Finding
from odkanon.audit.own_counts import NAMES
from odkanon.audit.release_reader import AXES, CONSTRAINTS, Published, attribute_sql, finding_on, read_json
from odkanon.read.tables.open_table import quote_name, quote_text
from odkanon.release_format.recipe import read_recipe, recipe_path

PAGE, MANIFEST, INDEX = "report.html", "release.json", "index.json"
PUBLIC = ("classes.csv", "classes.parquet", "zones.geojson", "release.json", "datapackage.json", PAGE)
"""What the folder of a release holds."""

SHARED = ("method", "rule", "published", "statement")
"""What the public manifest and the steward's recipe both say."""


def check_files(connection: duckdb.DuckDBPyConnection, release: Published) -> list[Finding]:
    """Compare the files of a release with their digests and with each other."""
    findings = _foreign(release)
    kept = (release.about or {}).get("files", {}) if release.recipe else {}
    for file, digest in {**kept, **release.manifest.get("files", {})}.items():
        path = release.folder / file
        if not path.is_file():
            findings.append(finding_on("files", release, f"{file} is listed in release.json but missing"))
        elif _digest(path) != digest:
            text = f"{file} was changed after it was written: its sha256 is another one"
            # The page alone may be made anew, in other words or with streets below it.
            findings.append(finding_on("files", release, text, "note" if file == PAGE else "finding"))
    if "files" not in release.manifest:
        text = "release.json lists no digests, so edits of single files cannot be told"
        findings.append(finding_on("files", release, text, "note"))
    findings += _check_columns(connection, release)
    return findings + _check_manifest(release) + _compare_recipe(release) + _compare_csv(connection, release)


def _check_columns(connection: duckdb.DuckDBPyConnection, release: Published) -> list[Finding]:
    """Find columns of the table that no release has."""
    scan = f"read_parquet({plain_path(release.folder / 'classes.parquet')}, hive_partitioning=false)"
    columns = [row[0] for row in connection.execute(f"DESCRIBE SELECT * FROM {scan}").fetchall()]
    more = [name for name in columns if name not in (*AXES, *release.axes, *NAMES)]
    text = f"classes.parquet has the columns {', '.join(more)}, which are no part of a release"
    return [finding_on("files", release, text)] if more else []


def _check_manifest(release: Published) -> list[Finding]:
    """Compare release.json with the digest in the recipe, or in the index of what was made in one run."""
    own, index = recipe_path(release.folder.absolute()), release.folder.absolute().parent / INDEX
    if own.is_file() or not index.is_file():
        who, told = "the recipe", release.recipe.get("public_sha256")
    else:
        files = read_json(index).get("files", {})
        who, told = INDEX, files.get(f"{release.folder.absolute().name}/{MANIFEST}")
    if told is None or told == _digest(release.folder / MANIFEST):
        return []
    return [finding_on("files", release, f"{MANIFEST} was changed after it was written: {who} has another sha256")]


def check_index(folder: Path) -> list[Finding]:
    """Compare the index of what was made in one run with the digest in the recipe."""
    told = (read_recipe(folder) or {}).get("public_sha256")
    if told is None or told == _digest(folder / INDEX):
        return []
    return [
        Finding("files", (str(folder),), f"{INDEX} was changed after it was written: the recipe has another sha256")
    ]


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _foreign(release: Published) -> list[Finding]:
    """Return what lies in the folder besides a release, and would be published with it."""
    foreign = sorted(path.name for path in release.folder.iterdir() if path.name not in PUBLIC or path.is_dir())
    return [
        finding_on("files", release, f"{name} is no part of a release, and would be published with it; move it away")
        for name in foreign
    ]


def _compare_recipe(release: Published) -> list[Finding]:
    """Compare what everybody reads with what the steward keeps."""
    if release.about is None:
        text = "there is no recipe beside it: what it was made of, and what was suppressed, is not known here"
        return [finding_on("files", release, text, "note")]
    findings = []
    for part in SHARED if release.recipe else ():
        public, private = release.manifest.get(part), release.about.get(part)
        if isinstance(public, dict) and isinstance(private, dict):
            # A threshold on weight from the data is told as what the rows tell of it.
            kept = private | ({"weight": private["weight_told"]} if part == "rule" and "weight_told" in private else {})
            asked = {*NAMES, *CONSTRAINTS} if part == "rule" else set()
            both = (public.keys() & kept.keys()) | (asked & (public.keys() | kept.keys()))
            names = sorted(name for name in both if not _agree(part, public.get(name), kept.get(name)))
        else:
            names = [part] if None not in (public, private) and public != private else []
        for name in names:
            text = f"release.json and the recipe disagree on {part if name == part else f'{part}, {name}'}"
            findings.append(finding_on("files", release, text))
    return findings


def _agree(part: str, public: object, private: object) -> bool:
    """Tell whether two say the same; a threshold on weight from the data is told in three digits, rounded down."""
    if part != "rule" or not isinstance(public, float) or not isinstance(private, float):
        return public == private
    return public == private or (public == float(f"{public:.3g}") and 0 <= private - public < 0.01 * private)


def _header(path: Path) -> list[str] | None:
    """Return the names in the first line of a CSV file; None where there is none that can be read."""
    try:
        return next(csv.reader(path.read_text(encoding="utf-8", errors="replace").splitlines()), None)
    except csv.Error:
        return None


def _compare_csv(connection: duckdb.DuckDBPyConnection, release: Published) -> list[Finding]:
    """Compare classes.csv with classes.parquet, flow by flow."""
    names = [*AXES, *release.axes, *release.measures]
    path = release.folder / "classes.csv"
    if _header(path) != names:
        return [finding_on("files", release, f"classes.csv does not begin with the columns {', '.join(names)}")]
    columns = ", ".join(f"{quote_text(name)}: 'VARCHAR'" for name in names)
    # A spreadsheet would run a code that begins like a formula, so an apostrophe stands before it, and before another;
    # the same behind a semicolon or a tab, where some begin a cell.
    plain = ", ".join(
        f"regexp_replace(regexp_replace({quote_name(axis)}, '^''', ''), '([;\\t])''', '\\1', 'g') AS {quote_name(axis)}"
        for axis in (*AXES, *release.axes)
    )
    scan = (
        f"(SELECT *, {attribute_sql(release.axes)} AS kind FROM (SELECT * REPLACE ({plain}) FROM "
        f"read_csv({plain_path(path)}, auto_detect=false, header=true, delim=',', quote='\"', escape='\"', "
        f"columns={{{columns}}}, null_padding=true, ignore_errors=true, parallel=false)))"
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
        f"FULL JOIN (FROM classes WHERE release = {release.number}) p USING (origin, destination, kind) "
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
    details = tuple({"origin": row[0], "destination": row[1]} for row in other)
    return [finding_on("files", release, text, details=details)]
