"""Numbers with a decimal comma and times in local formats, converted to those of SQL.

A format that is beyond doubt is applied with a warning; an ambiguous one is refused with both interpretations.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import product

from odkanon.core.sql import quote_name, quote_text
from odkanon.errors import InputError, InvalidValueError
from odkanon.read.tables.table import SourceTable

log = logging.getLogger(__name__)

_SAMPLE_ROWS = 1_000
_WRITTEN = ("VARCHAR", "DOUBLE", "FLOAT", "BIGINT", "INTEGER", "DECIMAL")
"""Types other than timestamps that a time may have."""
_SERIALS = (20_000, 80_000)
"""Spreadsheet dates from 1954 to 2119, in days since 1900."""
_EPOCH = (631_152_000, 4_102_444_800)
"""Seconds since 1970 in 1990 and 2100; smaller and larger numbers may be dates written as digits."""
_UNITS = {"seconds": 1, "milliseconds": 10**3, "microseconds": 10**6, "nanoseconds": 10**9}
_DEGREES = r"^\s*[-+]?\d{1,3},\d+\s*$"
_DAYS = tuple(order.replace("/", mark) for mark in "/.-" for order in ("%d/%m/%Y", "%m/%d/%Y"))
_CLOCKS = ("%H:%M:%S", "%H:%M", "%I:%M:%S %p", "%I:%M %p")
FORMATS = (
    *(" ".join(parts) for parts in product((*_DAYS, "%Y/%m/%d"), _CLOCKS)),
    *_DAYS,
    *(f"%Y-%m-%d {clock}" for clock in _CLOCKS[2:]),
    *_CLOCKS,
)
"""Recognised formats of times other than 2022-11-14 08:00:00, as for strptime."""


@dataclass(frozen=True)
class NumberFormat:
    """The format of numbers and times, as far as it was specified."""

    decimal: str | None = None
    """Decimal separator; by default a point, or a comma where coordinates leave no doubt."""
    time_format: str | None = None
    """Format of times, such as ``%d/%m/%Y %H:%M``; by default detected from the values."""

    def __post_init__(self) -> None:
        if self.decimal not in (None, ",", "."):
            raise InvalidValueError.expected("the decimal separator", "',' or '.'", self.decimal)
        if self.time_format is not None and "%" not in self.time_format:
            raise InvalidValueError.expected("a time format", "a text such as %d/%m/%Y %H:%M", self.time_format)
        unknown = sorted(set(re.findall(r"%-?(.)", self.time_format or "")) - set(_DIRECTIVES))
        if unknown:
            expected = f"made of directives such as %d, %m, %Y, %H, %M and %S; %{unknown[0]} is none"
            raise InvalidValueError.expected("a time format", expected, self.time_format)


_DIRECTIVES = "aAbBcdfgHIjmMnpSuUVwWxXyYzZG%"
"""The letters of the directives of time formats in DuckDB, after ``%`` or ``%-``."""


def normalize_formats(
    table: SourceTable,
    number_format: NumberFormat,
    *,
    degrees: Sequence[str],
    numbers: Sequence[str],
    times: Sequence[str],
) -> SourceTable:
    """Return a table with decimal points and ISO times.

    * ``degrees``: columns of coordinates in degrees, which distinguish decimal commas from thousands separators.
    * ``numbers``, ``times``: columns of numbers, and of times.

    Notes
    -----
    Unreadable values are kept, to be counted as such. Where the comma is decimal, numbers with a point are invalid.
    """
    types = table.types()
    texts = [name for name in numbers if types[name] == "VARCHAR"]
    degrees = [name for name in degrees if name in texts]
    first = _first_values(table, [*degrees, *(name for name in times if types[name].startswith(_WRITTEN))])
    written: dict[str, str] = {}
    if texts and _has_comma(table.name, number_format.decimal, [first[name] for name in degrees]):
        written |= {name: f"translate({quote_name(name)}, ',.', '.?')" for name in texts}
    for name in times:
        values = first.get(name, [])
        if number_format.time_format is None and _is_serial(table.name, name, values):
            written[name] = _moment_of_serial(name)
            continue
        if number_format.time_format is None and (unit := _epoch_unit(table.name, name, values)) is not None:
            written[name] = _moment_of_epoch(name, unit)
            continue
        is_text = types[name] == "VARCHAR"
        form = (number_format.time_format or _detect_format(table, name, values)) if is_text else None
        if form is not None:
            read = f"try_strptime(trim({quote_name(name)}), {quote_text(form)})"
            written[name] = f"coalesce(strftime({read}, '%Y-%m-%d %H:%M:%S'), {quote_name(name)})"
    if not written:
        return table
    replaced = ", ".join(f"{expression} AS {quote_name(name)}" for name, expression in written.items())
    return replace(table, scan=f"(SELECT * REPLACE ({replaced}) FROM {table.scan})", plain=False)


def _is_serial(table: str, name: str, values: Sequence[str]) -> bool:
    """Return whether times are days since 1900, as in spreadsheets, with a warning."""
    try:
        numbers = [float(value) for value in values]
    except ValueError:
        return False
    if not numbers or not all(_SERIALS[0] <= number < _SERIALS[1] for number in numbers):
        return False
    moment = datetime(1899, 12, 30) + timedelta(seconds=round(numbers[0] * 86_400))
    log.warning("%s: %s is read as days since 1900, as in spreadsheets (%s is %s)", table, name, values[0], moment)
    return True


def _moment_of_serial(name: str) -> str:
    column = quote_name(name)
    days = f"TRY_CAST({column} AS DOUBLE)"
    moment = f"TIMESTAMP '1899-12-30' + to_seconds(CAST(round({days} * 86400) AS BIGINT))"
    return f"coalesce(strftime({moment}, '%Y-%m-%d %H:%M:%S'), CAST({column} AS VARCHAR))"


def _epoch_unit(table: str, name: str, values: Sequence[str]) -> str | None:
    """Return the unit of times that are counted since 1970, with a warning; None for other times."""
    try:
        numbers = [float(value) for value in values]
    except ValueError:
        return None
    for unit, size in _UNITS.items():
        if numbers and all(_EPOCH[0] * size <= number < _EPOCH[1] * size for number in numbers):
            moment = datetime.fromtimestamp(numbers[0] // size, tz=UTC)
            log.warning(
                "%s: %s is read as %s since 1970, in UTC (%s is %s)",
                *(table, name, unit, values[0], f"{moment:%Y-%m-%d %H:%M:%S}"),
                extra={"option": "timezone"},
            )
            return unit
    return None


def _moment_of_epoch(name: str, unit: str) -> str:
    column = quote_name(name)
    moment = f"make_timestamp(CAST(round(TRY_CAST({column} AS DOUBLE) * {1e6 / _UNITS[unit]!r}) AS BIGINT))"
    return f"coalesce(strftime({moment}, '%Y-%m-%d %H:%M:%SZ'), CAST({column} AS VARCHAR))"


def _has_comma(table: str, decimal: str | None, degrees: Sequence[Sequence[str]]) -> bool:
    if decimal is not None or not degrees:
        return decimal == ","
    with_comma, with_point, example = 0, 0, ""
    for values in degrees:
        commas = [value for value in values if "," in value]
        with_point += sum("." in value for value in values)
        with_comma += len(commas)
        example = example or next(iter(commas), "")
        if any(not _is_degrees(value) for value in commas):
            return False
    if not with_comma or with_point:
        return False
    log.warning("%s: numbers are read with a decimal comma (%s)", table, example, extra={"option": "decimal"})
    return True


def _is_degrees(value: str) -> bool:
    try:
        return value.count(",") == 1 and abs(float(value.replace(",", "."))) <= 180
    except ValueError:
        return False


def _detect_format(table: SourceTable, name: str, values: Sequence[str]) -> str | None:
    """Return the only format that fits the times; None where SQL reads them as they are, or none fits."""
    if not values or any(map(_is_plain, values)):
        return None
    counts = {form: sum(_fits(value, form) for value in values) for form in FORMATS}
    most = max(counts.values())
    if most * 2 <= len(values):
        return None
    best = [form for form, count in counts.items() if count == most]
    if len(best) > 1:
        best = _by_all_rows(table, name, best)
    if len(best) > 1:
        value = next(value for value in values if _fits(value, best[0]))
        readings = " or ".join(f"{datetime.strptime(value, form):%d %B %Y} ({form})" for form in best)
        raise InputError(
            f"{value!r} in column {name!r} of {table.name} could be {readings}; name the format",
            option="time-format",
        )
    log.warning("%s: times in %s are read as %s", table.name, name, best[0], extra={"option": "time-format"})
    return best[0]


def _by_all_rows(table: SourceTable, name: str, forms: Iterable[str]) -> list[str]:
    """Return the formats that fit the most rows of the whole column: a 13 cannot be a month."""
    forms = list(forms)
    column = f"trim({quote_name(name)})"
    counted = table.fetch(
        {f"n{at}": f"count(try_strptime({column}, {quote_text(form)}))" for at, form in enumerate(forms)}
    )
    counts = [counted.column(f"n{at}")[0].as_py() for at in range(len(forms))]
    return [form for form, count in zip(forms, counts, strict=True) if count == max(counts)]


def _first_values(table: SourceTable, names: Sequence[str]) -> dict[str, list[str]]:
    """Return the values in the first rows of some columns."""
    if not names:
        return {}
    few = replace(table, scan=f"(SELECT {', '.join(map(quote_name, names))} FROM {table.scan} LIMIT {_SAMPLE_ROWS})")
    found = few.fetch({name: f"CAST({quote_name(name)} AS VARCHAR)" for name in names})
    return {
        name: [value.strip() for value in found.column(name).to_pylist() if value is not None and value.strip()]
        for name in names
    }


def _fits(value: str, form: str) -> bool:
    try:
        datetime.strptime(value, form)
    except ValueError:
        return False
    return True


def _is_plain(value: str) -> bool:
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return value.isdigit()
    return True
