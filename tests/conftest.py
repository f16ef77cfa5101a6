"""Settings for all tests."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("thorough", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.register_profile("odkanon", settings.get_profile("thorough"), max_examples=50)
settings.load_profile("odkanon")

HERE = Path(__file__).parent
NEEDS = {
    "attacks/test_audit_complete.py": ("scipy",),
    "attacks/test_audit_survey.py": ("scipy",),
    "engine/test_layouts.py": ("pyproj",),
    "engine/test_spark.py": ("pyproj",),
    "engine/test_spark_csv.py": ("pyproj",),
    "methods/test_heads.py": ("scipy",),
    "publish/report/test_tiles.py": ("mapbox_vector_tile", "pmtiles", "shapely"),
    "together/test_intervals.py": ("scipy",),
    "publish/test_catalogue.py": ("rdflib",),
    "evidence": ("opendp", "scipy"),
    "publish/test_datapackage.py": ("frictionless",),
    "publish/test_exports.py": ("geopandas", "h5py", "openmatrix", "pyogrio", "shapely"),
    "publish/test_flowmap.py": ("pandas", "shapely"),
    "methods/test_freezones_polygons.py": ("shapely",),
    "publish/test_series.py": ("geopandas", "h5py", "openmatrix", "pyogrio", "shapely"),
    "read/test_files.py": ("geopandas", "pyogrio", "shapely"),
    "publish/test_notebook.py": ("pandas", "polars"),
    "publish/test_onto.py": ("geopandas", "h5py", "openmatrix", "scipy", "shapely"),
    "release_format/test_conversions.py": ("geopandas", "pandas", "polars", "scipy", "shapely"),
    "publish/test_onto_spread.py": ("scipy", "shapely"),
    "read/test_formats.py": ("pyproj",),
    "read/test_outlines.py": ("shapely",),
    "study/test_explain.py": ("geopandas", "shapely"),
    "web": ("playwright",),
}
"""Tests that cannot be loaded without packages that `odkanon` itself does without; the extra ``dev`` has them all."""


collect_ignore = [str(HERE / path) for path, packages in NEEDS.items() if not all(map(find_spec, packages))]


APART = ("tests/test_api.py", "tests/test_docs.py", "tests/engine/test_duckdb.py")
"""Modules whose tests share nothing and are slow."""

TOGETHER = ("tests/engine/test_spark", "tests/web/")
"""Modules that share one Spark session, and modules that share one browser."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Use one worker more than there are cores, since some always wait for a browser, for Spark or for a process."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with what takes longest where several workers share the tests, so that none of them ends alone."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: not item.nodeid.startswith(TOGETHER))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Share tests out module by module, since they share what is slow to make: one has Spark, one the browser."""
    from xdist.scheduler import LoadScopeScheduling

    def scope(nodeid: str) -> str:
        together = next((prefix for prefix in TOGETHER if nodeid.startswith(prefix)), None)
        return together or (nodeid if nodeid.startswith(APART) else nodeid.partition("::")[0])

    config.option.loadscopereorder = False
    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = scope
    return scheduler
