"""The synthetic survey has the shape of the paper's Table 1, and hangs together as a survey would."""

from __future__ import annotations

import hashlib
import sys
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from h3ronpy.vector import coordinates_to_cells

from odkanon.sample import survey as sample
from odkanon.sample.survey import CENTRAL_CELLS, make_survey

AGE_EDGES = [10, 20, 30, 40, 50, 60, 70, 100]


class Survey(NamedTuple):
    table: pa.Table
    column: dict[str, npt.NDArray[Any]]
    origin: npt.NDArray[np.uint64]
    destination: npt.NDArray[np.uint64]
    central: npt.NDArray[np.bool_]
    follows: npt.NDArray[np.bool_]  # row i + 1 is of the same person as row i


@pytest.fixture(scope="module")
def survey() -> Survey:
    table = make_survey()
    column = {name: table[name].to_numpy() for name in table.column_names}
    ends = [
        np.asarray(coordinates_to_cells(column[f"{end}_lat"], column[f"{end}_lon"], 10)).astype(np.uint64)
        for end in ("start", "end")
    ]
    wanted = np.array([int(cell, 16) for cell in CENTRAL_CELLS], dtype=np.uint64)
    central = np.isin(resolution_6(ends[0]), wanted) & np.isin(resolution_6(ends[1]), wanted)
    return Survey(table, column, ends[0], ends[1], central, column["person"][1:] == column["person"][:-1])


