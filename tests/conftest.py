"""Settings for all tests."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("thorough", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.register_profile("odkanon", settings.get_profile("thorough"), max_examples=34)
settings.load_profile("odkanon")

SEPARATE = ("tests/test_api.py", "tests/test_docs.py", "tests/engine/test_duckdb.py")
"""Modules whose tests share nothing and are slow."""

SHARED = ("tests/engine/test_spark", "tests/web/")
"""Modules that share one Spark session, and modules that share one browser."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Use one worker more than there are cores, since some always wait for a browser, for Spark or for a process."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with what takes longest where several workers share the tests, so that none of them ends alone."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: not item.nodeid.startswith(SHARED))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Share tests out module by module, since they share what is slow to make: one has Spark, one the browser."""
    from xdist.scheduler import LoadScopeScheduling

    def scope(nodeid: str) -> str:
        shared = next((prefix for prefix in SHARED if nodeid.startswith(prefix)), None)
        return shared or (nodeid if nodeid.startswith(SEPARATE) else nodeid.partition("::")[0])

    config.option.loadscopereorder = False
    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = scope
    return scheduler


@pytest.fixture(scope="session")
def example_names() -> dict[str, Any]:
    """Names that the examples in docstrings may use without defining them."""
    import numpy as np
    import pyarrow as pa

    import odkanon
    from odkanon.methods import anonymize

    trips = odkanon.read_trips(odkanon.make_survey())
    od = odkanon.build_od(trips, resolution=7)
    return {
        **{name: getattr(odkanon, name) for name in odkanon.__all__},
        "np": np,
        "pa": pa,
        "Path": Path,
        "trips": trips,
        "od": od,
        "release": anonymize(od, odkanon.Rule(trips=10)),
    }
