"""How the pairs in a database compare with the rows of a cascade: each with the finest row that it lies in."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from odkanon.core.arrays import Bools, Ints
from odkanon.engine.nested_release import Nested
from odkanon.engine.residual import Groups
from odkanon.engine.sql.backend import Selected, Stored, lend
from odkanon.engine.sql.deviations import compare
from odkanon.engine.sql.sql_matrix import SqlMatrix
from odkanon.errors import UnsafeReleaseError
from odkanon.model.assignment import Deviation, even_share
from odkanon.model.od import AXES
from odkanon.model.published_flows import Classes


def nested_deviations(od: SqlMatrix, classes: Classes, nested: Nested, rows: Ints) -> dict[str, Deviation]:
    """Compare every pair of the input with the even share of its finest row.

    Most rows have less than one trip for a leaf pair. All pairs that occur are above that, and the fall has counted
    them; only the pairs of the other rows, which are fine ones, are looked at one by one.

    Parameters
    ----------
    rows : array of int
        For each class, the row that it is.
    """
    assert classes.finest_pairs is not None
    measures, own = od.engine().masses[1:], nested.own.take(rows)
    smallest = od.backend.execute(f"SELECT {', '.join(f'MIN({name}) AS {name}' for name in measures)} FROM {od.pairs}")
    open_ = np.zeros(len(classes), dtype=bool)
    for name in measures:
        share = even_share(getattr(classes, name), classes.finest_pairs)
        open_ |= (share >= smallest.column(name)[0].as_py()) & (own.pairs > 0)
    finest = _finest_rows(od, nested, rows, _with_finer(open_, rows, nested.above), measures)
    looked_at = compare(
        od.backend,
        classes,
        classes.finest_pairs,
        measures,
        {},
        lambda shares: f"{finest} f JOIN {shares} c ON c.number = f.finest",
    )
    return {name: _put_together(name, found, open_, nested, own) for name, found in looked_at.items()}


def _with_finer(wanted: Bools, rows: Ints, above: Ints) -> Bools:
    """Return which classes are wanted, or lie in one that is."""
    found = np.zeros(len(above) + 1, dtype=bool)
    found[rows] = wanted
    while True:
        more = found.copy()
        more[:-1] |= found[above]
        if np.array_equal(more, found):
            return found[rows]
        found = more


def _put_together(measure: str, looked_at: Deviation, open_: Bools, nested: Nested, own: Groups) -> Deviation:
    inside = getattr(own, measure)
    if not np.array_equal(looked_at.inside[open_], inside[open_]):
        raise UnsafeReleaseError(f"the {measure} of a row's own pairs are not those that were counted for it")
    return Deviation(
        np.where(open_, looked_at.above_pairs, own.pairs),
        np.where(open_, looked_at.above, inside),
        inside,
        getattr(nested.outside, measure),
    )


def _finest_rows(od: SqlMatrix, nested: Nested, rows: Ints, wanted: Bools, measures: Sequence[str]) -> Selected:
    """Return every pair with its masses and the number of the class that is the finest over it.

    Parameters
    ----------
    rows : array of int
        For each class, the row that it is; pairs get the number of the class.
    wanted : array of bool
        The classes to look for, all those that lie in one of them included; for pairs in no other ones it is -1.
    """
    levels = np.where(wanted[:, None], np.stack(nested.levels, axis=1)[rows], -1)
    rungs = np.unique(levels[wanted], axis=0)
    rungs = rungs[np.argsort(rungs.sum(axis=1), kind="stable")]
    used: list[Stored] = [od.pairs]
    joins = []
    for axis, tree, key in zip(AXES, nested.trees, od.keys, strict=True):
        occurring = np.unique(rungs[:, AXES.index(axis)]).tolist()
        codes = {f"at{level}": tree.codes[level].astype(np.int64) for level in occurring}
        used.append(lend(od.backend, place=key, **codes))
        joins.append(f"JOIN {used[-1]} {axis[0]} ON f.{axis} = {axis[0]}.place")
    for number, rung in enumerate(rungs.tolist()):
        here = np.flatnonzero((levels == rung).all(axis=1))
        ends = {axis: nested.groups.codes[at][rows[here]] for at, axis in enumerate(AXES)}
        used.append(lend(od.backend, **ends, number=here))
        same = " AND ".join(f"r{number}.{axis} = {axis[0]}.at{level}" for axis, level in zip(AXES, rung, strict=True))
        joins.append(f"LEFT JOIN {used[-1]} r{number} ON {same}")
    finest = ", ".join([f"r{number}.number" for number in range(len(rungs))] + ["-1"])
    masses = ", ".join(f"f.{name}" for name in measures)
    return Selected(f"SELECT COALESCE({finest}) AS finest, {masses} FROM {od.pairs} f {' '.join(joins)}", *used)
