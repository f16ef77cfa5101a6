"""Algorithm 1 in a database; see `odkanon.engine.presuppress` for what it does."""

from __future__ import annotations

from odkanon.engine.sql.backend import Stored, lend, store
from odkanon.engine.sql.sql_engine import Side, SqlEngine, join_maps, totals
from odkanon.errors import InputError
from odkanon.model.budget import Budget
from odkanon.model.rule import Rule
from odkanon.zoning.hierarchy import Cut, level_cut


def presuppressed(engine: SqlEngine, rule: Rule, *, levels: int, budget: Budget, allowance: int) -> Stored:
    """Return the pairs that are suppressed before generalising."""
    if levels < 0:
        raise InputError(f"levels must be 0 or more, not {levels}")
    problematic = _problematic(engine, rule, levels)
    if budget.mass(totals(engine.backend, str(problematic), engine.masses)) <= allowance:
        return problematic
    cost = budget.column
    # First by mass alone: there are fewer masses than pairs, so that only ties are ever put into an order.
    by_mass = f"(SELECT mass, SUM({cost}) AS cost FROM {problematic} GROUP BY mass) m"
    upto = f"(SELECT mass, SUM(cost) OVER (ORDER BY mass ROWS UNBOUNDED PRECEDING) AS upto FROM {by_mass}) u"
    limit = _value(engine, f"SELECT MIN(mass) AS value FROM {upto} WHERE upto > {allowance}")
    spent = _value(engine, f"SELECT CAST(SUM({cost}) AS BIGINT) AS value FROM {problematic} WHERE mass < {limit}")
    columns = ", ".join(("origin", "destination", *engine.masses))
    tied = (
        f"(SELECT {columns}, SUM({cost}) OVER (ORDER BY origin_rank, destination_rank ROWS UNBOUNDED PRECEDING) "
        f"AS upto FROM {problematic} WHERE mass = {limit}) t"
    )
    return store(
        engine.backend,
        f"SELECT {columns} FROM {problematic} WHERE mass < {limit} UNION ALL "
        f"SELECT {columns} FROM {tied} WHERE upto <= {allowance - spent}",
    )


def _problematic(engine: SqlEngine, rule: Rule, levels: int) -> Stored:
    """Return the pairs whose group does not meet the rule, with their mass and the ranks of their ends."""
    sides = (engine.origin, engine.destination)
    cuts = [level_cut(side.tree, levels) for side in sides]
    groups = engine.merged(cuts[0], cuts[1])
    maps = [_group_map(engine, side, cut) for side, cut in zip(sides, cuts, strict=True)]
    columns = ", ".join(f"f.{name}" for name in ("origin", "destination", *engine.masses))
    return store(
        engine.backend,
        f"SELECT {columns}, f.{rule.main_measure} AS mass, a.id_rank AS origin_rank, b.id_rank AS destination_rank "
        f"FROM (SELECT * FROM {engine.relation}) f {join_maps('f', *maps)} "
        f"JOIN (SELECT * FROM {groups.relation} WHERE NOT ({groups.condition(rule)})) g "
        "ON g.origin = a.zone AND g.destination = b.zone",
    )


def _group_map(engine: SqlEngine, side: Side, cut: Cut) -> Stored:
    return lend(
        engine.backend,
        place=side.places,
        zone=cut.zone_of_leaf[side.leaf],
        id_rank=side.tree.id_ranks[0][side.leaf],
    )


def _value(engine: SqlEngine, sql: str) -> int:
    return int(engine.backend.execute(sql).column("value")[0].as_py() or 0)
