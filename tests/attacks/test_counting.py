"""What is counted wrong is published below the rule: inputs that used to pass for more than they are."""

from __future__ import annotations

import random
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any
from unicodedata import category, normalize

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from engine.test_duckdb import in_duckdb
from odkanon import InputSpec, ODMatrix, Rule, audit_releases, read_area, read_matrix, read_trips
from odkanon.audit import TripsSource
from odkanon.audit.counting.counted_measures import person_sql, unclear_person_sql
from odkanon.core.sql import connect
from odkanon.core.weights import to_units, units_sql, weight_scale
from odkanon.engine.dispatch import load
from odkanon.errors import InputError
from odkanon.methods.method_registry import anonymize
from odkanon.model.od import Matrix
from odkanon.read.od_matrix import build_od
from odkanon.read.person_ids import contributor_text, is_ambiguous
from odkanon.read.tables.filters import FILTERED
from odkanon.read.tables.open_table import open_table
from odkanon.read.trip_checks import AMBIGUOUS_ID, DUPLICATE

ENDS = {"start_lat": 48.85, "start_lon": 2.35, "end_lat": 48.86, "end_lon": 2.30}
ENGINES = ("memory", "duckdb")


def table(rows: int, **columns: Any) -> pa.Table:
    """Return trips between the same two places."""
    return pa.table({name: [value] * rows for name, value in ENDS.items()} | columns)


def csv(tmp_path: Path, trips: pa.Table) -> Path:
    """Write trips as a CSV whose texts are as they stand in the table."""
    lines = [",".join(trips.column_names), *(",".join(map(str, row.values())) for row in trips.to_pylist())]
    path = tmp_path / "trips.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def matrix(source: Any, engine: str) -> Matrix:
    return build_od(read_trips(source)) if engine == "memory" else in_duckdb(source)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_rejected_weight_does_not_make_the_unit_coarse(engine: str) -> None:
    trips = table(11, weight=[0.6] * 10 + [4e16])
    trips = trips.set_column(0, "start_lat", pa.array([48.85] * 10 + [95.0]))
    od = matrix(trips, engine)
    assert od.summary.weight_units is not None
    assert od.summary.weight_units / od.summary.scale == pytest.approx(6)
    assert anonymize(od, Rule(weight=10)).refusal


@pytest.mark.parametrize("engine", ENGINES)
def test_the_unit_does_not_tell_of_a_heavy_trip_that_is_not_published(engine: str) -> None:
    """A weight of a hundred million made it coarser, so that the decimals of the others told of it."""
    told = []
    for heavy in (1.0, 1e8, 4e8):
        trips = table(31, weight=[0.123456789] * 30 + [heavy])
        trips = trips.set_column(0, "start_lat", pa.array([48.85] * 30 + [48.95]))
        release = anonymize(matrix(trips, engine), Rule(trips=10), method="cascade")
        assert release.suppressed.trips == 1
        told.append(release.to_arrow().to_pydict())
    assert told[0] == told[1] == told[2]
    assert told[0]["weight"] == [3.704]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("heavy", [5e9, 3e16])
