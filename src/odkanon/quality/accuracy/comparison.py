"""Flows and trip lengths of a release beside those of its input, on the same places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from odkanon.core.arrays import Bools, Codes, Ints, group_sum, number_groups
from odkanon.engine.dispatch import open_workspace
from odkanon.engine.protocols import Engine
from odkanon.engine.sql.backend import upload_columns
from odkanon.engine.sql.engine import int_column, join_maps, sum_bigint
from odkanon.engine.sql.matrix import SqlMatrix
from odkanon.estimate.flow_model import FEWER_KM
from odkanon.model.flows import Flows
from odkanon.model.measures import BY_CONTRIBUTOR, exact_masses
from odkanon.model.od import Matrix
from odkanon.quality.accuracy.even_spread import RowMasses, spread_at
from odkanon.quality.accuracy.row_masses import stack_masses
from odkanon.quality.accuracy.squares import MapZones, Shares, Squares, rank_numbers
from odkanon.quality.accuracy.zone_samples import Pair, ZoneBoxes, ZonePoints
from odkanon.zoning.cells import Floats
from odkanon.zoning.hierarchy import Cut, Hierarchy

LARGE, NEAR = 20, 0.25
"""A flow is large from this many trips; it is near the truth if its relative error is below this share."""
LENGTH_STEP = 10
"""Metres to which lengths are rounded down, so that engines agree on every digit."""
LENGTHS = (0, 0.5, 1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512)
"""Lower bounds of the bands of trip lengths, in km."""
_MOST_TRIPS = 1_000_000
"""Trips up to which contributors are counted by flow, on every engine."""
_MOST_PAIRS = 1 << 19
"""Pairs of squares up to which the gravity model is computed."""
_ROUNDS = 15
"""Rounds of balancing the gravity model (Furness 1965)."""
_GOLDEN = 1.1673039782614187
"""The real root of x**5 = x + 1, whose powers fill four dimensions evenly."""


@dataclass(frozen=True)
class FlowAccuracy:
    """Accuracy of the flows between places."""

    name: str
    """The places: ``2 km`` for squares of that side."""
    km: float | None
    """Side of the squares; None for the user's own places."""
    cpc: float
    """Common part of commuters, ``2 sum min(T, M) / (sum T + sum M)``, from 0 (no trip in its place) to 1."""
    inside_before: float
    inside_after: float | None
    """Share of the mass that stays inside its place, in the input and in the release."""
    large_near: float | None
    """Share of the mass in flows of at least 20 trips whose error is below 25 %; None if there are no such flows."""
    estimated: float | None = None
    """The CPC of flows as `odkanon.SavedRelease.estimate` finds them; None where nothing was estimated."""
    floor: float | None = None
    """The CPC of a gravity model that has the exact totals of all places and distances, but no flow; None if places
    are too many, or no squares."""
    ceiling: float | None = None
    """The expected CPC of one half of the households (persons, trips) against the other: the input is a sample, too.
    None for more than a million trips of known contributors."""

    @property
    def right(self) -> float:
        """The CPC of the estimate, or of rows that are spread evenly where there is none."""
        return self.cpc if self.estimated is None else self.estimated

    @property
    def context(self) -> str:
        """The accuracy to compare with, in parentheses after a space; empty if unknown."""
        limits = {"totals and distances alone": self.floor, "half of the input for the other half": self.ceiling}
        known = [f"{title}: {limit:.0%}" for title, limit in limits.items() if limit is not None]
        return f" ({'; '.join(known)})" if known else ""


@dataclass(frozen=True, eq=False)
class LeafPoints:
    """The leaves of both axes on a map, in whole metres, so that engines agree on every digit."""

    origin: tuple[Floats, Floats]
    destination: tuple[Floats, Floats]


def locate_leaves(places: MapZones, leaves: LeafPoints) -> tuple[Ints, Ints]:
    """Return for each leaf of both axes the number of its place."""
    return places.locate(*leaves.origin), places.locate(*leaves.destination)


