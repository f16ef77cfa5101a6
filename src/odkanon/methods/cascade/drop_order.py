"""In which order a cascade with attributes gives up detail; public knowledge, and never chosen from the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from odkanon.attributes.spec import PLACE
from odkanon.errors import InputError, nearest
from odkanon.methods.cascade.ladder import in_turns
from odkanon.zoning.hierarchy import Hierarchy

KEPT_TO = 6
"""The H3 resolution, cells of some 36 km2, up to which places are coarsened before the first attribute goes.

On a survey of 44,508 trips by mode and five parts of the day, 77 % keep their mode like this; with resolution 7, 26 %.
"""


@dataclass(frozen=True)
class Order:
    """The steps of a ladder.

    Attributes
    ----------
    steps : tuple of int
        For each rung above the leaves, the axis that it coarsens: origins, destinations, then attributes.
    text : str
        The same as it can be asked for.
    """

    steps: tuple[int, ...]
    text: str


def order_of(asked: str | None, names: Sequence[str], trees: Sequence[Hierarchy], tops: Sequence[int]) -> Order:
    """Return in which order detail is given up.

    Parameters
    ----------
    asked : str, optional
        Names of attributes and ``place``, separated by commas, the first to go first. ``place:7`` coarsens places up to
        H3 resolution 7 (of a lookup table: level 7) and ``hour:1`` an attribute by so many levels; without a number
        it is all the way. What is not named goes last. By default places go up to cells of some 36 km2, then the
        attributes from the last to the first, then places.
    names : sequence of str
        The attributes.
    trees : sequence of Hierarchy
        Those of origins, destinations and attributes.
    tops : sequence of int
        The highest level of each.
    """
    halfway = KEPT_TO if trees[0].resolution is not None else max(tops[0] // 2, 1)
    text = asked or ",".join([f"{PLACE}:{halfway}", *reversed(names), PLACE])
    at, steps = [0] * len(tops), []
    for word in [part.strip() for part in text.split(",")] + [*names, PLACE]:
        name, _, level = word.partition(":")
        if name != PLACE and name not in names:
            raise InputError(f"there is no {name!r} to give up{nearest(name, [*names, PLACE])}; name {_listed(names)}")
        if level and not level.isdigit():
            raise InputError(f"{word!r} is not understood; write {name}, or {name}:NUMBER for a part of the way")
        which = [0, 1] if name == PLACE else [2 + list(names).index(name)]
        goals = [_goal(trees[axis], level, tops[axis], place=name == PLACE) - at[axis] for axis in which]
        steps += [which[turn] for turn in in_turns([max(goal, 0) for goal in goals])]
        for axis, goal in zip(which, goals, strict=True):
            at[axis] += max(goal, 0)
    return Order(tuple(steps), text)


def _goal(tree: Hierarchy, level: str, top: int, *, place: bool) -> int:
    if not level:
        return top
    wanted = int(level)
    return min(tree.resolution - wanted if place and tree.resolution is not None else wanted, top)


def _listed(names: Sequence[str]) -> str:
    return " or ".join([*names, PLACE])