def test_one_heavy_trip_does_not_choose_the_unit(engine: str, heavy: float) -> None:
    """Nobody would have to list it: everybody's decimals would change."""
    with pytest.raises(InputError, match="one trip has a weight of"):
        matrix(table(11, weight=[0.6] * 10 + [heavy]), engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_coarse_unit_never_rounds_up(engine: str) -> None:
    od = matrix(table(12, weight=[0.6] * 10 + [3e16] * 2), engine)
    assert od.summary.weight_units is not None
    assert od.summary.weight_units / od.summary.scale <= 6e16 + 6


@pytest.mark.parametrize("weight", [0.1, 0.29, 2674.16, 1234.567891, 9.999999999999999, 0.3333333333333333])
def test_units_are_exact_or_less(weight: float) -> None:
    scale = weight_scale(1000 * weight)
    units = int(to_units(np.array([weight]), scale)[0])
    assert units / scale <= weight
    assert units / scale > weight - 1.0000001 / scale


LONG_WEIGHTS = [
    "9.99999999999999999999",
    "0.29999999999999999",
    "0.10000000000000001",
    "8492865.38",
    "12345678.123456789",
    "74015173.2888828",
    "9007199254740993",
    "40000000000000001.9",
    "9999999999999e4",
    "0.1234567899",
]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("text", LONG_WEIGHTS)
def test_what_is_compared_is_at_most_the_true_sum(tmp_path: Path, text: str, engine: str) -> None:
    """A float is nearest to what is written, and may be more: ten weights of 0.99999999999999999999 were 10."""
    decimal = pa.array([Decimal(text)] * 10, pa.decimal128(38, 20)) if len(text) < 18 else [text] * 10
    for source in (csv(tmp_path, table(10, weight=[text] * 10)), table(10, weight=decimal)):
        od = matrix(source, engine)
        assert od.summary.weight_units is not None
        units, exact = Fraction(od.summary.weight_units), Fraction(Decimal(text)) * 10 * od.summary.scale
        assert units <= exact
        assert units > exact - 10 * max(Fraction(1), exact / 2**52)


def test_units_are_never_more_wherever_they_are_made() -> None:
    rng = random.Random(5)
    values = [round(rng.random() * 10 ** rng.randint(-3, 15), rng.randint(0, 9)) for _ in range(5000)]
    weights = np.array([value for value in values if value])
    for scale in (10**9, 10**6, 10**3, 1):
        some = weights[weights * scale < 2**62]
        units = to_units(some, scale)
        made = connect().from_arrow(pa.table({"w": some})).project(f"{units_sql('w', scale)} AS u")
        assert made.to_arrow_table().column("u").to_pylist() == units.tolist()
        assert all(
            each <= max(Fraction(value), Fraction(repr(value))) * scale
            for each, value in zip(units.tolist(), some.tolist(), strict=True)
        )


WHOLE, TENTHS = pa.decimal128(20, 0), pa.decimal128(20, 1)
LONG, FINE = pa.decimal128(38, 0), pa.decimal128(38, 10)


def several(folder: Path, *tables: pa.Table) -> list[Path]:
    """Write tables as Parquet files of one folder."""
    folder.mkdir()
    files = [folder / f"{at}.parquet" for at in range(len(tables))]
    for file, each in zip(files, tables, strict=True):
        pyarrow.parquet.write_table(each, file)
    return files


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("attributes", [(pa.int64(), pa.float64()), (pa.int8(), pa.string()), (WHOLE, TENTHS)])
def test_a_second_file_keeps_its_fractions(tmp_path: Path, attributes: tuple[Any, Any], engine: str) -> None:
    """They were rounded to the type of the first: 0.6 counted as 1, and latitude 48.85 as 49."""
    fine = pa.array(["0.6"] * 10).cast(attributes[1])
    tables = table(10, weight=pa.array([1] * 10).cast(attributes[0])), table(10, weight=fine)
    files = several(tmp_path / "in", *tables)
    for source in (files, tmp_path / "in"):
        od = matrix(source, engine)
        assert od.summary.weight_units == 16 * od.summary.scale


@pytest.mark.parametrize(
    "attributes",
    [(LONG, FINE), (pa.int64(), pa.float32()), (pa.timestamp("s"), pa.timestamp("s", "UTC"))],
)
def test_files_without_a_common_type_are_refused(tmp_path: Path, attributes: tuple[Any, Any]) -> None:
    files = several(tmp_path / "in", *(table(2, weight=pa.array([1, 2]).cast(kind)) for kind in attributes))
    with pytest.raises(InputError, match=r"column 'weight' of .*\.parquet is .*; use one type in all files"):
        read_trips(files)


SPELLINGS = [
    ("7", "7.0"),
    ("7", "007"),
    ("-7", "-7.0"),
    ("100000", "1e+05"),
    ("12", "１２"),
    ("ab12", "AB12"),
    ("ab12", "0xAB12"),
    ("G1", "g1"),
    ("anna@y.org", "ANNA@Y.ORG"),
    ("JOS\u00c9", "jos\u00e9"),
    ("anna maria", "Anna  Maria"),
    ("anna maria", "anna\u00a0 maria"),
    ("ER STRASSE 1", "er stra\u00dfe 1"),
    ("\u0410\u043d\u043d\u0430", "\u0430\u043d\u043d\u0430"),
    ("\u0394\u0397\u039c\u039f\u03a3", "\u03b4\u03ae\u03bc\u03bf\u03c2"),
    ("ab-ff", "{AB-FF}"),
    ("p1", " p1"),
    ("p1", "p1\u200b"),
    ("p1", "\u00a0p1"),
    ("p1", "\u2066p1\u2069"),
    ("p1", "p1\u180e"),
    ("p1", "p1\ufe0f"),
    ("\u00e91", "e\u03011"),
    ("\u04391", "\u0438\u03061"),
    ("12345678", "1.2345678E7"),
    ("-100000", "-1e+05"),
    ("100000", "1e+005"),
    ("10000000000000000", "1e16"),
    ("1.5", "01.50"),
    ("9" * 40, "0" + "9" * 40 + ".0"),
    ("7", "\uff0b7"),
    ("12", "\u0661\u0662"),
    ("p-1", "\uff50\u20131"),
    ("\u30ab1", "\uff761"),
    ("p1", "p1\U000e0100"),
    ("p1", "\u3164p1"),
    ("o'brien", "O\u2019Brien"),
    ("o`brien", "\u201eO\u00b4Brien\u201c"),
    ("'7'", "7"),
    ("p\u2014q", "p-q"),
    ("\u0430nna", "ANNA"),
    ("N\u0399K\u039fS", "nikos"),
    ("\u0e51\u0e52", "12"),
    ("a\u2800b", "a b"),
    ("550e8400-e29b-41d4-a716-446655440000", "550E8400E29B41D4A716446655440000"),
    ("{550e8400-e29b-41d4-a716-446655440000}", "urn:uuid:550E8400-e29b-41d4-a716-446655440000"),
]
"""Of one id each."""


def test_the_audit_counts_them_as_one_too(tmp_path: Path) -> None:
    path = csv(tmp_path, table(2 * len(SPELLINGS), person=[each for pair in SPELLINGS for each in pair]))
    people = read_matrix(path).summary.persons
    made = anonymize(build_od(read_trips(path)), Rule(trips=10, persons=people)).save(tmp_path / "release")
    report = audit_releases([made], trips=TripsSource(path))
    assert [each.message for each in report.findings if each.severity == "finding"] == []
    (said,) = audit_releases([made], trips=TripsSource(path), least={"persons": people + 1}).findings[:1]
    assert f"{people}" in said.message


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "word", ["nan", "NaN", "NULL", "NA", "None", "\\N", "n/a", " ", "null", "#NA", "(null)", "1.#QNAN", "-", "?", "."]
)
def test_words_for_nothing_are_nobody(tmp_path: Path, word: str, engine: str) -> None:
    od = matrix(csv(tmp_path, table(6, person=["a", "b", "c", "d", word, word.strip() or ""])), engine)
    assert od.summary.persons == 4
    assert anonymize(od, Rule(persons=5)).refusal


