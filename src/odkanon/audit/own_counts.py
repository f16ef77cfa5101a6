"""How the audit counts what can be counted, over its own table of records."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from odkanon.model.measures import MEASURES as COUNTED


@dataclass(frozen=True)
class Measure:
    """Something that flows are counted in.

    Attributes
    ----------
    name : str
        As rules and tables have it.
    column : str
        The column of the table ``records`` that it is counted from.
    total : str
        The aggregate over records, in SQL.
    kind : str
        The SQL type of the column in the tables of releases.
    adds_up : bool
        Whether the mass of two groups without a common trip is the sum of their masses.
    """

    name: str
    column: str
    total: str
    kind: str
    adds_up: bool

    def differs(self, said: str, true: str, trips: str) -> str:
        """Return the SQL condition under which a published number is not the true one."""
        if self.kind == "BIGINT":
            return f"{said} IS DISTINCT FROM {true}"
        # Weights are published as floats of whole small units, each trip rounded by itself.
        return f"coalesce(abs({said} - CAST({true} AS DOUBLE)) > 1e-9 * (CAST({true} AS DOUBLE) + {trips}), true)"


def _measure(name: str, column: str, *, counts_distinct: bool) -> Measure:
    if counts_distinct:
        return Measure(name, column, f"count(DISTINCT {column})", "BIGINT", False)
    if name == "weight":
        return Measure(name, column, f"sum({column})", "DOUBLE", True)
    return Measure(name, column, f"sum({column})::BIGINT", "BIGINT", True)


MEASURES = tuple(
    _measure(name, each.column or name, counts_distinct=each.counts_distinct) for name, each in COUNTED.items()
)
NAMES = tuple(COUNTED)
DISTINCT = tuple(measure.column for measure in MEASURES if not measure.adds_up)
"""The columns of the table ``records`` that name heads."""


def named(names: Collection[str]) -> list[Measure]:
    """Return the measures of the given names, in the order of the list."""
    return [measure for measure in MEASURES if measure.name in names]
