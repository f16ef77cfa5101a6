"""Orders in which a cube gives up detail, side by side: how much of each kind of detail they keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from odkanon.errors import InputError
from odkanon.methods.method_registry import anonymize
from odkanon.model.od import Matrix
from odkanon.model.rule import Rule
from odkanon.quality.attribute_coverage import known
from odkanon.quality.utility import utility


def compare_orders(od: Matrix, rule: Rule, orders: Sequence[str]) -> pa.Table:
    """Return what each order keeps of the same trips, one row an order.

    Columns are the order (``give_up``), ``flows``, the share of trips that is ``published``, ``g`` of places, and for
    each axis, and for all of them together, the share of trips of which it is known. Choose on other data than those to
    be published: the promise takes the order for public knowledge, and one that was picked by results tells of them.

    Parameters
    ----------
    od : Matrix
        A cube, as `odkanon.cube_of` or `odkanon.read_matrix` with ``by`` make it.
    rule : Rule
        What every row must meet.
    orders : sequence of str
        Such as ``"place:6,hour,mode,place"``.

    Examples
    --------
    >>> from odkanon import Rule, compare_orders, cube_of, make_survey, read_trips
    >>> cube = cube_of(read_trips(make_survey()), ["sex"], resolution=8)
    >>> kept = compare_orders(cube, Rule(trips=10), ["place,sex", "sex,place"])
    >>> kept["sex"][0].as_py() > kept["sex"][1].as_py()
    True
    """
    if not od.axes:
        raise InputError("there are only places to give up detail of; compare orders of a cube")
    if not orders or len(set(orders)) < len(orders):
        raise InputError("name each order to compare once, and at least one")
    return pa.Table.from_pylist([_row(od, rule, order) for order in orders])


def _row(od: Matrix, rule: Rule, order: str) -> dict[str, Any]:
    release = anonymize(od, rule, method="cascade", give_up=order)
    names = [axis.name for axis in od.axes]
    kept: dict[str, float] = dict.fromkeys(names, 0.0) | ({" and ".join(names): 0.0} if len(names) > 1 else {})
    if release.refusal is None:
        kept = {" and ".join(found.axes): found.full for found in known(release)}
    return {
        "give_up": order,
        "flows": len(release.classes),
        "published": float(release.classes.trips.sum()) / max(release.input.trips, 1),
        "g": utility(od.summary, release).g,
        **kept,
    }
