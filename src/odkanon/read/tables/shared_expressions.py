"""Common subexpressions of a selection, evaluated once in a nested query.

DuckDB evaluates a subexpression again wherever it occurs inside a ``CASE``. Row checks consist of these,
and would parse every number a dozen times.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import count

_NAME = r'"(?:[^"]|"")*"'
_TEXT = r"'(?:[^']|'')*'"
_READ = re.compile(rf"(?<!\w)(?P<part>TRY_CAST\({_NAME} AS \w+\))|{_TEXT}|{_NAME}")
"""A column parsed as a number or a time; this never fails, so it may be evaluated for all rows."""
_QUOTED = re.compile(rf"{_TEXT}|{_NAME}")
_BRACKETS = re.compile(rf"{_TEXT}|{_NAME}|(?P<opens>\(|\bCASE\b)|(?P<closes>\)|\bEND\b)")


def selection(values: Mapping[str, str], scan: str, taken: Collection[str]) -> str:
    """Return the query for some expressions over a table.

    Columns that are parsed more than once are evaluated first, then selected expressions that occur in others.

    * ``values``: SQL expressions by quoted name.
    * ``scan``: SQL to select from.
    * ``taken``: the names of its columns.

    Examples
    --------
    >>> x = 'TRY_CAST("x" AS DATE)'
    >>> print(selection({"y": f"{x} = {x}"}, "t", ["x"]))
    SELECT " shared 0" = " shared 0" AS y FROM (SELECT *, TRY_CAST("x" AS DATE) AS " shared 0" FROM t)
    """
    lower = {name.lower() for name in taken}
    free = (f'" shared {at}"' for at in count() if f" shared {at}" not in lower)
    values = dict(values)
    while parts := _parsed_twice(values.values()) or _contained_in_others(values.values()):
        names = {part: next(free) for part in parts}
        scan = f"(SELECT *, {_listed({name: part for part, name in names.items()})} FROM {scan})"
        values = {name: _renamed(sql, names) for name, sql in values.items()}
    return f"SELECT {_listed(values)} FROM {scan}"


def _parsed_twice(expressions: Iterable[str]) -> list[str]:
    """Return the casts of columns that occur more than once."""
    times = Counter(found["part"] for sql in expressions for found in _READ.finditer(sql))
    return [part for part, often in times.items() if part is not None and often > 1]


def _contained_in_others(expressions: Collection[str]) -> list[str]:
    """Return the expressions that occur in others, and that contain no other such."""
    terms = filter(_is_term, dict.fromkeys(expressions))
    shared = [term for term in terms if sum(_occurs_in(term, sql) for sql in expressions) > 1]
    return [term for term in shared if not any(_occurs_in(other, term) for other in shared if other != term)]


def _occurs_in(part: str, sql: str) -> bool:
    """Return whether a part occurs in an expression outside of literals and identifiers."""
    return next(_places(part, sql), None) is not None


def _places(part: str, sql: str) -> Iterator[int]:
    """Yield the positions of a part outside of literals and identifiers; compiling patterns would be slower."""
    at = sql.find(part)
    while at >= 0:
        begins = at == 0 or not (sql[at - 1].isalnum() or sql[at - 1] == "_")
        if begins and not any(first <= at < end for first, end in _quoted(sql)):
            yield at
        at = sql.find(part, at + 1)


@lru_cache(maxsize=256)
def _quoted(sql: str) -> list[tuple[int, int]]:
    """Return the positions of the literals and identifiers of an expression."""
    return [found.span() for found in _QUOTED.finditer(sql)]


def _is_term(sql: str) -> bool:
    """Return whether an expression is a single call or CASE, which an identifier can replace anywhere."""
    if not re.match(r"\w+\(|CASE\b", sql):
        return False
    depth = 0
    for found in _BRACKETS.finditer(sql):
        depth += (found["opens"] is not None) - (found["closes"] is not None)
        if not depth and found["closes"] is not None:
            return found.end() == len(sql)
    return False


def _renamed(sql: str, names: Mapping[str, str]) -> str:
    """Return an expression with some parts, none of which contains another, replaced by names."""
    found = sorted((at, part) for part in names for at in _places(part, sql))
    pieces, done = [], 0
    for at, part in found:
        pieces += [sql[done:at], names[part]]
        done = at + len(part)
    return "".join([*pieces, sql[done:]])


def _listed(values: Mapping[str, str]) -> str:
    return ", ".join(f"{sql} AS {name}" for name, sql in values.items())
