"""Filters: what is understood, and what is turned down."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from odkanon import InputError, read_trips

TABLE = pa.table(
    {
        "start_lat": [48.85] * 5,
        "start_lon": [2.35] * 5,
        "end_lat": [48.86] * 5,
        "end_lon": [2.36] * 5,
        "day": ["week", "week", "week's end", None, "end"],
        "age": [10, 20, 30, 40, None],
    }
)


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ('day == "week"', 2),
        ('day != "week"', 2),
        ('day == "week\'s end"', 1),
        ("age >= 20", 3),
        ("20 <= age", None),
        ("age >= 20 and age < 40", 2),
        ('age < 20 or day == "end"', 2),
        ('not (day == "week")', 2),
        ("age in [10, 40, 99]", 2),
        ('day not in ["week"]', 2),
        ("age", None),
        ("age == other", None),
        ("age == True", None),
        ("age + 1 == 2", None),
        ('__import__("os")', None),
        ("age == 10; DROP TABLE x", None),
    ],
)
def test_filters(where: str, kept: int | None) -> None:
    if kept is None:
        with pytest.raises(InputError, match="not understood"):
            read_trips(TABLE, where=where)
        return
    trips = read_trips(TABLE, where=where)
    assert len(trips) == kept
    assert sum(part.rows for part in trips.source.rejected.values()) == 5 - kept


NAN = float("nan")


@pytest.mark.parametrize(
    ("where", "kept"),
    [("age >= 18", 2), ("age != 20", 2), ("age not in [10]", 2), ("not (age < 18)", 2), ('age == "20"', 1)],
)
@pytest.mark.parametrize("ages", [[10.0, 20.0, 30.5, NAN, None], ["10", "20.0", "30.5", "nan", "NaN"]])
def test_nan_is_missing_and_matches_nothing(where: str, kept: int, ages: list[float | str | None]) -> None:
    """To a database NaN is more than any number, so that people of no age were all grown up."""
    if where.endswith('"') and isinstance(ages[0], str):
        where = 'age == "20.0"'
    trips = read_trips(TABLE.set_column(TABLE.column_names.index("age"), "age", pa.array(ages)), where=where)
    assert len(trips) == kept


@pytest.mark.parametrize(("where", "kept"), [('mode != "2"', 2), ('mode in [1, "3"]', 2), ('mode == "2.0"', 1)])
def test_a_number_in_quotes_is_a_number_where_the_column_holds_numbers(where: str, kept: int) -> None:
    """A column with a gap is one of floats, whose 2 is "2.0" as a text: what should go stayed."""
    table = TABLE.append_column("mode", pa.array([1.0, 2.0, 3.0, None, None]))
    assert len(read_trips(table, where=where)) == kept
    with pytest.raises(InputError, match="mode is a column of numbers; compare it with a number, not 'bus'"):
        read_trips(table, where='mode != "bus"')


@pytest.mark.parametrize("as_text", [False, True])
@pytest.mark.parametrize(
    ("where", "kept"),
    [
        (f"user == {2**53 + 1}", 1),
        (f"user != {2**53 + 1}", 4),
        (f"user <= {2**53}", 2),
        (f"user in [1.5, {2**53 + 2}]", 1),
        (f"user < {10**40}", 5),
    ],
)
def test_long_ids_are_told_apart(where: str, kept: int, as_text: bool) -> None:
    """As floats, two ids of sixteen digits are one: the trips of others were kept, or left out."""
    users = pa.array([5, 2**53, 2**53 + 1, 2**53 + 2, 2**53 + 3])
    table = TABLE.append_column("user", users.cast(pa.string()) if as_text else users)
    assert len(read_trips(table, where=where)) == kept


def test_a_decimal_comma_holds_for_what_a_filter_asks_too(tmp_path: Path) -> None:
    """Trips of 2,5 km had no length, and only those of whole ones were kept."""
    lines = [f"48,85;2,35;48,86;2,36;{km};{km}" for km in ("1,5", "2,5", "3", "3,75")]
    path = tmp_path / "trips.csv"
    path.write_text("\n".join(["start_lat;start_lon;end_lat;end_lon;km;written", *lines]) + "\n")
    assert len(read_trips(path, where="km >= 2")) == 3
    assert len(read_trips(path, where='km >= 2 and written == "2,5"')) == 1
