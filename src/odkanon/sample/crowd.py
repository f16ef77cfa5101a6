"""Synthetic trips in any number, generated batch by batch from a seed, for measuring speed and memory.

People live, work and go out around the places of `odkanon.sample.survey`, mostly near home and repeatedly: the numbers
of OD pairs and of persons per pair are realistic, nothing else is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet

from odkanon.errors import InvalidValueError, TargetExistsError
from odkanon.release_format.targets import OutputFolder
from odkanon.sample import survey_model as tables

BATCH = 1_000_000  # trips per batch; each batch has its own generator, so that it does not depend on the others

_FILE = 10_000_000
_TRIPS_PER_PERSON = 20
_DAYS = 7
_MONDAY = np.datetime64("2022-11-14T00:00:00", "s")
_KM_NORTH, _KM_EAST = 111.2, 73.2
_ANCHORS = 4

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def write_crowd(trips: int, folder: Path, *, seed: int = 2025, progress: Callable[[str], None] | None = None) -> Path:
    """Write synthetic trips as a dataset of Parquet files, with one batch in memory at a time.

    * ``trips``: the number of trips, in [1, inf).
    * ``folder``: a new folder; files are written to ``part=0``, ``part=1``, ... in it. If writing fails, there is none.
    * ``seed``: the seed, a whole number from 0; equal seeds give equal files.
    * ``progress``: called with a text after each batch.
    """
    if trips < 1:
        raise InvalidValueError.expected("the number of trips", "1 or more", trips)
    batches, done = crowd(trips, seed=seed), 0
    with OutputFolder(folder, _never_replaced, sync=False).replaced() as partial:
        for part in range(-(-trips // _FILE)):
            path = partial / f"part={part}" / "trips.parquet"
            path.parent.mkdir()
            with pyarrow.parquet.ParquetWriter(path, SCHEMA) as writer:
                for _ in range(-(-min(_FILE, trips - part * _FILE) // BATCH)):
                    batch = next(batches)
                    writer.write_batch(batch)
                    done += len(batch)
                    if progress is not None:
                        progress(f"writing trips: {done:,} of {trips:,}")
    return folder


def _never_replaced(folder: Path) -> None:
    raise TargetExistsError.at(folder, advice="choose another folder")


def crowd(trips: int, *, seed: int = 2025) -> Iterator[pa.RecordBatch]:
    """Yield synthetic trips in batches of a million, ordered by person."""
    for number in range(-(-trips // BATCH)):
        yield _batch(number, min(BATCH, trips - number * BATCH), seed)


SCHEMA = pa.schema(
    {"person": pa.int64()}
    | dict.fromkeys(("start_time", "end_time"), pa.timestamp("s"))
    | dict.fromkeys(("start_lat", "start_lon", "end_lat", "end_lon", "weight"), pa.float64())
)


def _batch(number: int, count: int, seed: int) -> pa.RecordBatch:
    random = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, number])))
    people = -(-BATCH // _TRIPS_PER_PERSON)
    anchors = _anchors(random, people)
    weight = np.round(np.exp(0.5 * np.clip(_scatter(random, people).real, -3, 3)), 3)
    person = (np.arange(count) // _TRIPS_PER_PERSON).astype(np.int64)
    # Every other trip goes home, the others to work, a habit or an outing; each starts where the last one ended.
    turn = np.arange(count) % _TRIPS_PER_PERSON
    choice = 1 + np.minimum((random.random(count) ** 1.5 * 3).astype(np.int64), 2)
    to = np.where(turn % 2 == 1, 0, choice)
    start = np.where(turn == 0, 0, np.roll(to, 1))
    ends = [anchors[which, person] for which in (start, to)]
    scatter = 0.03 + 2.0 * (random.random((2, count)) < 0.15) * random.random((2, count))
    ends = [end + radius * _scatter(random, count) for end, radius in zip(ends, scatter, strict=True)]
    (start_lat, start_lon), (end_lat, end_lon) = (_degrees(end) for end in ends)
    departure, duration = _times(random, turn, np.abs(ends[1] - ends[0]))
    ids, times = number * people + person, [_MONDAY + departure, _MONDAY + departure + duration]
    columns = [ids, *times, start_lat, start_lon, end_lat, end_lon, weight[person]]
    return pa.record_batch([pa.array(column) for column in columns], schema=SCHEMA)


def _anchors(random: np.random.Generator, people: int) -> npt.NDArray[np.complex128]:
    """Return home, work, habit and outing of each person, as km east + 1j * km north of the centre."""
    home = _places(random, "homes", people)
    work = _places(random, "jobs", people)
    # Half of the people work near home; the others cross the region.
    work = np.where(random.random(people) < 0.5, home + 4.0 * _scatter(random, people), work)
    habit = home + 1.2 * _scatter(random, people)
    outing = np.where(random.random(people) < 0.5, _places(random, "jobs", people), home + 6 * _scatter(random, people))
    return np.stack([home, work, habit, outing])


def _places(random: np.random.Generator, column: str, count: int) -> npt.NDArray[np.complex128]:
    edges = np.cumsum(tables.PLACES[column])
    chosen = np.searchsorted(edges, random.random(count) * edges[-1], side="right")
    east = (tables.PLACES["lon"][chosen] - 2.35) * _KM_EAST
    north = (tables.PLACES["lat"][chosen] - 48.853) * _KM_NORTH
    return np.asarray(east + 1j * north + tables.PLACES["spread"][chosen] * _scatter(random, count))


def _scatter(random: np.random.Generator, count: int) -> npt.NDArray[np.complex128]:
    radius = np.sqrt(-2 * np.log(1 - random.random(count)))
    return np.asarray(radius * np.exp(2j * np.pi * random.random(count)))


def _times(random: np.random.Generator, turn: Ints, km: Floats) -> tuple[Ints, Ints]:
    """Return departures, spread over a week, and durations, in seconds."""
    slot = 86_400 * _DAYS // _TRIPS_PER_PERSON
    departure = turn * slot + (random.random(len(turn)) * slot * 0.5).astype(np.int64)
    return departure, 60 + np.rint(150 * np.minimum(km, 80.0)).astype(np.int64)


def _degrees(points: npt.NDArray[np.complex128]) -> tuple[Floats, Floats]:
    return np.round(48.853 + points.imag / _KM_NORTH, 6), np.round(2.35 + points.real / _KM_EAST, 6)
