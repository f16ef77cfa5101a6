"""What the audit counts, each measure described once."""

from __future__ import annotations

from dataclasses import dataclass


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
    kind: str = "BIGINT"
    adds_up: bool = False

    def differs(self, said: str, true: str, trips: str) -> str:
        """Return the SQL condition under which a published number is not the true one."""
        if self.kind == "BIGINT":
            return f"{said} IS DISTINCT FROM {true}"
        # Weights are published as floats of whole small units, each trip rounded by itself.
        return f"coalesce(abs({said} - CAST({true} AS DOUBLE)) > 1e-9 * (CAST({true} AS DOUBLE) + {trips}), true)"


MEASURES = (
    Measure("trips", "trips", "sum(trips)::BIGINT", adds_up=True),
    Measure("weight", "weight", "sum(weight)", "DOUBLE", adds_up=True),
    Measure("persons", "person", "count(DISTINCT person)"),
    Measure("households", "household", "count(DISTINCT household)"),
)
NAMES = tuple(measure.name for measure in MEASURES)


def named(names: tuple[str, ...]) -> list[Measure]:
    """Return the measures of the given names, in their order here."""
    return [measure for measure in MEASURES if measure.name in names]
