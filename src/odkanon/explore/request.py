"""What the page may ask for; anything else is turned away before it reaches the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from odkanon.errors import InputError
from odkanon.methods.method_registry import METHODS, Method, words_for

MOST_BUDGET = 0.3


@dataclass(frozen=True)
class Request:
    """One position of the controls.

    Attributes
    ----------
    k : int
        How many must stand behind every flow.
    targets : tuple of str
        Measures that have a threshold: trips, weight, persons.
    method, budget, suppress
        As `odkanon.anonymize` takes them.
    resolution : int or None
        H3 resolution of the leaves; None where zones are not H3 cells.
    segment : str
        Which travellers.
    split : bool
        Show participants and population side by side instead of ``targets``.
    """

    k: int
    targets: tuple[str, ...]
    method: str
    budget: float
    suppress: str
    resolution: int | None
    segment: str
    split: bool = False

    @property
    def options(self) -> dict[str, Any]:
        """What the method takes of the request; the command line passes the same."""
        method = METHODS[self.method]
        asked = {"budget": _has_budget(method), "suppress": "suppress" in method.options}
        return {name: getattr(self, name) for name, taken in asked.items() if taken}

    @property
    def parts(self) -> tuple[Request, ...]:
        """One request for each release that is to be shown."""
        if not self.split:
            return (self,)
        return tuple(replace(self, targets=(measure,), split=False) for measure in ("trips", "weight"))

    @property
    def is_slow(self) -> bool:
        """Whether it may take longer than a slider allows: it then runs in a process of its own and can be stopped."""
        return METHODS[self.method].slow

    def for_page(self) -> dict[str, Any]:
        """Return it as the page sends it."""
        own = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return own | {"targets": list(self.targets)}


@dataclass(frozen=True)
class Offer:
    """Which values the controls may take."""

    most_k: int
    targets: Sequence[str]
    methods: Sequence[str]
    resolutions: Sequence[int | None]
    segments: Sequence[str]
    first: Request

    def for_page(self, token: str) -> dict[str, Any]:
        """Return it as the page reads it."""
        return {
            "token": token,
            "k": {"min": 2, "max": self.most_k},
            "budget": {"max": MOST_BUDGET},
            "targets": list(self.targets),
            "methods": [for_controls(METHODS[name]) for name in self.methods],
            "resolutions": [one for one in self.resolutions if one is not None],
            "segments": list(self.segments),
            "first": self.first.for_page(),
        }

    def check(self, asked: Mapping[str, Any]) -> Request:
        """Turn what came over the wire into a request.

        Raises
        ------
        InputError
            Unless every part is one of the values that were offered.
        """
        k, budget, targets = asked.get("k"), asked.get("budget"), asked.get("targets")
        if type(k) is not int or not 2 <= k <= self.most_k:
            raise InputError(f"k must be a whole number from 2 to {self.most_k}")
        if isinstance(budget, bool) or not isinstance(budget, int | float) or not 0 <= budget <= MOST_BUDGET:
            raise InputError(f"the share that may be left out must be from 0 to {MOST_BUDGET}")
        if not isinstance(targets, list) or not targets or any(one not in self.targets for one in targets):
            raise InputError(f"protect at least one of {', '.join(self.targets)}")
        split = asked.get("split", False)
        if not isinstance(split, bool) or (split and "weight" not in self.targets):
            raise InputError("participants and population can only be compared where trips have weights")
        return Request(
            k=k,
            targets=tuple(one for one in self.targets if one in targets),
            method=_one_of("method", asked.get("method"), self.methods),
            budget=float(budget),
            suppress=_one_of("suppress", asked.get("suppress"), ("before", "after")),
            resolution=_one_of("resolution", asked.get("resolution"), self.resolutions),
            segment=_one_of("segment", asked.get("segment"), self.segments),
            split=split,
        )


def _has_budget(method: Method) -> bool:
    """Tell whether a release to be published takes a budget; with nested flows it is only for comparing methods."""
    return method.takes_budget and not method.nested


def for_controls(method: Method) -> dict[str, Any]:
    """Return what the page says of a method, and which controls mean something for it."""
    controls = {"slow": method.slow, "budget": _has_budget(method), "suppress": "suppress" in method.options}
    return {"name": method.name, **words_for(method.name), **controls}


def _one_of(name: str, value: Any, known: Sequence[Any]) -> Any:
    if isinstance(value, bool | float | list | dict) or value not in known:
        raise InputError(f"{name} must be one of {', '.join(map(str, known))}")
    return value
