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
    from odkanon.model.od import Matrix
    from odkanon.model.release import Release
    from odkanon.model.rule import Rule
    from odkanon.zoning.hierarchy import Hierarchy


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
    needs_cells, needs_shapes : bool
        Whether it only works on H3 cells, or only where it is known where zones lie.
    overlaps : bool
        Whether zones of one axis may overlap, because they depend on the other end.
    nested : bool
        Whether a flow may lie in another, and then tells only what the finer one does not.
    on_tree : bool
        Whether its zones are nodes of the hierarchies, so that the steps of these can be chosen.
    slow : bool
        Whether it may take longer than a slider allows.
    thresholds_only : str or None
        Why it can keep no rule that asks for more than thresholds, where it cannot.
    """

    name: str
    title: str
    hint: str
    home: str
    any_engine: bool = False
    needs_cells: bool = False
    needs_shapes: bool = False
    overlaps: bool = False
    nested: bool = False
    on_tree: bool = True
    slow: bool = False
    thresholds_only: str | None = None

    @cached_property
    def function(self) -> Callable[..., Release]:
        """The method itself: ``(matrix, rule, *, ...) -> Release``."""
        module, _, function = self.home.partition(":")
        found: Callable[..., Release] = getattr(import_module(f"odkanon.methods.{module}"), function)
        return found

    @cached_property
    def options(self) -> tuple[str, ...]:
        """What it takes besides a matrix and a rule."""
        own = tuple(signature(self.function).parameters)[2:]
        return (*own, "steps") if self.on_tree else own

    def suits(self, tree: Hierarchy) -> bool:
        """Tell whether it works on the leaves of a tree."""
        if tree.resolution is not None:
            return True
        return not self.needs_cells and (bool(tree.outlines) or not self.needs_shapes)

    @property
    def takes_budget(self) -> bool:
        """Whether it may suppress up to a share of the input."""
        return "budget" in self.options


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "odkanon",
            "ODkAnon",
            "merges neighbouring cells step by step, the emptiest first",
            "odkanon:odkanon",
            any_engine=True,
        ),
        Method(
            "oigh",
            "OIGH",
            "all origins at one level, all destinations at one level",
            "oigh:oigh",
            any_engine=True,
        ),
        Method(
            "atg-soft",
            "ATG-Soft",
            "own destination zones for every origin zone; zones may overlap",
            "atg.method:atg_soft",
            overlaps=True,
            slow=True,
        ),
        Method(
            "mondrian",
            "Mondrian",
            "cuts the data into boxes, which may overlap",
            "mondrian.method:mondrian",
            needs_cells=True,
            on_tree=False,
            overlaps=True,
            slow=True,
            thresholds_only="it suppresses nothing, and each of its flows has an origin of its own",
        ),
        Method(
            "cascade",
            "Cascade",
            "every trip once, at the finest place that k share; zones lie in each other",
            "cascade.method:cascade",
            any_engine=True,
            overlaps=True,
            nested=True,
            thresholds_only="a row that is held back because of one person would tell of that person",
        ),
        Method(
            "treecut",
            "Tree cuts",
            "searches for the finest zones of the hierarchy",
            "treecut.method:treecut",
            slow=True,
        ),
        Method(
            "freezones",
            "Free zones",
            "free groups of neighbouring cells, as fine as can be found",
            "freezones.method:freezones",
            needs_shapes=True,
            on_tree=False,
            slow=True,
        ),
    )
}
DEFAULT_METHOD = "odkanon"
CUBE_METHOD = "cascade"
"""The method that publishes by attributes."""
ONE_LEVEL = "oigh"
"""The method of uniform levels, which can be told the level."""


def find_method(name: str) -> Method:
    """Return a method by its name, or say which there are."""
    if name not in METHODS:
        raise InputError(f"there is no method {name!r}; choose among {', '.join(METHODS)}{nearest(name, METHODS)}")
    return METHODS[name]


def describe_methods() -> str:
    """Return one sentence that tells all methods apart, for help texts."""
    told = [f"{each.name} ({each.hint}{'; slower' if each.slow else ''})" for each in METHODS.values()]
    return ", ".join(told) + "."


def words_for(name: str) -> dict[str, str]:
    """Return how people call a method and what it does; a name that is no method's, such as ``zones``, is its title."""
    known = METHODS.get(name)
    return {"title": name, "hint": ""} if known is None else {"title": known.title, "hint": known.hint}


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
        What the method takes besides, such as ``budget=0.10``; for methods on trees also ``steps="fine"``, two more
        levels between H3 cells and their parents.

    Returns
    -------
    Release
        Where the rule cannot be met it is empty, and ``refusal`` says why.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from odkanon import Rule, lookup_hierarchy, read_od
    >>> tree = lookup_hierarchy(pa.table({"zone": ["a1", "a2", "b1", "b2"], "district": ["a", "a", "b", "b"]}))
    >>> flows = {"origin": ["a1", "a1", "a2", "b1"], "destination": ["b1", "b2", "b1", "a1"], "trips": [6, 4, 3, 12]}
    >>> od = read_od(pa.table(flows), hierarchy=tree)
    >>> release = anonymize(od, Rule(trips=10))
    >>> release.origins.ids.tolist(), release.destinations.ids.tolist(), release.classes.trips.tolist()
    (['a', 'b'], ['a', 'b'], [13, 12])
    >>> anonymize(od, Rule(trips=100)).refusal[:42]
    'even with all 25 remaining trips in one cl'
    """
    from odkanon.methods.trees import with_steps  # which needs numpy, and help does without

    chosen = find_method(method)
    if options.get("symmetric") and "symmetric" not in chosen.options:
        able = ", ".join(name for name, each in METHODS.items() if "symmetric" in each.options)
        raise InputError(f"zones of {method} depend on the other end, so that both cannot have the same; choose {able}")
    for name in options:
        if name not in chosen.options:
            known = f"it takes {', '.join(chosen.options)}" if chosen.options else "it takes none"
            raise InputError(f"method {method!r} has no option {name!r}{nearest(name, chosen.options)}; {known}")
    if not rule.thresholds_only and chosen.thresholds_only is not None:
        able = ", ".join(name for name, each in METHODS.items() if each.thresholds_only is None)
        raise InputError(
            f"{method} keeps thresholds, and neither a largest share nor a least number of destinations: "
            f"{chosen.thresholds_only}; choose {able}"
        )
    if od.axes and "give_up" not in chosen.options:
        by_kind = ", ".join(name for name, method in METHODS.items() if "give_up" in method.options)
        raise InputError(f"{method} publishes places only; by attributes, choose {by_kind}")
    steps = options.pop("steps", "plain")
    if od.axes and steps != "plain":
        raise InputError("attributes are given up between whole H3 levels; leave out the finer steps")
    start = time.perf_counter()
    tree = with_steps(od, steps)
    stays = chosen.any_engine and rule.thresholds_only
    release = chosen.function(tree if stays else tree.in_memory(), rule, **options)
    spec = release.spec if steps == "plain" else release.spec.with_parameters(steps=steps)
    return replace(release, spec=spec, seconds=time.perf_counter() - start)
