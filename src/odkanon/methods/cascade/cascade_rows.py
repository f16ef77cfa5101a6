"""The rows that a cascade lists: their nesting, the pairs that belong to each, and their published weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from odkanon.core.arrays import Bools, Ints, group_sum, locate
from odkanon.engine.node_flows import NodeFlows
from odkanon.methods.cascade.ladder import Ladder
from odkanon.model.measures import exact_masses

_EXACT = 2**62


@dataclass(frozen=True, eq=False)
class Rows:
    """Listed rows, from the finest rung to the coarsest."""

    ladder: Ladder
    rung: Ints
    """The rung of each row."""
    found: NodeFlows
    """The groups of the rows as the roll-up met them, with the trips that finer rows passed on."""
    groups: NodeFlows
    """The listed part of each group."""
    passed: NodeFlows
    """The part that moves on to the next rung."""
    at_cap: Bools
    """Whether a row lists as much as its cap allows, so that its group may have more trips."""
    passes: bool
    """Whether the excess of a row may appear in a coarser row."""

    def __len__(self) -> int:
        return len(self.rung)

    @cached_property
    def above(self) -> Ints:
        """For each row, the finest other row that it lies in; -1 for none."""
        found = np.full(len(self), -1, dtype=np.int64)
        waiting = np.empty(0, dtype=np.int64)
        codes: list[Ints] = [np.empty(0, dtype=np.int64) for _ in self.ladder.sides]
        for rung in range(len(self.ladder)):
            if rung and len(waiting):
                axis = self.ladder.axes[rung - 1]
                codes[axis] = self.ladder.sides[axis].parent(self.ladder.levels[rung][axis])[codes[axis]]
            here = np.flatnonzero(self.rung == rung)
            if len(here) == 0:
                continue
            own = [code[here] for code in self.groups.codes]
            keys, wanted = self.ladder.keys(rung, own, codes)
            at, inside = locate(keys, wanted)
            found[waiting[inside]] = here[at[inside]]
            waiting = np.concatenate([waiting[~inside], here])
            codes = [np.concatenate([code[~inside], mine]) for code, mine in zip(codes, own, strict=True)]
        return found

    def sizes(self) -> tuple[Ints, ...]:
        """Return for each axis the number of observed leaves below the node of each row."""
        sizes = tuple(np.zeros(len(self), dtype=np.int64) for _ in self.ladder.sides)
        for rung in np.unique(self.rung).tolist():
            here = self.rung == rung
            for axis, side in enumerate(self.ladder.sides):
                sizes[axis][here] = side.tree.sizes[self.ladder.levels[rung][axis]][self.groups.codes[axis][here]]
        return sizes

    def finest_pairs(self) -> Ints:
        """Return for each row the number of leaf pairs whose finest row it is."""
        sizes = np.stack(self.sizes())
        inside = self.above >= 0
        if np.prod(sizes, axis=0, dtype=np.float64).max(initial=0) < _EXACT:
            own: Ints = np.prod(sizes, axis=0)
            return own - group_sum(self.above[inside], len(self), own[inside])
        # A cube of many attributes can have more leaf pairs than 64 bits can count.
        each = np.prod(sizes.astype(object), axis=0)
        left = each.copy()
        np.subtract.at(left, self.above[inside], each[inside])
        bounded: Ints = np.minimum(left, _EXACT).astype(np.int64)
        return bounded

    def own(self) -> NodeFlows:
        """Return for each row the OD pairs whose finest row it is, with all their trips, whichever rows list these."""
        inside = self.above >= 0

        def without_passed(name: str) -> Ints:
            found, passed = exact_masses(self.found, name), exact_masses(self.passed, name)
            own: Ints = found - group_sum(self.above[inside], len(self), passed[inside])
            return own

        weight = None if self.found.weight_units is None else without_passed("weight")
        return replace(self.found, trips=without_passed("trips"), weight_units=weight, contributors={})

    @cached_property
    def hides_weight(self) -> Bools:
        """For each row, whether its own weight must not be published.

        A capped row has its group's weight in proportion to its trips, so its digits would disclose the trips of the
        group; and the next row above may contain its excess.
        """
        hides = self.at_cap.copy()
        if self.passes:
            receives = self.above[self.at_cap]
            hides[receives[receives >= 0]] = True
        return hides

    def take(self, which: Ints) -> Rows:
        """Return some of the rows."""
        kept = {name: getattr(self, name).take(which) for name in ("found", "groups", "passed")}
        return replace(self, rung=self.rung[which], at_cap=self.at_cap[which], **kept)


def concatenate_rows(parts: Sequence[Rows]) -> Rows:
    """Return the rows of all rungs."""
    return replace(
        parts[0],
        rung=np.concatenate([part.rung for part in parts]),
        found=_joined([part.found for part in parts]),
        groups=_joined([part.groups for part in parts]),
        passed=_joined([part.passed for part in parts]),
        at_cap=np.concatenate([part.at_cap for part in parts]),
    )


def _joined(parts: Sequence[NodeFlows]) -> NodeFlows:
    return parts[0].with_masses(
        lambda name: np.concatenate([getattr(part, name) for part in parts]),
        codes=tuple(np.concatenate(codes) for codes in zip(*(part.codes for part in parts), strict=True)),
        contributors={
            name: np.concatenate([part.contributors[name] for part in parts]) for name in parts[0].contributors
        },
    )


def proportion(whole: Ints, part: Ints, of: Ints) -> Ints:
    """Return ``whole * part / of``, rounded down, without leaving 64 bits."""
    of = np.maximum(of, 1)
    return whole // of * part + whole % of * part // of
