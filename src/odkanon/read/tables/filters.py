"""Filters such as ``day_type == "weekday" and age >= 18``, turned into SQL without running any of their text."""

from __future__ import annotations

import ast
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time

from odkanon.errors import InputError, nearest
from odkanon.read.tables.open_table import Check, Typed, quote_name, quote_text
from odkanon.read.tables.time_formats import TimeColumn

FILTERED = "not matched by the filter"
"""The reason for which a row is turned away; the filter itself may name people, and stays in the `InputSpec`."""

HOUR = "hour"
"""What the hour in which a trip starts is called, where the table has no column of that name."""

_DEEPEST = 100
_FRACTIONS = ("FLOAT", "DOUBLE", "DECIMAL")
_EXACT, _LONGEST = 2**53, 10**28
"""From which whole number on a float does not tell every one, and how far a decimal does."""
_COMPARE = {
    ast.Eq: "=",
    ast.NotEq: "<>",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "IN",
    ast.NotIn: "NOT IN",
}

Literal = int | float | str


@dataclass(frozen=True)
class Scope:
    """What the names in a filter can mean.

    Attributes
    ----------
    table : Table or the like
        Whose columns may be named.
    found : mapping of str to str
        Which column stands for which of our names, which may be used as well.
    times : mapping of str to TimeColumn
        How columns of times are read, by our names.
    """

    table: Typed
    found: Mapping[str, str] = field(default_factory=dict)
    times: Mapping[str, TimeColumn] = field(default_factory=dict)

    def column(self, name: str) -> str:
        """Return the column that a name stands for."""
        if name in self.table.columns:
            return name
        if name in self.found:
            return self.found[name]
        known = [*self.table.columns, *([HOUR] if "start_time" in self.times else [])]
        raise InputError(f"{self.table.name} has no column {name!r} to filter by{nearest(name, known)}")

    def clock(self, column: str) -> str | None:
        """Return the SQL for a column of times as they stand on the clock; None for other columns."""
        ours = next((name for name in self.times if self.found.get(name) == column), None)
        if ours is not None:
            return self.times[ours].clock
        kind = self.table.types()[column].upper()
        return TimeColumn(self.table, column).clock if kind.startswith(("TIMESTAMP", "DATE")) else None


def filter_check(filters: Sequence[str], scope: Scope) -> Check | None:
    """Return the check that turns rows away which do not match all filters; None without any.

    Understood are comparisons of a column with a number or a text (``==``, ``!=``, ``<``, ``<=``, ``>``, ``>=``,
    ``in [...]``), joined by ``and``, ``or``, ``not`` and parentheses. A missing value, or NaN, matches nothing. Numbers
    in quotes are numbers where a column holds floats. Columns of times are compared with a time of day (``"07:00"``), a
    date, or both; ``hour`` is the hour in which a trip starts.
    """
    if not filters:
        return None
    conditions = [f"coalesce({_condition(_parsed(text), text, scope)}, false)" for text in filters]
    return Check(FILTERED, f"NOT ({' AND '.join(conditions)})")


def filter_names(filters: Sequence[str]) -> Collection[str]:
    """Return the names that filters use."""
    return {node.id for text in filters for node in ast.walk(_parsed(text)) if isinstance(node, ast.Name)}


def number_names(filters: Sequence[str]) -> Collection[str]:
    """Return the names that filters compare with numbers."""
    compared = [node for text in filters for node in ast.walk(_parsed(text)) if isinstance(node, ast.Compare)]
    return {
        node.left.id
        for node in compared
        if isinstance(node.left, ast.Name)
        and any(isinstance(each, ast.Constant) and not isinstance(each.value, str) for each in ast.walk(node))
    }


def _parsed(expression: str) -> ast.expr:
    try:
        return ast.parse(expression, mode="eval").body
    except (RecursionError, MemoryError):
        raise _too_deep(expression) from None
    except (SyntaxError, ValueError) as error:
        raise (_too_deep if "nested" in str(error) else _unclear)(expression) from None


