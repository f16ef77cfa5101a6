"""Filters as the audit reads them, by hand: what passes, what sets a release apart, and what is not understood."""

from __future__ import annotations

from datetime import datetime

import duckdb
import pyarrow as pa
import pytest

from odkanon import InputError
from odkanon.audit.counting.conditions import RawColumn, equality, filter_columns, filter_sql

MOMENTS = [
    datetime(2024, 1, 1, 9, 30),
    datetime(2024, 1, 1, 9, 30, 0, 500_000),
    datetime(2024, 1, 2, 9),
    datetime(2024, 1, 2),
    None,
]
TRIPS = pa.table({"row": range(5), "age": ["9", "10", "x", "9.0", None], "moment": MOMENTS})


def passing(*texts: str) -> list[int]:
    """Return the rows that pass."""
    connection = duckdb.connect()
    connection.register("trips", TRIPS)
    condition = filter_sql(texts, lambda name: RawColumn(name, is_time=True) if name == "moment" else RawColumn(name))
    return [row for (row,) in connection.execute(f"SELECT row FROM trips WHERE {condition} ORDER BY row").fetchall()]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("id == 9007199254740993", [1]),
        ("id == 9007199254740992", [0]),
        ("id == 9007199254740991", [2]),
        ("id in [9007199254740993, 5]", [1, 3]),
        ("id > -9007199254740992", [0, 1, 2, 3]),
        ("id > 4", [0, 1, 2, 3, 4]),
        ("id > 4.5", [0, 1, 2, 3, 4]),
        ("id > 9.007199254740992e15", [4]),
    ],
)
def test_long_numbers_are_told_apart_and_larger_ones_are_numbers(text: str, rows: list[int]) -> None:
    """A float does not know the first from the second; a decimal has no room for the last."""
    long = pa.table({"row": range(5), "id": ["9007199254740992", "9007199254740993", "9007199254740991", "5", "1e35"]})
    connection = duckdb.connect()
    connection.register("trips", long)
    found = connection.execute(f"SELECT row FROM trips WHERE {filter_sql([text], RawColumn)} ORDER BY row").fetchall()
    assert [row for (row,) in found] == rows


@pytest.mark.parametrize(
    ("texts", "rows"),
    [
        ((), [0, 1, 2, 3, 4]),
        (("age == 9",), [0, 3]),
        (("age == '9'",), [0]),
        (("age != 9",), [1]),
        (("age > 9",), [1]),
        (("age > '9'",), [2, 3]),
        (("age <= 9.5",), [0, 3]),
        (("age >= 9", "age < 10"), [0, 3]),
        (("age == 10 or age == 9",), [0, 1, 3]),
        (("age in [9, 11]",), [0, 3]),
        (("age in (9, 'x')",), [0, 2]),
        (("age not in [9]",), [1]),
        (("not age in [9]",), [1]),
        (("moment == '9:30'",), [0, 1]),
        (("moment in ['09:30', '09:00:00']",), [0, 1, 2]),
        (("moment == '2024-01-01'",), [0, 1]),
        (("moment == '2024-01-01 09:30'",), [0]),
        (("moment in ['2024-01-01 09:30:00', '2024-01-02']",), [0, 3]),
        (("moment in ['09:30', '2024-01-02']",), [3]),
    ],
)
def test_what_passes(texts: tuple[str, ...], rows: list[int]) -> None:
    assert passing(*texts) == rows


@pytest.mark.parametrize(
    "text",
    [
        *("age ==", "age", "-age", "~(age > 9)", "len(age)", "9 < age", "8 < age < 10", "age == other", "age is None"),
        *("age == None", "age == True", "age == [9]", "age in 9", "age == (9,)", "age in [9, [10]]", "age == 1j"),
        *("\x00", "(" * 5000),
    ],
)
def test_invalid_filters_are_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"cannot parse the filter .*, so its trips cannot be identified"):
        passing(text)


def test_invalid_filters_have_no_columns() -> None:
    for read in (filter_columns, equality):
        with pytest.raises(InputError, match="cannot parse the filter"):
            read("age ==")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sex == 'Woman'", ("sex", "Woman")),
        ("age == 1.5", ("age", 1.5)),
        ("sex != 'Woman'", None),
        ("sex in ['Woman']", None),
        ("'Woman' == sex", None),
        ("age == 1 == 1", None),
        ("sex == 'Woman' and age == 1", None),
        ("not sex == 'Woman'", None),
        ("sex", None),
    ],
)
def test_equality_filters(text: str, expected: tuple[str, object] | None) -> None:
    assert equality(text) == expected


def test_which_columns_a_filter_names() -> None:
    assert filter_columns("sex == 'Woman' and not (age > 9 or sex == 'x')") == ["age", "sex"]
