"""The roll-up: at each rung the groups that may be listed become rows; the other trips move on to the next rung."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from odkanon.core.arrays import Bools, Ints
from odkanon.engine.node_flows import NestedRows, NodeFlows, codes_to_keys
from odkanon.engine.protocols import Residual
from odkanon.methods.cascade.caps import Below, Caps, Steps, Untouched, cut, hold, leaf_caps, least_with_empty_box
from odkanon.methods.cascade.cascade_rows import Listed, Rows, proportion, rows_of
from odkanon.methods.cascade.ladder import Ladder
from odkanon.model.flows import Totals
from odkanon.model.measures import DISTINCT
from odkanon.model.rule import Rule


@dataclass(frozen=True, eq=False)
class PublicationRule:
    """When a group becomes a row."""

    rule: Rule
    """The rule that every row meets."""
    k: int
    """The minimum of trips of a row, whatever else the rule counts."""
    capped: bool = True
    """Whether a row is capped at what its parts could carry with any one box of them empty."""

    @property
    def passes(self) -> bool:
        """Whether what a row has above its cap goes on to the next rung.

        Under a weight threshold it does not: passing it on would disclose individual weights.
        """
        return "weight" not in self.rule.measures

    @property
    def reassigned(self) -> str | None:
        """The measure whose contributors decide which trips stay in a row above its cap: the most asked for.

        Where as many persons as households are asked for, it is households, of which there are fewer.
        """
        contributors = [name for name in reversed(self.rule.measures) if name in DISTINCT]
        return max(contributors, key=self.rule.thresholds.__getitem__, default=None)

    @property
    def carries(self) -> bool:
        """Whether what a row passes on could make up a row above it.

        Contributors that are not reassigned do not go on with it, so a row above would show that it has its own.
        """
        return self.passes and sum(name in DISTINCT for name in self.rule.measures) < 2

    @property
    def by_trips(self) -> bool:
        """Whether every group of so many trips is a row, if its cap allows it."""
        return self.rule.measures == ("trips",)


@dataclass(frozen=True, eq=False)
class RollUp:
    """The result of a roll-up."""

    rows: Rows
    """The listed rows."""
    residual: Residual
    """What no rung lists."""
    kept: Totals
    """What rows have above their caps, where that does not go on."""
    most: int | None
    """The most trips that can be in no row, given the rows; None where they do not bound it."""
    withstands: int | None = None
    """The most trips in no row with which a known total of the input shows no box; None where that is not known."""

    @cached_property
    def left(self) -> Totals:
        """The totals that no rung lists; cached, since a database has to compute them."""
        return self.residual.totals()

    @property
    def unlisted(self) -> Totals:
        """The totals that are in no row."""
        return self.left + self.kept

    def nested(self, published: Bools) -> NestedRows:
        """Return the rows to publish."""
        which = np.flatnonzero(published)
        rows = self.rows if published.all() else self.rows.take(which)
        number = np.where(published, np.cumsum(published) - 1, -1)
        own, left_out = self.rows.own(), np.flatnonzero(~published)
        beyond = _totals(self.rows.passed.take(np.flatnonzero(self.rows.above < 0)))
        return NestedRows(
            tuple(side.tree for side in self.rows.ladder.sides),
            tuple(np.array(self.rows.ladder.levels)[rows.rung].T),
            rows.groups,
            rows.at_cap,
            rows.hides_weight,
            rows.above,
            rows.finest_pairs(),
            own.take(which),
            self.left - beyond + _totals(own.take(left_out)),
            number,
            self.residual,
            self.unlisted + _totals(self.rows.groups.take(left_out)),
            self.most if published.all() else None,
        )


@dataclass(frozen=True, eq=False)
class Nodes:
    """The nodes of a rung that have rows in them."""

    codes: tuple[Ints, ...]
    caps: Caps


def roll_up(ladder: Ladder, residual: Residual, terms: PublicationRule, only: Sequence[Ints] | None = None) -> RollUp:
    """Roll the residual up the ladder; ``only`` has the keys of the groups of each rung that may be listed."""
    listed, kept, number = [], Totals(), 0
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
            taken = np.flatnonzero(terms.rule.satisfied(groups) & _given(ladder, rung, groups, only))
            bound = groups.trips[taken]
            nodes = Nodes(groups.take(taken).codes, leaf_caps(ladder, len(taken), 0))
        chosen = groups.take(taken)
        row, left = split(chosen, bound, terms.reassigned)
        at_cap = (row.trips == bound) & terms.capped & (rung > 0)
        if not terms.passes:
            kept = kept + _totals(left)
            left = replace(
                left, trips=left.trips * 0, weight_units=None if left.weight_units is None else left.weight_units * 0
            )
        residual = residual.without(chosen, number + np.arange(len(taken)), left, terms.reassigned)
        listed.append(Listed(rung, chosen, row, left, at_cap))
        number += len(taken)
    most = int(nodes.caps.most.sum()) if terms.capped and terms.by_trips and ladder.reaches_root else None
    withstands = None
    if terms.capped and terms.carries and ladder.reaches_root and len(nodes.codes[0]):
        types = [side.levels[side.top].kind[code] for side, code in zip(ladder.sides, nodes.codes, strict=True)]
        withstands = int(least_with_empty_box(ladder, len(ladder) - 1, types, nodes.caps).min())
    return RollUp(rows_of(ladder, listed, passes=terms.passes), residual, kept, most, withstands)


def _given(ladder: Ladder, rung: int, groups: NodeFlows, only: Sequence[Ints] | None) -> Bools:
    """Return which groups may be listed."""
    if only is None:
        return np.ones(len(groups.trips), dtype=bool)
    radix = [side.nodes(level) for side, level in zip(ladder.sides, ladder.levels[rung], strict=True)]
    (keys,) = codes_to_keys(radix, groups.codes)
    return np.isin(keys, only[rung])


def split(groups: NodeFlows, bound: Ints, reassigned: str | None) -> tuple[NodeFlows, NodeFlows]:
    """Return what groups list within their bounds, and what is above them; all pairs count with the former.

    Whose trips stay is chosen by the contributors of one measure (`choose_leaving_trips`): as many as fit. Of other
    contributors those count that certainly stay: whoever leaves takes a trip along.
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
    """Return which groups are listed, their bounds, and the nodes of the rung that have rows in them now."""
    axis, levels = ladder.axes[rung - 1], ladder.levels[rung]
    side = ladder.sides[axis]
    radix = [of.nodes(level) for of, level in zip(ladder.sides, levels, strict=True)]
    lifted = [side.parent(levels[axis])[code] if at == axis else code for at, code in enumerate(below.codes)]
    old, new = codes_to_keys(radix, lifted, groups.codes)
    keys, first = np.unique(np.concatenate([old, new]), return_index=True)
    codes = tuple(np.concatenate(both)[first] for both in zip(lifted, groups.codes, strict=True))
    attributes = [of.levels[level].kind[code] for of, level, code in zip(ladder.sides, levels, codes, strict=True)]
    kind_below = side.levels[levels[axis] - 1].kind[below.codes[axis]]
    children = Below(np.searchsorted(keys, old), below.codes[axis], kind_below, below.caps)
    sums, bounds = hold(ladder, rung, attributes, children, untouched)
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
    """Keep the values of nodes with rows in them; the steps of others have none."""
    number = np.cumsum(which) - 1
    return Caps(
        caps.nothing[which],
        caps.most[which],
        [values[which] for values in caps.untouched],
        [Steps(number[of.node], of.part, of.place, of.value) for of in caps.touched],
    )


def _totals(groups: NodeFlows) -> Totals:
    weight = None if groups.weight_units is None else int(groups.weight_units.sum())
    return Totals(int(groups.pairs.sum()), int(groups.trips.sum()), weight)