def _condition(node: ast.expr, expression: str, scope: Scope, depth: int = 0) -> str:
    if depth > _DEEPEST:
        raise _too_deep(expression)
    if isinstance(node, ast.BoolOp):
        word = " AND " if isinstance(node.op, ast.And) else " OR "
        return "(" + word.join(_condition(value, expression, scope, depth + 1) for value in node.values) + ")"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return f"(NOT {_condition(node.operand, expression, scope, depth + 1)})"
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.left, ast.Name):
        operator = _COMPARE.get(type(node.ops[0]))
        right = node.comparators[0]
        if operator is not None and isinstance(right, ast.List | ast.Tuple) == operator.endswith("IN"):
            items = right.elts if isinstance(right, ast.List | ast.Tuple) else [right]
            return _comparison(node.left.id, operator, [_literal(item, expression) for item in items], scope)
    raise _unclear(expression)


def _comparison(name: str, operator: str, values: Sequence[Literal], scope: Scope) -> str:
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
        # As a text, 18 is "18.0" there, which nobody writes.
        values, numeric = [_number_of(name, value) for value in values], True
    if numeric:
        return _compared(_number_sql(quote_name(column), values), operator, map(repr, values))
    cast = f"TRY_CAST({quote_name(column)} AS VARCHAR)"
    return _compared(cast, operator, [quote_text(str(value)) for value in values])


def _number_of(name: str, value: Literal) -> int | float:
    text = str(value).strip()
    try:
        number = int(text) if text.lstrip("+-").isdecimal() else float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{name} holds numbers, and {value!r} is none; compare it with a number")
    return number


def _number_sql(column: str, values: Sequence[Literal]) -> str:
    """Return the SQL for a column as a number, to be compared with some; what is not a number is missing.

    A float tells no two ids of seventeen digits apart, and NaN is more than any number.
    """
    if any(isinstance(value, int) and _EXACT <= abs(value) < _LONGEST for value in values):
        return f"TRY_CAST({column} AS DECIMAL(38, 9))"
    return f"nullif(TRY_CAST({column} AS DOUBLE), CAST('nan' AS DOUBLE))"


def _compared(left: str, operator: str, right: Iterable[str]) -> str:
    texts = list(right)
    return f"({left} {operator} {'(' + ', '.join(texts) + ')' if operator.endswith('IN') else texts[0]})"


def _time_comparison(name: str, clock: str, operator: str, values: Sequence[Literal]) -> str:
    """Compare at the precision that is written: a time of day, a day, or a moment."""
    read = [_time_of(name, value) for value in values]
    attributes = {type(value) for value in read}
    if len(attributes) != 1:
        raise InputError(f"the filter compares {name} with times written in several ways; write them all in one")
    if attributes == {time}:
        parts = [(f"EXTRACT({unit} FROM {clock})", seconds) for unit, seconds in _UNITS]
        left = " + ".join(f"CAST(floor({part}) AS INTEGER) * {seconds}" for part, seconds in parts)
        right = [str(each.hour * 3600 + each.minute * 60 + each.second) for each in read if isinstance(each, time)]
        return _compared(f"({left})", operator, right)
    if attributes == {date}:
        return _compared(f"CAST({clock} AS DATE)", operator, [f"DATE '{each.isoformat()}'" for each in read])
    return _compared(clock, operator, [f"TIMESTAMP '{str(each).replace('T', ' ')}'" for each in read])


_UNITS = (("HOUR", 3600), ("MINUTE", 60), ("SECOND", 1))


def _time_of(name: str, value: Literal) -> time | date | datetime:
    text = str(value).strip()
    for kind in (date, datetime, time):
        try:
            read: time | date | datetime = kind.fromisoformat(text)
        except ValueError:
            continue
        if isinstance(value, str) and getattr(read, "tzinfo", None) is None and len(text) >= len("07:00"):
            return read
    raise InputError(
        f'{name} holds times, and {value!r} is none; write "07:00", "2024-01-31" or "2024-01-31 07:00", without an '
        "offset, or compare 'hour' with a number"
    )


def _literal(node: ast.expr, expression: str) -> Literal:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, MemoryError, RecursionError):
        raise _unclear(expression) from None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise _unclear(expression)
    if isinstance(value, float) and not math.isfinite(value):
        raise _unclear(expression)
    return value


def _unclear(expression: str) -> InputError:
    return InputError(
        f"the filter {_short(expression)!r} is not understood; write comparisons such as "
        "'day_type == \"weekday\"' or 'age >= 18 and mode in [1, 2]'"
    )


def _too_deep(expression: str) -> InputError:
    return InputError(f"the filter {_short(expression)!r} is nested too deep; at most {_DEEPEST} levels are read")


def _short(expression: str) -> str:
    return expression if len(expression) <= 200 else f"{expression[:200]}..."
