"""Algorithm 1 of the paper in a database; see `odkanon.engine.memory.presuppress` for what it does."""

from __future__ import annotations

from odkanon.engine.memory.presuppress import check_levels
from odkanon.engine.sql.backend import StoredTable, store_query, upload_columns
from odkanon.engine.sql.engine import SqlEngine, TableAxis, join_maps, query_totals
from odkanon.model.budget import Budget
from odkanon.model.rule import Rule
from odkanon.zoning.hierarchy import Cut, level_cut


def presuppressed_pairs(engine: SqlEngine, rule: Rule, *, levels: int, budget: Budget, allowance: int) -> StoredTable:
    """Return the pairs that are suppressed before generalisation."""
    check_levels(levels)
    problematic = _problematic(engine, rule, levels)
    if budget.mass(query_totals(engine.backend, str(problematic), engine.masses)) <= allowance:
        return problematic
    cost = budget.column
    # First by mass alone: there are fewer masses than pairs, so only ties are ever sorted.
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
