"""Hierarchies from lookup tables of nested zones: ``leaf, parent, grandparent, ...``, one row per leaf."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from odkanon.errors import InputError, UnreadableFileError
from odkanon.zoning.hierarchy import Hierarchy

Text = npt.NDArray[np.str_]


def lookup_hierarchy(table: pa.Table, name: str = "the lookup table") -> Hierarchy:
    """Return the hierarchy in a lookup table of nested zones; raise InputError if the table is not a tree.

    * ``table``: the first column names the leaves, each further column the zone one level up. If the last column has
      several zones, a virtual root called ``world`` joins them.
    * ``name``: name of the table in messages.

    Examples
    --------
    >>> import pyarrow as pa
    >>> lookup_hierarchy(pa.table({"commune": ["a", "b", "c"], "department": ["x", "x", "y"]}))
    Hierarchy(lookup; nodes by level: 3 < 2 < 1)
    """
    if table.num_rows == 0 or table.num_columns == 0:
        raise UnreadableFileError.empty(name, needs="one row per leaf zone")
    columns = [_texts(table, column, name) for column in table.column_names]
    for level in range(1, len(columns)):
        _check_single_parent(columns[level - 1], columns[level], table.column_names[level - 1 : level + 1], name)
    _check_leaves_distinct(columns[0], table.column_names[0], name)
    columns.append(np.full(table.num_rows, "world"))
    _check_ids_distinct(columns, [*table.column_names, "world"])
    order = np.lexsort(columns)
    ids, starts = [], []
    for column in columns:
        ordered = column[order]
        first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
        ids.append(ordered[first])
        starts.append(first)
    whole = Hierarchy(tuple(ids), tuple(starts), names=tuple(table.column_names))
    return whole.restrict(np.ones(table.num_rows, dtype=bool))


def _texts(table: pa.Table, name: str, of: str) -> Text:
    column = table.column(name).cast(pa.string())
    empty = np.flatnonzero(np.asarray([value is None or not value.strip() for value in column.to_pylist()]))
    if len(empty):
        raise InputError(
            f"column {name!r} of {of} is empty in {_rows(empty)}; where a branch lacks "
            "this level, repeat the zone's own code"
        )
    return np.asarray(column.to_pylist(), dtype=np.str_)


def _check_leaves_distinct(leaves: Text, name: str, of: str) -> None:
    distinct, counts = np.unique(leaves, return_counts=True)
    repeated = np.flatnonzero(counts > 1)
    if len(repeated):
        value = str(distinct[repeated[0]])
        rows = np.flatnonzero(leaves == value)
        raise InputError(f"{name!r} = {value!r} is in {_rows(rows)} of {of}; list each leaf once")


def _check_single_parent(child: Text, parent: Text, names: Sequence[str], of: str) -> None:
    distinct, code = np.unique(child, return_inverse=True)
    _, parent_code = np.unique(parent, return_inverse=True)
    first = np.full(len(distinct), -1)
    first[code[::-1]] = parent_code[::-1]
    wrong = np.flatnonzero(parent_code != first[code])
    if len(wrong):
        value = str(child[wrong[0]])
        rows = np.flatnonzero(child == value)
        parents = ", ".join(sorted({repr(str(p)) for p in parent[rows]}))
        raise InputError(
            f"{of} is not a tree: {names[0]} {value!r} is in more than one {names[1]} ({parents}), "
            f"{_rows(rows)}; give each zone one parent"
        )


def _check_ids_distinct(columns: list[Text], names: Sequence[str]) -> None:
    """Raise if one id names two zones of different leaves; releases would be ambiguous."""
    for low in range(len(columns)):
        for high in range(low + 1, len(columns)):
            shared = np.intersect1d(columns[low], columns[high])
            if len(shared) == 0:
                continue
            apart = columns[low] != columns[high]
            unrelated = np.flatnonzero(np.isin(columns[low], shared) & apart)
            larger = np.flatnonzero(np.isin(columns[high], shared) & apart)
            if len(unrelated) or len(larger):
                which, level, rows = ("an unrelated", low, unrelated) if len(unrelated) else ("a larger", high, larger)
                raise InputError(
                    f"the code {str(columns[level][rows[0]])!r} names both a {names[low]} and {which} {names[high]} "
                    f"({_rows(rows)}); make codes unique across levels, for instance with a prefix"
                )


def _rows(positions: npt.NDArray[Any]) -> str:
    """Return row numbers for a message, counted from 1 below the header."""
    listed = ", ".join(str(int(p) + 1) for p in positions[:5])
    more = f" and {len(positions) - 5:,} more" if len(positions) > 5 else ""
    return f"row{'s' if len(positions) > 1 else ''} {listed}{more}"
