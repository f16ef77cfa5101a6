"""The synthetic survey behind ``odkanon demo``, generated person by person from public facts.

The paper's survey (NetMob25) may not be redistributed, and a demonstration needs data of its shape. The towns, shares
and habits in `odkanon.sample.survey_model` are rough public knowledge about Île-de-France, calibrated on the totals in
the paper. No row describes a real person, and no conclusion about the region holds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from odkanon.read.area import PARIS_CENTRE
from odkanon.sample import survey_model as tables

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
PlaneArray = npt.NDArray[np.complex128]

CENTRAL_CELLS: tuple[str, ...] = PARIS_CENTRE
"""The five H3 cells of resolution 6 in central Paris to which the paper restricts its experiments."""

_PERSONS, _TRIPS, _DAYS = 3_320, 81_291, 7
_POPULATION, _MEAN_TRIP_WEIGHT = 9_001_164, 2_674.16
_MONDAY = np.datetime64("2022-11-14T00:00:00", "s")

# Positions are complex numbers, east + 1j * north in km from Notre-Dame: one array holds both coordinates, and abs() is
# a distance.
_LAT, _LON = 48.853, 2.3499
_KM_NORTH, _KM_EAST = 111.2, 73.2

_ATTRIBUTES = 1_000_003
_STATIONS, _CENTRES = 420, 14  # places shared by strangers; the first few stations attract people from afar
_FIRST_FIX_KM = 0.015  # maximum distance travelled in the centre before the first GNSS fix
_SHORTEST_STAY = 240  # seconds; a gap of up to 180 would not have ended the trip


class _Draws:
    """Random draws made from uniform numbers only: numpy may change its other distributions between releases."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.Generator(np.random.PCG64(seed))

    def uniform(self, *shape: int) -> FloatArray:
        return self._rng.random(shape)

    def scatter(self, *shape: int) -> PlaneArray:
        """Draw from the standard bivariate normal distribution (Box-Muller)."""
        radius = np.sqrt(-2 * np.log(1 - self.uniform(*shape)))
        return np.asarray(radius * np.exp(2j * np.pi * self.uniform(*shape)))

    def pick(self, shares: npt.NDArray[np.generic], rows: IntArray) -> IntArray:
        """Draw a column for each entry of ``rows``, with the shares of that row."""
        edges = np.cumsum(shares, axis=1, dtype=np.float64)
        level = self.uniform(len(rows)) * edges[rows, -1]
        return np.asarray((level[:, None] >= edges[rows]).sum(axis=1))

    def place(self, shares: npt.NDArray[np.generic], rows: IntArray) -> PlaneArray:
        """Draw a point in the region for each entry of ``rows``, with that row's shares of the places."""
        chosen = self.pick(shares, rows)
        east = (tables.PLACES["lon"][chosen] - _LON) * _KM_EAST
        north = (tables.PLACES["lat"][chosen] - _LAT) * _KM_NORTH
        return _fold(east + 1j * north + tables.PLACES["spread"][chosen] * self.scatter(len(rows)))


def _fold(points: PlaneArray) -> PlaneArray:
    """Fold points outside the region back inside; the region is an ellipse with unequal halves."""
    east = points.real / np.where(points.real > 0, 86.0, 64.0)
    north = points.imag / np.where(points.imag > 0, 40.0, 78.0)
    return np.asarray(points / np.maximum(1.0, east**2 + north**2))


def _apportion(shares: FloatArray, total: int) -> IntArray:
    """Split a total into whole parts in proportion to the shares, with an exact sum."""
    edges = np.cumsum(shares)
    return np.asarray(np.diff(np.rint(edges / edges[-1] * total).astype(np.int64), prepend=0))


class _Persons(NamedTuple):
    category: IntArray
    band: IntArray
    age: IntArray
    woman: npt.NDArray[np.bool_]
    home: PlaneArray


class _Stops(NamedTuple):
    """The trips in order: person, person-day and anchor of each; ``working`` is by person-day."""

    person: IntArray
    day: IntArray
    column: IntArray
    working: npt.NDArray[np.bool_]
    first: npt.NDArray[np.bool_]
    last: npt.NDArray[np.bool_]


def _draw_persons(draws: _Draws) -> _Persons:
    quota = _apportion(tables.CATEGORIES["share"], _PERSONS)
    shuffled = np.argsort(draws.uniform(_PERSONS), kind="stable")
    category = np.repeat(np.arange(len(quota)), quota)[shuffled]
    band = draws.pick(tables.CATEGORIES["ages"], category)
    width = np.diff(tables.AGE_BANDS)[band]
    age = tables.AGE_BANDS[band] + (draws.uniform(_PERSONS) * width).astype(np.int64)
    woman = draws.uniform(_PERSONS) < tables.CATEGORIES["women"][category]
    homes = np.tile(tables.PLACES["homes"], (len(quota), 1))
    homes[:, : tables.CENTRAL_PLACES] *= tables.CATEGORIES["pull"][:, None]
    return _Persons(category, band, age, woman, draws.place(homes, category))


