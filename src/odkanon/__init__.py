"""Origin-destination matrices that can be published without exposing anyone.

The names below are the public API. They are imported when first used, so that ``odkanon --help`` stays instant.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from odkanon._version import __version__

if TYPE_CHECKING:
    from odkanon.area import Area, read_area
    from odkanon.errors import InputError, OdkanonError, RefusedError, UnsafeReleaseError
    from odkanon.hierarchy import Hierarchy, h3_hierarchy
    from odkanon.io.export import export_release
    from odkanon.lookup import lookup_hierarchy, read_hierarchy
    from odkanon.methods import anonymize
    from odkanon.metrics import Utility, utility
    from odkanon.od import ODMatrix
    from odkanon.odtable import read_od
    from odkanon.points import points_to_trips
    from odkanon.release import Release
    from odkanon.risk import Privacy, privacy
    from odkanon.rule import Rule
    from odkanon.trips import Trips, build_od, read_trips

_HOME = {
    "area": ("Area", "read_area"),
    "errors": ("InputError", "OdkanonError", "RefusedError", "UnsafeReleaseError"),
    "hierarchy": ("Hierarchy", "h3_hierarchy"),
    "io.export": ("export_release",),
    "lookup": ("lookup_hierarchy", "read_hierarchy"),
    "methods": ("anonymize",),
    "od": ("ODMatrix",),
    "odtable": ("read_od",),
    "points": ("points_to_trips",),
    "risk": ("Privacy", "privacy"),
    "release": ("Release",),
    "rule": ("Rule",),
    "trips": ("Trips", "build_od", "read_trips"),
    "metrics": ("Utility", "utility"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "Area",
    "Hierarchy",
    "InputError",
    "ODMatrix",
    "OdkanonError",
    "Privacy",
    "RefusedError",
    "Release",
    "Rule",
    "Trips",
    "UnsafeReleaseError",
    "Utility",
    "__version__",
    "anonymize",
    "build_od",
    "export_release",
    "h3_hierarchy",
    "lookup_hierarchy",
    "points_to_trips",
    "privacy",
    "read_area",
    "read_hierarchy",
    "read_od",
    "read_trips",
    "utility",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'odkanon' has no attribute {name!r}")
    value = getattr(import_module(f"odkanon.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
