"""Settings for all tests."""

from importlib.util import find_spec
from pathlib import Path

from hypothesis import HealthCheck, settings

settings.register_profile("odkanon", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.load_profile("odkanon")

HERE = Path(__file__).parent
NEEDS = {
    "attacks/test_audit_complete.py": ("scipy",),
    "attacks/test_audit_survey.py": ("scipy",),
    "engine/test_layouts.py": ("pyproj",),
    "engine/test_spark.py": ("pyproj",),
    "publish/test_catalogue.py": ("rdflib",),
    "evidence": ("opendp", "scipy"),
    "publish/test_datapackage.py": ("frictionless",),
    "publish/test_exports.py": ("geopandas", "h5py", "openmatrix", "pyogrio", "shapely"),
    "methods/test_freezones_polygons.py": ("shapely",),
    "publish/test_series.py": ("geopandas", "h5py", "openmatrix", "pyogrio", "shapely"),
    "read/test_files.py": ("geopandas", "pyogrio", "shapely"),
    "publish/test_notebook.py": ("pandas", "polars"),
    "publish/test_onto.py": ("geopandas", "h5py", "openmatrix", "shapely"),
    "read/test_formats.py": ("pyproj",),
    "read/test_outlines.py": ("shapely",),
    "study/test_explain.py": ("geopandas", "shapely"),
    "web": ("playwright",),
}
"""Tests that cannot be loaded without packages that `odkanon` itself does without; the extra ``dev`` has them all."""


collect_ignore = [str(HERE / path) for path, packages in NEEDS.items() if not all(map(find_spec, packages))]
