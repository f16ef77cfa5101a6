"""Origin-destination matrices that can be published without exposing anyone.

The public names are those of ``__init__.pyi``, where each is listed once with its home. They are imported when first
used, so that ``odkanon --help`` stays instant.
"""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

_LINE = re.compile(r"^from (odkanon[\w.]*) import (\w+) as", re.MULTILINE)
_HOME = {name: home for home, name in _LINE.findall(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'odkanon' has no attribute {name!r}")
    value = import_module(f"odkanon.{name}") if home == "odkanon" else getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
