"""The numbers of the card against the trips behind them: none may contradict the truth, for any place and value."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from odkanon import anonymize, make_survey
from odkanon.publish.report.detail_levels import Numbers, choose_levels
from odkanon.publish.report.level_estimators import EstimatedFlows, EvenFlows, weight_variation
from odkanon.publish.save import as_saved
from odkanon.release_format.folder import SavedRelease
from odkanon.sample.survey import CENTRAL_CELLS
from odkanon.zoning.cells import cell_to_parent, latlng_to_cell, str_to_cell

CHOICES = [
    {},
    *({"mode": mode} for mode in ("walk", "car", "bike")),
    {"hour": "07-09"},
    {"mode": "car", "hour": "07-09"},
]
SLOTS = "hour:0-7,7-9,9-17,17-20,20-24"
FINEST = 9


@pytest.fixture(scope="module")
def trips() -> pa.Table:
    """The trips of the sample's centre."""
    table = make_survey()
    inside = np.ones(len(table), dtype=bool)
    for end in ("start", "end"):
        cells = ends(table, end)
        inside &= np.isin(cell_to_parent(cells, 6), str_to_cell(pa.array(CENTRAL_CELLS)))
    return table.filter(pa.array(inside))


@pytest.fixture(scope="module")
def saved(trips: pa.Table) -> SavedRelease:
    release = anonymize(trips, k=10, by=["mode", SLOTS], resolution=FINEST)
    return as_saved(release)


def ends(table: pa.Table, end: str) -> np.ndarray:
    lat, lon = (table.column(f"{end}_{side}").to_numpy() for side in ("lat", "lon"))
    return latlng_to_cell(lat, lon, FINEST)


def true_flows(
    trips: pa.Table, where: dict[str, str], places: np.ndarray, resolution: int, mass: np.ndarray | float = 1.0
) -> np.ndarray:
    if "mode" in where:
        trips = trips.filter(pc.equal(trips.column("mode"), where["mode"]))
    if "hour" in where:
        hour = pc.hour(trips.column("start_time"))
        trips = trips.filter(pc.and_(pc.greater_equal(hour, 7), pc.less(hour, 9)))
    number = []
    for end in ("start", "end"):
        cells = cell_to_parent(ends(trips, end), resolution)
        order = np.argsort(places)
        at = order[np.searchsorted(places[order], cells).clip(max=len(places) - 1)]
        number.append(np.where(places[at] == cells, at, len(places)))
    flows = np.zeros((len(places) + 1, len(places) + 1))
    np.add.at(flows, tuple(number), mass)
    return flows


def contradicted(found: Numbers, truth: np.ndarray) -> int:
    """How many of the bounds are contradicted by the truth."""
    above = (found.high >= 0) & (truth > np.round(found.high))
    return int(((truth < np.round(found.low)) | above).sum())


def test_no_number_is_contradicted_by_the_trips_and_four_of_five_intervals_hold(
    trips: pa.Table, saved: SavedRelease
) -> None:
    estimator, asked, held, compared = EstimatedFlows(saved), 0, 0, 0
    for level in choose_levels([saved], None)[:3]:
        assert level.cells is not None
        for where in CHOICES:
            truth = true_flows(trips, where, level.cells, int(level.name))
            flows = estimator.flows(level, where)
            pairs = truth[flows.origin, flows.destination]
            sides = [
                (flows.pairs, pairs),
                (flows.starts, truth[:-1].sum(axis=1)),
                (flows.ends, truth[:, :-1].sum(axis=0)),
            ]
            for found, true in [*sides, (flows.total, np.array([truth.sum()]))]:
                assert contradicted(found, true) == 0, (level.name, where)
                assert (found.low <= found.interval_low).all()
                assert (found.interval_low <= found.trips + 1).all()
                assert (found.trips <= found.interval_high + 1).all()
                asked += len(true)
            held += int(((flows.pairs.interval_low <= pairs) & (pairs <= flows.pairs.interval_high)).sum())
            compared += len(pairs)
    assert asked > 200 * len(CHOICES)
    assert 0.7 <= held / compared <= 0.95


def test_the_card_of_a_place_has_the_interval_that_the_estimate_has(saved: SavedRelease) -> None:
    """All rows to a place count as one where any origin counts, on the page as elsewhere."""
    level = choose_levels([saved], None)[1]
    found = EstimatedFlows(saved).flows(level, {}).ends
    at = int(np.argmax(found.interval_high - found.interval_low))
    asked = saved.estimate(origin="anywhere", destination=level.ids[at]).table.to_pylist()[0]
    assert (found.interval_low[at], found.interval_high[at]) == (asked["interval_low"], asked["interval_high"])


def test_what_is_rare_is_not_taken_to_be_as_rare_as_where_it_is_stated(trips: pa.Table, saved: SavedRelease) -> None:
    """Rows that keep the hour lean to the peak: their shares alone would be wrong for the early morning."""
    level = choose_levels([saved], None)[0]
    early = int(pc.sum(pc.less(pc.hour(trips.column("start_time")), 7)).as_py())
    found = EstimatedFlows(saved).flows(level, {"hour": "00-07"}).total
    column, mass = np.array(saved.table.column("hour").to_pylist()), saved.measure("trips")
    by_shares = mass.sum() * mass[column == "00-07"].sum() / mass[column != "any"].sum()
    assert abs(float(found.trips[0]) - early) < abs(by_shares - early)
    assert contradicted(found, np.array([early])) == 0


def test_four_of_five_intervals_of_weights_hold(trips: pa.Table, saved: SavedRelease) -> None:
    assert weight_variation(saved) is not None
    weights = trips.column("weight").to_numpy()
    for estimator in (EstimatedFlows(saved), EvenFlows(saved)):
        held = compared = 0
        for level in choose_levels([saved], None)[:2]:
            assert level.cells is not None
            flows = estimator.flows(level, {})
            assert flows.total.weight is not None
            assert flows.total.weight[0] == pytest.approx(weights.sum(), rel=0.02)
            truth = true_flows(trips, {}, level.cells, int(level.name), weights)
            for found, true in (
                (flows.pairs, truth[flows.origin, flows.destination]),
                (flows.starts, truth[:-1].sum(axis=1)),
                (flows.ends, truth[:, :-1].sum(axis=0)),
            ):
                assert found.weight is not None
                assert found.weight_low is not None
                assert found.weight_high is not None
                assert (found.weight_low <= found.weight).all()
                assert (found.weight <= found.weight_high).all()
                large = found.trips >= 5
                held += int(((found.weight_low <= true) & (true <= found.weight_high))[large].sum())
                compared += int(large.sum())
        if isinstance(estimator, EstimatedFlows):
            assert 0.7 <= held / compared <= 0.97
