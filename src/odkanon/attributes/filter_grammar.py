"""The grammar of filters: ``mode == "car" and hour >= 7`` as an expression tree; none of the text is executed.

`odkanon.read.tables.filters` compiles a tree to a row check, `odkanon.publish.attribute_view` evaluates one over the
levels of a cube.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from odkanon.errors import InputError

Operator = Literal["==", "!=", "<", "<=", ">", ">=", "in", "not in"]
FilterValue = bool | int | float | str

MAX_DEPTH = 100
_OPERATORS: dict[type[ast.cmpop], Operator] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.NotIn: "not in",
}


@dataclass(frozen=True)
class FilterComparison:
    """A column compared with a value, or with several for ``in`` and ``not in``."""

    name: str
    operator: Operator
    values: tuple[FilterValue, ...]


@dataclass(frozen=True)
class Negation:
    """An expression that must not hold."""

    operand: Expression


@dataclass(frozen=True)
class Junction:
    """Expressions joined by ``and`` or ``or``."""

    operator: Literal["and", "or"]
    operands: tuple[Expression, ...]


Expression = FilterComparison | Negation | Junction


def parse_filter(text: str) -> Expression:
    """Return the expression tree of a filter.

    The grammar is that of Python comparisons: a name, one of ``== != < <= > >=`` with a number or a quoted text, or
    ``in``, ``not in`` with a list of them; joined by ``and``, ``or``, ``not`` and parentheses.

    Examples
    --------
    >>> parse_filter('mode == "car"')
    FilterComparison(name='mode', operator='==', values=('car',))
    """
    try:
        return _expression(ast.parse(text.strip(), mode="eval").body, text, 0)
    except (RecursionError, MemoryError):
        raise _nested_too_deep(text) from None
    except (SyntaxError, ValueError, TypeError) as error:
        raise (_nested_too_deep if "nested" in str(error) else not_understood)(text) from None


def comparisons(expression: Expression) -> Iterator[FilterComparison]:
    """Yield every comparison in an expression."""
    if isinstance(expression, FilterComparison):
        yield expression
    for part in (expression.operand,) if isinstance(expression, Negation) else getattr(expression, "operands", ()):
        yield from comparisons(part)


def conjunction(text: str) -> list[FilterComparison]:
    """Return the comparisons of a filter that only tests for equality, all of which must hold.

    Raises `InputError` if it needs ``or``, ``not`` or an order of values, which rows with dropped detail cannot answer.
    """
    expression = parse_filter(text)
    parts = expression.operands if isinstance(expression, Junction) and expression.operator == "and" else (expression,)
    tests = [
        part for part in parts if isinstance(part, FilterComparison) and part.operator in ("==", "!=", "in", "not in")
    ]
    if len(tests) < len(parts):
        raise InputError(
            f"the filter {_short(text)!r} is not understood here: rows of a cube may lack detail, so write ==, !=, in "
            'and not in, joined by and, as in \'mode == "car" and hour in ["07-09", "17-20"]\''
        )
    return tests


def not_understood(text: str) -> InputError:
    """Return the error for a filter outside the grammar."""
    return InputError(
        f"the filter {_short(text)!r} is not understood; write comparisons such as "
        "'day_type == \"weekday\"' or 'age >= 18 and mode in [1, 2]'"
    )


def _expression(node: ast.expr, text: str, depth: int) -> Expression:
    if depth > MAX_DEPTH:
        raise _nested_too_deep(text)
    if isinstance(node, ast.BoolOp):
        parts = tuple(_expression(value, text, depth + 1) for value in node.values)
        return Junction("and" if isinstance(node.op, ast.And) else "or", parts)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return Negation(_expression(node.operand, text, depth + 1))
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.left, ast.Name):
        operator, right = _OPERATORS.get(type(node.ops[0])), node.comparators[0]
        several = isinstance(right, ast.List | ast.Tuple)
        items = right.elts if isinstance(right, ast.List | ast.Tuple) else [right]
        if operator is not None and items and several == operator.endswith("in"):
            return FilterComparison(node.left.id, operator, tuple(_value(item, text) for item in items))
    raise not_understood(text)


def _value(node: ast.expr, text: str) -> FilterValue:
    value = ast.literal_eval(node)
    if not isinstance(value, bool | int | float | str) or (isinstance(value, float) and not math.isfinite(value)):
        raise not_understood(text)
    return value


def _nested_too_deep(text: str) -> InputError:
    return InputError(f"the filter {_short(text)!r} is nested too deeply; at most {MAX_DEPTH} levels are read")


def _short(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}..."
