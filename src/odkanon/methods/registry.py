"""The methods, each described once: the command line, the explorer, the page, comparisons and the docs look here."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any

from odkanon.errors import InputError, nearest

if TYPE_CHECKING:
    from odkanon.engine.protocols import Matrix
    from odkanon.model.release import Release
    from odkanon.model.rule import Rule


@dataclass(frozen=True)
class Method:
    """What is known of a method without running it.

    Attributes
    ----------
    name : str
        As it is asked for.
    title : str
        As people call it.
    hint : str
        What it does, in a few words.
    home : str
        The module and the function, ``package.module:function``; imported when first used.
    any_engine : bool
        Whether it never looks at a pair, and so runs wherever the pairs are; for others they are fetched into memory.
    needs_cells : bool
        Whether it only works on H3 cells.
    overlaps : bool
        Whether zones of one axis may overlap, because they depend on the other end.
    slow : bool
        Whether it may take longer than a slider allows.
    """

    name: str
    title: str
    hint: str
    home: str
    any_engine: bool = False
    needs_cells: bool = False
    overlaps: bool = False
    slow: bool = False

    @cached_property
    def function(self) -> Callable[..., Release]:
        """The method itself: ``(matrix, rule, *, ...) -> Release``."""
        module, _, function = self.home.partition(":")
        found: Callable[..., Release] = getattr(import_module(f"odkanon.methods.{module}"), function)
        return found

    @cached_property
    def options(self) -> tuple[str, ...]:
        """What it takes besides a matrix and a rule."""
        return tuple(signature(self.function).parameters)[2:]

    @property
    def takes_budget(self) -> bool:
        """Whether it may suppress up to a share of the input."""
        return "budget" in self.options


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("odkanon", "ODkAnon", "merges cells where there are fewest trips", "odkanon:odkanon", any_engine=True),
        Method("oigh", "OIGH", "one level for each axis", "oigh:oigh", any_engine=True),
        Method("atg-soft", "ATG-Soft", "zones overlap", "atg.method:atg_soft", overlaps=True, slow=True),
        Method("mondrian", "Mondrian", "boxes", "mondrian.method:mondrian", needs_cells=True, overlaps=True, slow=True),
        Method(
            "cascade",
            "Cascade",
            "every trip once, at the finest place that k share; zones lie in each other",
            "cascade.method:cascade",
            any_engine=True,
            overlaps=True,
        ),
        Method("treecut", "Tree cuts", "best cells, takes seconds", "treecut.method:treecut", slow=True),
        Method(
            "freezones",
            "Free zones",
            "unions of neighbouring cells: the finest zones, takes seconds",
            "freezones.method:freezones",
            needs_cells=True,
            slow=True,
        ),
    )
}
DEFAULT_METHOD = "odkanon"


def find_method(name: str) -> Method:
    """Return a method by its name, or say which there are."""
    if name not in METHODS:
        raise InputError(f"there is no method {name!r}; choose among {', '.join(METHODS)}{nearest(name, METHODS)}")
    return METHODS[name]


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
    chosen = find_method(method)
    for name in options:
        if name not in chosen.options:
            known = f"it takes {', '.join(chosen.options)}" if chosen.options else "it takes none"
            raise InputError(f"method {method!r} has no option {name!r}{nearest(name, chosen.options)}; {known}")
    start = time.perf_counter()
    release = chosen.function(od if chosen.any_engine else od.in_memory(), rule, **options)
    return replace(release, seconds=time.perf_counter() - start)
