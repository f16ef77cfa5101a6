"""The same matrix under differential privacy, as a benchmark for the accuracy of the release.

The counts are noised from the top down (`odkanon.evidence.topdown_noise`), with OpenDP's noise and privacy accounting.
Only their accuracy is kept; the noisy counts are never written anywhere.

References
----------
Abowd et al. 2022, "The 2020 Census disclosure avoidance system TopDown algorithm"; Canonne, Kamath, Steinke 2020, "The
discrete Gaussian for differential privacy".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, log, sqrt
from typing import Any, Literal

import numpy as np

from odkanon.core.arrays import Ints, group_sum
from odkanon.evidence.attack_context import AttackContext
from odkanon.evidence.topdown_noise import cpc_by_square, layers, level_pairs, top_down
from odkanon.quality.accuracy.accuracy import map_leaves

Unit = Literal["trip", "person"]
EPSILONS = (1.0, 3.0, 10.0, 0.3)
"""In order of importance, since the time may run out."""
DELTA = 1e-6
SQUARES = (2.0, 4.0)
GROWTH = 1.4
"""The ratio of the privacy loss of each level to that of the level above it."""


@dataclass(frozen=True)
class NoiseResult:
    """The accuracy of noisy counts: protected unit, epsilon, noise scale at the finest level, CPC by square size."""

    unit: Unit
    epsilon: float
    scale: float
    cpc: dict[float, float]


@dataclass(frozen=True)
class NoiseComparison:
    """The accuracy of the release beside that of the same matrix with noise.

    Attributes
    ----------
    release : dict of float to float
        CPC of the release, by side of the squares in km.
    results : tuple of NoiseResult
        The accuracy of noisy counts.
    max_trips : int
        The cap on trips per person at person level.
    equals : dict
        By unit and side of the squares, the epsilon at which noise is as accurate; infinite if above all that were
        tried.
    words : str
        A summary, with what each of the two guarantees.
    """

    release: dict[float, float]
    results: tuple[NoiseResult, ...]
    max_trips: int
    equals: dict[Unit, dict[float, float | None]]
    words: str


def compare_with_noise(context: AttackContext, *, epsilons: Sequence[float] = EPSILONS) -> NoiseComparison | None:
    """Compare the release with noise for several epsilons; None if zones are not H3 cells or its CPC is unknown."""
    od, own = context.od, cpc_of_release(context)
    if own is None or od.origins.resolution is None or map_leaves(od) is None or not context.matrix_matches:
        return None
    max_trips = max_trips_per_person(context)
    counts: dict[Unit, Ints] = {"trip": od.flows.trips}
    if max_trips:
        counts["person"] = capped_trips(context, max_trips)
    results: list[NoiseResult] = []
    planned = [(unit, epsilon) for epsilon in epsilons for unit in counts]
    for done, (unit, epsilon) in enumerate(planned):
        if not context.timer.keep_going(done, len(planned)):
            break
        scales = noise_scales(epsilon, max_trips if unit == "person" else 1, len(level_pairs(od)))
        found = top_down(layers(od, counts[unit]), add_noise, scales)
        results.append(NoiseResult(unit, epsilon, scales[-1], cpc_by_square(od, found, SQUARES)))
    equals: dict[Unit, dict[float, float | None]] = {
        unit: {
            km: matching_epsilon([(each.epsilon, each.cpc[km]) for each in results if each.unit == unit], own[km])
            for km in SQUARES
        }
        for unit in counts
    }
    return NoiseComparison(own, tuple(results), max_trips, equals, _words(equals, epsilons))


def cpc_of_release(context: AttackContext) -> dict[float, float] | None:
    """Return the CPC of the release, from its recipe or else its manifest."""
    squares = (context.about.get("usefulness") or {}).get("trips", {}).get("squares")
    if squares is not None:
        found = {place["km"]: place["cpc"] for place in squares}
    else:
        public = ((context.release.manifest.get("quality") or {}).get("trips") or {}).get("cpc", {})
        found = {float(name.removesuffix(" km")): value for name, value in public.items()}
    return {km: float(found[km]) for km in SQUARES} if all(km in found for km in SQUARES) else None


def max_trips_per_person(context: AttackContext) -> int:
    """Return the cap on trips per person: the 90th percentile of trips per person, 0 without persons."""
    trips = context.trips
    if trips.persons == 0:
        return 0
    named = trips.person >= 0
    made = group_sum(trips.person[named], trips.persons, trips.trips[named])
    return int(np.quantile(made, 0.9, method="higher"))


def capped_trips(context: AttackContext, cap: int) -> Ints:
    """Return the trips of each OD pair, counting at most so many of each person: the first in the file."""
    trips, od = context.trips, context.od
    order = np.argsort(trips.person, kind="stable")
    before = np.cumsum(trips.trips[order]) - trips.trips[order]
    first = np.searchsorted(trips.person[order], trips.person[order])
    room = np.clip(cap - (before - before[first]), 0, None)
    kept = np.where(trips.person[order] < 0, 0, np.minimum(trips.trips[order], room))
    # The audit numbers pairs by the names of their places, the matrix by its hierarchies.
    names = [
        tree.labels(0)[leaf].astype(np.str_)
        for tree, leaf in ((od.origins, od.flows.origin), (od.destinations, od.flows.destination))
    ]
    counts = np.zeros(len(od), dtype=np.int64)
    counts[np.lexsort((names[1], names[0]))] = group_sum(trips.pair[order], len(od), kept)
    return counts


def noise_scales(epsilon: float, sensitivity: int, counts: int) -> list[float]:
    """Return the scales of discrete Gaussian noise for several counts that together satisfy (epsilon, delta)-DP.

    One trip changes one count per level by one; one person changes them by up to the cap on trips per person. The scale
    for a single count is found by search. Several counts share its zCDP loss, which is additive: finer levels get more
    of it than coarser ones, whose counts are larger. OpenDP's composition verifies the result.

    Raises
    ------
    ArithmeticError
        If OpenDP's accounting rejects the scales.
    """
    import opendp.prelude as dp

    dp.enable_features("contrib")

    def account(*scales: float) -> Any:
        each = [_space(dp) >> dp.m.then_gaussian(scale) for scale in scales]
        several = each[0] if len(each) == 1 else dp.c.make_composition(each)
        return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(several), DELTA)

    single = float(dp.binary_search_param(account, d_in=1.0, d_out=(epsilon, DELTA)))
    parts = [GROWTH**level for level in range(counts)]
    scales = [single * sensitivity * sqrt(sum(parts) / part) * (1 + 1e-9) for part in parts]
    if not account(*scales).check(float(sensitivity), (epsilon, DELTA)):
        raise ArithmeticError(f"noise with the scales {scales} does not satisfy epsilon = {epsilon}")
    return scales


def _space(dp: Any) -> Any:
    return dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)


def add_noise(counts: Ints, scale: float) -> Ints:
    """Return counts with discrete Gaussian noise."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    drawn = (_space(dp) >> dp.m.then_gaussian(scale))(counts.tolist())
    return np.array(drawn, dtype=np.int64)


