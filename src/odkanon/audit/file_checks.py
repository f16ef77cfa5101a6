"""The files of a release against their digests, against each other, and against the recipe."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from duckdb import DuckDBPyConnection as Connection

from odkanon.audit.counting.counted_measures import NAMES, measures_named
from odkanon.audit.counting.scan import plain_path
from odkanon.audit.findings import Finding
from odkanon.audit.release_reader import (
    AXES,
    CONSTRAINTS,
    PublishedRelease,
    attribute_sql,
    end_columns,
    finding_on,
    read_json,
    reporting_damage,
)
from odkanon.core.sql import quote_name, quote_text
from odkanon.estimate.flat_matrix import repeat_matrix
from odkanon.release_format.folder import open_release
from odkanon.release_format.recipe import read_recipe, recipe_path

AT_CAP = "at_cap"  # the column that marks nested rows at their cap
PAGE, MANIFEST, INDEX = "report.html", "release.json", "index.json"
MATRIX = ("matrix.csv", "matrix.parquet", "matrix_zones.geojson")
PUBLIC = ("classes.csv", "classes.parquet", "zones.geojson", *MATRIX, MANIFEST, "datapackage.json", PAGE)
"""The files of a release."""
_TOLERANCE, _SMALL = 0.02, 0.06
_TOLERANCES = {"low": 0.0, "high": 0.0, "interval_low": 1.0, "interval_high": 1.0}
"""How far the numbers of a matrix may differ between machines, and up to which estimate a flow may be missing."""
SHARED = ("method", "rule", "published", "statement")  # entries of both the public manifest and the steward's recipe
(_WEIGHT,) = measures_named(["weight"])


def check_files(connection: Connection, release: PublishedRelease) -> Iterator[Finding]:
    """Compare the files of a release with their digests and with each other."""
    for name in sorted(path.name for path in release.folder.iterdir() if path.name not in PUBLIC or path.is_dir()):
        text = f"{name} is no part of a release, and would be published with it; move it away"
        yield finding_on("files", release, text)
    private = (release.provenance or {}).get("files", {}) if release.recipe else {}
    for file, digest in {**private, **release.manifest.get("files", {})}.items():
        path = release.folder / file
        if not path.is_file():
            yield finding_on("files", release, f"{file} is listed in release.json but missing")
        elif _digest(path) != digest:
            text = f"{file} was changed after it was written: its sha256 is another one"
            # Only the page may be remade, with other texts or another basemap.
            yield finding_on("files", release, text, "note" if file == PAGE else "finding")
    if "files" not in release.manifest:
        text = "release.json lists no digests, so edits of single files cannot be detected"
        yield finding_on("files", release, text, "note")
    known = (*release.subject.places, *release.axes, *map(release.subject.column, NAMES), AT_CAP)
    more = [name for name in _columns(connection, release) if name not in known]
    if more:
        text = f"classes.parquet has the columns {', '.join(more)}, which are no part of a release"
        yield finding_on("files", release, text)
    yield from _check_matrix(connection, release)
    yield from _check_manifest(release)
    yield from _compare_recipe(release)
    yield from _compare_csv(connection, release)


def _columns(connection: Connection, release: PublishedRelease) -> list[str]:
    """Return the columns of classes.parquet."""
    scan = f"read_parquet({plain_path(release.folder / 'classes.parquet')}, hive_partitioning=false)"
    return [row[0] for row in connection.execute(f"DESCRIBE SELECT * FROM {scan}").fetchall()]


def _check_matrix(connection: Connection, release: PublishedRelease) -> Iterator[Finding]:
    """Compare both files of the matrix with what follows from the rows and zones."""
    wrong = [name for name in MATRIX[:2] if (release.folder / name).is_file()]
    text = "is in the folder, but release.json describes no matrix"
    if "matrix" in release.manifest:
        text = "does not follow from the published flows and zones"
        with reporting_damage(f"the matrix of {release.name}"):
            connection.register("repeated_matrix", repeat_matrix(open_release(release.folder), release.folder))
            wrong = [name for name in wrong if _differs(connection, release.folder / name)]
    for name in wrong:
        yield finding_on("files", release, f"{name} {text}")


def _differs(connection: Connection, path: Path) -> bool:
    """Return whether a matrix differs from the repeated one by more than results of two machines may."""
    scan = f"read_parquet({plain_path(path)}, hive_partitioning=false)"
    if path.name == MATRIX[0]:
        scan = (
            f"read_csv({plain_path(path)}, header=true, delim=',', quote='\"', escape='\"', all_varchar=true, "
            "hive_partitioning=false)"
        )
    names = [row[0] for row in connection.execute("DESCRIBE repeated_matrix").fetchall()]
    if [row[0] for row in connection.execute(f"DESCRIBE SELECT * FROM {scan}").fetchall()] != names:
        return True
    if path.name == MATRIX[0]:
        scan = f"(SELECT * REPLACE ({_without_guard(AXES)}) FROM {scan})"
    apart = " OR ".join(
        f"(TRY_CAST(f.{name} AS DOUBLE) IS NULL) <> (r.{name} IS NULL) OR "
        f"abs(TRY_CAST(f.{name} AS DOUBLE) - r.{name}) > {_TOLERANCES.get(name, _TOLERANCE)} * (1 + abs(r.{name}))"
        for name in names
        if name not in AXES
    )
    # A flow at the threshold may be listed on one machine only.
    query = (
        f"SELECT count(*) FROM {scan} f FULL JOIN repeated_matrix r "
        f"USING (origin, destination) WHERE CASE WHEN f.low IS NULL THEN r.estimate > {_SMALL} WHEN r.low IS NULL "
        f"THEN NOT coalesce(TRY_CAST(f.estimate AS DOUBLE) <= {_SMALL}, false) ELSE {apart} END"
    )
    return bool(connection.execute(query).fetchall()[0][0])


def _check_manifest(release: PublishedRelease) -> Iterator[Finding]:
    """Compare release.json with its digest in the recipe, or in the index of linked releases."""
    own, index = recipe_path(release.folder.absolute()), release.folder.absolute().parent / INDEX
    if own.is_file() or not index.is_file():
        who, digest = "the recipe", release.recipe.get("public_sha256")
    else:
        files = read_json(index).get("files", {})
        who, digest = INDEX, files.get(f"{release.folder.absolute().name}/{MANIFEST}")
    if digest is not None and digest != _digest(release.folder / MANIFEST):
        yield finding_on("files", release, f"{MANIFEST} was changed after it was written: {who} has another sha256")


def check_index(folder: Path) -> list[Finding]:
    """Compare the index of linked releases with its digest in the recipe."""
    digest = (read_recipe(folder) or {}).get("public_sha256")
    text = f"{INDEX} was changed after it was written: the recipe has another sha256"
    return [] if digest in (None, _digest(folder / INDEX)) else [Finding("files", (str(folder),), text)]


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _compare_recipe(release: PublishedRelease) -> Iterator[Finding]:
    """Compare the public manifest with the steward's recipe."""
    if release.provenance is None:
        text = "there is no recipe beside it: what it was made of, and what was suppressed, is not known here"
        yield finding_on("files", release, text, "note")
        return
    for part in SHARED if release.recipe else ():
        public, private = release.manifest.get(part), release.provenance.get(part)
        if isinstance(public, dict) and isinstance(private, dict):
            if part == "rule" and "weight_told" in private:
                # A threshold on weight that depends on the data is published as the rows disclose it.
                private = private | {"weight": private["weight_told"]}
            if part == "published" and release.nested:
                # Rows at their cap have the mean weight of others.
                public = {name: value for name, value in public.items() if name != "weight"}
            required = {*NAMES, *CONSTRAINTS} if part == "rule" else set()
            both = (public.keys() & private.keys()) | (required & (public.keys() | private.keys()))
            names = sorted(name for name in both if not _agree(part, public.get(name), private.get(name)))
        else:
            names = [part] if None not in (public, private) and public != private else []
        for name in names:
            text = f"release.json and the recipe disagree on {part if name == part else f'{part}, {name}'}"
            yield finding_on("files", release, text)


