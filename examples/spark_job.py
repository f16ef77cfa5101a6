"""A release of a very large dataset of trips, or of GNSS points, made on a Spark cluster.

Run it with::

    spark-submit --py-files odkanon.zip examples/spark_job.py s3a://bucket/trips release --k 10
    spark-submit --py-files odkanon.zip examples/spark_job.py s3a://bucket/points release --k 10 --points

The Python of the executors needs odkanon's dependencies (numpy, pyarrow, h3, h3ronpy, duckdb); ship an environment
with ``--archives`` where they are not installed. The release itself is small, and is written by the driver.
"""

from __future__ import annotations

import argparse

from pyspark.sql import SparkSession

from odkanon import Rule, anonymize, spark


def main() -> None:
    """Read, make trips of points where that is what there is, protect and save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", help="Parquet: a folder, or an address in an object store")
    parser.add_argument("release", help="folder for the release, on the driver")
    parser.add_argument("--points", action="store_true", help="the source has GNSS points, to be made into trips")
    parser.add_argument("--k", type=int, default=10, help="trips, and different persons, that share every flow")
    parser.add_argument("--resolution", type=int, default=10)
    options = parser.parse_args()
    session = SparkSession.builder.appName("odkanon").getOrCreate()
    source = options.source
    if options.points:
        trips = spark.trips(session, source)
        print(trips.account)
        source = trips.frame
    od = spark.read(session, source, resolution=options.resolution)
    targets = ["participants"] if od.summary.persons is None else ["participants", "persons"]
    rule = Rule.protect(*targets, k=options.k, of=od.summary)  # type: ignore[arg-type]
    release = anonymize(od, rule)
    print(release)
    if release.refusal is None:
        release.save(options.release, force=True)
    session.stop()


if __name__ == "__main__":
    main()
