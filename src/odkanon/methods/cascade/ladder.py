"""The ladder of a cascade: level vectors from the leaves to the roots, each a step coarser on one axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from odkanon.attributes.spec import PLACE
from odkanon.core.arrays import Ints
from odkanon.engine.node_flows import codes_to_keys
from odkanon.errors import InputError, InvalidValueError, nearest
from odkanon.methods.cascade.subtree_types import Level, public_levels
from odkanon.zoning.hierarchy import Hierarchy


@dataclass(frozen=True, eq=False)
class Side:
    """One axis of a ladder."""

    tree: Hierarchy
    """The tree over the observed leaves, up to the public root."""
    levels: tuple[Level, ...]
    """The public subtree types of each level."""

    @property
    def top(self) -> int:
        """The level of the public root."""
        return len(self.levels) - 1

    def parent(self, level: int) -> Ints:
        """Return for each observed node of the level below the number of its parent."""
        return self.tree.codes[level][self.tree.starts[level - 1]].astype(np.int64)

    def nodes(self, level: int) -> int:
        """Return the number of observed nodes of a level."""
        return len(self.tree.ids[level])


_sides: WeakKeyDictionary[Hierarchy, tuple[Hierarchy | None, tuple[Level, ...]]] = WeakKeyDictionary()


def side_of(tree: Hierarchy) -> Side:
    """Return the axis of a hierarchy; cached, since it is the same for every rule."""
    if tree not in _sides:
        tall = tree.to_public_root()
        # A cached value that refers to its own key would never be freed.
        _sides[tree] = None if tall is tree else tall, public_levels(tall)
    above, levels = _sides[tree]
    return Side(tree if above is None else above, levels)


@dataclass(frozen=True, eq=False)
class Ladder:
    """The rungs of a cascade."""

    sides: tuple[Side, ...]
    axes: tuple[int, ...]
    """For each rung above the leaves, the axis that it coarsens by one level."""

    def __len__(self) -> int:
        return len(self.axes) + 1

    @cached_property
    def levels(self) -> tuple[tuple[int, ...], ...]:
        """For each rung, the level of each axis."""
        at = [0] * len(self.sides)
        rungs = [tuple(at)]
        for axis in self.axes:
            at[axis] += 1
            rungs.append(tuple(at))
        return tuple(rungs)

    @property
    def reaches_root(self) -> bool:
        """Whether the last rung is a single node that contains everything."""
        return self.levels[-1] == tuple(side.top for side in self.sides)

    def level(self, rung: int, axis: int) -> Level:
        """Return the public subtree types of an axis at a rung."""
        return self.sides[axis].levels[self.levels[rung][axis]]

    def keys(self, rung: int, *codes: Sequence[Ints]) -> tuple[Ints, ...]:
        """Return keys of combinations of the nodes of a rung; see `odkanon.engine.node_flows.codes_to_keys`."""
        nodes = [side.nodes(level) for side, level in zip(self.sides, self.levels[rung], strict=True)]
        return codes_to_keys(nodes, *codes)


def in_turns(tops: Sequence[int]) -> tuple[int, ...]:
    """Return the axes to coarsen, in turns, skipping those that have reached their top.

    Examples
    --------
    >>> in_turns([2, 3])
    (0, 1, 0, 1, 1)
    """
    return tuple(axis for level in range(max(tops, default=0)) for axis, top in enumerate(tops) if level < top)


KEPT_TO = 6
"""By default, the H3 resolution (cells of some 36 km2) up to which places are coarsened before any attribute.

On a survey of 60,444 trips by mode and five parts of the day, 77 % then keep their mode; with resolution 7, 26 %.
"""


def drop_steps(
    asked: str | None, names: Sequence[str], trees: Sequence[Hierarchy], tops: Sequence[int]
) -> tuple[tuple[int, ...], str]:
    """Return the axis that each rung above the leaves coarsens (origins, destinations, attributes), and the drop order.

    * ``asked``: names of attributes and ``place``, separated by commas, in the order in which detail is dropped.
      ``place:7`` coarsens places to H3 resolution 7 (with a lookup table: level 7), ``hour:1`` an attribute by one
      level; a name without a number is coarsened to its root. Names that are missing follow at the end. By default
      places are coarsened to cells of some 36 km2, then the attributes from the last to the first, then places.
    * ``names``: the attributes.
    * ``trees``: those of origins, destinations and attributes.
    * ``tops``: the highest level of each.
    """
    halfway = KEPT_TO if trees[0].resolution is not None else max(tops[0] // 2, 1)
    text = asked or ",".join([f"{PLACE}:{halfway}", *reversed(names), PLACE])
    at, steps = [0] * len(tops), []
    for word in [part.strip() for part in text.split(",")] + [*names, PLACE]:
        name, _, level = word.partition(":")
        if name != PLACE and name not in names:
            listed = " or ".join([*names, PLACE])
            raise InputError(f"there is no {name!r} to drop{nearest(name, [*names, PLACE])}; name {listed}")
        if level and not level.isdigit():
            raise InvalidValueError.not_understood(repr(word), f"write {name}, or {name}:NUMBER for a part of the way")
        which = [0, 1] if name == PLACE else [2 + list(names).index(name)]
        goals = [_goal(trees[axis], level, tops[axis], place=name == PLACE) - at[axis] for axis in which]
        steps += [which[turn] for turn in in_turns([max(goal, 0) for goal in goals])]
        for axis, goal in zip(which, goals, strict=True):
            at[axis] += max(goal, 0)
    return tuple(steps), text


def _goal(tree: Hierarchy, level: str, top: int, *, place: bool) -> int:
    if not level:
        return top
    return min(tree.resolution - int(level) if place and tree.resolution is not None else int(level), top)
