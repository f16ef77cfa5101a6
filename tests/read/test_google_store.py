"""Parquet at ``gs://``, served by a stand-in on this machine."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.fs
import pyarrow.parquet
import pytest

from odkanon import InputError, InputSpec, read_trips
from odkanon.engine.dispatch import load
from worlds.files import trips_table

if not hasattr(pyarrow.fs, "GcsFileSystem"):
    pytest.skip("this pyarrow does not know such stores", allow_module_level=True)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A bucket with one file; in a process of its own, since a reader may wait without letting others run."""
    file = tmp_path_factory.mktemp("store") / "all.parquet"
    pyarrow.parquet.write_table(trips_table(), file)
    command = [sys.executable, str(Path(__file__).with_name("google_store.py")), str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running, pytest.MonkeyPatch.context() as patch:
        assert running.stdout is not None
        patch.setenv("CLOUD_STORAGE_EMULATOR_ENDPOINT", f"http://127.0.0.1:{running.stdout.readline().strip()}")
        yield "gs://anonymous@trips"
        running.kill()


def test_the_same_trips_in_memory_and_in_duckdb(store: str) -> None:
    assert len(read_trips(f"{store}/all.parquet")) == 48
    for engine in ("memory", "duckdb"):
        assert load(InputSpec(f"{store}/all.parquet", resolution=9), engine=engine).summary.trips == 48


def test_what_is_not_there_is_said(store: str) -> None:
    with pytest.raises(InputError, match=r"cannot be read|no Parquet files"):
        read_trips(f"{store}/nothing")
