"""The methods: each one a function from a matrix and a rule to a release."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from inspect import signature
from typing import Any

from odkanon.engine import Matrix, in_memory
from odkanon.errors import InputError, nearest
from odkanon.methods.atg import atg_soft
from odkanon.methods.freezones import freezones
from odkanon.methods.mondrian import mondrian
from odkanon.methods.odkanon import odkanon
from odkanon.methods.oigh import oigh
from odkanon.methods.treecut import treecut
from odkanon.release import Release
from odkanon.rule import Rule

METHODS: dict[str, Callable[..., Release]] = {
    "odkanon": odkanon,
    "oigh": oigh,
    "atg-soft": atg_soft,
    "mondrian": mondrian,
    "treecut": treecut,
    "freezones": freezones,
}
ON_ANY_ENGINE = frozenset({"odkanon", "oigh"})
"""Methods that never look at a pair; for the others the pairs are fetched into memory."""
DEFAULT_METHOD = "odkanon"


def anonymize(od: Matrix, rule: Rule, *, method: str = DEFAULT_METHOD, **options: Any) -> Release:
    """Make a release of an OD matrix.

    Parameters
    ----------
    od : ODMatrix or SqlMatrix
        The input.
    rule : Rule
        What every published class must meet.
    method : str
        One of `METHODS`.
    **options
        What the method takes besides, such as ``budget=0.10``.

    Returns
    -------
    Release
        Where the rule cannot be met it is empty, and ``refusal`` says why.
    """
    if method not in METHODS:
        raise InputError(f"there is no method {method!r}; choose among {', '.join(METHODS)}{nearest(method, METHODS)}")
    accepted = list(signature(METHODS[method]).parameters)[2:]
    for name in options:
        if name not in accepted:
            known = f"it takes {', '.join(accepted)}" if accepted else "it takes none"
            raise InputError(f"method {method!r} has no option {name!r}{nearest(name, accepted)}; {known}")
    start = time.perf_counter()
    release = METHODS[method](od if method in ON_ANY_ENGINE else in_memory(od), rule, **options)
    return replace(release, seconds=time.perf_counter() - start)
