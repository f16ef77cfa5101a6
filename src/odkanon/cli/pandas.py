"""The command line does without pandas, which pyarrow imports wherever it finds it; only Spark needs it."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder


class _WithoutPandas(MetaPathFinder):
    """Importing pandas takes longer than many a release."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("the command line does without pandas", name=fullname)


_FINDER = _WithoutPandas()


def do_without_pandas() -> None:
    """Let nothing import pandas from now on."""
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)


def allow_pandas() -> None:
    """Let pandas be imported again; a command that needs it says so before it imports anything else."""
    if _FINDER in sys.meta_path:
        sys.meta_path.remove(_FINDER)
