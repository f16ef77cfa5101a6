"""What is said about rows: why a table has none to use, and what looks wrong about those that it has."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from odkanon.core.arrays import Codes
from odkanon.errors import InputError
from odkanon.model.measures import DISTINCT
from odkanon.model.provenance import Rejected, Source
from odkanon.read.coordinates import OUT_OF_RANGE, SWAPPED
from odkanon.read.tables.table import Check, Named, quote_name

log = logging.getLogger(__name__)

_MANY = 0.2
"""From which share on it is said that trips name nobody."""


class Shown(Named, Protocol):
    """A table of which a row can be shown."""

    def example(self, condition: str, columns: Sequence[str]) -> str: ...  # noqa: D102


def example_of(
    table: Shown, found: Mapping[str, str], checks: Sequence[Check], rejected: Mapping[str, Rejected]
) -> str:
    """Return a row that was turned away for the most frequent reason; empty where none can be shown."""
    reason = max(rejected, key=lambda each: rejected[each].rows, default=None)
    check = next((each for each in checks if each.reason == reason), None)
    columns = [] if check is None else [name for name in found.values() if quote_name(name) in check.condition]
    return table.example(check.condition, columns) if check is not None and columns else ""


def no_rows(table: Named, source: Source, hint: str = "", option: str | None = None, example: str = "") -> InputError:
    """Return the error for a table without a single usable row, and with what may help."""
    reasons = "; ".join(f"{part.rows:,} {reason}" for reason, part in source.rejected.items())
    hint = f"; for instance in {example}{hint}" if example else hint
    return InputError(
        f"{table.name} has no usable row ({reasons or 'there are no rows below the header'}){hint}", option=option
    )


def hint_at_swap(rejected: Mapping[str, Rejected]) -> None:
    """Warn where latitudes are out of range but would do as longitudes, or where coordinates are no degrees."""
    if SWAPPED in rejected:
        log.warning("%s rows have a latitude out of range; are lat and lon swapped?", f"{rejected[SWAPPED].rows:,}")
    elif OUT_OF_RANGE in rejected:
        log.warning(
            "%s rows have coordinates out of range; if they are not degrees, name their reference system",
            f"{rejected[OUT_OF_RANGE].rows:,}",
            extra={"option": "crs"},
        )


def warn_of_missing(contributors: Mapping[str, Codes]) -> None:
    """Warn where many rows name no head; given the numbers of the heads of all rows, by measure."""
    for measure, contributor in contributors.items():
        warn_of_nobody(measure, int(np.count_nonzero(contributor < 0)), len(contributor))


def warn_of_nobody(measure: str, without: int, trips: int) -> None:
    """Warn where so many trips name nobody that counts of heads mean little."""
    if trips and without >= _MANY * trips:
        log.warning(
            "%s of %s trips (%s %%) name no %s; they count as nobody, so flows have more %s than can be shown",
            f"{without:,}",
            f"{trips:,}",
            f"{100 * without / trips:.0f}",
            DISTINCT[measure].column,
            measure,
        )
