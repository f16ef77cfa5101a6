"""What can be counted of trips, each described once: everything else goes through this list.

A further measure that counts heads (devices, companies) is one more entry here and one more name for its column.
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
    by_heads : bool
        Whether distinct heads are counted. Those of merged flows do not add up: the union has to be taken.
    title : str
        What a table calls it.
    meaning : str
        What k of it are, in a few words.
    """

    name: str
    target: str
    column: str | None
    by_heads: bool
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
HEADS: dict[str, Measure] = {name: measure for name, measure in MEASURES.items() if measure.by_heads}
"""The measures that count distinct heads."""

ADDITIVE = tuple(name for name, measure in MEASURES.items() if not measure.by_heads)
"""The measures that add up when flows are merged; utility can be measured in them."""

BY_HEAD = "by head"
"""No measure, but asked for like one: how much of a flow each head has, which a share of it is worked out from."""

TARGETS: dict[str, Measure] = {measure.target: measure for measure in MEASURES.values()}
"""The measures by whom a threshold on them protects."""


class ByHeads:
    """Lets what is counted by heads be read like the other masses: ``flows.persons`` beside ``flows.trips``.

    None where the input does not name such heads.
    """

    if TYPE_CHECKING:  # a dataclass would take it for the default of its own field

        @property
        def heads(self) -> Mapping[str, Any]: ...  # noqa: D102

    def __getattr__(self, name: str) -> Any:
        if name in HEADS:
            return self.heads.get(name)
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
