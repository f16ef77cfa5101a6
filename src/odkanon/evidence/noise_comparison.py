"""The accuracy of a release beside that of noise: the same trips under differential privacy at several epsilon.

Between a floor (a matrix that knows no flow, but all margins and distances exactly) and a ceiling (what the trips of
half of the persons show of the other half). All of it compares with the trips, so none of it may be published.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from odkanon.core.arrays import Ints
from odkanon.core.parsing import format_count
from odkanon.estimate.flow_estimates import ReleaseReader, read_flows
from odkanon.methods.method_registry import NOISE_METHOD
from odkanon.methods.method_registry import anonymize as run_method
from odkanon.methods.noise.joined_flows import join_counts
from odkanon.methods.noise.mechanism import NoisePromise, NoisyCounts, PrivacyUnit, composed_epsilon
from odkanon.methods.noise.public_places import PublicPlaces, public_places
from odkanon.model.od import ODMatrix
from odkanon.model.rule import NO_RULE
from odkanon.pipeline.noise_ledger import read_ledger
from odkanon.publish.save import as_saved
from odkanon.read.area import Area
from odkanon.release_format.folder import open_release
from odkanon.release_format.recipe import read_recipe
from odkanon.zoning.cells import Floats, cell_to_children, cell_to_latlng, cell_to_parent
from odkanon.zoning.spherical_geometry import Projection

EPSILONS = (1.0, 3.0, 10.0)
SIZES = (1.0, 2.0, 4.0, 8.0)
DRAWS = 3
"""Releases with noise at each epsilon: sentences are made only if all of them agree."""
AREA = 6
"""Resolution of the cells that stand for the public area where none was given."""


@dataclass(frozen=True, eq=False)
class SquareAreas:
    """Squares of one size on an equal-area map, as areas that flows can be estimated between."""

    about: Projection
    km: float
    keys: Ints

    @classmethod
    def around(cls, about: Projection, km: float, *points: tuple[Floats, Floats]) -> SquareAreas:
        """Return the squares that contain any of some points."""
        empty = cls(about, km, np.empty(0, dtype=np.int64))
        return replace(empty, keys=np.unique(np.concatenate([empty.key(*each) for each in points])))

    @property
    def ids(self) -> list[str]:
        """Names of the squares."""
        return [str(key) for key in self.keys.tolist()]

    def key(self, lat: Floats, lon: Floats) -> Ints:
        """Return a number for the square of each point."""
        x, y = (np.floor(each / (1000 * self.km)).astype(np.int64) for each in self.about.to_metres(lat, lon))
        found: Ints = x * (1 << 32) + y
        return found

    def number(self, lat: Floats, lon: Floats) -> Ints:
        """Return for each point the position of its square; -1 for none."""
        key = self.key(lat, lon)
        at = np.searchsorted(self.keys, key).clip(max=len(self.keys) - 1)
        return np.where(self.keys[at] == key, at, -1)

    def relation(self, zones: Any) -> tuple[Any, Any]:
        """Return that no zone is known to lie in a square, and any may touch it: bounds would not matter."""
        from scipy.sparse import csr_array

        shape = (len(zones.outlines), len(self.keys))
        return csr_array(shape), csr_array(np.ones(shape))


@dataclass(frozen=True, eq=False)
class FlowsOnSquares:
    """The trips of an input on squares, to compare estimates with."""

    od: ODMatrix

    @property
    def about(self) -> Projection:
        """The map of the squares."""
        ends = self.od.origins.centres, self.od.destinations.centres
        return Projection.around(*(np.concatenate([end[side] for end in ends]) for side in (0, 1)))

    def squares(self, km: float, *points: tuple[Floats, Floats]) -> SquareAreas:
        """Return the squares in which trips, or any of some points, are."""
        return SquareAreas.around(self.about, km, self.od.origins.centres, self.od.destinations.centres, *points)

    def counted(self, areas: SquareAreas, trips: npt.NDArray[Any]) -> Any:
        """Return numbers of trips of the OD pairs as a sparse matrix between squares."""
        from scipy.sparse import csr_array

        flows, wide = self.od.flows, len(areas.keys)
        ends = (
            areas.number(*self.od.origins.centres)[flows.origin],
            areas.number(*self.od.destinations.centres)[flows.destination],
        )
        return csr_array((trips.astype(np.float64), ends), shape=(wide, wide))

    def cpc_of_reader(self, reader: ReleaseReader, km: float) -> float:
        """Return the CPC of the flows that a reader of a release estimates."""
        points = reader.tree.points
        areas = self.squares(km, (points.lat, points.lon))
        found = reader.between(areas, areas).table
        from scipy.sparse import csr_array

        position = {name: at for at, name in enumerate(areas.ids)}
        ends = [np.array([position[name] for name in found[axis].to_pylist()]) for axis in ("origin", "destination")]
        estimate = csr_array((found["estimate"].to_numpy(), tuple(ends)), shape=(len(areas.keys),) * 2)
        return _cpc(self.counted(areas, self.od.flows.trips), estimate)

    def cpc_of_floor(self, places: PublicPlaces, km: float) -> float:
        """Return the CPC of a matrix of exact margins and distances between places."""
        from scipy.sparse import csr_array

        assert places.tree.resolution is not None
        finer = min(places.tree.resolution + 2, 15)
        children = cell_to_children(places.tree.leaves, finer)
        owner = np.searchsorted(places.tree.leaves, cell_to_parent(children, places.tree.resolution))
        points = cell_to_latlng(children)
        areas = self.squares(km, points)
        part = 1 / np.bincount(owner)[owner]
        shares = csr_array((part, (owner, areas.number(*points))), shape=(len(places), len(areas.keys)))
        flows = join_counts(places, self._margins(places)).flows
        return _cpc(self.counted(areas, self.od.flows.trips), csr_array(shares.T @ (shares.T @ flows.T).T))

    def _margins(self, places: PublicPlaces) -> dict[str, NoisyCounts]:
        flows, n = self.od.flows, len(places)
        ends = places.number(self.od.origins)[flows.origin], places.number(self.od.destinations)[flows.destination]
        inside = (ends[0] >= 0) & (ends[1] >= 0)
        entries = {"origins": (ends[0], n), "destinations": (ends[1], n)}
        entries["distances"] = (places.distance_class[ends].astype(np.int64), places.distances)
        return {
            name: NoisyCounts(np.bincount(at[inside], flows.trips[inside], size).astype(np.int64), 1e-9)
            for name, (at, size) in entries.items()
        }

    def cpc_of_halves(self, km: float, seed: int = 0) -> float | None:
        """Return the CPC of the flows of half of the persons with those of the other half; None without persons."""
        persons, random = self.od.flows.contributions.get("persons"), np.random.default_rng(seed)
        if persons is None:
            return None
        first = random.random(persons.people)[persons.contributor] < 0.5
        trips, rows = persons.masses["trips"], len(self.od.flows)
        halves = [np.bincount(persons.flow[half], trips[half], rows) for half in (first, ~first)]
        areas = self.squares(km)
        return _cpc(*(self.counted(areas, half / max(half.sum(), 1)) for half in halves))


def _cpc(truth: Any, estimate: Any) -> float:
    """Return the common part of commuters (Lenormand et al. 2012) of two matrices of flows."""
    return float(2 * truth.minimum(estimate).sum() / (truth.sum() + estimate.sum()))


def compare_with_noise(
    folder: Path,
    od: ODMatrix,
    *,
    epsilons: tuple[float, ...] = EPSILONS,
    draws: int = DRAWS,
    stage: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Compare a release, read well, with noise, a floor and a ceiling on squares of several sizes.

    Parameters
    ----------
    folder : Path
        A release.
    od : ODMatrix
        Its trips, on H3 cells.
    epsilons : tuple of float
        Noise to compare with.
    draws : int
        How often noise is drawn at each of them.
    stage : callable
        Called with what comes next.

    Returns
    -------
    dict
        ``rows`` (each with a ``name`` and by size the mean ``cpc`` and its ``spread``), ``sentences``, and ``reason``
        if nothing can be compared. Private.
    """
    if od.origins.resolution is None:
        return {"rows": [], "sentences": [], "reason": "places are the user's zones, and squares need cells"}
    od, on = _within(od), FlowsOnSquares(od)
    reader, places = read_flows(open_release(folder)), public_places(od)
    own = {km: on.cpc_of_reader(reader, km) for km in SIZES}
    rows = [_row("this release, read well", {km: [cpc] for km, cpc in own.items()})]
    noisy: dict[tuple[str, float], dict[float, list[float]]] = {}
    units: list[PrivacyUnit] = ["trip", *(("person",) if "persons" in od.flows.contributions else ())]
    for unit in units:
        for epsilon in epsilons:
            found: dict[float, list[float]] = {km: [] for km in SIZES}
            for draw in range(draws):
                stage(f"noise with epsilon = {epsilon:g} for each {unit}, {draw + 1} of {draws}")
                made = run_method(od, NO_RULE, method=NOISE_METHOD, epsilon=epsilon, unit=unit)
                noise = read_flows(as_saved(made))
                for km in SIZES:
                    found[km].append(on.cpc_of_reader(noise, km))
            noisy[unit, epsilon] = found
            rows.append(_row(f"noise for each {unit}, epsilon = {epsilon:g}", found))
    rows.append(_row("floor: margins and distances only", {km: [on.cpc_of_floor(places, km)] for km in SIZES}))
    halves = {km: on.cpc_of_halves(km) for km in SIZES}
    if halves[SIZES[0]] is not None:
        rows.append(_row("half of the persons, for the other half", {km: [each or 0.0] for km, each in halves.items()}))
    sentences = [text for unit in units for text in _sentences(unit, own, noisy, epsilons)]
    return {"rows": rows, "sentences": sentences, "draws": draws, "reason": None}