def matching_epsilon(points: Sequence[tuple[float, float]], wanted: float) -> float | None:
    """Return the epsilon at which noise reaches a CPC, by interpolation on a logarithmic scale.

    Infinite if no epsilon reaches it, 0 if every epsilon exceeds it, None if none was tried.
    """
    known = sorted(points)
    if not known:
        return None
    if wanted < known[0][1]:
        return 0.0
    for (low, before), (high, after) in pairwise(known):
        if before <= wanted <= after and after > before:
            return exp(log(low) + (wanted - before) / (after - before) * (log(high) - log(low)))
    return known[0][0] if len(known) == 1 and wanted == known[0][1] else float("inf")


def _words(equals: dict[Unit, dict[float, float | None]], epsilons: Sequence[float]) -> str:
    outcomes = [f"at {unit} level {_as_accurate(by_km[SQUARES[0]], epsilons)}" for unit, by_km in equals.items()]
    return (
        f"On squares of {SQUARES[0]:g} km the release is {' and '.join(outcomes)} (discrete Gaussian noise, delta = "
        f"{DELTA:g}, top-down over the same cells). The two promise different things: noise bounds what anybody learns "
        "about one trip or person, whatever they know already; the release has true counts and hides people among "
        "others, with no such bound."
    )


def _as_accurate(epsilon: float | None, epsilons: Sequence[float]) -> str:
    if epsilon is None:
        return "not compared in the time given"
    if epsilon == float("inf"):
        return f"more useful than noise with epsilon = {max(epsilons):g}"
    if epsilon == 0:
        return f"less useful than noise with epsilon = {min(epsilons):g}"
    return f"as useful as noise with epsilon = {epsilon:.2g}"
