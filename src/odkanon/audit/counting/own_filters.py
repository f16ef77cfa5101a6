"""Which rows of a file a release is about: the audit's own reading of filters, as SQL over the raw columns."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from odkanon.errors import InputError
from odkanon.read.tables.open_table import quote_name, quote_text

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
class Kept:
    """A column of the file: its SQL, and whether it holds times, or numbers that may be fractions."""

    sql: str
    is_time: bool = False
    is_fraction: bool = False


Column = Callable[[str], Kept]
"""From the name of a column to the column."""


def filter_sql(texts: Sequence[str], column: Column) -> str:
    """Return the SQL condition under which a row passes all filters; a missing value passes none.

    Parameters
    ----------
    texts : sequence of str
        Such as ``'age >= 18 and mode in [1, 2]'``; all must hold.
    column : callable
        Gives a column by its name, or raises.
    """
    return " AND ".join(f"coalesce({_condition(_parse(text), text, column)}, false)" for text in texts) or "true"


def names_in(text: str) -> list[str]:
    """Return the columns that a filter names."""
    return sorted({node.id for node in ast.walk(_parse(text)) if isinstance(node, ast.Name)})


def equality(text: str) -> tuple[str, int | float | str] | None:
    """Return the column and the value of a filter such as ``sex == "Woman"``; None for any other."""
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


def _comparison(column: Kept, sign: str, values: Sequence[int | float | str]) -> str:
    if column.is_fraction:
        # As texts, the numbers of such a column have decimals that a filter need not have.
        values = [_number(value) if isinstance(value, str) else value for value in values]
    if all(isinstance(value, int | float) for value in values):
        long = any(isinstance(value, int) and 2**53 <= abs(value) < 10**28 for value in values)
        # A float does not tell long ids apart, and takes NaN for more than any number.
        exact = f"TRY_CAST({column.sql} AS {'DECIMAL(38, 9)' if long else 'DOUBLE'})"
        left, listed = exact if long else f"nullif({exact}, 'nan'::DOUBLE)", [repr(value) for value in values]
    elif column.is_time:
        # Times compare as times, as exactly as they are written: '9:30' comes before '10:00', as a text it does not.
        texts = [str(value).strip() for value in values]
        kind = "TIME" if all(map(_CLOCK.match, texts)) else "DATE" if all(map(_DAY.match, texts)) else "TIMESTAMP"
        exact = f"date_trunc('second', {column.sql})" if kind == "TIME" else column.sql
        left, listed = f"CAST({exact} AS {kind})", [f"TRY_CAST({quote_text(text)} AS {kind})" for text in texts]
    else:
        left, listed = f"CAST({column.sql} AS VARCHAR)", [quote_text(str(value)) for value in values]
    right = f"({', '.join(listed)})" if sign.endswith("IN") else listed[0]
    return f"({left} {sign} {right})"


def _number(text: str) -> int | float | str:
    """Return the number that a text is; the text itself where it is none."""
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
    return InputError(f"the filter {text!r} of a release is not understood, so its trips cannot be found again")


def quoted(name: str) -> str:
    """Return the raw column of the table ``records`` that keeps a column of the file."""
    return quote_name(f"raw {name}")
