"""The NetMob25 layout: the sample survey written as raw points comes back as the same trips."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.here import run
from cli.runner import odkanon, output
from odkanon import read_trips
from odkanon.errors import InputError
from odkanon.read.points.cutting import TripRule
from odkanon.read.points.netmob25_files import write_survey_trips
from odkanon.sample.gnss_points import points_of_trips, write_netmob25
from odkanon.sample.survey import make_survey

ORDER = [("person", "ascending"), ("start_time", "ascending")]


@pytest.fixture(scope="module")
def survey() -> pa.Table:
    return make_survey().slice(0, 600)


@pytest.fixture
def folder(tmp_path: Path, survey: pa.Table) -> Path:
    write_netmob25(survey, tmp_path / "survey")
    return tmp_path / "survey"


def same_trips(path: Path, survey: pa.Table) -> bool:
    trips = pq.read_table(path)
    # The layout has no place for what a trip is made with and for.
    assert trips.column_names == [name for name in survey.column_names if name not in ("mode", "purpose")]
    survey = survey.select(trips.column_names)
    return bool(trips.sort_by(ORDER).cast(survey.schema).equals(survey.sort_by(ORDER)))


@pytest.mark.slow
def test_the_whole_sample_comes_back_exactly(tmp_path: Path) -> None:
    made = odkanon("sample", "--as", "netmob25", "-o", "survey", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    done = odkanon("trips", "survey", "--layout", "netmob25", "-o", "trips.parquet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "81,291 trips" in output(done)
    assert same_trips(tmp_path / "trips.parquet", make_survey())


def test_points_leave_no_doubt_where_trips_end(survey: pa.Table) -> None:
    points = points_of_trips(survey)
    person = points.column("person").to_numpy(zero_copy_only=False)
    seconds = points.column("UTC DATETIME").cast(pa.timestamp("s")).to_numpy().astype("int64")
    same = person[1:] == person[:-1]
    gaps = (seconds[1:] - seconds[:-1])[same]
    assert gaps.min() > 0
    assert ((gaps <= 180) | (gaps >= 240)).all()


def test_spec_variants_are_read(folder: Path, survey: pa.Table) -> None:
    """Windows line ends, a byte order mark, other words for true, a displacements file: all have been seen."""
    people = folder / "individuals_dataset.csv"
    text = people.read_text().replace("true", "True").replace("\n", "\r\n")
    people.write_bytes(b"\xef\xbb\xbf" + text.encode())
    (folder / "displacements_dataset.csv").write_text("KEY,ID,Day_EMG\n1,10_1000,1\n")
    for path in (folder / "gps_dataset").iterdir():
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    write_survey_trips(folder, folder / "trips.parquet")
    assert same_trips(folder / "trips.parquet", survey)


def test_points_out_of_order_give_the_same_trips(folder: Path, survey: pa.Table) -> None:
    for path in (folder / "gps_dataset").iterdir():
        header, *lines = path.read_text().splitlines()
        path.write_text("\n".join([header, *lines[::-1], lines[0]]) + "\n")  # and one of them twice
    account = write_survey_trips(folder, folder / "trips.parquet")
    assert same_trips(folder / "trips.parquet", survey)
    persons = len(survey.column("person").unique())
    assert list(account.points.rejected.values()) == [persons]


def test_only_persons_with_complete_records_take_part(folder: Path, survey: pa.Table) -> None:
    people = folder / "individuals_dataset.csv"
    lines = people.read_text().splitlines()
    lines[1] = lines[1].replace("true", "false")
    people.write_text("\n".join([*lines, "99_1,Man,40,Cat. 1,100.5,true", "99_2,Man,41,Cat. 1,100.5,true"]) + "\n")
    one_point = "UTC DATETIME,LOCAL DATETIME,VALID,LATITUDE,LONGITUDE,SPEED\n2022-11-15 06:08:19,,true,48.8,2.3,1\n"
    (folder / "gps_dataset" / "99_2.csv").write_text(one_point)
    (folder / "gps_dataset" / "99_3.csv").write_text(one_point)
    done = odkanon("trips", folder, "--layout", "netmob25", "-o", folder / "trips.parquet")
    assert done.returncode == 0
    told = output(done)
    for part in (
        "1 person excluded: GPS_RECORD is not true",
        "1 person has GPS_RECORD true but no file of points",
        "1 file of points belongs to no listed person",
        "1 person has no trip",
    ):
        assert part in told
    kept = set(pq.read_table(folder / "trips.parquet").column("person").to_pylist())
    assert kept == set(survey.column("person").to_pylist()) - {lines[1].split(",")[0]}


def test_missing_parts_are_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a folder"):
        write_survey_trips(tmp_path / "nowhere", tmp_path / "trips.csv")
    people = folder / "individuals_dataset.csv"
    people.write_text(people.read_text().replace("GPS_RECORD", "GPS"))
    with pytest.raises(InputError, match="no column GPS_RECORD"):
        write_survey_trips(folder, tmp_path / "trips.csv")
    people.write_text("ID,WEIGHT_INDIV,GPS_RECORD\n1_1,1,true\n1_1,1,true\n")
    with pytest.raises(InputError, match="'1_1' more than once"):
        write_survey_trips(folder, tmp_path / "trips.csv")
    people.write_text("ID,WEIGHT_INDIV,GPS_RECORD\n1_1,1,true\n")
    with pytest.raises(InputError, match="none of the"):
        write_survey_trips(folder, tmp_path / "trips.csv")
    shutil.rmtree(folder / "gps_dataset")
    with pytest.raises(InputError, match="has no gps_dataset"):
        write_survey_trips(folder, tmp_path / "trips.csv")


def test_the_sample_never_replaces_a_stranger_folder(tmp_path: Path, survey: pa.Table) -> None:
    (tmp_path / "keep.txt").write_text("mine")
    with pytest.raises(InputError, match="is not such a survey"):
        write_netmob25(survey, tmp_path, force=True)
    write_netmob25(survey, tmp_path / "survey")
    with pytest.raises(InputError, match="exists already"):
        write_netmob25(survey, tmp_path / "survey")
    assert write_netmob25(survey, tmp_path / "survey", force=True) == len(points_of_trips(survey))
    for name in ("notes.txt", "gps_dataset/notes.txt"):
        (tmp_path / "survey" / name).write_text("mine")
        with pytest.raises(InputError, match=r"contains notes\.txt"):
            write_netmob25(survey, tmp_path / "survey", force=True)
        (tmp_path / "survey" / name).unlink()


def test_the_other_attributes_of_the_survey_are_kept(folder: Path) -> None:
    people = folder / "individuals_dataset.csv"
    header, *lines = people.read_text().splitlines()
    more = ",AREA_NAME,DIPLOMA,NB_CAR,NBPERS_HOUSE,CODGEO"
    people.write_text(
        "\n".join([header + more, *(f"{line},Paris,Bac+5,{n % 3},4,75101" for n, line in enumerate(lines))])
    )
    write_survey_trips(folder, folder / "trips.parquet")
    trips = pq.read_table(folder / "trips.parquet")
    assert trips.column_names[-4:] == ["area_name", "diploma", "nb_car", "nbpers_house"]
    assert set(trips.column("nb_car").to_pylist()) == {"0", "1", "2"}
    assert len(read_trips(folder / "trips.parquet", where='diploma == "Bac+5"', attributes=["area_name"])) == len(trips)


def test_a_single_point_is_a_trip_where_that_is_asked_for(folder: Path, survey: pa.Table) -> None:
    people = folder / "individuals_dataset.csv"
    people.write_text(people.read_text() + "99_2,Man,41,Cat. 1,100.5,true\n")
    one_point = "UTC DATETIME,LOCAL DATETIME,VALID,LATITUDE,LONGITUDE,SPEED\n2022-11-15 06:08:19,,true,48.8,2.3,1\n"
    (folder / "gps_dataset" / "99_2.csv").write_text(one_point)
    account = write_survey_trips(folder, folder / "trips.parquet", rule=TripRule(min_points=1))
    assert account.points.trips == survey.num_rows + 1
    (alone,) = pq.read_table(folder / "trips.parquet", filters=[("person", "=", "99_2")]).to_pylist()
    assert alone["start_time"] == alone["end_time"]
    assert (alone["start_lat"], alone["start_lon"]) == (alone["end_lat"], alone["end_lon"]) == (48.8, 2.3)


def test_from_the_folder_to_the_tables_in_one_command(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    Path("odkanon.toml").write_text('[compare]\nmethods = "odkanon"\nk = 2\n')
    assert run("trips", folder, "--layout", "netmob25", "--tables", "paper") == 0
    text = (folder.parent / "paper" / "tables" / "tables.md").read_text(encoding="utf-8")
    assert "ODkAnon" in text
    assert "Woman" in text
    assert (folder.parent / "paper" / "trips.parquet").is_file()
    settings = (folder.parent / "paper" / "tables" / "runs.jsonl").read_text().splitlines()[0]
    assert '"within": "paris-centre"' in settings
    with pytest.raises(InputError, match="the trips need a file"):
        run("trips", folder, "--layout", "netmob25")
