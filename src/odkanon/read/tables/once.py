"""Selections in which nothing is worked out twice.

DuckDB works out a part of an expression wherever it stands within a ``CASE``, though it stands elsewhere too. Checks of
rows are such, and would read every number of a text a dozen times; so it is read first, by a query inside the query.
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
"""A column read as a number or a time: never an error, so it may be worked out before it is known to be needed."""
_QUOTED = re.compile(rf"{_TEXT}|{_NAME}")
_BRACKETS = re.compile(rf"{_TEXT}|{_NAME}|(?P<opens>\(|\bCASE\b)|(?P<closes>\)|\bEND\b)")


def selection(values: Mapping[str, str], scan: str, taken: Collection[str]) -> str:
    """Return the query for some expressions over a table.

    Worked out first are columns that are read as a number or a time more than once, and then expressions that are
    selected by themselves and stand in others as well.

    Parameters
    ----------
    values : mapping of str to str
        SQL expressions by the names that they get, which are quoted.
    scan : str
        What to select from.
    taken : collection of str
        The names of its columns.

    Examples
    --------
    >>> x = 'TRY_CAST("x" AS DATE)'
    >>> print(selection({"y": f"{x} = {x}"}, "t", ["x"]))
    SELECT " once 0" = " once 0" AS y FROM (SELECT *, TRY_CAST("x" AS DATE) AS " once 0" FROM t)
    """
    lower = {name.lower() for name in taken}
    free = (f'" once {at}"' for at in count() if f" once {at}" not in lower)
    values = dict(values)
    while parts := _read_again(values.values()) or _selected_again(values.values()):
        names = {part: next(free) for part in parts}
        scan = f"(SELECT *, {_listed({name: part for part, name in names.items()})} FROM {scan})"
        values = {name: _renamed(sql, names) for name, sql in values.items()}
    return f"SELECT {_listed(values)} FROM {scan}"


def _read_again(expressions: Iterable[str]) -> list[str]:
    """Return the columns that are read more than once."""
    times = Counter(found["part"] for sql in expressions for found in _READ.finditer(sql))
    return [part for part, often in times.items() if part is not None and often > 1]


def _selected_again(expressions: Collection[str]) -> list[str]:
    """Return the expressions that stand in others, too, and in which no other such stands."""
    terms = filter(_is_term, dict.fromkeys(expressions))
    again = [term for term in terms if sum(_stands_in(term, sql) for sql in expressions) > 1]
    return [term for term in again if not any(_stands_in(other, term) for other in again if other != term)]


def _stands_in(part: str, sql: str) -> bool:
    """Tell whether an expression has a part outside its texts and names."""
    return next(_places(part, sql), None) is not None


def _places(part: str, sql: str) -> Iterator[int]:
    """Yield where an expression has a part outside its texts and names; patterns would take longer to make."""
    at = sql.find(part)
    while at >= 0:
        begins = at == 0 or not (sql[at - 1].isalnum() or sql[at - 1] == "_")
        if begins and not any(first <= at < end for first, end in _quoted(sql)):
            yield at
        at = sql.find(part, at + 1)


@lru_cache(maxsize=256)
def _quoted(sql: str) -> list[tuple[int, int]]:
    """Return where the texts and names of an expression are."""
    return [found.span() for found in _QUOTED.finditer(sql)]


def _is_term(sql: str) -> bool:
    """Tell whether an expression is a single call or a single CASE, for which a name can stand wherever it is."""
    if not re.match(r"\w+\(|CASE\b", sql):
        return False
    depth = 0
    for found in _BRACKETS.finditer(sql):
        depth += (found["opens"] is not None) - (found["closes"] is not None)
        if not depth and found["closes"] is not None:
            return found.end() == len(sql)
    return False


def _renamed(sql: str, names: Mapping[str, str]) -> str:
    """Return an expression with names in place of some parts, none of which stands in another."""
    found = sorted((at, part) for part in names for at in _places(part, sql))
    pieces, done = [], 0
    for at, part in found:
        pieces += [sql[done:at], names[part]]
        done = at + len(part)
    return "".join([*pieces, sql[done:]])


def _listed(values: Mapping[str, str]) -> str:
    return ", ".join(f"{sql} AS {name}" for name, sql in values.items())
