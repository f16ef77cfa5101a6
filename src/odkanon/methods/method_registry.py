"""The methods, each described once for the command line, the explorer, the page, comparisons and the docs."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any, overload

from odkanon.core.parsing import check_result
from odkanon.core.registry import Registry
from odkanon.errors import InputError, InvalidValueError, UnsafeReleaseError, nearest

if TYPE_CHECKING:
    from odkanon.model.od import Matrix
    from odkanon.model.release import Release
    from odkanon.model.rule import Rule
    from odkanon.zoning.hierarchy import Hierarchy


@dataclass(frozen=True)
class Method:
    """The description of a method."""

    name: str
    """The name by which it is requested."""
    title: str
    """The name in tables and texts."""
    hint: str
    """A description in a few words."""
    home: Callable[..., Release] | str
    """The function ``(matrix, rule, *, ...) -> Release``, or ``package.module:function``, imported on first use."""
    any_engine: bool = False
    """Whether it needs only the queries of an engine, so that it runs on all; others fetch the pairs into memory."""
    needs_cells: bool = False
    """Whether it works on H3 cells only."""
    needs_shapes: bool = False
    """Whether it works only where the outlines of zones are known."""
    overlaps: bool = False
    """Whether zones of one axis may overlap because they depend on the other end."""
    nested: bool = False
    """Whether one flow may lie inside another; the coarser one then lists only trips that the finer one does not."""
    on_tree: bool = True
    """Whether its zones are nodes of the hierarchies, so that these can have substeps."""
    noisy: bool = False
    """Whether it estimates flows under differential privacy instead of publishing counts."""
    slow: bool = False
    """Whether it may be too slow for a slider."""
    thresholds_only: str | None = None
    """The reason why it cannot keep the constraints of a rule; None if it can."""

    @cached_property
    def function(self) -> Callable[..., Release]:
        """The method itself: ``(matrix, rule, *, ...) -> Release``."""
        if callable(self.home):
            return self.home
        module, _, function = self.home.partition(":")
        found: Callable[..., Release] = getattr(import_module(module), function)
        return found

    @cached_property
    def options(self) -> tuple[str, ...]:
        """The names of its options."""
        own = tuple(signature(self.function).parameters)[2:]
        return (*own, SUBSTEPS) if self.on_tree else own

    def suits(self, tree: Hierarchy) -> bool:
        """Return whether it works on the leaves of a tree."""
        if tree.resolution is not None:
            return True
        return not self.needs_cells and (bool(tree.outlines) or not self.needs_shapes)

    @property
    def takes_attributes(self) -> bool:
        """Whether it publishes by attributes."""
        return self.noisy or "drop_order" in self.options

    @property
    def takes_budget(self) -> bool:
        """Whether it may suppress up to a share of the input."""
        return "budget" in self.options


def _check_method(method: Method) -> None:
    """Raise unless a method can be called by name and option."""
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", method.name):
        raise InvalidValueError.expected("the name of a method", "lower-case letters, digits and hyphens", method.name)
    for option in tuple(signature(method.function).parameters.values())[2:]:
        if option.kind is not option.KEYWORD_ONLY or option.default is option.empty or option.name == SUBSTEPS:
            raise InputError(
                f"method {method.name!r} is called as (matrix, rule, *, option=default, ...): {option.name!r} must be "
                f"a keyword with a default, and must not be called {SUBSTEPS}"
            )


METHODS = Registry(
    "method",
    (
        Method(
            "odkanon",
            "ODkAnon",
            "merges neighbouring cells step by step, the emptiest first",
            "odkanon.methods.odkanon:odkanon",
            any_engine=True,
        ),
        Method(
            "oigh",
            "OIGH",
            "all origins at one level, all destinations at one level",
            "odkanon.methods.oigh:oigh",
            any_engine=True,
        ),
        Method(
            "atg-soft",
            "ATG-Soft",
            "own destination zones for every origin zone; zones may overlap",
            "odkanon.methods.atg:atg_soft",
            overlaps=True,
            slow=True,
        ),
        Method(
            "mondrian",
            "Mondrian",
            "cuts the data into boxes, which may overlap",
            "odkanon.methods.mondrian:mondrian",
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
            "odkanon.methods.cascade.method:cascade",
            any_engine=True,
            overlaps=True,
            nested=True,
            thresholds_only="a row that is withheld because of one person would disclose that person",
        ),
        Method(
            "treecut",
            "Tree cuts",
            "searches for the finest zones of the hierarchy",
            "odkanon.methods.treecut.method:treecut",
            slow=True,
        ),
        Method(
            "freezones",
            "Free zones",
            "free groups of neighbouring cells, as fine as can be found",
            "odkanon.methods.freezones.method:freezones",
            needs_shapes=True,
            on_tree=False,
            slow=True,
        ),
        Method(
            "noise",
            "Noise",
            "estimates from counts with noise, under differential privacy instead of k; needs --epsilon",
            "odkanon.methods.noise.method:noise",
            overlaps=True,
            nested=True,
            on_tree=False,
            noisy=True,
            slow=True,
            thresholds_only="it keeps none",
        ),
    ),
    check=_check_method,
)
DEFAULT_METHOD = "cascade"
ONE_ZONING = "odkanon"
"""The method of one zoning for all flows, where that is needed."""
SUBSTEPS = "substeps"
"""The option of every method on a tree of H3 cells: two levels between a cell and its parent."""
CUBE_METHOD = "cascade"
"""The method that publishes by attributes."""
NOISE_METHOD = "noise"
"""The method of differential privacy."""
ONE_LEVEL = "oigh"
"""The method of uniform levels, which accepts a level."""


@overload
def register_method(method: Method, /) -> Method: ...
@overload
def register_method(
    method: Callable[..., Release], /, *, name: str = ..., title: str = ..., hint: str = ..., overlaps: bool = ...
) -> Method: ...
@overload
def register_method(
    *, name: str = ..., title: str = ..., hint: str = ..., overlaps: bool = ...
) -> Callable[[Callable[..., Release]], Method]: ...
def register_method(
    method: Method | Callable[..., Release] | None = None,
    /,
    *,
    name: str = "",
    title: str = "",
    hint: str = "",
    overlaps: bool = False,
) -> Method | Callable[[Callable[..., Release]], Method]:
    """Add a method, so that `anonymize`, comparisons and the command line know it by its name.

    A package that is installed needs no call: it declares its methods as entry points of the group
    ``odkanon.methods``.

    Parameters
    ----------
    method : Method or callable, optional
        A description, or a function ``(matrix, rule, *, option=default, ...) -> Release``, usually by way of
        `Release.from_labels`; without it, a decorator for such a function is returned.
    name : str
        The name; by default the name of the function, with hyphens.
    title, hint : str
        The name in tables, and a description in a few words; by default the name and nothing.
    overlaps : bool
        Whether the zones of one axis may overlap, because they depend on the other end.

    Returns
    -------
    Method
        The description.

    Examples
    --------
    >>> from odkanon import METHODS, Release, Rule, anonymize, make_survey, read_trips, register_method
    >>> from odkanon.read.od_matrix import build_od
    >>> @register_method(hint="a zone for each cell")
    ... def every_cell(od, rule, *, budget=0.5):
    ...     labels = (tree.labels(0) for tree in (od.origins, od.destinations))
    ...     return Release.from_labels(od, rule, *labels, budget=budget)
    >>> od = build_od(read_trips(make_survey()), resolution=5)
    >>> anonymize(od, Rule(trips=10), method="every-cell").method
    'every-cell'
    >>> METHODS.unregister("every-cell")
    """
    if method is None:
        return lambda function: register_method(function, name=name, title=title, hint=hint, overlaps=overlaps)
    if not isinstance(method, Method):
        name = name or method.__name__.replace("_", "-")
        method = Method(name, title or name, hint, method, overlaps=overlaps)
    return METHODS.register(method)


def describe_methods() -> str:
    """Return one sentence about all methods, for help texts."""
    return ", ".join(f"{each.name} ({each.hint}{'; slower' if each.slow else ''})" for each in METHODS.values()) + "."


def counting_methods() -> tuple[str, ...]:
    """Return the methods that publish counts, so that they can be compared under one rule."""
    return tuple(name for name, method in METHODS.items() if not method.noisy)


def is_nested(name: str) -> bool:
    """Return whether the rows of a method nest; False for an unknown name, such as ``zones``."""
    method = METHODS.get(name)
    return method is not None and method.nested


def words_for(name: str) -> dict[str, str]:
    """Return the title and the hint of a method; an unknown name, such as ``zones``, is its own title."""
    known = METHODS.get(name)
    return {"title": name, "hint": ""} if known is None else {"title": known.title, "hint": known.hint}


def anonymize(od: Matrix, rule: Rule, *, method: str = ONE_ZONING, **options: Any) -> Release:
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
        Options of the method, such as ``budget=0.10``; for methods on trees also ``substeps=True``, two more
        levels between H3 cells and their parents.

    Returns
    -------
    Release
        Empty if the rule cannot be met; ``refusal`` then has the reason.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from odkanon import Rule, read_hierarchy, read_matrix
    >>> tree = read_hierarchy(pa.table({"zone": ["a1", "a2", "b1", "b2"], "district": ["a", "a", "b", "b"]}))
    >>> flows = {"origin": ["a1", "a1", "a2", "b1"], "destination": ["b1", "b2", "b1", "a1"], "trips": [6, 4, 3, 12]}
    >>> od = read_matrix(pa.table(flows), hierarchy=tree)
    >>> release = anonymize(od, Rule(trips=10))
    >>> release.origins.ids.tolist(), release.destinations.ids.tolist(), release.classes.trips.tolist()
    (['a', 'b'], ['a', 'b'], [13, 12])
    >>> anonymize(od, Rule(trips=100)).refusal[:42]
    'even with all 25 remaining trips in one cl'
    """
    from odkanon.methods.common import with_substeps  # imports numpy, which help does not need

    check_result("the input", od, "in_memory", "read_matrix or build_od")
    chosen = METHODS[method]
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
    if od.axes and not chosen.takes_attributes:
        by_kind = ", ".join(name for name, method in METHODS.items() if method.takes_attributes)
        raise InputError(f"{method} publishes places only; by attributes, choose {by_kind}")
    substeps = options.pop(SUBSTEPS, False)
    if not isinstance(substeps, bool):
        raise InvalidValueError.expected(SUBSTEPS, "true or false", substeps)
    if od.axes and substeps:
        raise InputError("attributes are dropped between whole H3 levels; leave out the substeps")
    start = time.perf_counter()
    tree = with_substeps(od) if substeps else od
    stays = chosen.any_engine and rule.thresholds_only
    release = chosen.function(tree if stays else tree.in_memory(), rule, **options)
    if release.rule != rule:
        raise UnsafeReleaseError(f"{method} made a release under {release.rule}, not {rule}; nothing was released")
    spec = release.spec.with_parameters(substeps=True) if substeps else release.spec
    return replace(release, spec=replace(spec, method=method), seconds=time.perf_counter() - start)
