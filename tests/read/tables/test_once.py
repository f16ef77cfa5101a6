"""What stands in several expressions is worked out once, and nothing comes out otherwise for it."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odkanon.read.tables.table import selection
from worlds.tries import tries

X = 'TRY_CAST("x" AS DOUBLE)'
COLUMNS = {"x": ["1", "2.5", "", None, "a"], "it's": ["b", X, None, "c", "'"], " once 0": ["0", "1", "2", "3", "4"]}


def selected(values: dict[str, str]) -> tuple[str, str]:
    """Return a selection, and the same without thinking."""
    listed = ", ".join(f"{sql} AS {name}" for name, sql in values.items())
    return selection(values, "source", list(COLUMNS)), f"SELECT {listed} FROM source"


@pytest.fixture(scope="module")
def connection() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    connection.register("source", pa.table(COLUMNS))
    return connection


LEAVES = (
    X,
    'TRY_CAST("x" AS BIGINT)',
    '"it\'s"',
    '" once 0"',
    f"'{X}'",
    "'it''s'",
    "NULL",
    "coalesce(\"it's\", 'END')",
)
WAYS = (
    "CASE WHEN {0} IS NULL THEN {1} ELSE {2} END",
    "coalesce({0}, {1})",
    "concat({0}, {1}, 'CASE (')",
    "({0} IS NULL OR {1} IS NOT NULL)",
    "{0} IS NULL",
    "concat({0}) || concat({1})",
)
TEXTS = st.recursive(
    st.sampled_from(LEAVES).map(lambda leaf: f"CAST({leaf} AS VARCHAR)"),
    lambda inner: st.tuples(st.sampled_from(WAYS), inner, inner, inner).map(
        lambda of: f"CAST(({of[0].format(*of[1:])}) AS VARCHAR)" if " IS " in of[0] else of[0].format(*of[1:])
    ),
    max_leaves=6,
)


@given(st.lists(TEXTS, min_size=1, max_size=4), st.data())
@tries(60)
def test_values_are_the_same(
    connection: duckdb.DuckDBPyConnection, expressions: list[str], data: st.DataObject
) -> None:
    """Also with names and texts that look like SQL, and with expressions that stand in others."""
    way = data.draw(st.sampled_from(WAYS[1:3]))
    both = way.format(expressions[0], expressions[-1])
    values = {f'"v{at}"': sql for at, sql in enumerate([*expressions, both])}
    ours, plain = (connection.sql(sql).fetchall() for sql in selected(values))
    assert ours == plain


def test_a_column_is_read_once() -> None:
    checks = f"CASE WHEN {X} IS NULL THEN 1 WHEN abs({X}) > 90 THEN 2 WHEN {X} = 0 THEN 3 ELSE 0 END"
    ours, plain = selected({"reason": checks, "x": X})
    assert (plain.count(X), ours.count(X)) == (4, 1)


def test_what_is_selected_stands_for_itself_elsewhere() -> None:
    person = "nullif(trim(\"it's\"), '')"
    ours, plain = selected({"person": person, "print": f"CASE WHEN {person} IS NOT NULL THEN hash({person}, {X}) END"})
    assert (plain.count(person), ours.count(person)) == (3, 1)


@pytest.mark.parametrize(
    "part", ["0", '"x"', "abs(1) > 0", "trim(\"it's\") = trim('(')", "CASE 1 WHEN 1 THEN 2 END + 1"]
)
def test_only_a_single_call_gets_a_name(part: str) -> None:
    """A name in place of a digit, or of two calls with a sign between them, would say something else."""
    ours, plain = selected({"a": part, "b": f"90 + 10 * {part}"})
    assert ours == plain


def test_a_text_stays_a_text(connection: duckdb.DuckDBPyConnection) -> None:
    ours, _ = selected({"a": f"concat({X}, {X}, '{X}')"})
    assert connection.sql(ours).fetchall()[0] == (f"1.01.0{X}",)