def resolution_6(cells: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    low = np.uint64((1 << 27) - 1)
    return np.asarray((cells & ~(np.uint64(0xF) << np.uint64(52))) | (np.uint64(6) << np.uint64(52)) | low)


def metres(survey: Survey, a: str, b: str, shift: int) -> npt.NDArray[np.float64]:
    """Return the distance between end `a` of each trip and end `b` of the trip `shift` rows before."""
    rows = len(survey.central)
    column = survey.column
    north = column[f"{a}_lat"][shift:] - column[f"{b}_lat"][: rows - shift]
    east = column[f"{a}_lon"][shift:] - column[f"{b}_lon"][: rows - shift]
    return np.asarray(np.hypot(111_200 * north, 73_200 * east))


def first_rows(survey: Survey) -> npt.NDArray[np.int64]:
    return np.flatnonzero(np.r_[True, ~survey.follows])


def test_schema(survey: Survey) -> None:
    text, degrees, time = pa.string(), pa.float64(), pa.timestamp("s")
    expected = {"person": text, "start_time": time, "end_time": time}
    expected |= dict.fromkeys(["start_lat", "start_lon", "end_lat", "end_lon", "weight"], degrees)
    expected |= {"sex": text, "age": pa.int16(), "category": text, "mode": text, "purpose": text}
    assert survey.table.schema == pa.schema(list(expected.items()))
    assert all(column.null_count == 0 for column in survey.table.columns)


def test_totals_of_table_1(survey: Survey) -> None:
    cells = len(np.unique(np.r_[survey.origin, survey.destination]))
    assert survey.table.num_rows == 81_291
    assert len(np.unique(survey.column["person"].astype(str))) == 3_320
    assert cells == pytest.approx(44_011, rel=0.02)


def test_central_trips_are_as_many_and_as_rarely_alike_as_in_the_paper(survey: Survey) -> None:
    origin, destination = survey.origin[survey.central], survey.destination[survey.central]
    pairs = np.unique(np.stack([origin, destination], axis=1), axis=0)
    assert len(CENTRAL_CELLS) == 5
    assert len(origin) == pytest.approx(28_203, rel=0.03)
    assert len(pairs) == pytest.approx(23_264, rel=0.05)
    assert len(np.unique(origin)) == pytest.approx(6_624, rel=0.05)
    assert len(np.unique(destination)) == pytest.approx(6_651, rel=0.05)


def test_some_cells_are_shared_by_many_people(survey: Survey) -> None:
    _, number = np.unique(survey.column["person"].astype(str), return_inverse=True)
    persons_of_cells = np.unique(np.stack([survey.destination, number.astype(np.uint64)], axis=1), axis=0)
    _, visitors = np.unique(persons_of_cells[:, 0], return_counts=True)
    assert visitors.max() >= 20
    assert np.mean(visitors == 1) > 0.5


def test_weights_belong_to_persons_and_add_up_to_the_population(survey: Survey) -> None:
    weight = survey.column["weight"]
    persons = weight[first_rows(survey)]
    assert np.all(np.diff(weight)[survey.follows] == 0)
    assert persons.sum() == pytest.approx(9_001_164, abs=1e-3)
    assert weight.mean() == pytest.approx(2_674.16, rel=0.01)
    assert np.array_equal(np.round(weight, 6), weight)
    assert persons.min() > 250
    assert persons.max() < 16_000
    assert persons.mean() > 1.15 * np.median(persons)


@pytest.mark.parametrize("attribute", ["sex", "age", "category"])
def test_attributes_belong_to_persons(survey: Survey, attribute: str) -> None:
    values = survey.column[attribute]
    assert np.all((values[1:] == values[:-1])[survey.follows])


def test_modes_and_purposes_are_as_in_a_large_city(survey: Survey) -> None:
    shares: dict[str, float] = {}
    for name in ("mode", "purpose"):
        values, counts = np.unique(survey.column[name].astype(str), return_counts=True)
        shares |= dict(zip(values.tolist(), (counts / counts.sum()).tolist(), strict=True))
    assert 0.25 < shares["walk"] < 0.45
    assert 0.25 < shares["car"] < 0.45
    assert 0.15 < shares["transit"] < 0.35
    assert 0.02 < shares["bike"] < 0.08
    assert 0.005 < shares["motorcycle"] < 0.04
    assert 0.25 < shares["home"] < 0.45
    assert 0.1 < shares["work"] < 0.25
    assert min(shares[name] for name in ("study", "shopping", "errand", "leisure")) > 0.02
    walked = metres(survey, "end", "start", 0)[survey.column["mode"] == "walk"]
    assert np.median(walked) < 1_000


def test_other_columns_are_as_they_were_before_there_were_modes(survey: Survey) -> None:
    digest = hashlib.sha256()
    for name in ("start_lat", "end_lon", "weight"):
        digest.update(survey.column[name].tobytes())
    digest.update("".join(survey.column["category"][::97].astype(str)).encode())
    assert digest.hexdigest()[:16] == "5ceb5e0fde3291e4"


def test_every_segment_of_the_paper_has_central_trips(survey: Survey) -> None:
    sex, sexes = np.unique(survey.column["sex"][survey.central].astype(str), return_counts=True)
    names, categories = np.unique(survey.column["category"][survey.central].astype(str), return_counts=True)
    ages, _ = np.histogram(survey.column["age"][survey.central], AGE_EDGES)
    assert sex.tolist() == ["Man", "Woman"]
    assert sexes[1] / sexes.sum() == pytest.approx(0.53, abs=0.03)
    assert names.tolist() == [f"Cat. {number}" for number in range(1, 9)]
    assert min(categories.min(), ages.min()) >= 500
    assert (survey.column["age"].min(), survey.column["age"].max()) == (16, 80)


def test_category_goes_with_place_and_weight(survey: Survey) -> None:
    category = survey.column["category"]
    central = {c: survey.central[category == c].mean() for c in ("Cat. 2", "Cat. 5")}
    weight = {c: survey.column["weight"][category == c].mean() for c in ("Cat. 2", "Cat. 5")}
    assert central["Cat. 2"] > 1.1 * central["Cat. 5"]
    assert weight["Cat. 2"] < 0.8 * weight["Cat. 5"]


def test_each_trip_begins_near_the_end_of_the_one_before(survey: Survey) -> None:
    gap = metres(survey, "start", "end", shift=1)[survey.follows]
    assert gap.max() < 110
    assert gap.max() > 10


def test_days_mostly_begin_and_end_at_home(survey: Survey) -> None:
    first = first_rows(survey)
    home = np.repeat(first, np.diff(np.r_[first, len(survey.central)]))
    day = survey.column["start_time"].astype("datetime64[D]").astype(np.int64)
    new_day = np.r_[True, (np.diff(day) != 0) | ~survey.follows]
    starts, ends = np.flatnonzero(new_day), np.flatnonzero(np.r_[new_day[1:], True])
    for rows, end in ((starts, "start"), (ends, "end")):
        north = survey.column[f"{end}_lat"][rows] - survey.column["start_lat"][home[rows]]
        east = survey.column[f"{end}_lon"][rows] - survey.column["start_lon"][home[rows]]
        assert 0.9 < np.mean(np.hypot(111_200 * north, 73_200 * east) < 500) < 1
    assert np.all(ends > starts)


def test_times_follow_each_other_within_one_week(survey: Survey) -> None:
    start, end = survey.column["start_time"], survey.column["end_time"]
    stay = (start[1:] - end[:-1])[survey.follows]
    assert np.all(end > start)
    assert stay.min() > np.timedelta64(180, "s")
    assert start.min() >= np.datetime64("2022-11-14")
    assert end.max() < np.datetime64("2022-11-21")


def test_people_travel_by_day_and_at_speeds_that_exist(survey: Survey) -> None:
    start, end = survey.column["start_time"], survey.column["end_time"]
    speed = 3.6 * metres(survey, "end", "start", shift=0) / (end - start).astype(np.int64)
    hours = np.bincount(start.astype("datetime64[h]").astype(np.int64) % 24, minlength=24)
    assert speed.max() < 90
    assert 5 < np.median(speed) < 25
    assert hours[:5].sum() < 0.01 * hours.sum()
    assert hours[[7, 8, 9]].mean() > 2 * hours[[20, 21, 22]].mean()


def test_dense_centre_and_thin_outskirts_inside_the_region(survey: Survey) -> None:
    for end in ("start", "end"):
        lat, lon = survey.column[f"{end}_lat"], survey.column[f"{end}_lon"]
        assert 48.1 < lat.min() < 48.35
        assert 49.1 < lat.max() < 49.25
        assert 1.4 < lon.min() < 1.7
        assert 3.2 < lon.max() < 3.6
        assert np.array_equal(np.round(lat, 6), lat)
        assert np.array_equal(np.round(lon, 6), lon)
    share_of_area = 161 / 12_000
    assert survey.central.mean() > 20 * share_of_area


def test_rows_are_in_order_and_differ(survey: Survey) -> None:
    order = survey.table.sort_by([("person", "ascending"), ("start_time", "ascending")])
    assert order.equals(survey.table)
    assert survey.table.group_by(["person", "start_time"]).aggregate([]).num_rows == survey.table.num_rows
    assert survey.table["person"][0].as_py().count("_") == 1


def test_same_seed_same_table(survey: Survey) -> None:
    assert make_survey(2025).equals(survey.table)


def test_another_seed_makes_another_survey_of_the_same_size(survey: Survey) -> None:
    other = make_survey(7)
    weights = other.group_by("person").aggregate([("weight", "max")])["weight_max"].to_numpy()
    assert (other.num_rows, len(weights)) == (81_291, 3_320)
    assert weights.sum() == pytest.approx(9_001_164, abs=1e-3)
    for name in ("start_time", "start_lat", "end_lon", "weight"):
        assert np.mean(other[name].to_numpy() == survey.column[name]) < 0.05


def test_no_python_loop_over_rows() -> None:
    lines = 0

    def count(frame: FrameType, event: str, _: object) -> Any:
        nonlocal lines
        if frame.f_code.co_filename != sample.__file__:
            return None
        lines += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        make_survey(1)
    finally:
        sys.settrace(before)
    assert 50 < lines < 1_000