def _within(od: ODMatrix) -> ODMatrix:
    """Return a matrix within a public area; within the cells that have trips, if none was given."""
    if od.origins.within is not None:
        return od
    cells = [cell_to_parent(tree.leaves, min(AREA, tree.resolution or 0)) for tree in (od.origins, od.destinations)]
    area = Area(cells=np.unique(np.concatenate(cells)))
    return replace(
        od, origins=replace(od.origins, within=area), destinations=replace(od.destinations, within=area), finer=None
    )


def _row(name: str, found: dict[float, list[float]]) -> dict[str, Any]:
    return {
        "name": name,
        "cpc": {f"{km:g} km": round(float(np.mean(values)), 3) for km, values in found.items()},
        "spread": {f"{km:g} km": round(float(np.ptp(values)), 4) for km, values in found.items()},
    }


def _sentences(
    unit: str,
    own: dict[float, float],
    noisy: dict[tuple[str, float], dict[float, list[float]]],
    asked: tuple[float, ...],
) -> list[str]:
    """Return what holds for all draws: between which epsilon the release is, at each size."""
    texts = []
    for km, cpc in own.items():
        below = [epsilon for epsilon in sorted(asked) if max(noisy[unit, epsilon][km]) < cpc]
        above = [epsilon for epsilon in sorted(asked) if min(noisy[unit, epsilon][km]) > cpc]
        if above and below and max(below) < min(above):
            middle = f"as accurate as noise with epsilon between {max(below):g} and {min(above):g}"
        elif len(below) == len(asked):
            middle = f"more accurate than noise with epsilon = {max(below):g}"
        elif len(above) == len(asked):
            middle = f"less accurate than noise with epsilon = {min(above):g}"
        else:
            continue
        texts.append(f"Between squares of {km:g} km the release is {middle} for each {unit}.")
    return texts


