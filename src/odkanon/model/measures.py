"""The measures of a flow, each described once.

Another measure that counts contributors (devices, companies) takes one more entry here and a name for its column.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any


@dataclass(frozen=True)
class Measure:
    """A measure of a flow."""

    name: str
    """Its name in rules, tables and files."""
    target: str
    """Who is protected by a threshold on it."""
    column: str | None
    """The input column that it needs, if any."""
    counts_distinct: bool
    """Whether distinct contributors are counted. Those of merged flows do not add up: their union is counted."""
    title: str
    """Its heading in tables."""
    meaning: str
    """What a threshold of k means, in a few words."""


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
"""The measures that count distinct contributors."""

ADDITIVE = tuple(name for name, measure in MEASURES.items() if not measure.counts_distinct)
"""The measures that add up when flows are merged; utility is measured in them."""

AT_CAP = "at_cap"
"""The column that marks rows with *at least* so many trips; see `odkanon.model.published_flows.Classes`."""

STANDARD_ERROR = "standard_error"
"""The column with the standard error of trips that are estimated from counts with noise."""

BY_CONTRIBUTOR = "by contributor"
"""Not a measure, but requested like one: the mass of each contributor to a flow, from which shares follow."""

TARGETS: dict[str, Measure] = {measure.target: measure for measure in MEASURES.values()}
"""The measures by the target that a threshold on them protects."""


def exact_masses(flows: Any, measure: str) -> Any:
    """Return the masses of flows in a measure, as integers: weight in units of ``1 / scale``."""
    return getattr(flows, "weight_units" if measure == "weight" else measure)


class MeasureColumns:
    """Lets weight and numbers of contributors be read like trips: ``flows.persons`` beside ``flows.trips``."""

    if TYPE_CHECKING:  # a dataclass would take it for the default of its own field

        @property
        def contributors(self) -> Mapping[str, Any]: ...  # noqa: D102

        @property
        def weight_units(self) -> Any: ...  # noqa: D102

        @property
        def scale(self) -> int: ...  # noqa: D102

    @property
    def weight(self) -> Any:
        """Sum of weights, in the unit of the input; None without weights. `weight_units` has the exact integers."""
        return None if self.weight_units is None else self.weight_units / self.scale

    @property
    def persons(self) -> Any:
        """Number of distinct persons; None if the input identifies none."""
        return self.contributors.get("persons")

    @property
    def households(self) -> Any:
        """Number of distinct households; None if the input identifies none."""
        return self.contributors.get("households")
