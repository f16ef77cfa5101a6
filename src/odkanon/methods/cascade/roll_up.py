"""The roll-up: at each rung the groups that may be listed become rows; the other trips move on to the next rung."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from odkanon.core.arrays import Bools, Ints
from odkanon.engine.node_flows import NestedRows, NodeFlows
from odkanon.engine.protocols import Residual
from odkanon.methods.cascade.caps import Below, Caps, Untouched, cut, hold, leaf_caps, least_with_empty_box
from odkanon.methods.cascade.cascade_rows import Rows, concatenate_rows, proportion
from odkanon.methods.cascade.ladder import Ladder
from odkanon.model.flows import Totals
from odkanon.model.measures import DISTINCT
from odkanon.model.rule import Rule


@dataclass(frozen=True, eq=False)
class PublicationRule:
    """When a group becomes a row."""

    rule: Rule
    k: int
    """The minimum of trips of a row."""
    capped: bool = True
    """Whether a row lists at most what its parts could carry with any one box of them empty."""

    @property
    def passes(self) -> bool:
        """Whether the excess of a row moves on to the next rung.

        Under a weight threshold the excess is suppressed: passing it on would disclose individual weights.
        """
        return "weight" not in self.rule.measures

    @property
    def reassigned(self) -> str | None:
        """The measure whose contributors decide which trips stay in a capped row: the one of largest threshold.

        If the thresholds on persons and households are equal, it is households, of which there are fewer.
        """
        contributors = [name for name in reversed(self.rule.measures) if name in DISTINCT]
        return max(contributors, key=self.rule.thresholds.__getitem__, default=None)

    @property
    def carries(self) -> bool:
        """Whether the excess of a row could make up a row above it.

        Contributors that are not reassigned do not move with the excess, so a row above would show that it has its own.
        """
        return self.passes and sum(name in DISTINCT for name in self.rule.measures) < 2

    @property
    def by_trips(self) -> bool:
        """Whether every group of k trips is a row if its cap allows it."""
        return self.rule.measures == ("trips",)


@dataclass(frozen=True, eq=False)
class RollUp:
    """The result of a roll-up."""

    rows: Rows
    residual: Residual
    """The trips that no rung lists."""
    kept: Totals
    """The excess of rows, where it does not move on."""
    most: int | None
    """An upper bound of the unlisted trips that follows from the rows; None if they do not bound them."""
    withstands: int | None = None
    """The most unlisted trips with which a known total of the input shows no box; None if unknown."""

    @cached_property
    def left(self) -> Totals:
        """The total of the residual; cached, because an engine has to compute it."""
        return self.residual.totals()

    @property
    def unlisted(self) -> Totals:
        """The total of the trips in no row."""
        return self.left + self.kept

    def nested(self, published: Bools) -> NestedRows:
        """Return the rows to publish."""
        which = np.flatnonzero(published)
        rows = self.rows if published.all() else self.rows.take(which)
        number = np.where(published, np.cumsum(published) - 1, -1)
        own, left_out = self.rows.own(), np.flatnonzero(~published)
        beyond = self.rows.passed.take(np.flatnonzero(self.rows.above < 0)).totals()
        return NestedRows(
            tuple(side.tree for side in self.rows.ladder.sides),
            tuple(np.array(self.rows.ladder.levels)[rows.rung].T),
            rows.groups,
            rows.at_cap,
            rows.hides_weight,
            rows.above,
            rows.finest_pairs(),
            own.take(which),
            self.left - beyond + own.take(left_out).totals(),
            number,
            self.residual,
            self.unlisted + self.rows.groups.take(left_out).totals(),
            self.most if published.all() else None,
        )


@dataclass(frozen=True, eq=False)
class Nodes:
    """The nodes of a rung that have rows in them."""

    codes: tuple[Ints, ...]
    caps: Caps


def roll_up(ladder: Ladder, residual: Residual, terms: PublicationRule, only: Sequence[Ints] | None = None) -> RollUp:
    """Roll the residual up the ladder; ``only`` has the keys of the groups of each rung that may be listed."""
    parts, kept, number = [], Totals(), 0
    nodes = Nodes(tuple(np.empty(0, dtype=np.int64) for _ in ladder.sides), leaf_caps(ladder, 0, 0))
    untouched = Untouched(ladder, terms.k)
    for rung in range(len(ladder)):
        if rung:
            axis = ladder.axes[rung - 1]
            side, level = ladder.sides[axis], ladder.levels[rung][axis]
            residual = residual.lift(axis, side.parent(level), side.nodes(level))
        groups = residual.at_least(terms.k)
        kept = kept if rung else Totals(weight_units=None if groups.weight_units is None else 0)
        if terms.capped and rung:
            taken, bound, nodes = _capped(ladder, rung, groups, nodes, terms, untouched)
        else:
            may_list = terms.rule.satisfied(groups)
            if only is not None:
                may_list = may_list & np.isin(ladder.keys(rung, groups.codes)[0], only[rung])
            taken = np.flatnonzero(may_list)
            bound = groups.trips[taken]
            nodes = Nodes(groups.take(taken).codes, leaf_caps(ladder, len(taken), 0))
        chosen = groups.take(taken)
        row, left = split(chosen, bound, terms.reassigned)
        at_cap = (row.trips == bound) & terms.capped & (rung > 0)
        if not terms.passes:
            kept = kept + left.totals()
            none = np.zeros_like(bound)
            left = replace(left, trips=none, weight_units=None if left.weight_units is None else none)
        residual = residual.without(chosen, number + np.arange(len(taken)), left, terms.reassigned)
        parts.append(Rows(ladder, np.full(len(taken), rung), chosen, row, left, at_cap, terms.passes))
        number += len(taken)
    most = int(nodes.caps.most.sum()) if terms.capped and terms.by_trips and ladder.reaches_root else None
    withstands = None
    if terms.capped and terms.carries and ladder.reaches_root and len(nodes.codes[0]):
        types = [side.levels[side.top].types[code] for side, code in zip(ladder.sides, nodes.codes, strict=True)]
        withstands = int(least_with_empty_box(ladder, len(ladder) - 1, types, nodes.caps).min())
    return RollUp(concatenate_rows(parts), residual, kept, most, withstands)


def split(groups: NodeFlows, bound: Ints, reassigned: str | None) -> tuple[NodeFlows, NodeFlows]:
    """Return what groups list within their bounds, and the excess; all pairs count with the former.

    The contributors of one measure decide whose trips stay (`choose_leaving_trips`): as many of them as fit. Of other
    contributors only those who certainly stay are counted: each excess trip may take one along.
    """
    row = np.minimum(groups.trips, bound)
    above = groups.trips - row
    weight = None if groups.weight_units is None else proportion(groups.weight_units, above, groups.trips)
    stays = replace(
        groups,
        trips=row,
        weight_units=None if groups.weight_units is None or weight is None else groups.weight_units - weight,
        contributors={
            name: np.minimum(count, row) if name == reassigned else count - above
            for name, count in groups.contributors.items()
        },
    )
    return stays, replace(groups, pairs=np.zeros_like(row), trips=above, weight_units=weight, contributors={})


def _capped(
    ladder: Ladder, rung: int, groups: NodeFlows, below: Nodes, terms: PublicationRule, untouched: Untouched
) -> tuple[Ints, Ints, Nodes]:
    """Return which groups are listed, their bounds, and the nodes of the rung that now contain rows."""
    axis, levels = ladder.axes[rung - 1], ladder.levels[rung]
    side = ladder.sides[axis]
    lifted = [side.parent(levels[axis])[code] if at == axis else code for at, code in enumerate(below.codes)]
    old, new = ladder.keys(rung, lifted, groups.codes)
    keys, first = np.unique(np.concatenate([old, new]), return_index=True)
    codes = tuple(np.concatenate(both)[first] for both in zip(lifted, groups.codes, strict=True))
    types = [of.levels[level].types[code] for of, level, code in zip(ladder.sides, levels, codes, strict=True)]
    types_below = side.levels[levels[axis] - 1].types[below.codes[axis]]
    children = Below(np.searchsorted(keys, old), below.codes[axis], types_below, below.caps)
    sums, bounds = hold(ladder, rung, types, children, untouched)
    at = np.searchsorted(keys, new)
    rows, _ = split(groups, bounds[at], terms.reassigned)
    taken = np.flatnonzero((bounds[at] >= terms.k) & terms.rule.satisfied(rows))
    count = np.zeros(len(keys), dtype=np.int64)
    count[at[taken]] = rows.trips[taken]
    caps = cut(sums, bounds, terms.k, count, carries=terms.carries)
    has_rows = count > 0
    has_rows[children.parent] = True
    return taken, bounds[at[taken]], Nodes(tuple(code[has_rows] for code in codes), _only(caps, has_rows))


def _only(caps: Caps, which: Bools) -> Caps:
    """Return the values of nodes that contain rows, renumbered; boxes with rows lie in such nodes only."""
    number = np.cumsum(which) - 1
    return Caps(
        caps.nothing[which],
        caps.most[which],
        [values[which] for values in caps.untouched],
        [replace(of, node=number[of.node]) for of in caps.touched],
    )