@pytest.mark.parametrize("engine", ENGINES)
def test_nan_in_a_column_of_numbers_is_nobody(engine: str) -> None:
    od = matrix(table(4, person=pa.array([1.0, 2.0, float("nan"), None])), engine)
    assert od.summary.persons == 2


def test_one_person_in_two_spellings_is_one() -> None:
    connection = connect()
    connection.register(
        "pairs", pa.table(dict(zip(("one", "two"), map(list, zip(*SPELLINGS, strict=True)), strict=True)))
    )
    for same in (contributor_text, person_sql):
        apart = connection.sql(f"SELECT one, two FROM pairs WHERE {same('one')} IS DISTINCT FROM {same('two')}")
        assert apart.fetchall() == []


@pytest.mark.parametrize("engine", ENGINES)
def test_spellings_count_once_on_every_engine(tmp_path: Path, engine: str) -> None:
    for at, some in enumerate((SPELLINGS[:2], SPELLINGS[4:8], SPELLINGS[-9:-4])):
        ids = [spelling for pair in some for spelling in pair]
        od = matrix(csv(tmp_path, table(len(ids) + 2, person=[*ids, "x", "y"])), engine)
        assert od.summary.persons == (1, 3, 5)[at] + 2


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("person", ["\ufb01ona", "\u2163", "a\u00bd", "\U0001d7d9", "\u2460", "\u03d3"])
def test_ids_in_characters_that_stand_for_several_are_rejected(tmp_path: Path, person: str, engine: str) -> None:
    path = csv(tmp_path, table(12, person=[person, "fiona", *"abcdefghij"]))
    od = matrix(path, engine)
    assert (od.summary.persons, od.summary.trips) == (11, 11)
    assert od.summary.source.rejected[AMBIGUOUS_ID].rows == 1
    made = anonymize(od, Rule(persons=11)).save(tmp_path / "release")
    report = audit_releases([made], trips=TripsSource(path))
    assert [each.message for each in report.findings if each.severity == "finding"] == []


