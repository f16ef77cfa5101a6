"""Parquet in an object store, served by a stand-in on this machine: the same trips, on the engines that are here."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pyarrow.parquet
import pytest

from odkanon import InputError, InputSpec, read_trips
from odkanon.engine.dispatch import choose_engine, load
from worlds.files import trips_table

server = pytest.importorskip("moto.server")
boto3 = pytest.importorskip("boto3")


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    """A bucket with the sample trips as one file, and in two parts by month."""
    running = server.ThreadedMotoServer(port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "AWS_ACCESS_KEY_ID": "somebody",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        }.items():
            patch.setenv(name, value)
        client = boto3.client("s3")
        client.create_bucket(Bucket="trips")
        whole = trips_table()
        for key, part in (
            ("all.parquet", whole),
            ("parts/month=1/a.parquet", whole.slice(0, 20)),
            ("parts/month=2/b.parquet", whole.slice(20)),
            ("heavy/weight=1000/a.parquet", whole),
        ):
            content = io.BytesIO()
            pyarrow.parquet.write_table(part, content)
            client.put_object(Bucket="trips", Key=key, Body=content.getvalue())
        yield "s3://trips"
    running.stop()


@pytest.mark.parametrize("path", ["all.parquet", "parts"])
def test_the_same_trips_on_every_engine_that_is_here(store: str, path: str) -> None:
    address = f"{store}/{path}"
    assert len(read_trips(address)) == 48
    assert choose_engine(address) == "memory"
    assert choose_engine(address, memory_limit=1000) == "duckdb"
    whole: Any = load(InputSpec(trips_table(), resolution=9), engine="memory")
    for engine in ("memory", "duckdb"):
        assert load(InputSpec(address, resolution=9), engine=engine).summary.trips == whole.summary.trips
    if path == "parts":
        assert len(read_trips(address, where="month == 1")) == 20


def test_what_is_not_there_is_said(store: str) -> None:
    with pytest.raises(InputError, match=r"cannot be read|no Parquet files"):
        read_trips(f"{store}/nothing")
    with pytest.raises(InputError, match="as a folder"):
        read_trips([f"{store}/all.parquet", f"{store}/parts"])
    assert choose_engine("s3a://trips/all.parquet") == "spark"
    with pytest.raises(InputError, match="Spark"):
        read_trips("s3a://trips/all.parquet")


def test_a_partition_never_replaces_a_column(store: str) -> None:
    with pytest.raises(InputError, match="has a column 'weight', which folder 'weight=1000' would replace"):
        read_trips(f"{store}/heavy")
