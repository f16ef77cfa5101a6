"""Files as other people make them are read without further ado."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyproj")

import numpy as np
import pyarrow as pa
import pyproj

from cli.runner import odkanon, output
from odkanon.errors import InputError
from odkanon.read.trips import read_trips

PORTO = "TRIP_ID,CALL_TYPE,ORIGIN_CALL,ORIGIN_STAND,TAXI_ID,TIMESTAMP,DAY_TYPE,MISSING_DATA,POLYLINE"
TRACK = "[[-8.618643,41.141412],[-8.618499,41.141376],[-8.620326,41.14251]]"

LAYOUTS = {
    "old Citi Bike": (
        "tripduration,starttime,stoptime,start station id,start station name,start station latitude,"
        "start station longitude,end station id,end station name,end station latitude,end station longitude,"
        "bikeid,usertype,birth year,gender",
        "361,2019-06-01 00:00:10.5,2019-06-01 00:06:12,3203,Hamilton Park,40.72,-74.04,3277,Communipaw,40.71,-74.06,"
        "29477,Subscriber,1988,1",
    ),
    "capitalised Citi Bike": (
        "Trip Duration,Start Time,Stop Time,Start Station ID,Start Station Name,Start Station Latitude,"
        "Start Station Longitude,End Station ID,End Station Name,End Station Latitude,End Station Longitude,Bike ID",
        "361,2016-10-01 00:00:10,2016-10-01 00:06:12,3203,Hamilton Park,40.72,-74.04,3277,Communipaw,40.71,-74.06,2",
    ),
    "new Citi Bike": (
        "ride_id,rideable_type,started_at,ended_at,start_station_name,start_station_id,end_station_name,"
        "end_station_id,start_lat,start_lng,end_lat,end_lng,member_casual",
        "A1,classic_bike,2023-06-01 00:00:10,2023-06-01 00:06:12,Hamilton Park,JC009,Communipaw,JC016,40.72,-74.04,"
        "40.71,-74.06,member",
    ),
    "yellow taxis": (
        "vendor_id,pickup_datetime,dropoff_datetime,pickup_longitude,pickup_latitude,dropoff_longitude,dropoff_latitude",
        "CMT,2013-01-01 15:11:48,2013-01-01 15:18:10,-74.04,40.72,-74.06,40.71",
    ),
    "green taxis": (
        "VendorID,lpep_pickup_datetime,Lpep_dropoff_datetime,Pickup_longitude,Pickup_latitude,Dropoff_longitude,"
        "Dropoff_latitude",
        "2,2015-01-01 00:34:42,2015-01-01 00:38:34,-74.04,40.72,-74.06,40.71",
    ),
    "early yellow taxis": (
        "vendor_name,Trip_Pickup_DateTime,Trip_Dropoff_DateTime,Start_Lon,Start_Lat,End_Lon,End_Lat",
        "VTS,2009-01-04 02:52:00,2009-01-04 03:02:00,-74.04,40.72,-74.06,40.71",
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_bike_share_and_taxis_need_no_column_options(tmp_path: Path, layout: str) -> None:
    header, row = LAYOUTS[layout]
    (tmp_path / "trips.csv").write_text(f"{header}\n{row}\n")
    trips = read_trips(tmp_path / "trips.csv")
    (trip,) = trips.table.to_pylist()
    assert [trip[name] for name in ("start_lat", "start_lon", "end_lat", "end_lon")] == [40.72, -74.04, 40.71, -74.06]
    assert trip["start_time"] < trip["end_time"]


def porto(tmp_path: Path, *rows: tuple[str, str]) -> Path:
    path = tmp_path / "train.csv"
    lines = [
        f'"{number}","C","","","2000{number % 3}","{1372636858 + number}","A","{missing}","{track}"'
        for number, (missing, track) in enumerate(rows)
    ]
    path.write_text("\n".join([",".join(f'"{name}"' for name in PORTO.split(",")), *lines]) + "\n")
    return path


def test_a_porto_track_becomes_its_two_ends(tmp_path: Path) -> None:
    trips = read_trips(porto(tmp_path, ("False", TRACK)))
    (trip,) = trips.table.to_pylist()
    assert (trip["start_lon"], trip["start_lat"]) == (-8.618643, 41.141412)
    assert (trip["end_lon"], trip["end_lat"]) == (-8.620326, 41.14251)
    assert str(trip["start_time"]) == "2013-07-01 00:00:58"
    assert (trip["end_time"] - trip["start_time"]).total_seconds() == 30
    assert "persons" in trips.contributors


def test_bad_porto_tracks_are_counted(tmp_path: Path) -> None:
    path = porto(
        tmp_path,
        ("False", TRACK),
        ("True", TRACK),
        ("False", "[]"),
        ("False", "[[-8.618643,41.141412]]"),
        ("False", TRACK[:-1]),
        ("False", TRACK[:-8]),
        ("False", "[[-8.618643,north],[-8.62,41.1]]"),
        ("False", ""),
    )
    trips = read_trips(path)
    rejected = {reason: part.rows for reason, part in trips.source.rejected.items()}
    assert len(trips) == 1
    assert rejected == {
        "with MISSING_DATA, whose track has holes": 1,
        "with an unclosed POLYLINE": 2,
        "with fewer than two points in POLYLINE": 3,
        "with coordinates that are not numbers": 1,
    }


def test_porto_through_the_command_with_a_filter_on_its_own_columns(tmp_path: Path) -> None:
    path = porto(tmp_path, *[("False", TRACK)] * 30)
    options = ("--where", 'TAXI_ID != "20002"', "--k", 5, "--protect", "participants")
    done = odkanon("anonymize", path, "-o", tmp_path / "out", *options)
    assert done.returncode == 0, done.stderr
    assert "rejected 10 rows not matched by the filter" in output(done)


def test_taxi_zones_come_with_a_lookup_table(tmp_path: Path) -> None:
    rows = "\n".join("2023-01-01 00:32:10,2023-01-01 00:40:36,161,141" for _ in range(20))
    (tmp_path / "t.csv").write_text(f"tpep_pickup_datetime,tpep_dropoff_datetime,PULocationID,DOLocationID\n{rows}\n")
    without = odkanon("anonymize", tmp_path / "t.csv", "-o", tmp_path / "out")
    assert without.returncode == 2
    assert "--hierarchy" in output(without)
    (tmp_path / "zones.csv").write_text("LocationID,Borough\n161,Manhattan\n141,Manhattan\n7,Queens\n")
    done = odkanon("anonymize", tmp_path / "t.csv", "-o", tmp_path / "out", "--hierarchy", tmp_path / "zones.csv")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "classes.csv").read_text().splitlines()[1] == "161,141,20,false"


def test_coordinates_in_another_reference_system(tmp_path: Path) -> None:
    """UTM 19S of a point in Santiago; the last two rows lie nowhere on earth."""
    x, y = pyproj.Proj("EPSG:32719")(-70.6693, -33.4489)
    columns = {"ox": [x, x, 1e12, np.nan], "oy": [y, y, 1e12, y], "dx": [x + 1000] * 4, "dy": [y] * 4}
    names = {"start_lon": "ox", "start_lat": "oy", "end_lon": "dx", "end_lat": "dy"}
    trips = read_trips(pa.table(columns), columns=names, crs="EPSG:32719")
    assert len(trips) == 2
    start = [trips.table.column(name)[0].as_py() for name in ("start_lat", "start_lon")]
    assert start == pytest.approx([-33.4489, -70.6693], abs=1e-7)
    assert [part.rows for part in trips.source.rejected.values()] == [1, 1]
    assert "that EPSG:32719 cannot place on the globe" in trips.source.rejected
    with pytest.raises(InputError, match="unknown reference system 'EPSG:1'"):
        read_trips(pa.table(columns), columns=names, crs="EPSG:1")


def test_metres_without_a_reference_system_get_a_hint(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("start_lat,start_lon,end_lat,end_lon\n6298352,346847,6298352,347847\n")
    done = odkanon("anonymize", tmp_path / "t.csv", "-o", tmp_path / "out")
    assert done.returncode == 2
    assert "--crs" in output(done)
    told = odkanon("anonymize", tmp_path / "t.csv", "-o", tmp_path / "out", "--crs", "EPSG:32719", "--k", 1)
    assert told.returncode == 0, told.stderr