def test_no_character_of_an_id_makes_two_persons_of_one() -> None:
    """Every character of Unicode, beside what it stands for, in the program and in the audit."""
    kinds = {"Cn", "Cs", "Co"}
    each = [one for one in map(chr, range(0x20, 0x110000)) if category(one) not in kinds]
    plain = [normalize("NFKC", one).strip() for one in each]
    connection = connect()
    connection.register("ids", pa.table({"one": [f"a{one}b" for one in each], "two": [f"a{one}b" for one in plain]}))
    for same, left_out in ((contributor_text, is_ambiguous), (person_sql, unclear_person_sql)):
        apart = connection.sql(
            f"SELECT one FROM ids WHERE replace({same('one')}, ' ', '') <> replace({same('two')}, ' ', '') "
            f"AND NOT coalesce({left_out('one')}, false)"
        ).fetchall()
        assert apart == []
    odd = f"SELECT count(*) FROM ids WHERE {contributor_text('one')} <> {person_sql('one')} OR"
    assert connection.sql(f"{odd} {is_ambiguous('one')} <> {unclear_person_sql('one')}").fetchall() == [(0,)]


def test_ids_that_are_half_integers_half_floats_are_not_twice_the_people() -> None:
    import pandas

    frame = pandas.DataFrame(ENDS, index=range(10))
    frame["person"] = pandas.Series([1, 2, 3, 4, 5, 1.0, 2.0, 3.0, 4.0, 5.0], dtype=object).map(str)
    assert build_od(read_trips(frame)).persons == 5


@pytest.mark.parametrize("engine", ENGINES)
def test_one_moment_by_two_offsets_is_one(tmp_path: Path, engine: str) -> None:
    times = ["2024-01-01T08:00:00Z", "2024-01-01T09:00:00+01:00", "2024-01-01 03:00:00-05", "2024-01-01T09:00:00Z"]
    path = csv(tmp_path, table(4, person=["1"] * 4, start_time=times))
    assert matrix(path, engine).summary.trips == 2


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("offset", ["Z", " Z", " +01:00", " +0100", "-05", " UTC", " GMT"])
def test_two_moments_are_two_however_the_offset_is_written(tmp_path: Path, offset: str, engine: str) -> None:
    """An offset apart from its time made no moment, and all trips of a person copies of one."""
    times = [f"2024-01-01 0{hour}:00:00{offset}" for hour in (7, 8, 9)]
    path = csv(tmp_path, table(3, person=["1"] * 3, start_time=times))
    assert matrix(path, engine).summary.trips == 3


@pytest.mark.parametrize("engine", ENGINES)
def test_copies_that_are_written_differently_are_copies(tmp_path: Path, engine: str) -> None:
    path = csv(
        tmp_path,
        table(
            3,
            person=["1", "1.0", "2"],
            start_time=["2024-01-01 08:00", "2024-01-01T08:00:00", "2024-01-01 08:00"],
            weight=["2", "2.0", "2"],
        ),
    )
    od = matrix(path, engine)
    assert od.summary.trips == 2
    assert od.summary.source.rejected[DUPLICATE].rows == 1


