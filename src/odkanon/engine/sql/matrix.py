"""OD matrices in a database, and the releases that are made of them there."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from odkanon.core.arrays import Codes, Ints
from odkanon.engine.memory import MemoryEngine
from odkanon.engine.nested import Nested
from odkanon.engine.protocols import Engine, Workspace
from odkanon.engine.rest import Groups, Rest, keys_of
from odkanon.engine.sql.backend import Backend, Relation, Stored, lend, store
from odkanon.engine.sql.deviations import compare
from odkanon.engine.sql.engine import Side, SqlEngine, add_up, axis_columns, ints, join_maps, totals
from odkanon.engine.sql.presuppress import presuppressed
from odkanon.engine.sql.rest import SqlRest, finest_rows, sql_rest
from odkanon.errors import InputError
from odkanon.model.account import Summary
from odkanon.model.assemble import add_companion
from odkanon.model.budget import Budget
from odkanon.model.classes import Classes, published_classes
from odkanon.model.companion import ALONE
from odkanon.model.flows import Flows, Totals, Visits
from odkanon.model.measures import ADDITIVE, HEADS
from odkanon.model.od import AXES, Axis, ODMatrix
from odkanon.model.placement import Deviation
from odkanon.model.release import Release
from odkanon.model.rule import Rule
from odkanon.read.identity import head_numbers
from odkanon.zoning.attributes import AttributeAxis
from odkanon.zoning.hierarchy import Cut, Hierarchy
from odkanon.zoning.zones import Zones, zones_of_cut

if TYPE_CHECKING:
    from odkanon.quality.limit.reach import Spread

_BYTES_PER_PAIR = 64
"""What a pair takes in memory while a method works on it, roughly; a visit takes a third of it."""


@dataclass(frozen=True, eq=False)
class SqlMatrix:
    """An OD matrix whose pairs are in a database.

    Attributes
    ----------
    origins, destinations : Hierarchy
        The trees over the observed leaves of each axis.
    keys : tuple of array of int
        What the database calls the leaves of each axis, in tree order.
    pairs : Stored
        ``origin, destination``, the numbers of kinds, ``pairs, trips`` and, where there is one, ``weight``; one row a
        pair and kind.
    visits : mapping of str to Relation
        ``origin, destination``, kinds and ``head``, possibly repeated, for each measure by heads that the input names.
    summary : Summary
        The totals, and where they come from.
    axes : tuple of AttributeAxis
        Axes besides the two places.
    """

    backend: Backend
    origins: Hierarchy
    destinations: Hierarchy
    keys: tuple[Ints, Ints]
    pairs: Stored
    visits: Mapping[str, Relation]
    summary: Summary
    axes: tuple[AttributeAxis, ...] = ()

    def side(self, axis: Axis) -> Side:
        """Return an axis as an engine sees it."""
        tree = self.origins if axis == "origin" else self.destinations
        return Side(tree, self.keys[AXES.index(axis)], np.arange(len(tree.leaves)))

    def on_trees(self, origins: tuple[Hierarchy, Ints], destinations: tuple[Hierarchy, Ints]) -> SqlMatrix:
        """Return the matrix over other trees of the same leaves, each with where its leaves stood before."""
        keys = self.keys[0][origins[1]], self.keys[1][destinations[1]]
        return replace(self, origins=origins[0], destinations=destinations[0], keys=keys)

    @property
    def scale(self) -> int | None:
        """Units of weight in one; None where there is no weight."""
        return None if self.summary.weight is None else self.summary.scale

    def engine(self, measures: Collection[str] = ()) -> SqlEngine:
        """Return an engine over all pairs that counts the given measures besides trips and weight."""
        sides = self.side("origin"), self.side("destination")
        visits = {name: each for name, each in self.visits.items() if name in measures}
        return SqlEngine(self.backend, *sides, self.pairs, visits, self.scale)

    @property
    def is_small(self) -> bool:
        """Whether the pairs are better fetched and worked on in memory."""
        return self.summary.pairs + self._visits_at_most <= self.backend.fetchable

    @property
    def _visits_at_most(self) -> int:
        return len(self.visits) * self.summary.trips

    def in_memory(self) -> ODMatrix:
        """Return the matrix with its pairs in memory, for methods that look at each of them."""
        return self._collected

    def workspace(self) -> Workspace:
        """Return the place to work on the matrix: memory if it fits there easily, else where it is."""
        return self.in_memory().workspace() if self.is_small else SqlWorkspace.of(self)

    def reach(self, rule: Rule) -> tuple[Spread, Spread]:
        """Return how the least prices of the pairs are spread, and the masses of their smallest classes."""
        from odkanon.quality.limit.stored import spreads

        return self.in_memory().reach(rule) if self.is_small else spreads(self, rule)

    @cached_property
    def _collected(self) -> ODMatrix:
        size = self.summary.pairs * _BYTES_PER_PAIR + self._visits_at_most * _BYTES_PER_PAIR // 3
        if size > self.backend.memory:
            needs, use = "this method needs", "method odkanon or oigh with thresholds alone"
            if self.axes:
                needs, use = "segments need", "fewer of them"
            raise InputError(
                f"{needs} the OD pairs in memory: {self.summary.pairs:,} of them take some "
                f"{size / 2**30:.1f} GiB, and {self.backend.memory / 2**30:.1f} are free for that; use {use}, "
                "a coarser resolution, or a larger memory limit",
                option="memory-limit SIZE",
            )
        rest = self.falling()
        groups = rest.groups()
        flows = Flows(
            groups.codes[0].astype(np.int32),
            groups.codes[1].astype(np.int32),
            np.ones_like(groups.trips),
            groups.trips,
            groups.weight,
            {name: self._visits(groups, rest.nodes, each) for name, each in rest.visits.items()},
            self.summary.scale,
            kinds=tuple(code.astype(np.int32) for code in groups.codes[2:]),
        )
        return ODMatrix(self.origins, self.destinations, flows, self.summary.source, self.axes)

    def falling(self, heads: Collection[str] | None = None) -> SqlRest:
        """Return all pairs with the numbers of their leaves, of which some heads (by default all) are counted."""
        visits = {name: each for name, each in self.visits.items() if heads is None or name in heads}
        kinds = [len(axis.tree.leaves) for axis in self.axes]
        return sql_rest(self.backend, self.keys, kinds, self.pairs, visits, self.scale)

    def _visits(self, groups: Groups, nodes: Sequence[int], visits: Relation) -> Visits:
        columns = axis_columns(len(self.axes))
        masses = ("trips",) if self.scale is None else ("trips", "weight")
        sums = ", ".join(f"{add_up(name)} AS {name}" for name in masses)
        own = ", ".join(columns)
        found = self.backend.execute(f"SELECT {own}, head, {sums} FROM {visits} v GROUP BY {own}, head")
        wanted = keys_of([ints(found, name) for name in columns], nodes)
        head = head_numbers(found.column("head").combine_chunks())
        flow = np.searchsorted(keys_of(groups.codes, nodes), wanted)
        order = np.lexsort((head, flow))
        return Visits(
            flow[order].astype(np.int32),
            head[order],
            max(int(head.max(initial=0)) + 1, 1),
            {name: ints(found, name)[order] for name in masses},
        )

    def __repr__(self) -> str:
        return (
            f"SqlMatrix({self.summary.pairs:,} pairs, {self.summary.trips:,} trips; {len(self.origins.leaves):,} "
            f"origin x {len(self.destinations.leaves):,} destination leaves)"
        )


@dataclass(frozen=True, eq=False)
class SqlWorkspace:
    """A matrix in a database at work.

    Attributes
    ----------
    od : SqlMatrix
        All of it.
    rest : SqlMatrix
        What is left after suppression; its summary is still that of the whole.
    early : Totals
        What was suppressed before generalising.
    """

    od: SqlMatrix
    rest: SqlMatrix
    early: Totals

    @classmethod
    def of(cls, od: SqlMatrix) -> SqlWorkspace:
        """Return the workspace with nothing suppressed yet."""
        return cls(od, od, Totals(weight=None if od.scale is None else 0))

    @property
    def remaining(self) -> Totals:
        """What is left of the matrix."""
        return totals(self.od.backend, str(self.rest.pairs), self.rest.engine().masses)

    def engine(self, measures: frozenset[str]) -> SqlEngine:
        """Return an engine over what is left."""
        return self.rest.engine(measures)

    def presuppress(self, rule: Rule, *, levels: int, budget: Budget) -> SqlWorkspace:
        """Return what Algorithm 1 leaves."""
        engine = self.od.engine(rule.measures)
        early = presuppressed(engine, rule, levels=levels, budget=budget, allowance=budget.allowance(self.od.summary))
        gone = totals(self.od.backend, str(early), engine.masses)
        return SqlWorkspace(self.od, _without(self.od, early) if gone.pairs else self.od, gone)

    def refuse(self, rule: Rule, method: str, parameters: Mapping[str, Any], refusal: str) -> Release:
        """Return the release that publishes nothing, and says why."""
        return Release.empty(self.od.summary, rule, method, parameters, refusal)

    def release(
        self,
        rule: Rule,
        classes: Engine,
        cuts: tuple[Cut, Cut],
        *,
        budget: Budget,
        method: str,
        parameters: Mapping[str, Any],
    ) -> Release:
        """Return the release of two cuts, to which ``classes`` has been coarsened."""
        all_origins, zone_of_origin = zones_of_cut(self.od.origins, cuts[0])
        all_destinations, zone_of_destination = zones_of_cut(self.od.destinations, cuts[1])
        maps = [
            lend(self.od.backend, place=keys[zone >= 0], zone=zone[zone >= 0])
            for keys, zone in zip(self.od.keys, (zone_of_origin, zone_of_destination), strict=True)
        ]
        assert isinstance(classes, SqlEngine | MemoryEngine)
        merged = classes.meeting(rule)
        merged = self._count_heads(merged, set(self.od.visits) - classes.counted, maps)
        good, suppressed, companion = np.ones(len(merged), dtype=bool), classes.below(rule) + self.early, None
        if not self._are_enough(suppressed, rule, merged, maps):
            companion = add_companion(merged, good, all_origins, all_destinations, rule)
            if companion is None or not good.any():
                return self.refuse(rule, method, parameters, ALONE)
            suppressed += companion
        origins, destinations, published, rows = published_classes(merged, good, all_origins, all_destinations)
        places = merged.origin[rows], merged.destination[rows]
        return Release(
            self.od.summary,
            rule,
            method,
            parameters,
            origins,
            destinations,
            published,
            suppressed,
            budget,
            deviations=self._deviations(published, (origins, destinations), places, maps),
            stored=self.od,
            companion=companion,
        )

    def _deviations(
        self, classes: Classes, zones: tuple[Zones, Zones], places: tuple[Codes, Codes], maps: list[Stored]
    ) -> dict[str, Deviation]:
        assert zones[0].leaves is not None
        assert zones[1].leaves is not None
        leaf_pairs = zones[0].leaves[classes.origin] * zones[1].leaves[classes.destination]
        zoned = f"{self.od.pairs} f LEFT {join_maps('f', *maps).replace(' JOIN', ' LEFT JOIN')}"
        return compare(
            self.od.backend,
            classes,
            leaf_pairs,
            self.od.engine().masses[1:],
            {"origin": places[0], "destination": places[1]},
            lambda shares: f"{zoned} LEFT JOIN {shares} c ON c.origin = a.zone AND c.destination = b.zone",
        )

    def _are_enough(self, suppressed: Totals, rule: Rule, merged: Flows, maps: list[Stored]) -> bool:
        """Tell whether the suppressed are none, or meet the rule as one group."""
        least = {measure: rule.units(measure, self.od.summary.scale) for measure in rule.measures}
        if not suppressed.pairs:
            return True
        if any((getattr(suppressed, name) or 0) < least[name] for name in ADDITIVE if name in least):
            return False
        heads = [name for name in least if name in HEADS]
        if not heads:
            return True
        shown = lend(self.od.backend, origin=merged.origin, destination=merged.destination)
        inside = store(
            self.od.backend,
            f"SELECT f.origin, f.destination FROM {self.rest.pairs} f {join_maps('f', *maps)} "
            f"JOIN {shown} c ON c.origin = a.zone AND c.destination = b.zone",
        )
        return all(self._heads_outside(name, inside, least[name]) >= least[name] for name in heads)

    def _heads_outside(self, measure: str, inside: Stored, most: int) -> int:
        """Count the heads of all pairs but some, up to so many."""
        found = self.od.backend.execute(
            f"SELECT DISTINCT v.head FROM {self.od.visits[measure]} v WHERE NOT EXISTS (SELECT 1 FROM {inside} i "
            f"WHERE i.origin = v.origin AND i.destination = v.destination) LIMIT {most}"
        )
        return len(found)

    def _count_heads(self, merged: Flows, measures: Collection[str], maps: list[Stored]) -> Flows:
        """Count the heads of published classes, in measures that the rule does not ask for."""
        backend, counts = self.od.backend, dict(merged.head_counts)
        for name in sorted(measures):
            wanted = lend(backend, origin=merged.origin, destination=merged.destination, number=np.arange(len(merged)))
            found = backend.execute(
                "SELECT number, COUNT(*) AS heads FROM (SELECT DISTINCT c.number, v.head "
                f"FROM {self.rest.visits[name]} v {join_maps('v', *maps)} JOIN {wanted} c "
                "ON c.origin = a.zone AND c.destination = b.zone) s GROUP BY number"
            )
            counts[name] = np.zeros(len(merged), dtype=np.int64)
            counts[name][found.column("number").to_numpy()] = found.column("heads").to_numpy()
        return replace(merged, head_counts=counts)

    def falling(self, nodes: Sequence[int], heads: Collection[str]) -> Rest:
        """Return what is left as a cascade takes it up its ladder."""
        return self.rest.falling(heads)

    def nested_release(
        self, rule: Rule, nested: Nested, *, budget: Budget | None, method: str, parameters: Mapping[str, Any]
    ) -> Release:
        """Return the release of rows at several levels."""
        origins, destinations, classes, rows = nested.classes()
        return Release(
            self.od.summary,
            rule,
            method,
            parameters,
            origins,
            destinations,
            classes,
            nested.suppressed,
            budget,
            # The rows of a cube are not of pairs alone, so that pairs have no even share of them.
            deviations={} if self.od.axes else self._nested_deviations(classes, nested, rows),
            stored=self.od,
            unlisted=nested.unlisted,
        )

    def _nested_deviations(self, classes: Classes, nested: Nested, rows: Ints) -> dict[str, Deviation]:
        assert classes.own_pairs is not None
        measures = self.od.engine().masses[1:]
        finest = finest_rows(self.od.backend, self.od.pairs, nested, rows, self.od.keys, measures)
        return compare(
            self.od.backend,
            classes,
            classes.own_pairs,
            measures,
            {},
            lambda shares: f"{finest} f LEFT JOIN {shares} c ON c.number = f.finest",
        )


def _without(od: SqlMatrix, early: Stored) -> SqlMatrix:
    """Return a matrix without some of its pairs, over the leaves that still occur."""

    def left(table: Relation) -> Stored:
        return store(
            od.backend,
            f"SELECT f.* FROM {table} f WHERE NOT EXISTS (SELECT 1 FROM {early} e "
            "WHERE e.origin = f.origin AND e.destination = f.destination)",
        )

    pairs = left(od.pairs)
    trees, keys = [], []
    for axis, key in zip(AXES, od.keys, strict=True):
        tree = od.side(axis).tree
        found = od.backend.execute(f"SELECT DISTINCT {axis} AS place FROM {pairs}").column("place").to_numpy()
        keep = np.isin(key, found)
        trees.append(tree if keep.all() else tree.restrict(keep))
        keys.append(key[keep])
    visits = {name: left(each) for name, each in od.visits.items()}
    return replace(od, origins=trees[0], destinations=trees[1], keys=(keys[0], keys[1]), pairs=pairs, visits=visits)
