"""Filters compiled to row checks in SQL; see `odkanon.attributes.filter_grammar` for their grammar."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time

from odkanon.attributes.filter_grammar import (
    Expression,
    FilterComparison,
    FilterValue,
    Junction,
    Negation,
    comparisons,
    not_understood,
    parse_filter,
)
from odkanon.core.sql import quote_name, quote_text
from odkanon.errors import ColumnNotFoundError, InputError
from odkanon.read.tables.table import RowCheck, TypedColumns
from odkanon.read.tables.time_formats import TimeColumn, unreadable_time

FILTERED = "not matched by the filter"
"""The reason of rows that a filter drops; the filter itself may name people, and stays in the `InputSpec`."""

HOUR = "hour"
"""The hour in which a trip starts, where the table has no column of that name."""

_FRACTIONS = ("FLOAT", "DOUBLE", "DECIMAL")
_EXACT, _LONGEST = 2**53, 10**28
"""The integers from which on floats, and then decimals, are not exact."""
_SQL_OPERATORS = {"==": "=", "!=": "<>", "in": "IN", "not in": "NOT IN"}
_UNITS = (("HOUR", 3600), ("MINUTE", 60), ("SECOND", 1))


@dataclass(frozen=True)
class FilterScope:
    """The columns that the names in a filter refer to."""

    table: TypedColumns
    """Table whose columns may be named."""
    found: Mapping[str, str] = field(default_factory=dict)
    """The column of each of our names, which may be used as well."""
    times: Mapping[str, TimeColumn] = field(default_factory=dict)
    """The parsing of columns of times, by our names."""

    def column(self, name: str) -> str:
        """Return the column that a name refers to."""
        if name in self.table.columns:
            return name
        if name in self.found:
            return self.found[name]
        known = [*self.table.columns, *([HOUR] if "start_time" in self.times else [])]
        raise ColumnNotFoundError.from_missing(self.table.name, name, known, purpose="to filter by")

    def clock(self, column: str) -> str | None:
        """Return the SQL of the local time in a column of times; None for other columns."""
        ours = next((name for name in self.times if self.found.get(name) == column), None)
        if ours is not None:
            return self.times[ours].clock
        kind = self.table.types()[column].upper()
        return TimeColumn(self.table, column).clock if kind.startswith(("TIMESTAMP", "DATE")) else None


def filter_check(filters: Sequence[str], scope: FilterScope) -> RowCheck | None:
    """Return the check that rejects rows which do not match all filters; None without any.

    A missing value, or NaN, matches nothing. Where the answer depends on a time that cannot be read, the row passes:
    it is rejected for its time. Quoted numbers are numbers where a column holds floats. Columns of times are compared
    with a time of day (``"07:00"``), a date, or both; ``hour`` is the hour in which a trip starts.
    """
    if not filters:
        return None
    matches = " AND ".join(_compile(parse_filter(text), text, scope) for text in filters)
    used = {scope.found.get(name, name) for name in filter_names(filters)}
    times = [name for name in scope.times if scope.found[name] in used or (name == "start_time" and HOUR in used)]
    unread = " OR ".join(unreadable_time(scope.table, scope.found[name]) for name in times) or "false"
    return RowCheck(FILTERED, f"NOT coalesce({matches}, {unread})")


def filter_names(filters: Sequence[str]) -> Collection[str]:
    """Return the names in filters."""
    return {each.name for text in filters for each in comparisons(parse_filter(text))}


def number_names(filters: Sequence[str]) -> Collection[str]:
    """Return the names that filters compare with numbers."""
    return {
        each.name
        for text in filters
        for each in comparisons(parse_filter(text))
        if not all(isinstance(value, str) for value in each.values)
    }


def _compile(expression: Expression, text: str, scope: FilterScope) -> str:
    if isinstance(expression, Junction):
        parts = [_compile(part, text, scope) for part in expression.operands]
        return f"({f' {expression.operator.upper()} '.join(parts)})"
    if isinstance(expression, Negation):
        return f"(NOT {_compile(expression.operand, text, scope)})"
    if any(isinstance(value, bool) for value in expression.values):
        raise not_understood(text)
    return _comparison(expression, scope)


def _comparison(comparison: FilterComparison, scope: FilterScope) -> str:
    name, values = comparison.name, comparison.values
    operator = _SQL_OPERATORS.get(comparison.operator, comparison.operator)
    numeric = all(isinstance(value, int | float) for value in values)
    if name == HOUR and name not in scope.table.columns and "start_time" in scope.times:
        if not numeric:
            raise InputError("hours are numbers from 0 to 23; compare them as in 'hour >= 7 and hour < 9'")
        return _compared(f"EXTRACT(HOUR FROM {scope.times['start_time'].clock})", operator, map(repr, values))
    column = scope.column(name)
    clock = scope.clock(column)
    if clock is not None:
        return _time_comparison(name, clock, operator, values)
    if not numeric and scope.table.types()[column].upper().startswith(_FRACTIONS):
        # As a text, 18 would be "18.0".
        values, numeric = tuple(_parse_number(name, value) for value in values), True
    if numeric:
        return _compared(_number_sql(quote_name(column), values), operator, map(repr, values))
    cast = f"TRY_CAST({quote_name(column)} AS VARCHAR)"
    return _compared(cast, operator, [quote_text(str(value)) for value in values])


def _parse_number(name: str, value: FilterValue) -> int | float:
    text = str(value).strip()
    try:
        number = int(text) if text.lstrip("+-").isdecimal() else float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{name} is a column of numbers; compare it with a number, not {value!r}")
    return number


def _number_sql(column: str, values: Sequence[FilterValue]) -> str:
    """Return the SQL of a column as a number, to compare with some; what is not a number is missing.

    Floats cannot distinguish ids of seventeen digits, and NaN exceeds every number.
    """
    if any(isinstance(value, int) and _EXACT <= abs(value) < _LONGEST for value in values):
        return f"TRY_CAST({column} AS DECIMAL(38, 9))"
    return f"nullif(TRY_CAST({column} AS DOUBLE), CAST('nan' AS DOUBLE))"


def _compared(left: str, operator: str, right: Iterable[str]) -> str:
    texts = list(right)
    return f"({left} {operator} {'(' + ', '.join(texts) + ')' if operator.endswith('IN') else texts[0]})"


def _time_comparison(name: str, clock: str, operator: str, values: Sequence[FilterValue]) -> str:
    """Compare at the precision of the value: a time of day, a day, or a moment."""
    parsed = [_parse_time(name, value) for value in values]
    types = {type(value) for value in parsed}
    if len(types) != 1:
        raise InputError(f"the filter compares {name} with times in several formats; use one format")
    if types == {time}:
        parts = [(f"EXTRACT({unit} FROM {clock})", seconds) for unit, seconds in _UNITS]
        left = " + ".join(f"CAST(floor({part}) AS INTEGER) * {seconds}" for part, seconds in parts)
        right = [str(each.hour * 3600 + each.minute * 60 + each.second) for each in parsed if isinstance(each, time)]
        return _compared(f"({left})", operator, right)
    if types == {date}:
        return _compared(f"CAST({clock} AS DATE)", operator, [f"DATE '{each.isoformat()}'" for each in parsed])
    return _compared(clock, operator, [f"TIMESTAMP '{str(each).replace('T', ' ')}'" for each in parsed])


def _parse_time(name: str, value: FilterValue) -> time | date | datetime:
    text = str(value).strip()
    for kind in (date, datetime, time):
        try:
            parsed: time | date | datetime = kind.fromisoformat(text)
        except ValueError:
            continue
        if isinstance(value, str) and getattr(parsed, "tzinfo", None) is None and len(text) >= len("07:00"):
            return parsed
    raise InputError(
        f'{name} is a column of times; compare it with "07:00", "2024-01-31" or "2024-01-31 07:00", without an offset, '
        f"not {value!r}; or compare 'hour' with a number"
    )