@dataclass(frozen=True, eq=False)
class TrueFlows:
    """Flows of the input between places, sorted by origin and destination."""

    places: tuple[Ints, Ints]
    """Numbers of the places of both axes, sorted."""
    origin: Codes
    destination: Codes
    """For each flow, the indices of its places."""
    mass: Floats
    """Mass in each measure, of shape (flows, measures)."""
    contributors: Floats | None = None
    """The effective number of households of each flow, or of persons or trips if the input does not name them."""

    @property
    def stays(self) -> Bools:
        """Whether each flow stays in its place."""
        found: Bools = self.places[0][self.origin] == self.places[1][self.destination]
        return found


def count_flows(
    matrix: Matrix, places: tuple[Ints, Ints], measures: tuple[str, ...], engine: Engine | None = None
) -> tuple[TrueFlows, Engine]:
    """Return the flows of the input between places, and the engine over them.

    * ``places``: for each leaf of both axes, the number of its place.
    * ``engine``: over smaller places inside these; by default, over the pairs.
    """
    unit = next((name for name in ("households", "persons") if name in matrix.summary.measures), "trips")
    if engine is None:
        few = matrix.summary.trips <= _MOST_TRIPS
        counted = {unit, BY_CONTRIBUTOR} if few and unit != "trips" else set()
        engine = open_workspace(matrix.in_memory() if counted else matrix).engine(frozenset({*measures, *counted}))
    known = [np.unique(place) for place in places]
    cuts = [
        _cut(tree, np.searchsorted(numbers, place))
        for tree, numbers, place in zip((matrix.origins, matrix.destinations), known, places, strict=True)
    ]
    coarser = engine.coarsen(*cuts)
    flows = coarser.flows
    mass = stack_masses({name: exact_masses(flows, name) for name in measures}, flows.scale)
    many = flows.trips.astype(np.float64) if unit == "trips" else None
    if unit in flows.contributions:  # one with several trips of a flow counts as fewer than those with one each
        own = flows.contributions[unit]
        many = flows.trips**2 / np.bincount(own.flow, own.masses["trips"].astype(np.float64) ** 2, len(flows))
    return TrueFlows((known[0], known[1]), flows.origin, flows.destination, mass, many), coarser


def _cut(tree: Hierarchy, number: Ints) -> Cut:
    """Return numbered places as zones of a cut; an engine uses nothing but these numbers."""
    _, first = np.unique(number, return_index=True)
    return Cut(tree, np.zeros(len(first), dtype=np.int8), first, number.astype(np.int32))


@dataclass(frozen=True, eq=False)
class FlowComparison:
    """Flows of the input between places, with the estimates from the release."""

    truth: TrueFlows
    """The input."""
    estimate: Floats
    """The release, of shape (flows, measures), for the same flows; it may have others in addition."""
    inside: Floats
    """Mass that stays inside its place in the release, in each measure."""


def compare_flows(
    places: MapZones, truth: TrueFlows, rows: RowMasses, areas: Pair[ZonePoints | ZoneBoxes]
) -> FlowComparison:
    """Spread a release over the places between which the input has flows."""
    shares = [area.shares(places) for area in areas]
    rank, rank_to, *of_shares = rank_numbers(*truth.places, *(share.place for share in shares))
    origins, destinations = (
        Shares(share.zone, place, share.share, share.zones) for share, place in zip(shares, of_shares, strict=True)
    )
    estimate = spread_at(rows, origins, destinations, (rank[truth.origin], rank_to[truth.destination]))
    both = np.intersect1d(origins.place, destinations.place)
    near = rows.take(np.flatnonzero(_may_meet(rows, origins, destinations)))
    inside = spread_at(near, origins, destinations, (both, both)).sum(axis=0)
    return FlowComparison(truth, estimate, inside)


def _may_meet(rows: RowMasses, origins: Shares, destinations: Shares) -> Bools:
    """Return for each row whether its zones may have a place in common."""
    (low, high), (low_to, high_to) = (_range(share) for share in (origins, destinations))
    result: Bools = (low[rows.origin] <= high_to[rows.destination]) & (low_to[rows.destination] <= high[rows.origin])
    return result


def _range(shares: Shares) -> tuple[Ints, Ints]:
    low, high = np.full(shares.zones, np.iinfo(np.int64).max), np.full(shares.zones, -1)
    np.minimum.at(low, shares.zone, shares.place)
    np.maximum.at(high, shares.zone, shares.place)
    return low, high


