"""One Spark session for all tests on Spark: it takes a while to start."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from odkanon.engine.spark.backend import start_session

SHORT_LIVED = "--driver-java-options '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC'"
"""A Java that ends within two minutes gets nothing back for compiling what it runs as well as it can."""


@pytest.fixture(scope="package")
def session() -> Iterator[Any]:
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", f"--conf spark.ui.enabled=false {SHORT_LIVED} pyspark-shell")
    session = start_session("local[2]")
    session.conf.set("spark.sql.shuffle.partitions", "2")
    # On inputs this small, compiling a statement takes longer than running it.
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    session.conf.set("spark.sql.adaptive.enabled", "false")
    yield session
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session.stop()
