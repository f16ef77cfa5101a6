"""Filters such as ``day_type == "weekday" and age >= 18``, turned into SQL without running any of their text."""

from __future__ import annotations

import ast

from odkanon.errors import InputError, nearest
from odkanon.read.tables.open import Named, quote_name, quote_text

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


def where_to_sql(expression: str, table: Named) -> str:
    """Return an SQL condition for a filter over the columns of a table.

    Understood are comparisons of a column with a number or a text (``==``, ``!=``, ``<``, ``<=``, ``>``, ``>=``,
    ``in [...]``), joined by ``and``, ``or``, ``not`` and parentheses. A missing value matches nothing.
    """
    try:
        tree = ast.parse(expression, mode="eval").body
    except (SyntaxError, ValueError):
        raise _unclear(expression) from None
    return f"coalesce({_condition(tree, expression, table)}, false)"


def _condition(node: ast.expr, expression: str, table: Named) -> str:
    if isinstance(node, ast.BoolOp):
        word = " AND " if isinstance(node.op, ast.And) else " OR "
        return "(" + word.join(_condition(value, expression, table) for value in node.values) + ")"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return f"(NOT {_condition(node.operand, expression, table)})"
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.left, ast.Name):
        operator = _COMPARE.get(type(node.ops[0]))
        right = node.comparators[0]
        if operator is not None and isinstance(right, ast.List | ast.Tuple) == operator.endswith("IN"):
            return _comparison(node.left.id, operator, right, expression, table)
    raise _unclear(expression)


def _comparison(name: str, operator: str, right: ast.expr, expression: str, table: Named) -> str:
    if name not in table.columns:
        raise InputError(f"{table.name} has no column {name!r} to filter by{nearest(name, table.columns)}")
    values = [
        _literal(item, expression) for item in (right.elts if isinstance(right, ast.List | ast.Tuple) else [right])
    ]
    numeric = all(isinstance(value, int | float) for value in values)
    column = f"TRY_CAST({quote_name(name)} AS {'DOUBLE' if numeric else 'VARCHAR'})"
    texts = [repr(value) if numeric else quote_text(str(value)) for value in values]
    right_side = "(" + ", ".join(texts) + ")" if operator.endswith("IN") else texts[0]
    return f"({column} {operator} {right_side})"


def _literal(node: ast.expr, expression: str) -> int | float | str:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        raise _unclear(expression) from None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise _unclear(expression)
    return value


def _unclear(expression: str) -> InputError:
    return InputError(
        f"the filter {expression!r} is not understood; write comparisons such as "
        "'day_type == \"weekday\"' or 'age >= 18 and mode in [1, 2]'"
    )
