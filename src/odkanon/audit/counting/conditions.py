"""SQL conditions over the columns of a trip file: filters, age bands, time slots and values.

The audit parses filters with a parser of its own, as a second look at what a release covers.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

from odkanon.core.sql import quote_name, quote_text
from odkanon.errors import InputError, InvalidValueError

_SIGNS: dict[type[ast.cmpop], str] = {
    ast.Eq: "=",
    ast.NotEq: "<>",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "IN",
    ast.NotIn: "NOT IN",
}
_CLOCK = re.compile(r"\d{1,2}:\d{2}(:\d{2})?$")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}$")


@dataclass(frozen=True)
class RawColumn:
    """A column of the file: its SQL, and whether it holds times, numbers with a fraction, or with a decimal comma."""

    sql: str
    is_time: bool = False
    is_fraction: bool = False
    comma: bool = False


Column = Callable[[str], RawColumn]  # maps the name of a column to the column


def filter_sql(texts: Sequence[str], column: Column) -> str:
    """Return the SQL condition that a row passes filters like ``age >= 18 and mode in [1, 2]``; missing values fail."""
    return " AND ".join(f"coalesce({_condition(_parse(text), text, column)}, false)" for text in texts) or "true"


def filter_columns(text: str) -> list[str]:
    """Return the names of the columns in a filter."""
    return sorted({node.id for node in ast.walk(_parse(text)) if isinstance(node, ast.Name)})


def equality(text: str) -> tuple[str, int | float | str] | None:
    """Return the column and the value of a filter such as ``sex == "Woman"``; None for other filters."""
    node = _parse(text)
    if not isinstance(node, ast.Compare) or not isinstance(node.left, ast.Name) or len(node.ops) > 1:
        return None
    return (node.left.id, _literal(node.comparators[0], text)) if isinstance(node.ops[0], ast.Eq) else None


def _parse(text: str) -> ast.expr:
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _unclear(text) from None


def _condition(node: ast.expr, text: str, column: Column) -> str:
    if isinstance(node, ast.BoolOp):
        word = " AND " if isinstance(node.op, ast.And) else " OR "
        return f"({word.join(_condition(part, text, column) for part in node.values)})"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return f"(NOT {_condition(node.operand, text, column)})"
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.left, ast.Name):
        sign, right = _SIGNS.get(type(node.ops[0])), node.comparators[0]
        several = isinstance(right, ast.List | ast.Tuple)
        if sign is not None and several == sign.endswith("IN"):
            values = [_literal(each, text) for each in (right.elts if several else [right])]  # type: ignore[attr-defined]
            return _comparison(column(node.left.id), sign, values)
    raise _unclear(text)


def _comparison(column: RawColumn, sign: str, values: Sequence[int | float | str]) -> str:
    if column.is_fraction:
        # As texts, these numbers would have decimals that the value in the filter may lack.
        values = [_number(value) if isinstance(value, str) else value for value in values]
    if all(isinstance(value, int | float) for value in values):
        long = any(isinstance(value, int) and 2**53 <= abs(value) < 10**28 for value in values)
        # As floats, long ids would coincide, and NaN would exceed all numbers.
        number = decimal_point(column.sql) if column.comma else column.sql
        exact = f"TRY_CAST({number} AS {'DECIMAL(38, 9)' if long else 'DOUBLE'})"
        left, listed = exact if long else f"nullif({exact}, 'nan'::DOUBLE)", [repr(value) for value in values]
    elif column.is_time:
        # Times are compared as times, in the precision of the filter: as text, '9:30' would come after '10:00'.
        texts = [str(value).strip() for value in values]
        kind = "TIME" if all(map(_CLOCK.match, texts)) else "DATE" if all(map(_DAY.match, texts)) else "TIMESTAMP"
        exact = f"date_trunc('second', {column.sql})" if kind == "TIME" else column.sql
        left, listed = f"CAST({exact} AS {kind})", [f"TRY_CAST({quote_text(text)} AS {kind})" for text in texts]
    else:
        left, listed = f"CAST({column.sql} AS VARCHAR)", [quote_text(str(value)) for value in values]
    right = f"({', '.join(listed)})" if sign.endswith("IN") else listed[0]
    return f"({left} {sign} {right})"


def _number(text: str) -> int | float | str:
    """Return the number in a text, or the text itself."""
    try:
        number = int(text) if text.strip().lstrip("+-").isdecimal() else float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text


def _literal(node: ast.expr, text: str) -> int | float | str:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise _unclear(text) from None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise _unclear(text)
    return value


def _unclear(text: str) -> InputError:
    return InputError(f"cannot parse the filter {text!r} of a release, so its trips cannot be identified")


def decimal_point(column: str) -> str:
    """Return the SQL of a number in a file with decimal commas; a text with a point is none there."""
    text = f"trim(CAST({column} AS VARCHAR))"
    comma = f"CASE WHEN {text} LIKE '%.%' THEN NULL ELSE replace({text}, ',', '.') END"
    return f"(CASE WHEN typeof({column}) = 'VARCHAR' THEN {comma} ELSE {text} END)"


def quoted(name: str) -> str:
    """Return the column of the table ``records`` with the raw values of a column of the file."""
    return quote_name(f"raw {name}")


def text_condition(column: str) -> str:
    """Return the SQL of a value as text, with numbers in canonical form; ``missing`` for none."""
    text = f"trim(CAST({column} AS VARCHAR))"
    number = f"nullif(regexp_extract({text}, '^[+]?0*([0-9]+?)([.]0*)?$', 1), '')"
    return f"coalesce({number}, nullif({text}, ''), 'missing')"


def age_condition(label: str, column: str) -> str:
    """Return the SQL condition that an age is in a band such as ``20-29``, ``under 10`` or ``70+``."""
    age = f"TRY_CAST({column} AS DOUBLE)"
    known = f"coalesce({age} >= 0 AND isfinite({age}), false)"
    if label == "missing":
        return f"NOT {known}"
    ages = parse_age_band(label)
    if ages is None:
        raise InvalidValueError.expected("an age band", "like 20-29, under 10 or 70+", label)
    above = "" if ages[1] == inf else f" AND {age} < {ages[1] + 1}"
    return f"({known} AND {age} >= {ages[0]}{above})"


def parse_age_band(label: str) -> tuple[int, float] | None:
    """Return the first and the last year of an age band or of a single age; None for other texts."""
    match = re.fullmatch(r"under (\d+)|(\d+)(?:-(\d+)|(\+))?", label)
    if not match:
        return None
    if match[1]:
        return 0, int(match[1]) - 1
    return int(match[2]), inf if match[4] else int(match[3] or match[2])


def hour_condition(label: str, taken: Sequence[int]) -> str:
    """Return the SQL condition that a trip starts in a slot such as ``07-09``; ``other`` covers all hours not taken."""
    hour = "extract(hour FROM start_time)"
    if label == "missing":
        return "start_time IS NULL"
    if label == "other":
        return f"{hour} NOT IN ({', '.join(map(str, taken))})"
    return f"{hour} IN ({', '.join(map(str, parse_hour_slot(label)))})"


def parse_hour_slot(slot: str) -> list[int]:
    """Return the hours of a slot, which may span midnight, such as ``19-6``."""
    begin, dash, end = slot.strip().partition("-")
    if not dash:
        return [int(begin)]
    return [(int(begin) + step) % 24 for step in range((int(end) - int(begin)) % 24 or 24)]
