"""The same matrix by differential privacy: a yardstick for how useful the release is.

Noisy counts from the top down (`odkanon.evidence.topdown_noise`), with noise and accounting of OpenDP. The result is
measured and thrown away; it is never written anywhere.

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
from odkanon.evidence.attack_context import Case
from odkanon.evidence.topdown_noise import cpc_of, layers, rungs, top_down
from odkanon.quality.accuracy.accuracy import map_of

Unit = Literal["trip", "person"]
EPSILONS = (1.0, 3.0, 10.0, 0.3)
"""In the order in which they are tried, as long as there is time."""
DELTA = 1e-6
SQUARES = (2.0, 4.0)
GROWTH = 1.4
"""How much more of the loss each level may have than the one above it."""


@dataclass(frozen=True)
class Point:
    """How useful noise is: what is protected, epsilon, the scale of noise at the finest level, CPC by squares in km."""

    unit: Unit
    epsilon: float
    scale: float
    cpc: dict[float, float]


@dataclass(frozen=True)
class Yardstick:
    """The release beside the same matrix with noise.

    Attributes
    ----------
    release : dict of float to float
        CPC of the release by squares in km.
    points : tuple of Point
        What noise reaches.
    at_most : int
        How many trips of a person are counted, at person level.
    equals : dict
        By what is protected and squares, the epsilon at which noise is as useful; infinite above all that were tried.
    words : str
        The same in a sentence, with what each promises.
    """

    release: dict[float, float]
    points: tuple[Point, ...]
    at_most: int
    equals: dict[Unit, dict[float, float | None]]
    words: str


def yardstick(case: Case, *, epsilons: Sequence[float] = EPSILONS) -> Yardstick | None:
    """Compare the release with noise of several strengths; None where zones are no H3 cells or its CPC is not known."""
    od, own = case.od, cpc_of_release(case)
    if own is None or od.origins.resolution is None or map_of(od) is None or not case.reads_alike:
        return None
    at_most = trips_of_a_person(case)
    counts: dict[Unit, Ints] = {"trip": od.flows.trips}
    if at_most:
        counts["person"] = trips_within(case, at_most)
    points: list[Point] = []
    wanted = [(unit, epsilon) for epsilon in epsilons for unit in counts]
    for done, (unit, epsilon) in enumerate(wanted):
        if not case.watch.goes_on(done, len(wanted)):
            break
        scales = noise_scales(epsilon, at_most if unit == "person" else 1, len(rungs(od)))
        found = top_down(layers(od, counts[unit]), noisy, scales)
        points.append(Point(unit, epsilon, scales[-1], cpc_of(od, found, SQUARES)))
    equals: dict[Unit, dict[float, float | None]] = {
        unit: {km: matching([(p.epsilon, p.cpc[km]) for p in points if p.unit == unit], own[km]) for km in SQUARES}
        for unit in counts
    }
    return Yardstick(own, tuple(points), at_most, equals, _words(equals, epsilons))


def cpc_of_release(case: Case) -> dict[float, float] | None:
    """Return how useful the release is, as its recipe or else its manifest says."""
    squares = (case.about.get("usefulness") or {}).get("trips", {}).get("squares")
    if squares is not None:
        found = {place["km"]: place["cpc"] for place in squares}
    else:
        told = ((case.release.manifest.get("quality") or {}).get("trips") or {}).get("cpc", {})
        found = {float(name.removesuffix(" km")): value for name, value in told.items()}
    return {km: float(found[km]) for km in SQUARES} if all(km in found for km in SQUARES) else None


def trips_of_a_person(case: Case) -> int:
    """Return how many trips of a person count at person level: as many as nine in ten make; 0 without persons."""
    person = case.trips.person
    if case.trips.persons == 0:
        return 0
    made = group_sum(person[person >= 0], case.trips.persons, case.trips.trips[person >= 0])
    return int(np.quantile(made, 0.9, method="higher"))


def trips_within(case: Case, most: int) -> Ints:
    """Return the trips of each pair of the matrix with no more than so many of each person, the first in the file."""
    trips, od = case.trips, case.od
    order = np.argsort(trips.person, kind="stable")
    before = np.cumsum(trips.trips[order]) - trips.trips[order]
    first = np.searchsorted(trips.person[order], trips.person[order])
    room = np.clip(most - (before - before[first]), 0, None)
    kept = np.where(trips.person[order] < 0, 0, np.minimum(trips.trips[order], room))
    # Pairs of the audit are numbered by the names of their places; those of the matrix by its trees.
    names = [
        tree.labels(0)[leaf].astype(np.str_)
        for tree, leaf in ((od.origins, od.flows.origin), (od.destinations, od.flows.destination))
    ]
    counts = np.zeros(len(od), dtype=np.int64)
    counts[np.lexsort((names[1], names[0]))] = group_sum(trips.pair[order], len(od), kept)
    return counts


def noise_scales(epsilon: float, at_most: int, counts: int) -> list[float]:
    """Return the scales of discrete Gaussian noise with which some counts together keep to epsilon.

    One trip changes one number of each level by one; one person changes them by as many as are counted of a person. The
    scale for a single count is searched; several share its loss (zCDP), which adds up: each level gets more than the
    one above it, whose counts are larger. The library's own composition has the last word.

    Raises
    ------
    ArithmeticError
        If by the library's account they do not keep to epsilon.
    """
    import opendp.prelude as dp

    dp.enable_features("contrib")

    def account(*scales: float) -> Any:
        each = [_space(dp) >> dp.m.then_gaussian(scale) for scale in scales]
        several = each[0] if len(each) == 1 else dp.c.make_composition(each)
        return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(several), DELTA)

    single = float(dp.binary_search_param(account, d_in=1.0, d_out=(epsilon, DELTA)))
    parts = [GROWTH**level for level in range(counts)]
    scales = [single * at_most * sqrt(sum(parts) / part) * (1 + 1e-9) for part in parts]
    if not account(*scales).check(float(at_most), (epsilon, DELTA)):
        raise ArithmeticError(f"noise of the scales {scales} does not keep to epsilon = {epsilon}")
    return scales


def _space(dp: Any) -> Any:
    return dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)


def noisy(counts: Ints, scale: float) -> Ints:
    """Return counts with discrete Gaussian noise."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    drawn = (_space(dp) >> dp.m.then_gaussian(scale))(counts.tolist())
    return np.array(drawn, dtype=np.int64)


def matching(points: Sequence[tuple[float, float]], wanted: float) -> float | None:
    """Return the epsilon at which noise is as useful, between those tried (on a logarithmic scale).

    Infinite where it never is, 0 where it always is, None where nothing was tried.
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
    told = [f"at {unit} level {_as_accurate(by_km[SQUARES[0]], epsilons)}" for unit, by_km in equals.items()]
    return (
        f"On squares of {SQUARES[0]:g} km the release is {' and '.join(told)} (discrete Gaussian noise, delta = "
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
