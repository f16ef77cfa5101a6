"""A matrix in a database at work: what is suppressed before, and the releases that are made of it there."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from odkanon.core.arrays import Codes
from odkanon.engine.memory_engine import MemoryEngine
from odkanon.engine.nested_release import Nested
from odkanon.engine.protocols import Engine
from odkanon.engine.residual import Residual
from odkanon.engine.sql.backend import Relation, Stored, lend, store
from odkanon.engine.sql.deviations import compare
from odkanon.engine.sql.nested_deviations import nested_deviations
from odkanon.engine.sql.presuppress import presuppressed
from odkanon.engine.sql.sql_engine import SqlEngine, join_maps, totals
from odkanon.engine.sql.sql_matrix import SqlMatrix
from odkanon.model.assemble import add_companion
from odkanon.model.assignment import Deviation
from odkanon.model.budget import Budget
from odkanon.model.flows import Flows, Totals
from odkanon.model.measures import ADDITIVE, DISTINCT
from odkanon.model.od import AXES
from odkanon.model.published_flows import Classes, published_classes
from odkanon.model.release import Release
from odkanon.model.release_spec import ReleaseSpec, Structure
from odkanon.model.residual_suppression import ALONE
from odkanon.model.rule import Rule
from odkanon.zoning.hierarchy import Cut
from odkanon.zoning.zones import Zones, zones_of_cut


@dataclass(frozen=True, eq=False)
class SqlWorkspace:
    """A matrix in a database at work.

    Attributes
    ----------
    od : SqlMatrix
        All of it.
    residual : SqlMatrix
        What is left after suppression; its summary is still that of the whole.
    early : Totals
        What was suppressed before generalising.
    """

    od: SqlMatrix
    residual: SqlMatrix
    early: Totals

    @classmethod
    def of(cls, od: SqlMatrix) -> SqlWorkspace:
        """Return the workspace with nothing suppressed yet."""
        return cls(od, od, Totals(weight=None if od.scale is None else 0))

    @property
    def remaining(self) -> Totals:
        """What is left of the matrix."""
        return totals(self.od.backend, str(self.residual.pairs), self.residual.engine().masses)

    def engine(self, measures: frozenset[str]) -> SqlEngine:
        """Return an engine over what is left."""
        return self.residual.engine(measures)

    def presuppress(self, rule: Rule, *, levels: int, budget: Budget) -> SqlWorkspace:
        """Return what Algorithm 1 leaves."""
        engine = self.od.engine(rule.measures)
        early = presuppressed(engine, rule, levels=levels, budget=budget, allowance=budget.allowance(self.od.summary))
        gone = totals(self.od.backend, str(early), engine.masses)
        return SqlWorkspace(self.od, _without(self.od, early) if gone.pairs else self.od, gone)

    def refuse(self, spec: ReleaseSpec, refusal: str) -> Release:
        """Return the release that publishes nothing, and says why."""
        return Release.empty(self.od.summary, spec, refusal)

    def release(self, spec: ReleaseSpec, classes: Engine, cuts: tuple[Cut, Cut]) -> Release:
        """Return the release of two cuts, to which ``classes`` has been coarsened."""
        rule = spec.rule
        all_origins, zone_of_origin = zones_of_cut(self.od.origins, cuts[0])
        all_destinations, zone_of_destination = zones_of_cut(self.od.destinations, cuts[1])
        maps = [
            lend(self.od.backend, place=keys[zone >= 0], zone=zone[zone >= 0])
            for keys, zone in zip(self.od.keys, (zone_of_origin, zone_of_destination), strict=True)
        ]
        assert isinstance(classes, SqlEngine | MemoryEngine)
        merged = classes.meeting(rule)
        merged = self._count_contributors(merged, set(self.od.contributions) - classes.counted, maps)
        good, suppressed, companion = np.ones(len(merged), dtype=bool), classes.below(rule) + self.early, None
        if not self._are_enough(suppressed, rule, merged, maps):
            companion = add_companion(merged, good, all_origins, all_destinations, rule)
            if companion is None or not good.any():
                return self.refuse(spec, ALONE)
            suppressed += companion
        origins, destinations, published, rows = published_classes(merged, good, all_origins, all_destinations)
        places = merged.origin[rows], merged.destination[rows]
        return Release(
            self.od.summary,
            spec,
            origins,
            destinations,
            published,
            suppressed,
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
        contributors = [name for name in least if name in DISTINCT]
        if not contributors:
            return True
        shown = lend(self.od.backend, origin=merged.origin, destination=merged.destination)
        inside = store(
            self.od.backend,
            f"SELECT f.origin, f.destination FROM {self.residual.pairs} f {join_maps('f', *maps)} "
            f"JOIN {shown} c ON c.origin = a.zone AND c.destination = b.zone",
        )
        return all(self._contributors_outside(name, inside, least[name]) >= least[name] for name in contributors)

    def _contributors_outside(self, measure: str, inside: Stored, most: int) -> int:
        """Count the contributors of all pairs but some, up to so many."""
        found = self.od.backend.execute(
            f"SELECT DISTINCT v.contributor FROM {self.od.contributions[measure]} v WHERE NOT EXISTS "
            f"(SELECT 1 FROM {inside} i WHERE i.origin = v.origin AND i.destination = v.destination) LIMIT {most}"
        )
        return len(found)

    def _count_contributors(self, merged: Flows, measures: Collection[str], maps: list[Stored]) -> Flows:
        """Count the contributors of published classes, in measures that the rule does not ask for."""
        backend, counts = self.od.backend, dict(merged.contributor_counts)
        for name in sorted(measures):
            wanted = lend(backend, origin=merged.origin, destination=merged.destination, number=np.arange(len(merged)))
            found = backend.execute(
                "SELECT number, COUNT(*) AS contributors FROM (SELECT DISTINCT c.number, v.contributor "
                f"FROM {self.residual.contributions[name]} v {join_maps('v', *maps)} JOIN {wanted} c "
                "ON c.origin = a.zone AND c.destination = b.zone) s GROUP BY number"
            )
            counts[name] = np.zeros(len(merged), dtype=np.int64)
            counts[name][found.column("number").to_numpy()] = found.column("contributors").to_numpy()
        return replace(merged, contributor_counts=counts)

    def residual_trips(self, nodes: Sequence[int], contributors: Collection[str]) -> Residual:
        """Return what is left as a cascade takes it up its ladder."""
        return self.residual.residual_trips(contributors)

    def nested_release(self, spec: ReleaseSpec, nested: Nested) -> Release:
        """Return the release of rows at several levels."""
        origins, destinations, classes, rows = nested.classes()
        return Release(
            self.od.summary,
            spec,
            origins,
            destinations,
            classes,
            nested.suppressed,
            Structure.NESTED,
            # The rows of a cube are not of pairs alone, so that pairs have no even share of them.
            deviations={} if self.od.axes else nested_deviations(self.od, classes, nested, rows),
            stored=self.od,
            unlisted=nested.unlisted,
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
    contributions = {name: left(each) for name, each in od.contributions.items()}
    return replace(
        od, origins=trees[0], destinations=trees[1], keys=(keys[0], keys[1]), pairs=pairs, contributions=contributions
    )