def test_copies_agree_in_their_attributes_however_these_are_spelled(tmp_path: Path) -> None:
    """Attributes are looked at only where everything else is repeated."""
    ages = ["30", "30.0", " 030", "31", "30"]
    trips = table(5, person=["1", "1", "1.0", "1", "2"], start_time=["2024-01-01 08:00"] * 5, age=ages)
    read = read_trips(csv(tmp_path, trips))
    assert read.source.rejected[DUPLICATE].rows == 2
    assert read.table.column("age").to_pylist() == ["30", "31", "30"]
    whole = trips.set_column(trips.column_names.index("age"), "age", pa.array([30, 30, 30, 31, 30], pa.int16()))
    assert read_trips(whole).table.column("age").to_pylist() == [30, 31, 30]


@pytest.mark.parametrize("engine", ENGINES)
def test_copies_that_cannot_be_told_from_trips_are_counted_and_said(engine: str) -> None:
    od = matrix(table(5, weight=[1.0, 1.0, 1.0, 2.0, 3.0]), engine)
    assert od.summary.trips == 5
    assert od.summary.source.lookalikes == 2


@pytest.mark.parametrize("engine", ENGINES)
def test_households_are_counted_like_persons(engine: str) -> None:
    trips = table(6, person=list("abcdef"), household=["1", "1", "1", "2", "2.0", "NA"])
    od = matrix(trips, engine)
    assert (od.summary.persons, od.summary.households) == (6, 2)
    assert anonymize(od, Rule(persons=6)).classes.households.tolist() == [2]
    assert anonymize(od, Rule(households=3)).refusal
    assert isinstance(od, ODMatrix) == (engine == "memory")


def test_the_mean_weight_is_that_of_the_whole(tmp_path: Path) -> None:
    """Neither an area nor a segment changes how many people k stands for."""
    trips = table(8, weight=[1.0] * 4 + [3.0] * 4)
    trips = trips.set_column(2, "end_lat", pa.array([48.86] * 4 + [45.0] * 4))
    whole = read_trips(trips)
    assert whole.weight is not None
    area = read_area("831fb4fffffffff")
    for part in (build_od(whole, within=area), build_od(whole.select(whole.weight < 2 * whole.scale))):
        assert part.trips == 4
        rule = Rule.protect("population", k=2, of=part)
        assert rule.weight == 4
        assert rule.k == 2


def between_zones(rows: int, **columns: Any) -> pa.Table:
    """Return records between the same two cells."""
    return pa.table({"origin": ["891fb46624bffff"] * rows, "destination": ["891fb475b7bffff"] * rows} | columns)


def zone_matrix(source: Any, engine: str) -> Matrix:
    return read_matrix(source, engine="memory") if engine == "memory" else in_duckdb(source)


@pytest.mark.parametrize("engine", ENGINES)
def test_records_between_zones_that_are_the_same_are_said_also_with_a_time(engine: str) -> None:
    times = ["2024-01-01 08:00", "2024-01-01T08:00:00", "2024-01-01 08:00:00.0", "2024-01-01 09:00"]
    for columns in ({"start_time": times}, {"start_time": times, "person": ["1", "1.0", "01", "1"]}):
        od = zone_matrix(between_zones(4, **columns), engine)
        assert (od.summary.trips, od.summary.source.lookalikes) == (4, 2)