def _stretch(points: PlaneArray) -> FloatArray:
    """Return by how much distances grow away from the centre, where people drive and park instead of walking."""
    return np.asarray(1 + np.clip((np.abs(points) - 5.0) / 3.5, 0.0, 6.0))


def _choose_near(draws: _Draws, home: PlaneArray, options: PlaneArray) -> PlaneArray:
    """Choose one option per person, with a preference for near ones."""
    persons = np.arange(len(home))
    chosen = draws.pick(np.exp(-np.abs(options - home[:, None]) / 9.0) + 1e-9, persons)
    return np.broadcast_to(options, (len(home), options.shape[1]))[persons, chosen]


def _draw_anchors(draws: _Draws, home: PlaneArray) -> PlaneArray:
    """Return the anchor places of each person, some shared with strangers, most not."""
    jobs = tables.PLACES["jobs"][None, :]
    anywhere = draws.place(jobs, np.zeros(_PERSONS * 16, dtype=np.int64)).reshape(_PERSONS, 16)
    work, outing = _choose_near(draws, home, anywhere[:, :8]), _choose_near(draws, home, anywhere[:, 8:])
    stations = draws.place(jobs, np.zeros(_STATIONS, dtype=np.int64))
    centre = _choose_near(draws, home, stations[None, :_CENTRES])
    near = [stations[np.argmin(np.abs(p[:, None] - stations), axis=1)] for p in (home, work)]
    around = [p + 0.7 * _stretch(p) * draws.scatter(_PERSONS) for p in (home, work)]
    return _fold(np.stack([home, work, *near, centre, *around, outing, home, work], axis=1))


def _draw_stops(draws: _Draws, people: _Persons) -> _Stops:
    # At least two trips, so that a day can end at home.
    eagerness = 2.2 + 1.9 * np.minimum(-np.log(1 - draws.uniform(_PERSONS, _DAYS)), 4.0)
    stays_in = draws.uniform(_PERSONS, _DAYS) < 0.1
    stays_in[:, 1] = False  # everyone in the survey goes out at least once
    trips = _apportion(np.where(stays_in, 0.0, eagerness).ravel(), _TRIPS)
    day = np.repeat(np.arange(_PERSONS * _DAYS), trips)
    person = day // _DAYS
    first, last = np.diff(day, prepend=-1) > 0, np.diff(day, append=-1) != 0
    commute = tables.CATEGORIES["commute"][people.category]
    working = (draws.uniform(_PERSONS, _DAYS) < commute[:, None]) & (np.arange(_DAYS) < 5)
    column = draws.pick(tables.ANCHOR_SHARES, 2 * (~working).ravel()[day] + ~first)
    column[last & (draws.uniform(_TRIPS) < 0.95)] = tables.HOME
    # Nobody travels from an anchor to itself; the habit that replaces it may itself be repeated.
    for spare in (tables.HABIT, tables.ERRAND):
        twice = (column[:-1] == column[1:]) & (person[:-1] == person[1:]) & (column[:-1] < tables.ERRAND)
        column[:-1][twice] = spare
    return _Stops(person, day, column, working.ravel(), first, last)


def _draw_ends(draws: _Draws, stops: _Stops, anchors: PlaneArray) -> tuple[PlaneArray, PlaneArray]:
    """Return both ends of every trip: it ends near its anchor, and the next one begins near that end."""
    anchor = anchors[stops.person, stops.column]
    ends = _fold(anchor + tables.SCATTER_KM[stops.column] * _stretch(anchor) * draws.scatter(_TRIPS))
    previous = np.roll(ends, 1)
    newcomer = np.diff(stops.person, prepend=-1) > 0
    previous[newcomer] = anchors[stops.person[newcomer], tables.HOME]
    lag = np.sqrt(draws.uniform(_TRIPS)) * np.exp(2j * np.pi * draws.uniform(_TRIPS))
    return previous + _FIRST_FIX_KM * _stretch(previous) * lag, ends


def _draw_times(draws: _Draws, stops: _Stops, km: FloatArray) -> tuple[IntArray, IntArray]:
    """Return departures, spread over waking hours, and arrivals, in seconds since Monday."""
    speed = 4.5 * (1 + km) ** 0.55 * (0.75 + 0.6 * draws.uniform(_TRIPS))
    moving = 60 + np.rint(3600 * km / speed)
    days, latest = _PERSONS * _DAYS, 24 * 3600 - 1
    busy = np.bincount(stops.day, moving + _SHORTEST_STAY, minlength=days)
    normal = draws.scatter(days)
    start = np.where(stops.working, 8.0 + normal.real, 10.5 + 2.0 * normal.real)
    start = np.minimum(3600 * np.clip(start, 5.0, 15.0), latest - busy)
    free = np.where(stops.working, 11.0 + 1.5 * normal.imag, 7.5 + 2.5 * normal.imag)
    free = np.maximum(np.minimum(3600 * free, latest - start) - busy, 0.0)
    pause = np.where(stops.last, 0.0, -np.log(1 - draws.uniform(_TRIPS)) * tables.PAUSE[stops.column])
    share = pause / np.maximum(np.bincount(stops.day, pause, minlength=days), 1e-9)[stops.day]
    step = moving + _SHORTEST_STAY + np.floor(share * free[stops.day])
    before = np.cumsum(step) - step
    before -= before[stops.first][np.cumsum(stops.first) - 1]
    departure = (86_400 * (stops.day % _DAYS) + np.floor(start[stops.day]) + before).astype(np.int64)
    return departure, departure + moving.astype(np.int64)