def measure_flows(places: MapZones, km: float | None, found: FlowComparison, rows: RowMasses) -> list[FlowAccuracy]:
    """Return the accuracy of flows between places in each measure, of which trips are the first."""
    truth = found.truth
    large = truth.mass[:, 0] >= LARGE
    stays = truth.stays
    results = []
    for index in range(rows.mass.shape[1]):
        before, after = truth.mass[:, index], found.estimate[:, index]
        whole, published = float(before.sum()), float(rows.mass[:, index].sum())
        near = large & (np.abs(after - before) < NEAR * before)
        of_large = float(before[large].sum())
        results.append(
            FlowAccuracy(
                places.name,
                km,
                2 * float(np.minimum(before, after).sum()) / (whole + published),
                float(before[stays].sum()) / whole,
                float(found.inside[index]) / published if published else None,
                float(before[near].sum()) / of_large if of_large else None,
            )
        )
    return results


def with_limits(places: MapZones, truth: TrueFlows, found: Sequence[FlowAccuracy]) -> list[FlowAccuracy]:
    """Return the accuracy in each measure with what it is to be compared with."""
    floor = _floor(places, truth) if isinstance(places, Squares) else None
    agree = None if truth.contributors is None else _agreement_of_halves(truth.contributors)
    return [
        replace(
            each,
            floor=None if floor is None else floor[at],
            ceiling=None if agree is None else round(float((mass * agree).sum() / mass.sum()), 6),
        )
        for at, (each, mass) in enumerate(zip(found, truth.mass.T, strict=True))
    ]


def _floor(places: Squares, truth: TrueFlows) -> list[float] | None:
    """Return the CPC of the gravity model with the totals and distances of the truth, in each measure."""
    (starts, ends), origin, destination = truth.places, truth.origin, truth.destination
    if not 0 < len(starts) * len(ends) <= _MOST_PAIRS:
        return None
    (x, y), (to_x, to_y) = places.centres(starts), places.centres(ends)
    metres = np.round(np.hypot(x[:, None] - to_x, y[:, None] - to_y), 3)
    classes = (np.searchsorted(FEWER_KM, metres / 1000, side="right") - 1).astype(np.uint8)
    found = []
    for mass in truth.mass.T:
        groups = (origin, len(starts)), (destination, len(ends)), (classes[origin, destination], len(FEWER_KM))
        margins = [np.bincount(group, mass, count).astype(np.float64) for group, count in groups]
        flows = gravity_flows(classes, *margins)[origin, destination]
        found.append(round(float(np.minimum(mass, flows).sum() / mass.sum()), 6))
    return found


def gravity_flows(classes: npt.NDArray[np.uint8], start: Floats, end: Floats, decay: Floats) -> Floats:
    """Return the doubly constrained gravity model of margins and distances (Wilson 1971)."""
    a, b, f = np.ones(len(start)), np.ones(len(end)), np.where(decay > 0, 1.0, 0.0)
    flat = classes.ravel()
    for _ in range(_ROUNDS):
        rate = f[classes]
        a = start / np.maximum(rate @ b, 1e-300)
        b = end / np.maximum(a @ rate, 1e-300)
        rate *= a[:, None]
        rate *= b
        f *= decay / np.maximum(np.bincount(flat, rate.ravel(), len(decay)), 1e-300)
    rate = f[classes]
    rate *= a[:, None]
    rate *= b
    return rate


def _agreement_of_halves(contributors: Floats) -> Floats:
    """Return for each flow ``2 E min(A, B) / n``, where each of n contributors is in A or in B, as a coin falls.

    Examples
    --------
    >>> _agreement_of_halves(np.array([1.0, 2.0, 3.0, 100.0])).round(3).tolist()
    [0.0, 0.5, 0.5, 0.92]
    """
    n = contributors
    above = np.floor(n / 2) + 1
    log = gammaln(n + 1) - gammaln(above + 1) - gammaln(n - above + 1) - n * np.log(2)
    found: Floats = np.maximum(1 - 2 * above * np.exp(log) / n, 0.0)
    return found