@pytest.mark.parametrize("engine", ENGINES)
def test_trips_that_cannot_be_added_up_are_refused(engine: str) -> None:
    """A thousand rows of as many trips as a row may have were fewer than none."""
    table = between_zones(1100, trips=[9_000_000_000_000_000] * 1100, person=list(range(1100)))
    with pytest.raises(InputError, match=r"9\.9e\+18 trips in total"):
        zone_matrix(table, engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_word_among_numbers_that_a_filter_asks_loses_no_line(tmp_path: Path, engine: Any) -> None:
    """DuckDB read the column as numbers, and took the lines with a word out: the file was refused as damaged."""
    path = csv(tmp_path, table(30, age=["18", "x", "17"] * 10))
    source = load(InputSpec(path, where="age >= 18"), engine=engine).summary.source
    assert (source.rows, source.rejected[FILTERED].rows) == (30, 20)


def test_numbers_alone_lose_no_line(tmp_path: Path) -> None:
    path = csv(tmp_path, table(30, age=["18", "x", "17"] * 10))
    opened = open_table(path)
    assert opened.fetch({"age": 'TRY_CAST("age" AS DOUBLE)'}).num_rows == 30
    assert opened.unreadable_lines() == 0


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("spelling", ["891FB46624BFFFF", str(0x891FB46624BFFFF), "0891fb46624bffff"])
def test_a_pair_that_is_listed_in_two_spellings_is_refused(spelling: str, engine: str) -> None:
    """Rows of six trips each were added up, and published as twelve."""
    table = between_zones(2, trips=[6, 6]).set_column(0, "origin", pa.array(["891fb46624bffff", spelling]))
    with pytest.raises(InputError, match=r"more than once .*891fb46624bffff -> 891fb475b7bffff, 2 times"):
        zone_matrix(table, engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("text", ["9.9999999999999999", "9." + "9" * 30, "10.00000000000000001"])
def test_a_fraction_of_a_trip_is_none_however_long(text: str, engine: str) -> None:
    for trips in (pa.array([text, "12"]), pa.array([Decimal(text), Decimal(12)], pa.decimal128(38, 30))):
        table = between_zones(2, trips=trips).set_column(0, "origin", pa.array(["891fb46624bffff", "891fb475b7bffff"]))
        assert zone_matrix(table, engine).summary.trips == 12


@pytest.mark.parametrize("engine", ENGINES)
def test_counts_of_a_person_that_are_the_same_are_said(engine: str) -> None:
    table = between_zones(5, trips=[3, 3, 3.0, 4, 3], person=["1", "1.0", "01", "1", "2"])
    od = zone_matrix(table, engine)
    assert (od.summary.trips, od.summary.source.lookalikes) == (16, 2)


@pytest.mark.parametrize("engine", ENGINES)
def test_weights_too_small_to_know_their_mean_protect_no_population(engine: str) -> None:
    """Of 1.9e-9 each 1e-9 was counted, so that k mean weights were hardly more than half of what they are."""
    trips = table(100, weight=[1.0e-9] * 10 + [1.9e-9] * 90)
    od = matrix(trips.set_column(0, "start_lat", pa.array([48.85] * 10 + [48.95] * 90)), engine)
    with pytest.raises(InputError, match="weights of 1e-09 on average are too small"):
        Rule.protect("population", k=10, of=od.summary)
    assert Rule.protect("participants", k=10, of=od.summary).trips == 10


NAN = float("nan")


@pytest.mark.parametrize("engine", ENGINES)
def test_nan_in_a_parquet_file_is_nothing_whatever_its_statistics_say(tmp_path: Path, engine: str) -> None:
    """They leave NaN out, by which all values were numbers: two trips too many, and a mean weight too small."""
    trips = table(7, weight=[1.0, 2.0, NAN, 3.0, 4.0, NAN, 5.0], person=[1.0, 1.0, 1.0, 1.0, NAN, NAN, 1.0])
    trips = trips.set_column(0, "start_lat", pa.array([48.85] * 6 + [NAN]))
    (path,) = several(tmp_path / "in", trips)
    summary = matrix(path, engine).summary
    assert (summary.trips, summary.persons, summary.weight_units) == (4, 1, 10 * summary.scale)
    assert summary.source.mean_weight == Fraction(5, 2)
    assert sorted(each.rows for each in summary.source.rejected.values()) == [1, 2]


@pytest.mark.parametrize("engine", ENGINES)
def test_nan_in_a_parquet_file_is_no_number_of_trips(tmp_path: Path, engine: str) -> None:
    flows = between_zones(2, trips=[12.0, NAN]).set_column(
        0, "origin", pa.array(["891fb46624bffff", "891fb475b7bffff"])
    )
    (path,) = several(tmp_path / "in", flows)
    assert zone_matrix(path, engine).summary.trips == 12
