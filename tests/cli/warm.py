"""Reads what every release needs of the package's own files; the processes that are copied have it then."""

from __future__ import annotations

from odkanon.estimate.town_names import load_towns
from odkanon.publish.report import basemap
from odkanon.read import coordinates
from odkanon.release_format import recipe

load_towns()
coordinates._land()
recipe._package_versions()
if basemap.WORLD.exists():
    basemap._world()
