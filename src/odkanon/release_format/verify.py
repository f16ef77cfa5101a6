"""Verification of a written release folder: each file is read back by another library than wrote it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odkanon.core.parsing import parse_json
from odkanon.core.sql import literal, quote_name, quote_text
from odkanon.errors import UnsafeReleaseError
from odkanon.model.axes import Subject
from odkanon.model.measures import ADDITIVE
from odkanon.model.release import Release
from odkanon.release_format.contents import classes_table
from odkanon.release_format.names import CSV, MANIFEST, PARQUET, ZONES, public_digests, read_guarded_csv
from odkanon.release_format.public_rule import publishable_rule


def verify_written(
    release: Release, manifest: Mapping[str, Any], folder: Path, connection: duckdb.DuckDBPyConnection
) -> None:
    """Raise unless the files of a release agree with it and with each other, and meet the rule.

    The release itself is checked first: rule, budget, and the assignment of every trip. ``classes.csv`` was written by
    DuckDB and is read by Arrow; ``classes.parquet`` and ``zones.geojson`` were not, and are read by DuckDB.
    ``manifest`` is the expected content of ``release.json``, without digests. Raises `UnsafeReleaseError`.
    """
    release.check()
    expected = classes_table(release)
    # Without Hive partitioning: a folder named sex=Woman is not a column.
    scan = f"read_parquet({literal(folder / PARQUET)}, hive_partitioning = false)"
    parquet = connection.sql(f"SELECT * FROM {scan}").to_arrow_table()
    types = {field.name: field.type for field in expected.schema}
    for file, found in ((PARQUET, parquet), (CSV, read_guarded_csv(folder / CSV, types))):
        if not found.cast(expected.schema).equals(expected):
            raise _mismatch(file, "the flows")
    _verify_rule(release, parquet)
    _verify_zones(connection, folder, expected, release.subject)
    _verify_manifest(manifest, folder)


def _verify_rule(release: Release, rows: pa.Table) -> None:
    rule, promised = release.rule, publishable_rule(release).disclosed_thresholds
    # Unpublished numbers of contributors cannot be read back; release.check() has checked them.
    subject = release.subject
    for measure in (name for name in rule.measures if name not in release.classes.min_contributors):
        masses = np.asarray(rows.column(subject.column(measure)).to_numpy(), dtype=np.float64)
        if np.any(masses < promised[measure]):
            raise _mismatch(PARQUET, f"a flow below {rule}")
    origin = pc.dictionary_encode(rows.column(subject.column("origin"))).combine_chunks().indices.to_numpy()
    if not rule.with_destinations(origin, np.ones(len(origin), dtype=bool)).all():
        raise _mismatch(PARQUET, f"an origin that violates {rule}")


def _verify_zones(connection: duckdb.DuckDBPyConnection, folder: Path, expected: pa.Table, subject: Subject) -> None:
    """Compare the zones with the ends of the flows: each one once, with the sum of its flows."""
    measures = [name for name in map(subject.column, ADDITIVE) if name in expected.column_names]
    columns = ", ".join(f"(p->{quote_text(name)})::DOUBLE AS {quote_name(name)}" for name in measures)
    query = (
        f"SELECT p->>'$.axis' AS axis, p->>'$.id' AS id, {columns} FROM (SELECT unnest(json_extract(content, "
        f"'$.features[*].properties')) AS p FROM read_text({literal(folder / ZONES)}))"
    )
    zones = connection.sql(query).to_arrow_table()
    for axis in subject.places:
        ends = pc.dictionary_encode(expected.column(axis)).combine_chunks()
        order = pc.sort_indices(ends.dictionary)
        here = zones.filter(pc.equal(zones.column("axis"), axis)).sort_by("id")
        if here.column("id").to_pylist() != ends.dictionary.take(order).to_pylist():
            raise _mismatch(ZONES, f"the {axis} zones")
        for measure in measures:
            masses = expected.column(measure).to_numpy()
            sums = np.bincount(ends.indices.to_numpy(), weights=masses)[order.to_numpy()]
            # Weights have four significant digits, in the zones as in the flows.
            within = 5e-4 if measure == "weight" else 0
            if not np.allclose(here.column(measure).to_numpy(), sums, rtol=within * (1 + 1e-9), atol=0):
                raise _mismatch(ZONES, f"the {measure} of {axis} zones")


def _verify_manifest(manifest: Mapping[str, Any], folder: Path) -> None:
    found: dict[str, Any] = parse_json((folder / MANIFEST).read_text(encoding="utf-8"))
    digests = found.pop("files")
    if found != json.loads(json.dumps(manifest)):
        raise _mismatch(MANIFEST, "the description of the release")
    if digests != public_digests(folder):
        raise _mismatch(MANIFEST, "the digests of the files")


def _mismatch(file: str, what: str) -> UnsafeReleaseError:
    return UnsafeReleaseError(f"{file} does not hold what it should ({what}); nothing was released")
