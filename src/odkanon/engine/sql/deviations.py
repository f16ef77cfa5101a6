"""How the OD pairs in a database deviate from the even spread of their class, in one pass over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from odkanon.core.arrays import Bools, Codes, Ints
from odkanon.engine.memory.residual import MemoryResidual
from odkanon.engine.node_flows import NestedRows, NodeFlows
from odkanon.engine.sql.backend import Backend, StoredTable, Subquery, upload_columns
from odkanon.engine.sql.engine import sum_bigint
from odkanon.engine.sql.matrix import SqlMatrix
from odkanon.errors import UnsafeReleaseError
from odkanon.model.measures import exact_masses
from odkanon.model.od import AXES
from odkanon.model.published_flows import Classes, Deviation, deviation, even_share


def compare_pairs(
    backend: Backend,
    classes: Classes,
    leaf_pairs: Ints,
    measures: Sequence[str],
    places: Mapping[str, Codes],
    joined: Callable[[StoredTable], str],
) -> dict[str, Deviation]:
    """Compare every OD pair of the input with the even share of its class.

    * ``leaf_pairs``: for each class, the leaf pairs that it is spread over.
    * ``places``: further columns of the table of classes, to join it by.
    * ``joined``: given the table of classes, returns what stands after FROM: pairs ``f`` with an outer join to their
      class ``c``, so that pairs in no class are counted rather than inferred.
    """
    shares = {f"share_{name}": even_share(exact_masses(classes, name), leaf_pairs) for name in measures}
    table = upload_columns(backend, **places, number=np.arange(len(classes)), **shares)
    sums = ", ".join(
        f"{sum_bigint(f'CASE WHEN f.{name} > c.share_{name} THEN 1 ELSE 0 END')} AS pairs_{name}, "
        f"{sum_bigint(f'CASE WHEN f.{name} > c.share_{name} THEN f.{name} ELSE 0 END')} AS above_{name}, "
        f"{sum_bigint(f'f.{name}')} AS inside_{name}"
        for name in measures
    )
    found = backend.execute(
        f"SELECT COALESCE(c.number, {len(classes)}) AS number, {sums} FROM {joined(table)} "
        f"GROUP BY COALESCE(c.number, {len(classes)})"
    )
    number = found.column("number").to_numpy()

    def column(name: str) -> Ints:
        values = np.zeros(len(classes) + 1, dtype=np.int64)
        values[number] = found.column(name).to_numpy()
        return values

    return {
        name: Deviation(
            column(f"pairs_{name}")[:-1],
            column(f"above_{name}")[:-1],
            column(f"inside_{name}")[:-1],
            int(column(f"inside_{name}")[-1]),
        )
        for name in measures
    }


def nested_deviations(od: SqlMatrix, classes: Classes, nested: NestedRows, rows: Ints) -> dict[str, Deviation]:
    """Compare every OD pair of the input with the even share of its finest row.

    Most rows have less than one trip per leaf pair. All pairs that occur are above that share, and the cascade has
    already counted them; only the pairs of the other rows, which are fine ones, are compared one by one.

    * ``rows``: for each class, the number of its row.
    """
    assert classes.finest_pairs is not None
    measures, own = od.engine().masses[1:], nested.own.take(rows)
    if isinstance(nested.residual, MemoryResidual) and nested.residual.pairs is not None:
        pairs = nested.residual.pairs
        area = nested.area_of_pair(rows, nested.residual.row_of_pair(len(pairs.trips)))
        shares = {name: even_share(exact_masses(classes, name), classes.finest_pairs) for name in measures}
        return {name: deviation(area, exact_masses(pairs, name), share) for name, share in shares.items()}
    smallest = od.backend.execute(f"SELECT {', '.join(f'MIN({name}) AS {name}' for name in measures)} FROM {od.pairs}")
    open_ = np.zeros(len(classes), dtype=bool)
    for name in measures:
        share = even_share(exact_masses(classes, name), classes.finest_pairs)
        open_ |= (share >= smallest.column(name)[0].as_py()) & (own.pairs > 0)
    finest = _finest_rows(od, nested, rows, _with_finer(open_, rows, nested.above), measures)
    compared = compare_pairs(
        od.backend,
        classes,
        classes.finest_pairs,
        measures,
        {},
        lambda shares: f"{finest} f JOIN {shares} c ON c.number = f.finest",
    )
    return {name: _combined(name, found, open_, nested, own) for name, found in compared.items()}


def _with_finer(wanted: Bools, rows: Ints, above: Ints) -> Bools:
    """Return which classes are wanted or lie in a wanted one."""
    found = np.zeros(len(above) + 1, dtype=bool)
    found[rows] = wanted
    while True:
        more = found.copy()
        more[:-1] |= found[above]
        if np.array_equal(more, found):
            return found[rows]
        found = more


def _combined(measure: str, compared: Deviation, open_: Bools, nested: NestedRows, own: NodeFlows) -> Deviation:
    """Return the deviations of compared rows and of those whose pairs are all above their share."""
    inside = exact_masses(own, measure)
    if not np.array_equal(compared.inside[open_], inside[open_]):
        raise UnsafeReleaseError(f"the {measure} of a row's own pairs are not those that were counted for it")
    return Deviation(
        np.where(open_, compared.above_pairs, own.pairs),
        np.where(open_, compared.above, inside),
        inside,
        exact_masses(nested.outside, measure),
    )


def _finest_rows(od: SqlMatrix, nested: NestedRows, rows: Ints, wanted: Bools, measures: Sequence[str]) -> Subquery:
    """Return every pair with its masses and the number of its finest class.

    * ``rows``: for each class, the number of its row.
    * ``wanted``: the classes to look for, with all classes inside them; pairs whose finest class is another one get -1.
    """
    levels = np.where(wanted[:, None], np.stack(nested.levels, axis=1)[rows], -1)
    rungs = np.unique(levels[wanted], axis=0)
    rungs = rungs[np.argsort(rungs.sum(axis=1), kind="stable")]
    used: list[StoredTable] = [od.pairs]
    joins = []
    for axis, tree, key in zip(AXES, nested.trees, od.keys, strict=True):
        occurring = np.unique(rungs[:, AXES.index(axis)]).tolist()
        codes = {f"at{level}": tree.codes[level].astype(np.int64) for level in occurring}
        used.append(upload_columns(od.backend, place=key, **codes))
        joins.append(f"JOIN {used[-1]} {axis[0]} ON f.{axis} = {axis[0]}.place")
    for number, rung in enumerate(rungs.tolist()):
        here = np.flatnonzero((levels == rung).all(axis=1))
        ends = {axis: nested.groups.codes[at][rows[here]] for at, axis in enumerate(AXES)}
        used.append(upload_columns(od.backend, **ends, number=here))
        same = " AND ".join(f"r{number}.{axis} = {axis[0]}.at{level}" for axis, level in zip(AXES, rung, strict=True))
        joins.append(f"LEFT JOIN {used[-1]} r{number} ON {same}")
    finest = ", ".join([f"r{number}.number" for number in range(len(rungs))] + ["-1"])
    masses = ", ".join(f"f.{name}" for name in measures)
    return Subquery(f"SELECT COALESCE({finest}) AS finest, {masses} FROM {od.pairs} f {' '.join(joins)}", *used)
