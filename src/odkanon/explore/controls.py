"""The controls of the page: a request, and the ranges that it is checked against before it reaches the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from odkanon.errors import InputError, InvalidValueError
from odkanon.methods.method_registry import METHODS, Method, words_for

MAX_BUDGET = 0.3


@dataclass(frozen=True)
class ExploreRequest:
    """One position of the controls."""

    k: int
    """The threshold of every flow."""
    targets: tuple[str, ...]
    """The measures with a threshold: trips, weight, persons."""
    method: str
    budget: float
    suppress: str
    """As in `odkanon.anonymize`."""
    resolution: int | None
    """The H3 resolution of the leaves; None if zones are not H3 cells."""
    segment: str
    """The travellers."""
    split: bool = False
    """Show participants and population side by side instead of ``targets``."""

    @property
    def options(self) -> dict[str, Any]:
        """The options of the request that the method takes, as the command line passes them."""
        method = METHODS[self.method]
        applies = {"budget": _has_budget(method), "suppress": "suppress" in method.options}
        return {name: getattr(self, name) for name, taken in applies.items() if taken}

    @property
    def parts(self) -> tuple[ExploreRequest, ...]:
        """One request for each release on the page."""
        if not self.split:
            return (self,)
        return tuple(replace(self, targets=(measure,), split=False) for measure in ("trips", "weight"))

    @property
    def is_slow(self) -> bool:
        """Whether it may be too slow for a slider: it then runs in a separate process and can be stopped."""
        return METHODS[self.method].slow

    def for_page(self) -> dict[str, Any]:
        """Return the request as the page sends it."""
        own = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return own | {"targets": list(self.targets)}


@dataclass(frozen=True)
class ControlRanges:
    """The values that the controls may take."""

    max_k: int
    targets: Sequence[str]
    methods: Sequence[str]
    resolutions: Sequence[int | None]
    segments: Sequence[str]
    first: ExploreRequest

    def for_page(self, token: str) -> dict[str, Any]:
        """Return the ranges as the page reads them."""
        return {
            "token": token,
            "k": {"min": 2, "max": self.max_k},
            "budget": {"max": MAX_BUDGET},
            "targets": list(self.targets),
            "methods": [for_controls(METHODS[name]) for name in self.methods],
            "resolutions": [one for one in self.resolutions if one is not None],
            "segments": list(self.segments),
            "first": self.first.for_page(),
        }

    def check(self, received: Mapping[str, Any]) -> ExploreRequest:
        """Return the request received from the page.

        Raises `InputError` if a value is out of range.
        """
        k, budget, targets = received.get("k"), received.get("budget"), received.get("targets")
        if type(k) is not int or not 2 <= k <= self.max_k:
            raise InvalidValueError.expected("k", f"a whole number from 2 to {self.max_k}", k)
        if isinstance(budget, bool) or not isinstance(budget, int | float) or not 0 <= budget <= MAX_BUDGET:
            raise InvalidValueError.expected("the share that may be suppressed", f"from 0 to {MAX_BUDGET}", budget)
        if not isinstance(targets, list) or not targets or any(one not in self.targets for one in targets):
            raise InvalidValueError.expected("the target", f"a list with some of {', '.join(self.targets)}", targets)
        split = received.get("split", False)
        if not isinstance(split, bool) or (split and "weight" not in self.targets):
            raise InputError("participants and population can be compared only if trips have weights")
        return ExploreRequest(
            k=k,
            targets=tuple(one for one in self.targets if one in targets),
            method=_one_of("method", received.get("method"), self.methods),
            budget=float(budget),
            suppress=_one_of("suppress", received.get("suppress"), ("before", "after")),
            resolution=_one_of("resolution", received.get("resolution"), self.resolutions),
            segment=_one_of("segment", received.get("segment"), self.segments),
            split=split,
        )


def _has_budget(method: Method) -> bool:
    """Return whether releases of a method have a budget; for nested flows it only serves to compare methods."""
    return method.takes_budget and not method.nested


def for_controls(method: Method) -> dict[str, Any]:
    """Return the description of a method for the page, and the controls that apply to it."""
    controls = {"slow": method.slow, "budget": _has_budget(method), "suppress": "suppress" in method.options}
    return {"name": method.name, **words_for(method.name), **controls}


def _one_of(name: str, value: Any, known: Sequence[Any]) -> Any:
    if isinstance(value, bool | float | list | dict) or value not in known:
        raise InvalidValueError.expected(name, f"one of {', '.join(map(str, known))}", value)
    return value
