"""Whom a release is about, and which releases are parts of which."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from odkanon.audit.folder import Published
from odkanon.errors import InputError
from odkanon.read.tables.open import quote_name, quote_text

_FILTERED = "filtered out by "
_EQUALS = re.compile(r"""^\s*(\w+)\s*==\s*(?:"([^"]*)"|'([^']*)'|([\w.+-]+))\s*$""")


@dataclass(frozen=True)
class Family:
    """A release and others that are disjoint parts of it.

    Attributes
    ----------
    whole : Published
        The release of all.
    parts : tuple of Published
        Of some; no trip is in two of them.
    complete : bool
        Whether the parts are all there is.
    same : bool
        Whether the only part has the very same trips, on other zones.
    """

    whole: Published
    parts: tuple[Published, ...]
    complete: bool
    same: bool = False


def filter_of(release: Published) -> str | None:
    """Return the filter with which a release was made, as its account of rejected rows has it."""
    for reason in release.manifest["input"]["rejected"]:
        if reason.startswith(_FILTERED):
            return str(reason[len(_FILTERED) :])
    return None


def segment_of(release: Published) -> dict[str, str]:
    """Return what sets the trips of a release apart: its segment, or a filter, as ``{attribute: value}``."""
    segment = dict(release.parameters.get("segment", {}))
    where = filter_of(release)
    if where is not None:
        match = _EQUALS.match(where)
        if match:
            segment[match[1]] = next(value for value in match.groups()[1:] if value is not None)
        else:
            segment[f"filter {where}"] = "yes"
    return segment


def families(releases: Sequence[Published], *, cumulative: bool) -> list[Family]:
    """Return which releases are parts of which, as far as their accounts tell.

    Parameters
    ----------
    cumulative : bool
        Take every release for a part of each one with more trips, as in a series that grows.
    """
    found = []
    for whole in releases:
        by_kind: dict[tuple[str, ...], list[Published]] = {}
        for part in releases:
            kind = _kind(part, whole)
            if part is not whole and kind is not None:
                by_kind.setdefault(kind, []).append(part)
        for kind, parts in by_kind.items():
            # Without a segment the part has the same trips: each such pair of zonings is a family of its own.
            groups = [[part] for part in parts] if not kind or any(k.startswith("filter ") for k in kind) else [parts]
            groups += _halves(whole, parts) if len(groups) > 1 and kind else []
            found += [_family(whole, group, same=not kind) for group in groups]
        if cumulative:
            found += [
                Family(whole, (part,), False)
                for part in releases
                if _kind(part, whole) is None and part.total < whole.total
            ]
    return found


def _kind(part: Published, whole: Published) -> tuple[str, ...] | None:
    """Return by which attributes one release is a part of another; None if it is not known to be."""
    same_input = part.manifest["input"].get("sha256") == whole.manifest["input"].get("sha256")
    inner, outer = segment_of(part), segment_of(whole)
    if not same_input or any(inner.get(name) != value for name, value in outer.items()):
        return None
    return tuple(sorted(inner.keys() - outer.keys()))


def _family(whole: Published, parts: list[Published], *, same: bool) -> Family:
    # Two releases of the same segment would count twice: the larger one stands for both.
    distinct = {tuple(sorted(segment_of(part).items())): part for part in sorted(parts, key=lambda each: each.total)}
    complete = sum(part.total for part in distinct.values()) == whole.total
    return Family(whole, tuple(distinct.values()), complete, same)


def _halves(whole: Published, parts: list[Published]) -> list[list[Published]]:
    """Return pairs of filters whose trips add up to the whole: one is the complement of the other."""
    return [
        [one, other]
        for number, one in enumerate(parts)
        for other in parts[number + 1 :]
        if one.total + other.total == whole.total
    ]


def segment_condition(release: Published) -> str:
    """Return, in SQL over the attributes of trips, which trips a release is about."""
    own = _any_of(release.parameters.get("joined") or [release.parameters.get("segment", {})], release)
    gone = _any_of(release.parameters.get("left_out", []), release)
    either = [f"({' OR '.join(own)})"] if any(own) else []
    return " AND ".join([*either, *(f"NOT coalesce({each}, false)" for each in gone)]) or "true"


def _any_of(segments: Sequence[dict[str, str]], release: Published) -> list[str]:
    return [" AND ".join(_condition(name, label, release) for name, label in each.items()) for each in segments]


def _condition(name: str, label: str, release: Published) -> str:
    if name == "age":
        return _age_condition(label)
    if name == "hour":
        return _hour_condition(label, release)
    text = f"coalesce(nullif(trim(CAST({quote_name(name)} AS VARCHAR)), ''), 'missing')"
    return f"{text} = {quote_text(label)}"


def _age_condition(label: str) -> str:
    age = "TRY_CAST(age AS DOUBLE)"
    known = f"coalesce({age} >= 0 AND isfinite({age}), false)"
    if label == "missing":
        return f"NOT {known}"
    match = re.fullmatch(r"(?:under (\d+))|(?:(\d+)-(\d+))|(?:(\d+)\+)", label)
    if not match:
        raise InputError(f"{label!r} is no age band that can be understood")
    if match[1]:
        return f"({known} AND {age} < {match[1]})"
    if match[4]:
        return f"({known} AND {age} >= {match[4]})"
    return f"({known} AND {age} >= {match[2]} AND {age} < {int(match[3]) + 1})"


def _hour_condition(label: str, release: Published) -> str:
    hour = "extract(hour FROM start_time)"
    if label == "missing":
        return "start_time IS NULL"
    if label == "other":
        slots = next(part for part in release.parameters["dimension"].split("*") if part.strip().startswith("hour:"))
        hours = [h for slot in slots.partition(":")[2].split(",") for h in _hours(slot)]
        return f"{hour} NOT IN ({', '.join(map(str, hours))})"
    return f"{hour} IN ({', '.join(map(str, _hours(label)))})"


def _hours(slot: str) -> list[int]:
    begin, dash, end = slot.strip().partition("-")
    if not dash:
        return [int(begin)]
    return [(int(begin) + step) % 24 for step in range((int(end) - int(begin)) % 24 or 24)]


def attributes_of(releases: Sequence[Published]) -> list[str]:
    """Return the attributes that trips need so that the segments of the releases can be told apart."""
    segments = [release.parameters.get("segment", {}) for release in releases]
    segments += [segment for release in releases for segment in release.parameters.get("left_out", [])]
    return sorted({name for segment in segments for name in segment} - {"hour"})