def check_noise(folder: Path, manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what can be checked of a noisy release: its promise, what that bounds, and what its ledger adds up to."""
    asked, noise = manifest["parameters"], manifest["noise"]
    promise = NoisePromise(**{name: asked[name] for name in ("epsilon", "delta", "unit", "trips_per_person")})
    epsilon = composed_epsilon(
        [each["standard_deviation"] / promise.trips_per_person for each in noise.values()], promise.delta
    )
    kept, likely = epsilon <= promise.epsilon * (1 + 1e-6), exp(promise.epsilon)
    guess = (likely + promise.delta) / (likely + 1)
    promised = (
        f"The stated noise of {len(noise)} queries comes to epsilon = {epsilon:.4g} at delta = {promise.delta:g}; "
        f"{promise.epsilon:g} was promised. That it was drawn so, no file can show."
    )
    bounded = (
        f"Whoever knows everything but whether one {promise.unit} is in the data, and takes both for equally likely, "
        f"is right in {guess:.1%} of cases at most"
    )
    total, verdict = "No ledger is known, so nobody knows what other releases of these people have spent.", "not made"
    spent = ((read_recipe(folder) or {}).get("about", {}).get("parameters") or {}).get("spent")
    if spent is not None and Path(spent["ledger"]).exists():
        ledger = read_ledger(Path(spent["ledger"]))
        own, limit = ledger.spent(promise.unit)[0], (ledger.limits or {}).get(promise.unit)
        allowed = "there is no limit" if limit is None else f"{limit:g} is allowed"
        total = f"Together, {format_count(len(ledger.releases), 'releases')} spent epsilon = {own:.4g}; {allowed}."
        verdict = "to weigh" if limit is None else "clean" if own <= limit else "found"
    return [
        _check("noise", "Noise", "Is the noise as large as the promise needs?", "clean" if kept else "found", promised),
        _check("membership", "Membership", "Was somebody in the data?", "to weigh", f"{bounded}.", guess=guess),
        _check("ledger", "All releases", "What do all releases of the same people come to?", verdict, total),
    ]


def _check(name: str, title: str, asks: str, verdict: str, message: str, **numbers: float) -> dict[str, Any]:
    found = {"attack": name, "title": title, "asks": asks, "question": "inference", "verdict": verdict}
    return {**found, "message": message, "numbers": numbers, "tried": None, "of": None, "seconds": 0.0}
