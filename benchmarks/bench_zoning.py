"""Trips joined to polygons against the same run on H3 cells, in DuckDB: ``python benchmarks/bench_zoning.py``.

The trips are those of the sample survey, repeated with their ends shifted by some 300 m; the polygons are Voronoi cells
of ends of trips, so that they are small where trips are many, as traffic zones are.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import shapely

import odkanon

METRES = 0.0000090
"""Degrees of latitude of a metre, roughly."""


def write_trips(path: Path, trips: int) -> None:
    """Write trips in parts of the size of the survey."""
    survey = odkanon.make_survey()
    schema, rng, left, part = survey.schema, np.random.default_rng(1), trips, 0
    with pq.ParquetWriter(path, schema) as writer:
        while left > 0:
            table = survey.slice(0, min(left, survey.num_rows))
            for name in ("start_lat", "start_lon", "end_lat", "end_lon"):
                moved = table.column(name).to_numpy() + rng.normal(0, 300 * METRES, table.num_rows)
                table = table.set_column(table.schema.get_field_index(name), name, pa.array(moved))
            person = pa.array([f"{who}-{part}" for who in table.column("person").to_pylist()])
            writer.write_table(table.set_column(table.schema.get_field_index("person"), "person", person).cast(schema))
            left, part = left - table.num_rows, part + 1


def write_polygons(path: Path, zones: int) -> None:
    """Write Voronoi cells of ends of trips."""
    survey = odkanon.make_survey()
    at = np.random.default_rng(2).choice(survey.num_rows, zones, replace=False)
    ends = shapely.multipoints(
        np.column_stack([survey.column("start_lon").to_numpy()[at], survey.column("start_lat").to_numpy()[at]])
    )
    cells = shapely.get_parts(shapely.voronoi_polygons(ends, extend_to=shapely.box(1.4, 48.1, 3.6, 49.3)))
    import geopandas

    codes = [f"Z{number:05}" for number in range(len(cells))]
    geopandas.GeoDataFrame({"CODE": codes}, geometry=cells, crs="EPSG:4326").to_file(path)


def seconds(trips: Path, **options: object) -> float:
    """Return how long a release takes from the file to its rows, the better of two runs."""
    best = float("inf")
    for _ in range(2):
        start = time.perf_counter()
        release = odkanon.anonymize(trips, engine="duckdb", memory_limit="2GiB", **options)  # type: ignore[call-overload]
        assert len(release.classes)
        best = min(best, time.perf_counter() - start)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trips", type=int, default=2_500_000)
    parser.add_argument("--zones", type=int, default=5_000)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    with TemporaryDirectory() as folder:
        trips, zones = Path(folder, "trips.parquet"), Path(folder, "zones.gpkg")
        write_trips(trips, asked.trips)
        write_polygons(zones, asked.zones)
        cells, polygons = seconds(trips), seconds(trips, zoning=zones, zone_id="CODE")
    sys.stdout.write(
        f"{asked.trips:,} trips, {asked.zones:,} polygons: H3 {cells:.1f} s, polygons {polygons:.1f} s, "
        f"{polygons / cells:.2f} times as long\n"
    )


if __name__ == "__main__":
    main()
