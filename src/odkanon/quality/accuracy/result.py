"""What is said about the usefulness of a release."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

GOOD = 0.8
"""The CPC from which on flows between places are called good."""


@dataclass(frozen=True)
class OnPlaces:
    """How well flows between places come out.

    Attributes
    ----------
    name : str
        The places: ``2 km`` for squares of that side.
    km : float or None
        Side of the squares; None for places of the user's own.
    cpc : float
        Common part of commuters, ``2 sum min(T, M) / (sum T + sum M)``, from 0 (nothing is where it was) to 1.
    inside_before, inside_after : float or None
        Share of the mass that stays inside its place, of the input and of the release.
    large_near : float or None
        Of the mass in flows of at least 20 trips, the share in flows that are off by less than 25 %; None where there
        are no such flows.
    """

    name: str
    km: float | None
    cpc: float
    inside_before: float
    inside_after: float | None
    large_near: float | None


@dataclass(frozen=True)
class Accuracy:
    """How useful a release is in one measure.

    Attributes
    ----------
    squares : tuple of OnPlaces
        On squares, from the smallest.
    zones : OnPlaces or None
        On zones of the user's own, where they were given.
    length_overlap : float
        What the trip lengths of input and release have in common, from 0 to 1.
    length_before, length_after : float or None
        Mean length of a trip in km, as the crow flies, of the input and of the release.

    References
    ----------
    Lenormand et al. 2012, "A universal model of commuting networks" (CPC).
    """

    squares: tuple[OnPlaces, ...]
    zones: OnPlaces | None
    length_overlap: float
    length_before: float
    length_after: float | None

    @property
    def good_from(self) -> float | None:
        """The smallest side of squares in km from which on all flows are good; None where none are."""
        good = None
        for place in reversed(self.squares):
            if place.cpc < GOOD:
                break
            good = place.km
        return good

    def sentence(self, km: float = 4.0) -> str:
        """Return the most important of it in plain words."""
        chosen = min(self.squares, key=lambda place: abs((place.km or 0) - km))
        good = self.good_from
        upward = f"good from {good:g} km upward" if good else f"good nowhere up to {self.squares[-1].name}"
        return f"Flows between places of {chosen.name} are right to {chosen.cpc:.0%}; {upward}."

    def as_dict(self) -> dict[str, Any]:
        """Return every number in full, for files."""
        return {**asdict(self), "squares": [asdict(place) for place in self.squares], "good_from_km": self.good_from}
