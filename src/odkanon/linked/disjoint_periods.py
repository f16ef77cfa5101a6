"""Releases of data that grow: each is about whole new periods, so that no two have a trip in common.

A new release of all trips so far, beside an earlier one, lets whoever has both subtract: a flow of 40 that was 38 shows
two people. Rows that are kept as they were until they have grown by enough disclose that others grew by less. It is
always safe to publish the new trips by themselves. Releases of disjoint trips, each a function of its own trips and of
what is public, disclose nothing jointly that they do not disclose singly: the inputs that fit both are all combinations
of an input that fits the first and one that fits the second. So a group that has trips in all of them has trips in all
inputs that fit one of the two, and that release keeps its own promise. This holds for every method, and on the zones
of an earlier release as well, since those are public.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from odkanon.errors import InputError
from odkanon.read.input_spec import InputSpec

_CLOCK = ("timezone", "time_format")


def only_new(reading: InputSpec, earlier: Mapping[str, Any], name: str) -> InputSpec:
    """Return the description of an input that has grown, of the trips after an earlier release only.

    Trips that have come in late, and belong to a period that is published already, are left out.

    * ``reading``: the whole input.
    * ``earlier``: what the recipe of the earlier release states about its input.
    * ``name``: what to call that release.

    Raises `InputError` if the earlier release does not state where it ends, or by which clock; or nothing lies after
    it.

    Examples
    --------
    >>> only_new(InputSpec("trips.csv"), {"since": "2024-01-01", "until": "2024-02-01"}, "january").since
    '2024-02-01'
    """
    until = earlier.get("until")
    if until is None:
        raise InputError(
            f"{name} has no end date, so the trips since then cannot be identified; make it again "
            "with one, or select the new trips yourself",
            option="until DAY",
        )
    for option in _CLOCK:
        if earlier.get(option) != getattr(reading, option):
            what = option.replace("_", " ")
            raise InputError(
                f"the times of {name} were read with another {what}, so its days may begin at another moment; read "
                "them in the same way",
                option=what.replace(" ", "-"),
            )
    if _start_column(earlier.get("columns")) != _start_column(reading.columns):
        raise InputError(f"{name} took another column for the start of a trip; take the same", option="column")
    return replace(reading, since=until)


def _start_column(columns: Mapping[str, str] | None) -> str | None:
    """Return which column was named as the start of a trip, whichever way round."""
    turned = {theirs: ours for ours, theirs in (columns or {}).items()}
    return (columns or {}).get("start_time", turned.get("start_time"))
