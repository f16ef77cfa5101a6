"""What can be counted of trips, each described once: everything else goes through this list.

A further measure that counts contributors (devices, companies) is one more entry here and one more name for its column.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any


@dataclass(frozen=True)
class Measure:
    """One way to count trips.

    Attributes
    ----------
    name : str
        What it is called in rules, tables and files.
    target : str
        Who is protected by a threshold on it.
    column : str or None
        The input column that it needs; None where it needs none.
    counts_distinct : bool
        Whether distinct heads are counted. Those of merged flows do not add up: the union has to be taken.
    title : str
        What a table calls it.
    meaning : str
        What k of it are, in a few words.
    """

    name: str
    target: str
    column: str | None
    counts_distinct: bool
    title: str
    meaning: str


MEASURES: dict[str, Measure] = {
    measure.name: measure
    for measure in (
        Measure("trips", "participants", None, False, "trips", "k trips"),
        Measure("weight", "population", "weight", False, "population (weight)", "k times the mean weight of a trip"),
        Measure("persons", "persons", "person", True, "different persons", "k different persons"),
        Measure("households", "households", "household", True, "different households", "k different households"),
    )
}
DISTINCT: dict[str, Measure] = {name: measure for name, measure in MEASURES.items() if measure.counts_distinct}
"""The measures that count distinct heads."""

ADDITIVE = tuple(name for name, measure in MEASURES.items() if not measure.counts_distinct)
"""The measures that add up when flows are merged; utility can be measured in them."""

BY_CONTRIBUTOR = "by head"
"""No measure, but asked for like one: how much of a flow each head has, which a share of it is worked out from."""

TARGETS: dict[str, Measure] = {measure.target: measure for measure in MEASURES.values()}
"""The measures by whom a threshold on them protects."""


class MeasureColumns:
    """Lets numbers of contributors be read like the other masses: ``flows.persons`` beside ``flows.trips``."""

    if TYPE_CHECKING:  # a dataclass would take it for the default of its own field

        @property
        def contributors(self) -> Mapping[str, Any]: ...  # noqa: D102

    @property
    def persons(self) -> Any:
        """Number of distinct persons; None where the input names none."""
        return self.contributors.get("persons")

    @property
    def households(self) -> Any:
        """Number of distinct households; None where the input names none."""
        return self.contributors.get("households")
