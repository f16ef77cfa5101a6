"""A matrix in a database at work: what is left of it, and the releases that are made of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from odkanon.core.arrays import Codes
from odkanon.engine.memory.workspace import MemoryEngine, check_levels
from odkanon.engine.node_flows import NestedRows
from odkanon.engine.protocols import Engine, Residual
from odkanon.engine.sql.backend import Relation, StoredTable, store_query, upload_columns
from odkanon.engine.sql.deviations import compare_pairs, nested_deviations
from odkanon.engine.sql.engine import SqlEngine, TableAxis, join_maps, query_totals
from odkanon.engine.sql.matrix import SqlMatrix
from odkanon.model.assemble import add_companion
from odkanon.model.flows import Flows, Totals
from odkanon.model.measures import ADDITIVE, DISTINCT, exact_masses
from odkanon.model.od import AXES
from odkanon.model.published_flows import Classes, Deviation, published_classes
from odkanon.model.release import Release
from odkanon.model.release_spec import TOO_FEW_SUPPRESSED, Budget, ReleaseSpec, Structure
from odkanon.model.rule import Rule
from odkanon.zoning.hierarchy import Cut, level_cut
from odkanon.zoning.zones import Zones, zones_of_cut


@dataclass(frozen=True, eq=False)
class SqlWorkspace:
    """A matrix in a database at work."""

    od: SqlMatrix
    """The whole matrix."""
    left: SqlMatrix
    """The pairs that remain after suppression; the summary is still that of the whole."""
    early: Totals
    """The totals suppressed before generalisation."""

    @classmethod
    def from_matrix(cls, od: SqlMatrix) -> SqlWorkspace:
        """Return the workspace with nothing suppressed yet."""
        return cls(od, od, Totals(weight_units=None if od.scale is None else 0))

    @property
    def remaining(self) -> Totals:
        """The total of what is left."""
        return query_totals(self.od.backend, str(self.left.pairs), self.left.engine().masses)

    def engine(self, measures: frozenset[str]) -> Engine:
        """Return an engine over what is left; in memory if it fits there easily."""
        stored = self.left.engine(measures)
        if stored.contributions or not self.left.pairs_fit:
            return stored
        flows = self.left.pairs_in_memory.flows()
        leaves = (np.arange(len(tree.leaves)) for tree in (self.left.origins, self.left.destinations))
        return MemoryEngine(stored, flows, *leaves)

    def presuppress(self, rule: Rule, *, levels: int, budget: Budget) -> SqlWorkspace:
        """Return the pairs that Algorithm 1 keeps."""
        engine = self.od.engine(rule.measures)
        allowance = budget.allowance(self.od.summary)
        early = presuppressed_pairs(engine, rule, levels=levels, budget=budget, allowance=allowance)
        gone = query_totals(self.od.backend, str(early), engine.masses)
        return SqlWorkspace(self.od, _without(self.od, early) if gone.pairs else self.od, gone)

    def refuse(self, spec: ReleaseSpec, refusal: str) -> Release:
        """Return the release that publishes nothing, with the reason."""
        return Release.empty(self.od.summary, spec, refusal)

    def release(self, spec: ReleaseSpec, classes: Engine, cuts: tuple[Cut, Cut]) -> Release:
        """Return the release of two cuts, to which ``classes`` has been coarsened."""
        rule = spec.rule
        all_origins, zone_of_origin = zones_of_cut(self.od.origins, cuts[0])
        all_destinations, zone_of_destination = zones_of_cut(self.od.destinations, cuts[1])
        maps = [
            upload_columns(self.od.backend, place=keys[zone >= 0], zone=zone[zone >= 0])
            for keys, zone in zip(self.od.keys, (zone_of_origin, zone_of_destination), strict=True)
        ]
        assert isinstance(classes, SqlEngine | MemoryEngine)
        merged = classes.satisfying_flows(rule)
        merged = self._count_contributors(merged, set(self.od.contributions) - classes.counted_measures, maps)
        good, suppressed, companion = np.ones(len(merged), dtype=bool), classes.totals_below(rule) + self.early, None
        if not self._satisfies(suppressed, rule, merged, maps):
            companion = add_companion(merged, good, all_origins, all_destinations, rule)
            if companion is None or not good.any():
                return self.refuse(spec, TOO_FEW_SUPPRESSED)
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
        self, classes: Classes, zones: tuple[Zones, Zones], places: tuple[Codes, Codes], maps: list[StoredTable]
    ) -> dict[str, Deviation]:
        assert zones[0].leaves is not None
        assert zones[1].leaves is not None
        leaf_pairs = zones[0].leaves[classes.origin] * zones[1].leaves[classes.destination]
        zoned = f"{self.od.pairs} f {join_maps('f', *maps, join='LEFT JOIN')}"
        return compare_pairs(
            self.od.backend,
            classes,
            leaf_pairs,
            self.od.engine().masses[1:],
            {"origin": places[0], "destination": places[1]},
            lambda shares: f"{zoned} LEFT JOIN {shares} c ON c.origin = a.zone AND c.destination = b.zone",
        )

    def _satisfies(self, suppressed: Totals, rule: Rule, merged: Flows, maps: list[StoredTable]) -> bool:
        """Return whether nothing is suppressed, or the suppressed pairs meet the rule as one class."""
        least = {measure: rule.units(measure, self.od.summary.scale) for measure in rule.measures}
        if not suppressed.pairs:
            return True
        if any((exact_masses(suppressed, name) or 0) < least[name] for name in ADDITIVE if name in least):
            return False
        contributors = [name for name in least if name in DISTINCT]
        if not contributors:
            return True
        published = upload_columns(self.od.backend, origin=merged.origin, destination=merged.destination)
        inside = store_query(
            self.od.backend,
            f"SELECT f.origin, f.destination FROM {self.left.pairs} f {join_maps('f', *maps)} "
            f"JOIN {published} c ON c.origin = a.zone AND c.destination = b.zone",
        )
        return all(self._contributors_outside(name, inside, least[name]) >= least[name] for name in contributors)

    def _contributors_outside(self, measure: str, inside: StoredTable, most: int) -> int:
        """Return the number of contributors of all pairs except some, or ``most`` if there are more."""
        found = self.od.backend.execute(
            f"SELECT DISTINCT v.contributor FROM {self.od.contributions[measure]} v WHERE NOT EXISTS "
            f"(SELECT 1 FROM {inside} i WHERE i.origin = v.origin AND i.destination = v.destination) LIMIT {most}"
        )
        return len(found)

    def _count_contributors(self, merged: Flows, measures: Collection[str], maps: list[StoredTable]) -> Flows:
        """Return the classes with the numbers of their contributors in measures that the rule does not use."""
        backend, counts = self.od.backend, dict(merged.contributor_counts)
        for name in sorted(measures):
            wanted = upload_columns(
                backend, origin=merged.origin, destination=merged.destination, number=np.arange(len(merged))
            )
            found = backend.execute(
                "SELECT number, COUNT(*) AS contributors FROM (SELECT DISTINCT c.number, v.contributor "
                f"FROM {self.left.contributions[name]} v {join_maps('v', *maps)} JOIN {wanted} c "
                "ON c.origin = a.zone AND c.destination = b.zone) s GROUP BY number"
            )
            counts[name] = np.zeros(len(merged), dtype=np.int64)
            counts[name][found.column("number").to_numpy()] = found.column("contributors").to_numpy()
        return replace(merged, contributor_counts=counts)

    def residual_trips(self, nodes: Sequence[int], contributors: Collection[str]) -> Residual:
        """Return the remaining pairs as the residual of a cascade."""
        residual, whole = self.left.residual_trips(contributors), self.od.summary
        small = residual.is_small(whole.pairs, len(residual.contributions) * whole.trips)
        return residual.pairs_in_memory(self.left.pairs_in_memory) if small else residual

    def nested_release(self, spec: ReleaseSpec, nested: NestedRows) -> Release:
        """Return the release of nested rows."""
        origins, destinations, classes, rows = nested.classes()
        return Release(
            self.od.summary,
            spec,
            origins,
            destinations,
            classes,
            nested.suppressed,
            Structure.NESTED,
            # Rows of a cube also differ by attributes, so pairs have no even share of them.
            deviations={} if self.od.axes else nested_deviations(self.od, classes, nested, rows),
            stored=self.od,
            unlisted=nested.unlisted,
        )


def _without(od: SqlMatrix, early: StoredTable) -> SqlMatrix:
    """Return a matrix without some of its pairs, over the leaves that remain."""

    def left(table: Relation) -> StoredTable:
        return store_query(
            od.backend,
            f"SELECT f.* FROM {table} f WHERE NOT EXISTS (SELECT 1 FROM {early} e "
            "WHERE e.origin = f.origin AND e.destination = f.destination)",
        )

    pairs = left(od.pairs)
    trees, keys = [], []
    for axis, key in zip(AXES, od.keys, strict=True):
        tree = od.table_axis(axis).tree
        found = od.backend.execute(f"SELECT DISTINCT {axis} AS place FROM {pairs}").column("place").to_numpy()
        keep = np.isin(key, found)
        trees.append(tree if keep.all() else tree.restrict(keep))
        keys.append(key[keep])
    contributions = {name: left(each) for name, each in od.contributions.items()}
    return replace(
        od, origins=trees[0], destinations=trees[1], keys=(keys[0], keys[1]), pairs=pairs, contributions=contributions
    )


def presuppressed_pairs(engine: SqlEngine, rule: Rule, *, levels: int, budget: Budget, allowance: int) -> StoredTable:
    """Return the pairs that Algorithm 1 of the paper suppresses; see `odkanon.engine.memory.workspace`."""
    check_levels(levels)
    problematic = _problematic(engine, rule, levels)
    if budget.mass(query_totals(engine.backend, str(problematic), engine.masses)) <= allowance:
        return problematic
    cost = budget.column
    # Masses are fewer than pairs: they are summed up first, and only tied pairs are sorted.
    by_mass = f"(SELECT mass, SUM({cost}) AS cost FROM {problematic} GROUP BY mass) m"
    upto = f"(SELECT mass, SUM(cost) OVER (ORDER BY mass ROWS UNBOUNDED PRECEDING) AS upto FROM {by_mass}) u"
    limit = _value(engine, f"SELECT MIN(mass) AS value FROM {upto} WHERE upto > {allowance}")
    spent = _value(engine, f"SELECT CAST(SUM({cost}) AS BIGINT) AS value FROM {problematic} WHERE mass < {limit}")
    columns = ", ".join(("origin", "destination", *engine.masses))
    tied = (
        f"(SELECT {columns}, SUM({cost}) OVER (ORDER BY origin_rank, destination_rank ROWS UNBOUNDED PRECEDING) "
        f"AS upto FROM {problematic} WHERE mass = {limit}) t"
    )
    return store_query(
        engine.backend,
        f"SELECT {columns} FROM {problematic} WHERE mass < {limit} UNION ALL "
        f"SELECT {columns} FROM {tied} WHERE upto <= {allowance - spent}",
    )


def _problematic(engine: SqlEngine, rule: Rule, levels: int) -> StoredTable:
    """Return the pairs whose group does not meet the rule, with their mass and the ranks of their ends."""
    axes = (engine.origin, engine.destination)
    cuts = [level_cut(axis.tree, levels) for axis in axes]
    groups = engine.merged(cuts[0], cuts[1])
    maps = [_group_map(engine, axis, cut) for axis, cut in zip(axes, cuts, strict=True)]
    columns = ", ".join(f"f.{name}" for name in ("origin", "destination", *engine.masses))
    return store_query(
        engine.backend,
        f"SELECT {columns}, f.{rule.main_measure} AS mass, a.id_rank AS origin_rank, b.id_rank AS destination_rank "
        f"FROM (SELECT * FROM {engine.relation}) f {join_maps('f', *maps)} "
        f"JOIN (SELECT * FROM {groups.relation} WHERE NOT ({groups.condition(rule)})) g "
        "ON g.origin = a.zone AND g.destination = b.zone",
    )


def _group_map(engine: SqlEngine, axis: TableAxis, cut: Cut) -> StoredTable:
    return upload_columns(
        engine.backend,
        place=axis.places,
        zone=cut.zone_of_leaf[axis.leaf],
        id_rank=axis.tree.id_ranks[0][axis.leaf],
    )


def _value(engine: SqlEngine, sql: str) -> int:
    return int(engine.backend.execute(sql).column("value")[0].as_py() or 0)