def _agree(part: str, public: object, private: object) -> bool:
    """Return whether two values agree; a threshold on weight may be published in three digits, rounded down."""
    if not isinstance(public, float) or not isinstance(private, float):
        return public == private
    if part == "published":
        # Of each row and of their sum, weights have four significant digits.
        return abs(public - private) <= 2 * _WEIGHT.rounding * private
    return public == private or (public == float(f"{public:.3g}") and 0 <= private - public < 0.01 * private)


def _without_guard(columns: Iterable[str]) -> str:
    """Return, in SQL, columns of a CSV file as they were before they were guarded.

    Codes that a spreadsheet would run as formulas are written with an apostrophe in front, as are those that begin with
    one; likewise after a semicolon or a tab, where some programs begin a cell.
    """
    return ", ".join(
        f"regexp_replace(regexp_replace({quote_name(name)}, '^''', ''), '([;\\t])''', '\\1', 'g') AS {quote_name(name)}"
        for name in columns
    )


def _compare_csv(connection: Connection, release: PublishedRelease) -> Iterator[Finding]:
    """Compare classes.csv with classes.parquet, flow by flow."""
    subject = release.subject
    names = [*subject.places, *release.axes, *map(subject.column, release.measures)]
    names += [name for name in _columns(connection, release) if name == AT_CAP]
    path, header = release.folder / "classes.csv", None
    with suppress(csv.Error):
        header = next(csv.reader(path.read_text(encoding="utf-8", errors="replace").splitlines()), None)
    if header != names:
        yield finding_on("files", release, f"classes.csv does not begin with the columns {', '.join(names)}")
        return
    columns = ", ".join(f"{quote_text(name)}: 'VARCHAR'" for name in names)
    plain = _without_guard([*subject.places, *release.axes])
    theirs = [*end_columns(subject), *(quote_name(subject.column(name)) for name in release.measures)]
    ours = [f"{column} AS {name}" for column, name in zip(theirs, (*AXES, *release.measures), strict=True)]
    selected = ", ".join([*ours, f"{attribute_sql(release.axes)} AS attributes"])
    scan = (
        f"(SELECT {selected} FROM (SELECT * REPLACE ({plain}) FROM "
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
        f"FULL JOIN (FROM classes WHERE release = {release.number}) p USING (origin, destination, attributes) "
        f"WHERE p.trips IS NULL OR {differs} ORDER BY 1, 2"
    ).fetchall()
    text = "classes.csv and classes.parquet disagree"
    if counted[0] != counted[1]:
        text = f"classes.csv has {counted[0]:,} flows and classes.parquet {counted[1]:,}: one was cut short or added to"
    elif not other:
        return
    if other:
        origin, destination, in_csv, in_parquet = other[0]
        text += f"; {origin} -> {destination} has {in_csv or 'no'} trips in the one, {in_parquet or 'no'} in the other"
    details = tuple({"origin": row[0], "destination": row[1]} for row in other)
    yield finding_on("files", release, text, details=details)
