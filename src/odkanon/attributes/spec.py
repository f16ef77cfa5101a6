"""The grammar of attributes: one description for ``--by`` axes, segments and the explorer.

::

    sex                    a column, one value each
    mode:car=1+2,bus=3     groups of its values; all others are ``other``
    purpose:lookup.csv     a table of nested values
    hour  hour:6-9,19-6    the hour in which a trip starts, or time slots
    weekday  date          the day on which it starts
    age                    bands of ages
    sex*age                every combination (segments only)
    weekday without Saturday+Sunday     values that are known not to occur
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from odkanon.errors import InputError, InvalidValueError

ANY = "any"
"""The value of a row whose detail was dropped."""
PLACE = "place"
"""Origin and destination together, in the order in which detail is dropped."""
MISSING = "missing"
"""Trips without a value; they form a value of their own, since subtraction would otherwise reveal them."""
OTHER = "other"
"""Values outside the named groups, or too rare for a table of their own."""
START = "start_time"
AGE_BANDS = (10, 20, 30, 40, 50, 60, 70)
"""Lower bounds of the paper's age bands; the last band is open."""
RESERVED = frozenset({"origin", "destination", PLACE, "trips", "weight", "persons", "households"})
"""Columns of a release, whose names no attribute may have."""

AttributeKind = Literal["column", "hour", "weekday", "date", "age"]
Period = tuple[str | None, str | None]
"""The first day of a period and the first day after it; None for an open end."""

_WITHOUT = " without "
_NAMES = re.compile(r"[^+]+\+?(?=\+|$)")
"""Names separated by plus signs; an age band such as ``70+`` ends in one."""
_NIGHT = frozenset(("00", "01", "02", "03"))
"""Hours that are skipped somewhere when clocks change."""
_FORMULA = re.compile(r"[=+\-@＝＋－＠]")


def is_formula(name: str) -> bool:
    """Return whether a spreadsheet may evaluate a name as a formula."""
    return _FORMULA.match(name) is not None


@dataclass(frozen=True, eq=False)
class AttributeSpec:
    """One attribute, as the user asked for it."""

    text: str
    """What the user wrote, such as ``mode:car=1+2``."""
    name: str
    """Name of the axis."""
    kind: AttributeKind = "column"
    """How its values are derived."""
    slots: tuple[str, ...] = ()
    """For each hour of the day, its time slot; empty for single hours."""
    groups: Mapping[str, str] = field(default_factory=dict)
    """The group of each value; empty if values are not grouped."""
    lookup: str | None = None
    """File with a table of nested values."""
    age_bands: tuple[int, ...] = AGE_BANDS
    """Lower bounds of the second, third, ... age band."""
    period: Period = (None, None)
    """Bounds of the period to which the input is restricted."""
    impossible: frozenset[str] = frozenset()
    """Values that readers know to be empty, and groups of such values."""

    @property
    def source(self) -> str:
        """The column from which it is derived, by our name."""
        return self.name if self.kind in ("column", "age") else START

    @property
    def is_public(self) -> bool:
        """Whether its values are public regardless of the trips: hours, days, age bands, named groups."""
        return bool(self.groups or self.lookup) or self.kind != "column"

    @property
    def is_observed(self) -> bool:
        """Whether its values are those that occur in the data."""
        return self.kind == "column" and not self.is_public


def parse_attribute(text: str, age_bands: Sequence[int] = AGE_BANDS, period: Period = (None, None)) -> AttributeSpec:
    """Return the attribute that a text such as ``hour:6-9,9-16`` or ``mode:car=1+2`` asks for."""
    asked, without, empty = text.partition(_WITHOUT)
    if without:
        names = frozenset(name.strip() for name in _NAMES.findall(empty.replace(" + ", "+")))
        if not names or "" in names:
            raise InvalidValueError.not_understood(repr(text), "name values as in weekday without Saturday+Sunday")
        return replace(parse_attribute(asked, age_bands, period), text=text, impossible=names)
    name, _, detail = (part.strip() for part in text.partition(":"))
    if name == "hour":
        return AttributeSpec(text, name, "hour", slots=_parse_slots(detail, text) if detail else ())
    if name in ("weekday", "date"):
        if detail:
            raise InputError(f"{name} takes nothing after a colon; write {name} without it")
        return AttributeSpec(text, name, "date" if name == "date" else "weekday", period=period)
    if name == "age":
        return AttributeSpec(text, name, "age", age_bands=tuple(age_bands))
    if "=" in detail:
        return AttributeSpec(text, name, groups=_parse_groups(detail, text))
    return AttributeSpec(text, name, lookup=detail or None)


def attribute_name(text: str) -> str:
    """Return the name of the axis that a text asks for."""
    return text.partition(_WITHOUT)[0].partition(":")[0].strip()