def count_lengths(matrix: Matrix, leaves: LeafPoints, measures: tuple[str, ...]) -> tuple[Ints, Floats]:
    """Return the trip lengths of the input, in steps of `LENGTH_STEP`, and the mass of each in each measure."""
    if not isinstance(matrix, SqlMatrix) or matrix.is_small:
        steps, units = _lengths(matrix.in_memory().flows, leaves, measures)
    elif matrix.pairs_fit:
        steps, units = _lengths(matrix.pairs_in_memory.flows(), leaves, measures)
    else:
        steps, units = _stored_lengths(matrix, leaves, measures)
    return steps, stack_masses(units, matrix.summary.scale)


def _lengths(flows: Flows, leaves: LeafPoints, measures: tuple[str, ...]) -> tuple[Ints, dict[str, Ints]]:
    apart = [b[flows.destination] - a[flows.origin] for a, b in zip(leaves.origin, leaves.destination, strict=True)]
    steps = _length_steps(apart[0], apart[1])
    known, number = number_groups(steps, int(steps.max(initial=0)) + 1)
    return known, {measure: group_sum(number, len(known), exact_masses(flows, measure)) for measure in measures}


def _stored_lengths(matrix: SqlMatrix, leaves: LeafPoints, measures: tuple[str, ...]) -> tuple[Ints, dict[str, Ints]]:
    maps = [
        upload_columns(matrix.backend, place=keys, x=x, y=y)
        for keys, (x, y) in zip(matrix.keys, (leaves.origin, leaves.destination), strict=True)
    ]
    sums = ", ".join(f"{sum_bigint(f'f.{measure}')} AS {measure}" for measure in measures)
    length = f"CAST(FLOOR(SQRT((b.x - a.x) * (b.x - a.x) + (b.y - a.y) * (b.y - a.y)) / {LENGTH_STEP}) AS BIGINT)"
    found = matrix.backend.execute(
        f"SELECT {length} AS step, {sums} FROM {matrix.pairs} f {join_maps('f', *maps)} GROUP BY {length}"
    )
    order = np.argsort(int_column(found, "step"))
    return int_column(found, "step")[order], {measure: int_column(found, measure)[order] for measure in measures}


def _length_steps(x: Floats, y: Floats) -> Ints:
    """Return lengths in steps, rounded down, from differences in metres."""
    return np.floor(np.sqrt(x * x + y * y) / LENGTH_STEP).astype(np.int64)


def sample_lengths(rows: RowMasses, areas: Pair[ZonePoints | ZoneBoxes]) -> tuple[Ints, Floats]:
    """Return lengths between sampled points of the zones of each row, and the masses that each stands for."""
    count = int(np.clip(400_000 // max(len(rows.origin), 1), 8, 64))
    number = np.arange(len(rows.origin) * count)
    row = number // count
    # A fixed sequence that fills the area of both zones evenly.
    u, v, to_u, to_v = (np.asarray(number * _GOLDEN**-power % 1.0, dtype=np.float64) for power in (1, 2, 3, 4))
    x, y = areas[0].sample(rows.origin[row], u, v)
    to_x, to_y = areas[1].sample(rows.destination[row], to_u, to_v)
    known = np.isfinite(x) & np.isfinite(to_x)
    steps = _length_steps((to_x - x)[known], (to_y - y)[known])
    return steps, rows.mass[row[known]] / count


def length_bands(steps: Ints, masses: Floats, index: int = 0) -> Floats:
    """Return the share of the mass in each band of lengths."""
    edges = np.array(LENGTHS) * 1000 / LENGTH_STEP
    band = np.searchsorted(edges, steps, side="right") - 1
    mass = np.bincount(band, weights=masses[:, index], minlength=len(edges))
    return mass / (float(mass.sum()) or 1.0)


def compare_lengths(before: tuple[Ints, Floats], after: tuple[Ints, Floats]) -> list[tuple[float, float, float | None]]:
    """Return for each measure the overlap of the length distributions, and both means in km."""
    results = []
    for index in range(before[1].shape[1]):
        common = np.minimum(length_bands(*before, index), length_bands(*after, index))
        mean = _mean(*before, index)
        assert mean is not None
        results.append((float(common.sum()), mean, _mean(*after, index)))
    return results


def _mean(steps: Ints, masses: Floats, index: int) -> float | None:
    mass = masses[:, index]
    total = float(mass.sum())
    return float((mass * steps).sum()) / total * LENGTH_STEP / 1000 if total else None
