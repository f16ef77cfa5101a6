"""How pairs in a database compare with the even spread of their class, in one pass over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from odkanon.core.arrays import Codes, Ints
from odkanon.engine.sql.backend import Backend, Stored, lend
from odkanon.model.assignment import Deviation, even_share
from odkanon.model.published_flows import Classes


def compare(
    backend: Backend,
    classes: Classes,
    leaf_pairs: Ints,
    measures: Sequence[str],
    places: Mapping[str, Codes],
    joined: Callable[[Stored], str],
) -> dict[str, Deviation]:
    """Compare every pair of the input with the even share of its class.

    Parameters
    ----------
    leaf_pairs : array of int
        For each class, the leaf pairs that it is spread over.
    places : mapping of str to array
        More columns of the table of classes, to find them by.
    joined : callable
        Given the table of classes, returns what stands after FROM: pairs ``f`` with an outer join to their class ``c``,
        so that what lies in no class is counted too, and not concluded from what does.
    """
    shares = {f"share_{name}": even_share(getattr(classes, name), leaf_pairs) for name in measures}
    table = lend(backend, **places, number=np.arange(len(classes)), **shares)
    sums = ", ".join(
        f"CAST(SUM(CASE WHEN f.{name} > c.share_{name} THEN 1 ELSE 0 END) AS BIGINT) AS pairs_{name}, "
        f"CAST(SUM(CASE WHEN f.{name} > c.share_{name} THEN f.{name} ELSE 0 END) AS BIGINT) AS above_{name}, "
        f"CAST(SUM(f.{name}) AS BIGINT) AS inside_{name}"
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
