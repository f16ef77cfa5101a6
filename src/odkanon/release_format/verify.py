"""What was written, read back by another library than wrote it, and compared with what was meant."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from odkanon.core.parsing import parse_json
from odkanon.core.sql import literal
from odkanon.errors import UnsafeReleaseError
from odkanon.model.measures import ADDITIVE
from odkanon.model.od import AXES
from odkanon.model.release import Release
from odkanon.release_format.manifest import public_manifest
from odkanon.release_format.names import CSV, MANIFEST, PARQUET, ZONES, classes_table, read_rows, sha256


def check_written(release: Release, folder: Path, connection: duckdb.DuckDBPyConnection) -> None:
    """Raise unless the files of a release say what the release does, agree with each other and meet the rule.

    The release itself is checked again first: rule, budget, and where every trip went. ``classes.csv``, which DuckDB
    has written, is then read by Arrow; ``classes.parquet`` and ``zones.geojson``, which it has not, by DuckDB.

    Raises
    ------
    UnsafeReleaseError
        If anything differs.
    """
    release.check()
    meant = classes_table(release)
    # A folder called sex=Woman is no partition: its name is not a column.
    scan = f"read_parquet({literal(folder / PARQUET)}, hive_partitioning = false)"
    rows = connection.sql(f"SELECT * FROM {scan}").to_arrow_table()
    for file, found in ((PARQUET, rows), (CSV, _read_csv(folder / CSV, meant.schema))):
        if not found.cast(meant.schema).equals(meant):
            raise _differs(file, "the flows")
    _check_rule(release, rows)
    _check_zones(connection, folder, meant)
    _check_manifest(release, folder)


def _read_csv(path: Path, schema: pa.Schema) -> pa.Table:
    return read_rows(path, {field.name: field.type for field in schema})


def _check_rule(release: Release, rows: pa.Table) -> None:
    rule, scale = release.rule, release.classes.scale
    # Heads that must not be published cannot be read back; the release itself was checked with them.
    for measure in (name for name in rule.measures if name not in release.classes.min_contributors):
        masses = np.asarray(rows.column(measure).to_numpy(), dtype=np.float64)
        whole = np.rint(masses * scale) if measure == "weight" else masses
        if np.any(whole < rule.units(measure, scale)):
            raise _differs(PARQUET, f"a flow below {rule}")
    origin = pa.compute.dictionary_encode(rows.column("origin")).combine_chunks().indices.to_numpy()
    if not rule.with_destinations(origin, np.ones(len(origin), dtype=bool)).all():
        raise _differs(PARQUET, f"an origin that breaks {rule}")


def _check_zones(connection: duckdb.DuckDBPyConnection, folder: Path, meant: pa.Table) -> None:
    """Compare the zones with the ends of the flows: the same ones, once each, with the same sums."""
    own = [measure for measure in ADDITIVE if measure in meant.column_names]
    picked = ", ".join(f"(p->>'$.{measure}')::DOUBLE AS {measure}" for measure in own)
    features = (
        f"SELECT p->>'$.axis' AS axis, p->>'$.id' AS id, {picked} FROM (SELECT unnest(json_extract(content, "
        f"'$.features[*].properties')) AS p FROM read_text({literal(folder / ZONES)}))"
    )
    zones = connection.sql(features).to_arrow_table()
    for axis in AXES:
        ends = pa.compute.dictionary_encode(meant.column(axis)).combine_chunks()
        order = pa.compute.sort_indices(ends.dictionary)
        here = zones.filter(pa.compute.equal(zones.column("axis"), axis)).sort_by("id")
        if here.column("id").to_pylist() != ends.dictionary.take(order).to_pylist():
            raise _differs(ZONES, f"the {axis} zones")
        for measure in own:
            sums = np.bincount(ends.indices.to_numpy(), weights=meant.column(measure).to_numpy())[order.to_numpy()]
            if not np.allclose(here.column(measure).to_numpy(), sums, rtol=1e-9, atol=0):
                raise _differs(ZONES, f"the {measure} of {axis} zones")


def _check_manifest(release: Release, folder: Path) -> None:
    told: dict[str, Any] = parse_json((folder / MANIFEST).read_text(encoding="utf-8"))
    files = told.pop("files")
    if told != json.loads(json.dumps(public_manifest(release))):
        raise _differs(MANIFEST, "what is said about the release")
    if files != {name: sha256(folder / name) for name in (CSV, PARQUET, ZONES)}:
        raise _differs(MANIFEST, "the digests of the files")


def _differs(file: str, what: str) -> UnsafeReleaseError:
    return UnsafeReleaseError(f"{file} does not hold what was meant ({what}); nothing was released")