def parse_attributes(
    texts: Sequence[str], age_bands: Sequence[int] = AGE_BANDS, period: Period = (None, None)
) -> list[AttributeSpec]:
    """Return the attributes to publish by; see `odkanon.build_od`."""
    names = [attribute_name(text) for text in texts]
    if not texts or len(set(names)) < len(names):
        raise InputError("name at least one attribute to publish by, and each of them once")
    if {"date", "weekday"} <= set(names):
        raise InputError("a date implies its weekday, so publishing by both would expose small groups; choose one")
    if "date" in names and None in period:
        raise InputError(
            "days from the first trip to the last would show that there is a trip on each of the two; give the period: "
            "the first day to be published (since), and the first day after the last (until)"
        )
    for name in names:
        if name in RESERVED:
            raise InvalidValueError.reserved_name("an attribute", name, "the release has a column of that name")
        if is_formula(name):
            raise InvalidValueError.reserved_name("an attribute", name, "a spreadsheet may evaluate it as a formula")
    specs = [parse_attribute(text, age_bands, period) for text in texts]
    if {"date", "weekday"} & set(names) or _is_one_day(period):
        # On a day on which clocks change, an hour of the night is known to be empty.
        return [
            replace(spec, impossible=spec.impossible | _NIGHT) if spec.kind == "hour" and not spec.slots else spec
            for spec in specs
        ]
    return specs


def _is_one_day(period: Period) -> bool:
    since, until = period
    return since is not None and until is not None and until[:10] <= str(np.datetime64(since[:10]) + 1)


def parse_segments(texts: Sequence[str], age_bands: Sequence[int] = AGE_BANDS) -> dict[str, tuple[AttributeSpec, ...]]:
    """Return, for each text such as ``sex*age``, the attributes whose combinations are its segments."""
    repeated = [text for text in texts if list(texts).count(text) > 1]
    if repeated:
        raise InputError(f"the segment {repeated[0]!r} is listed twice; name it once")
    if list(age_bands) != sorted(set(age_bands)) or not age_bands:
        raise InputError(f"age bands begin at ascending ages, such as 18,40,65; not {','.join(map(str, age_bands))}")
    return {text: _parse_segment(text, age_bands) for text in texts}


def segment_attributes(texts: Sequence[str], age_bands: Sequence[int] = AGE_BANDS) -> list[AttributeSpec]:
    """Return the distinct attributes that segments are made of."""
    parts = [part for segment in parse_segments(texts, age_bands).values() for part in segment]
    return list({part.text: part for part in parts}.values())


def _parse_segment(text: str, age_bands: Sequence[int]) -> tuple[AttributeSpec, ...]:
    parts = [part.strip() for part in text.split("*")]
    names = [attribute_name(part) for part in parts]
    if len(set(names)) < len(names) or not all(names):
        raise InvalidValueError.not_understood(f"the segment {text!r}", "write sex, hour:6-9,9-16 or sex*age")
    for part, name in zip(parts, names, strict=True):
        if _WITHOUT in part:
            raise InputError(f"segments are counted, whatever may be empty; leave {part!r} without its values")
        if ":" in part and name != "hour":
            raise InputError(f"only hour takes slots, as in hour:6-9,9-16; not {part!r}")
    return tuple(parse_attribute(part, age_bands) for part in parts)


def _parse_slots(slots: str, text: str) -> tuple[str, ...]:
    """Return the slot of each hour; a slot such as 19-6 spans midnight, and hours outside all slots are ``other``."""
    names = [OTHER] * 24
    for slot in slots.split(","):
        begin, _, end = (piece.strip() for piece in slot.partition("-"))
        if not (begin.isdigit() and end.isdigit() and int(begin) < 24 and int(end) <= 24 and begin != end):
            raise InvalidValueError.not_understood(
                f"the time slot {slot!r} in {text!r}", "write hours, as in 6-9 or 19-6"
            )
        length = (int(end) - int(begin)) % 24 or 24
        for hour in [(int(begin) + step) % 24 for step in range(length)]:
            if names[hour] != OTHER:
                raise InputError(f"hour {hour} is in two time slots of {text!r}; slots must not overlap")
            names[hour] = f"{int(begin):02}-{int(end):02}"
    return tuple(names)


def _parse_groups(groups: str, text: str) -> dict[str, str]:
    """Return the group of each value that is named in ``car=1+2,bus=3``."""
    names: dict[str, str] = {}
    for part in groups.split(","):
        name, equals, values = (piece.strip() for piece in part.partition("="))
        for value in values.split("+"):
            if not equals or not name or not value.strip():
                raise InvalidValueError.not_understood(f"{part!r} in {text!r}", "write groups as in car=1+2")
            if names.setdefault(value.strip(), name) != name:
                raise InputError(f"the value {value.strip()!r} is in two groups of {text!r}; assign it to one")
    return names
