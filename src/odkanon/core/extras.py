"""Optional dependencies, imported where they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from odkanon.errors import MissingExtraError


def import_extra(module: str, *, purpose: str, extra: str, package: str | None = None) -> Any:
    """Import a module of an optional dependency.

    * ``module``: the module to import, such as ``scipy.sparse``.
    * ``purpose``: what needs it; the subject of the error message.
    * ``extra``: the extra of this package that installs it.
    * ``package``: the name of the distribution; by default the first part of the module's name.

    Raises `MissingExtraError` if it is not installed.
    """
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtraError.needed_for(purpose, package or module.partition(".")[0], extra) from None
