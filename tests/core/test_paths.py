"""Addresses in object stores survive being taken for paths, and names are names."""

from __future__ import annotations

from pathlib import PurePath, PurePosixPath, PureWindowsPath

import pytest

from odkanon.core.system import remote


@pytest.mark.parametrize("kind", [str, PurePosixPath, PureWindowsPath])
def test_addresses_keep_their_slashes(kind: type[str] | type[PurePath]) -> None:
    assert remote(kind("s3a://bucket/trips/2024")) == "s3a://bucket/trips/2024"
    assert remote(kind("hdfs://host:9000/trips")) == "hdfs://host:9000/trips"


@pytest.mark.parametrize(
    "path", ["trips.csv", "/data/trips.csv", PureWindowsPath("C:/data/trips.csv"), "C:/data/trips.csv"]
)
def test_paths_are_no_addresses(path: str | PurePath) -> None:
    assert remote(path) is None
