"""The place axes of a matrix, and what it counts: trips from an origin to a destination, or records at one place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Axis = Literal["origin", "destination"]
AXES: tuple[Axis, Axis] = ("origin", "destination")
TRIPS = "trips"
RECORDS = "records"
"""The unit of a table by one place, unless it is named."""


@dataclass(frozen=True)
class Subject:
    """What a table counts, and by which places.

    In a table by one place, the second axis is a single point that appears in no file.

    Examples
    --------
    >>> subject = Subject("home", "residents")
    >>> subject.places, subject.column("trips"), subject.column("weight")
    (('home',), 'residents', 'weight')
    >>> subject.words("12 trips are in no flow")
    '12 residents are in no row'
    """

    place: str | None = None
    """The name of the only place axis; None for trips from an origin to a destination."""
    unit: str = TRIPS
    """What is counted, in the plural."""

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The place axes that the table has."""
        return AXES if self.place is None else AXES[:1]

    @property
    def places(self) -> tuple[str, ...]:
        """The names of the place axes."""
        return AXES if self.place is None else (self.place,)

    def column(self, name: str) -> str:
        """Return the published name of an axis or a measure."""
        return self._published.get(name, name)

    def published(self, totals: Mapping[str, Any]) -> dict[str, Any]:
        """Return a mapping by axis or measure under its published names."""
        return {self.column(name): value for name, value in totals.items()}

    def ours(self, totals: Mapping[str, Any]) -> dict[str, Any]:
        """Reverse `published`."""
        names = {published: name for name, published in self._published.items()}
        return {names.get(name, name): value for name, value in totals.items()}

    @property
    def _published(self) -> Mapping[str, str]:
        if self.place is None:
            return {}
        return {"origin": self.place, "origins": "zones", TRIPS: self.unit, "at_most_trips": f"at_most_{self.unit}"}

    def to_dict(self) -> dict[str, Any]:
        """Return the subject of a manifest; nothing for trips."""
        return {} if self.place is None else {"place": self.place, "unit": self.unit}

    @staticmethod
    def from_dict(manifest: Mapping[str, Any]) -> Subject:
        """Return the subject that a manifest names."""
        place = manifest.get("place")
        return Subject() if place is None else Subject(str(place), str(manifest.get("unit", RECORDS)))

    def words(self, text: str) -> str:
        """Return a message about trips and flows in the words of this table."""
        if self.place is None:
            return text
        one = self.unit[:-1] if self.unit.endswith("s") else self.unit
        words = {
            TRIPS: self.unit,
            "Trips": self.unit.capitalize(),
            "trip": one,
            **_WORDS,
            "origin": self.place,
            "origin or destination": self.place,
        }
        text = text.replace(" -> world", "")  # the only zone of the other end
        pattern = "|".join(rf"\b{word}\b" for word in sorted(words, key=len, reverse=True))
        return re.sub(pattern, lambda found: words[found[0]], text)


_WORDS = {
    "Flows between zones": "Rows",
    "origins": "zones",
    "flow": "row",
    "flows": "rows",
    "pairs of places": "places",
    "pair of places": "place",
    "origin-destination pairs": "places",
    "is shared by": "has",
    "has both ends": "is",
    "with both ends": "",
}
