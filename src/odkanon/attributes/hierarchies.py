"""Axes of attributes: the values of each in a hierarchy up to ``any``.

A hierarchy lists what is public: all hours of a day, all age bands, the named groups. For a plain column, the observed
values stand for its public code list. ``missing`` and ``other`` belong to every such axis, because their presence would
disclose that they occur. They are *spare*: readers may know that they are empty. So are open end bands of ages, and
values that the user names as impossible.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from odkanon.attributes.spec import ANY, MISSING, OTHER, AttributeKind, AttributeSpec, Period
from odkanon.core.arrays import Bools, Codes, Ints
from odkanon.errors import InputError, UnknownNameError
from odkanon.zoning.hierarchy import Hierarchy
from odkanon.zoning.lookup import lookup_hierarchy
from odkanon.zoning.zones import find_nodes

Labels = npt.NDArray[np.str_]
Levels = Sequence[Sequence[str]]
"""For each level of an axis, the node above each value; without ``other`` and ``missing``."""
Days = npt.NDArray[np.datetime64]

UNLISTED = "(not listed)"
"""Placeholder for the values that a public list of values leaves out, whether or not there are any."""
DAY_PARTS = ((0, 7), (7, 9), (9, 17), (17, 20), (20, 24))
"""Parts of the day that single hours are grouped into."""
WEEK = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MAX_VALUES = 1000


@dataclass(frozen=True, eq=False)
class AttributeAxis:
    """An axis of an OD matrix beyond origin and destination."""

    name: str
    """Name of its column."""
    tree: Hierarchy
    """From its values to ``any``."""
    named: frozenset[str] = frozenset()
    """Values that are public regardless of the trips: all hours of a day, named groups. Other values are listed only if
    a published row has them, since the list itself would show that they occur."""
    asked: str = ""
    """What the user wrote, such as ``mode:car=1+2``."""
    observed: bool = False
    """Whether its values are those that occur in the data, so that rare ones must not be recognisable."""

    @property
    def public(self) -> Hierarchy:
        """The public tree, including values that do not occur."""
        return self.tree.public or self.tree

    def listed(self, published: Collection[str]) -> list[list[str]]:
        """Return the levels that a reader of rows may know, one list per level, from the values up to ``any``.

        Values that are public regardless of the trips are all listed, others only if they are ``published``. In each
        group, one placeholder stands for the values that may have been left out.
        """
        tree, observed = self.public, set(published)
        chains = list(zip(*(ids[code].tolist() for ids, code in zip(tree.ids, tree.codes, strict=True)), strict=True))
        visible = [chain for chain in chains if chain[0] in self.named or chain[0] in observed]
        groups = {node for chain in visible for node in chain[1:-1]} | observed
        placeholders = {
            (UNLISTED,) * level + chain[level:]: None
            for level in range(1, tree.top)
            for chain in chains
            if not self.named and chain[level] in groups
        }
        return [list(column) for column in zip(*visible, *placeholders, (UNLISTED,) * tree.top + (ANY,), strict=True)]


def make_axis(spec: AttributeSpec, values: Labels, lookup: Hierarchy | None = None) -> tuple[AttributeAxis, Codes]:
    """Return the axis of an attribute, and for each raw value its number on the axis.

    * ``spec``: the attribute.
    * ``values``: distinct raw values, empty if missing: values of a column, hours, days, or numbers of age bands.
    * ``lookup``: the nested values in the file that ``spec.lookup`` names.
    """
    levels, labels = _lookup_levels(lookup, values) if lookup is not None else _LEVELS[spec.kind](spec, values)
    spare = (OTHER, MISSING) if spec.kind == "column" else (MISSING,)
    occurring = np.unique(labels)
    if ANY in occurring:
        raise InputError(f"{spec.text!r} has the value {ANY!r}, which stands for dropped detail; rename the value")
    named = frozenset(levels[0]) if spec.is_public else frozenset()
    impossible = _impossible_values(spec, levels)
    further = [value for value in spare if value not in levels[0]]
    if len(levels[0]) > MAX_VALUES:
        raise InputError(
            f"{spec.text!r} has {len(levels[0]):,} values, more than a table can be published by; group them"
        )
    levels = [[*level, *further] for level in levels]
    tree = _observed_tree(levels, frozenset(further) | impossible, occurring)
    axis = AttributeAxis(spec.name, tree, named, spec.text, spec.is_observed)
    return axis, find_nodes(tree, 0, labels).astype(np.int32)


def _observed_tree(levels: Levels, spare: Collection[str], occurring: Labels) -> Hierarchy:
    """Return the tree over the values that occur, whose public tree has all values up to ``any``."""
    columns = {f"level {at}": list(level) for at, level in enumerate(levels)}
    # With this explicit root, the lookup table needs no virtual one.
    full = lookup_hierarchy(pa.table(columns | {ANY: [ANY] * len(levels[0])}))
    full = replace(full, public=None, spare=frozenset(spare))
    seen = np.zeros(len(full.leaves), dtype=bool)
    seen[find_nodes(full, 0, occurring)] = True
    return full.restrict(seen)


def _impossible_values(spec: AttributeSpec, levels: Levels) -> frozenset[str]:
    """Return the values that readers know to be empty: those that the user names, and the open end bands of ages."""
    named = set(spec.impossible)
    unknown = sorted(named.difference(*levels))
    if unknown and not spec.is_observed:
        raise UnknownNameError.among(f"value of {spec.name}", unknown[0], dict.fromkeys(chain.from_iterable(levels)))
    if spec.kind == "age":
        named |= {levels[0][0], levels[0][-1]}
    return frozenset(nodes[0] for nodes in zip(*levels, strict=True) if named & {*nodes})


def join_rare_values(axis: AttributeAxis, rare: Bools) -> tuple[AttributeAxis, Codes]:
    """Return an axis whose rare values are joined into ``other``, and for each leaf its new number.

    ``other`` is always on the axis and spare, so that rows are the same whether or not rare values occur.
    """
    full, labels = axis.public, np.where(rare, OTHER, axis.tree.leaves.astype(np.str_))
    kept = [value for value in full.leaves.tolist() if value not in {*axis.tree.leaves[rare].tolist()}]
    tree = _observed_tree([kept], full.spare & {*kept}, np.unique(labels))
    return replace(axis, tree=tree), find_nodes(tree, 0, labels).astype(np.int32)


def _with_missing(values: Labels) -> Labels:
    return np.where(values == "", MISSING, values)


def _column_levels(spec: AttributeSpec, values: Labels) -> tuple[Levels, Labels]:
    labels = _with_missing(values)
    if not spec.groups:
        return [np.unique(labels[labels != MISSING]).tolist()], labels
    grouped = [spec.groups.get(value, MISSING if value == MISSING else OTHER) for value in labels.tolist()]
    return [list(dict.fromkeys(spec.groups.values()))], np.array(grouped, dtype=np.str_)


def _lookup_levels(tree: Hierarchy, values: Labels) -> tuple[Levels, Labels]:
    """Return the levels of a table of nested values; values that it does not list are ``other``."""
    levels = [tree.ids[at][tree.codes[at]].tolist() for at in range(tree.top + (len(tree.ids[-1]) > 1))]
    labels = _with_missing(values)
    return levels, np.where(np.isin(labels, [*tree.leaves.tolist(), MISSING]), labels, OTHER)


def _age_levels(spec: AttributeSpec, values: Labels) -> tuple[Levels, Labels]:
    names, pairs = _band_names(spec.age_bands), spec.age_bands[1::2]
    wide = [[_band_names(pairs)[band // 2] for band in range(len(names))]] if pairs else []
    return [names, *wide], _numbered(names, values)


def _band_names(bounds: Sequence[int]) -> list[str]:
    return [f"under {bounds[0]}", *(f"{low}-{high - 1}" for low, high in pairwise(bounds)), f"{bounds[-1]}+"]


def _hour_levels(spec: AttributeSpec, values: Labels) -> tuple[Levels, Labels]:
    if spec.slots:
        return [list(dict.fromkeys(spec.slots))], _numbered(spec.slots, values)
    names = [f"{each:02}" for each in range(24)]
    parts = [f"{low:02}-{high:02}" for low, high in DAY_PARTS for _ in range(low, high)]
    return [names, parts], _numbered(names, values)


def _numbered(names: Sequence[str], values: Labels) -> Labels:
    """Return the name at each value, which is a position as text."""
    return np.array([names[int(value)] if value else MISSING for value in values.tolist()], dtype=np.str_)


def _weekday_levels(spec: AttributeSpec, values: Labels) -> tuple[Levels, Labels]:
    """Return the weekdays of the period, which is public, so that readers know all others to be empty."""
    week = np.arange(7).astype("datetime64[D]")
    days = week if None in spec.period else _period_days(spec.period)
    here = [(WEEK[day], "weekend" if day > 4 else "working days") for day in np.unique(_weekday(days)).tolist()]
    labels = np.full(len(values), MISSING, dtype=f"<U{max(map(len, WEEK))}")
    labels[values != ""] = np.array(WEEK)[_weekday(values[values != ""].astype("datetime64[D]"))]
    return [[day for day, _ in here], [part for _, part in here]], labels


def _weekday(days: Days) -> Ints:
    # 1 January 1970 was a Thursday.
    return (days.astype(np.int64) + 3) % 7


def _date_levels(spec: AttributeSpec, values: Labels) -> tuple[Levels, Labels]:
    # Only segments have no period; their days are those that occur.
    days = values[values != ""] if None in spec.period else _period_days(spec.period).astype(str)
    return [days.tolist(), [day[:7] for day in days.tolist()]], _with_missing(values)


def _period_days(period: Period) -> Days:
    first, end = np.array(period, dtype="datetime64[D]")
    return np.arange(first, end)


_LEVELS: dict[AttributeKind, Callable[[AttributeSpec, Labels], tuple[Levels, Labels]]] = {
    "column": _column_levels,
    "hour": _hour_levels,
    "weekday": _weekday_levels,
    "date": _date_levels,
    "age": _age_levels,
}