def _draw_weights(draws: _Draws, people: _Persons, trips: IntArray) -> FloatArray:
    """Draw skewed weights, calibrated on the population and on the mean trip weight."""
    skew = np.exp(0.55 * np.clip(draws.scatter(_PERSONS).real, -2.0, 2.0))
    base = skew * tables.CATEGORIES["weight"][people.category] * tables.AGE_WEIGHT[people.band]
    base *= np.where(people.woman, tables.WOMAN_WEIGHT, 1.0)
    moment = [float((base * trips**power).sum()) for power in range(3)]
    weighted_trips = _MEAN_TRIP_WEIGHT * _TRIPS
    constant = _POPULATION * moment[2] - weighted_trips * moment[1]
    slope = weighted_trips * moment[0] - _POPULATION * moment[1]
    return _apportion(base * (constant + slope * trips), _POPULATION * 10**6) / 1e6


def _draw_purposes(draws: _Draws, people: _Persons, stops: _Stops) -> IntArray:
    purpose = draws.pick(tables.PURPOSE_SHARES, stops.column)
    at_school = draws.uniform(_TRIPS) < tables.AT_SCHOOL
    student = people.category[stops.person] == tables.STUDENTS
    return np.where((purpose == tables.WORK) & student & at_school, tables.WORK + 1, purpose)


def _draw_modes(draws: _Draws, start: PlaneArray, end: PlaneArray) -> IntArray:
    longer = np.searchsorted(tables.MODE_KM, np.abs(end - start))
    outside = np.maximum(np.abs(start), np.abs(end)) > tables.CENTRE_KM
    return draws.pick(tables.MODE_SHARES, longer + (len(tables.MODE_KM) + 1) * outside)


def _degrees(points: PlaneArray) -> tuple[FloatArray, FloatArray]:
    return np.round(_LAT + points.imag / _KM_NORTH, 6), np.round(_LON + points.real / _KM_EAST, 6)


def make_survey(seed: int = 2025) -> pa.Table:
    """Generate a week of synthetic trips in Île-de-France, with the totals of the paper's Table 1.

    The table has 3,320 participants and 81,291 trips, and represents 9,001,164 people; the trips inside `CENTRAL_CELLS`
    and their OD pairs are about as many as in the paper. Use it to try out the program and to measure its speed, not
    for transport planning or to reproduce the paper's findings.

    Parameters
    ----------
    seed : int, default 2025
        The seed, a whole number from 0; equal seeds give equal tables.

    Returns
    -------
    pyarrow.Table
        One row per trip, sorted by person and time, without nulls: ``person``; ``start_time`` and ``end_time`` (local);
        ``start_lat``, ``start_lon``, ``end_lat`` and ``end_lon`` (degrees); ``weight``, ``sex``, ``age`` and
        ``category`` of the person; ``mode`` and ``purpose`` of the trip. A trip begins within 110 m of the end of the
        person's previous one, the time to first fix.

    Examples
    --------
    >>> make_survey().num_rows
    81291
    """
    draws = _Draws(seed)
    people = _draw_persons(draws)
    stops = _draw_stops(draws, people)
    start, end = _draw_ends(draws, stops, _draw_anchors(draws, people.home))
    departure, arrival = _draw_times(draws, stops, np.abs(end - start))
    weight = _draw_weights(draws, people, np.bincount(stops.person, minlength=_PERSONS))
    (start_lat, start_lon), (end_lat, end_lon) = _degrees(start), _degrees(end)
    # With a separate generator, so that the other columns do not depend on modes and purposes.
    attributes = _Draws(seed + _ATTRIBUTES)
    purpose, mode = _draw_purposes(attributes, people, stops), _draw_modes(attributes, start, end)
    owner = stops.person
    # Ids such as 10_2978, whose alphabetical order is their numerical order.
    number = np.arange(_PERSONS)
    wave, ticket = (10 + number // 415).astype(str), (1000 + 2 * number).astype(str)
    ids = pa.array(np.char.add(np.char.add(wave, "_"), ticket))
    return pa.table(
        {
            "person": ids.take(pa.array(owner)),
            "start_time": _MONDAY + departure,
            "end_time": _MONDAY + arrival,
            "start_lat": start_lat,
            "start_lon": start_lon,
            "end_lat": end_lat,
            "end_lon": end_lon,
            "weight": weight[owner],
            "sex": pa.array(["Man", "Woman"]).take(pa.array(people.woman[owner].astype(np.int8))),
            "age": people.age[owner].astype(np.int16),
            "category": pa.array(tables.CATEGORIES["name"]).take(pa.array(people.category[owner])),
            "mode": pa.array(tables.MODES).take(pa.array(mode)),
            "purpose": pa.array(tables.PURPOSES).take(pa.array(purpose)),
        }
    )
