"""Data or algorithm? Every segment of the sample survey at the same size, with intervals.

A small segment is harder to protect than a large one whatever its people do, so segments are compared on random
parts of the same number of trips, half of the smallest one of its kind. Persons are drawn, with all their trips, until
there are enough: their trips are alike, and an interval over single trips would be too narrow. The row of everybody is
what a part of that size looks like. A star marks a segment of which 0 lies outside 95 % of the differences between one
of its draws and one of everybody's.
"""

from __future__ import annotations

import numpy as np

from odkanon import Rule, read_area, read_trips, utility
from odkanon.methods.method_registry import anonymize
from odkanon.read.od_matrix import build_od, make_dimensions
from odkanon.read.trips import Trips
from odkanon.sample.survey import CENTRAL_CELLS, make_survey

DRAWS = 40
RULE, BUDGET = Rule(trips=10), 0.10
WAYS = ("after", "before")
RESOLUTION = 10


def main() -> None:
    """Print the table of `docs/differences.md`."""
    centre = read_area(",".join(CENTRAL_CELLS))
    survey = read_trips(make_survey())
    start, end = survey.cells(RESOLUTION)
    survey = survey.select(centre.contains(start) & centre.contains(end))
    print("| segment | trips | drawn | after: G | 95 % of draws | from everybody | before: G | 95 % of draws |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for dimension in make_dimensions(survey, ["sex", "age", "category"]):
        parts = {
            f"{dimension.name} {', '.join(labels)}": survey.select(dimension.value == value)
            for value, labels in enumerate(dimension.labels)
        }
        size = min(map(len, parts.values())) // 2
        everybody = np.array([costs(survey, size, seed) for seed in range(DRAWS)])
        print(row("everybody", survey, size, everybody, "-"))
        for name, part in parts.items():
            found = np.array([costs(part, size, seed) for seed in range(DRAWS)])
            print(row(name, part, size, found, difference(found[:, 0], everybody[:, 0])), flush=True)


def row(name: str, part: Trips, size: int, found: np.ndarray, off: str) -> str:
    """Return one row of the table."""
    after, before = (interval(found[:, way]) for way in range(len(WAYS)))
    cells = (name, f"{len(part):,}", f"{size:,}", *after, off, *before)
    return f"| {' | '.join(cells)} |"


def costs(part: Trips, size: int, seed: int) -> list[float]:
    """Return G, as it is spent after and before generalising, of some persons with so many trips."""
    random = np.random.default_rng(seed)
    person = part.contributors["persons"]
    order = random.permutation(int(person.max()) + 1)
    rank = order[person]
    chosen = np.zeros(len(part), dtype=bool)
    chosen[np.lexsort((np.arange(len(part)), rank))[:size]] = True
    od = build_od(part.select(chosen), resolution=RESOLUTION)
    found = []
    for way in WAYS:
        release = anonymize(od, RULE, method="odkanon", suppress=way, budget=BUDGET)
        g = None if release.refusal else utility(od, release).g
        found.append(float("nan") if g is None else g)
    return found


def interval(values: np.ndarray) -> tuple[str, str]:
    """Return the mean and the middle 95 % of some values."""
    low, high = np.nanquantile(values, [0.025, 0.975])
    return f"{np.nanmean(values):,.0f}", f"{low:,.0f} to {high:,.0f}"


def difference(values: np.ndarray, others: np.ndarray) -> str:
    """Return how much larger values are than others, and the middle 95 % of that over all pairs of draws."""
    every = (values[:, None] - others[None, :]).ravel() / np.nanmean(others)
    low, high = np.nanquantile(every, [0.025, 0.975])
    return f"{np.nanmean(every):+.0%} ({low:+.0%} to {high:+.0%}){' *' if low > 0 or high < 0 else ''}"


if __name__ == "__main__":
    main()
