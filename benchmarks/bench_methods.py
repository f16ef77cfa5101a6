"""How long the comparators take on 100,000 trips, side by side with anonypy's Mondrian where that is installed.

Run with ``python benchmarks/bench_methods.py [trips]``; ``pip install anonypy pandas`` adds the ratio. Only ratios
measured in one run say anything: seconds depend on the machine and on who else uses it.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from odkanon.cells import Cells, cell_to_latlng, latlng_to_cell
from odkanon.hierarchy import h3_hierarchy
from odkanon.methods import METHODS
from odkanon.od import ODMatrix, Source, od_matrix
from odkanon.rule import Rule, Target

K = 10
COLUMNS = ["start_lon", "start_lat", "end_lon", "end_lat"]


def generated_trips(trips: int, seed: int = 7) -> tuple[Cells, Cells, np.typing.NDArray[np.int64]]:
    """Return origins, destinations and weights of trips between 80 centres of a made-up city."""
    rng = np.random.default_rng(seed)
    centres = rng.normal([48.86, 2.35], [0.06, 0.09], (80, 2))
    popularity = rng.pareto(1.2, 80) + 0.2
    ends = []
    for _ in range(2):
        near = centres[rng.choice(80, trips, p=popularity / popularity.sum())]
        lat, lng = (near + rng.normal(0, 0.012, (trips, 2))).T
        ends.append(latlng_to_cell(lat, lng, 10))
    return ends[0], ends[1], rng.lognormal(7.5, 0.8, trips).round().astype(np.int64) + 1


def od_of(origin: Cells, destination: Cells, weight: np.typing.NDArray[np.int64]) -> ODMatrix:
    origins, destinations = h3_hierarchy(origin), h3_hierarchy(destination)
    person = (np.arange(len(origin)) // 4).astype(np.int32)
    numbers = [
        np.searchsorted(tree.leaves, ends).astype(np.int32)
        for tree, ends in ((origins, origin), (destinations, destination))
    ]
    return od_matrix(origins, destinations, *numbers, weight=weight, person=person, source=Source(rows=len(origin)))


def seconds(run: Callable[[], object], repeat: int = 3) -> float:
    """Return the best of a few times."""
    best = float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


def method_seconds(od: ODMatrix) -> dict[tuple[str, Target], float]:
    """Time every method on every protection target."""
    targets: tuple[Target, ...] = ("participants", "population", "persons")
    rules = {target: Rule.protect(target, k=K, of=od) for target in targets}
    return {
        (name, target): seconds(lambda method=method, rule=rule: method(od, rule))  # type: ignore[misc]
        for name, method in METHODS.items()
        for target, rule in rules.items()
    }


def anonypy_seconds(origin: Cells, destination: Cells) -> float | None:
    """Time anonypy's Mondrian on the same points, one row a trip; None where it is not installed."""
    if importlib.util.find_spec("anonypy") is None or importlib.util.find_spec("pandas") is None:
        return None
    anonypy: Any = importlib.import_module("anonypy")
    pandas: Any = importlib.import_module("pandas")
    (start_lat, start_lng), (end_lat, end_lng) = cell_to_latlng(origin), cell_to_latlng(destination)
    frame = pandas.DataFrame(dict(zip(COLUMNS, (start_lng, start_lat, end_lng, end_lat), strict=True)))
    frame["nothing"] = "x"
    preserver = anonypy.Preserver(frame, COLUMNS, "nothing")
    return seconds(lambda: preserver.anonymize_k_anonymity(k=K), repeat=1)


def main(trips: int = 100_000) -> None:
    origin, destination, weight = generated_trips(trips)
    od = od_of(origin, destination, weight)
    print(od)
    measured = method_seconds(od)
    for (name, target), took in measured.items():
        print(f"{name:10} {target:14} {took:8.3f} s")
    theirs = anonypy_seconds(origin, destination)
    if theirs is None:
        print("anonypy is not installed: no ratio")
    else:
        ratio = theirs / measured["mondrian", "participants"]
        print(f"anonypy    participants   {theirs:8.3f} s: {ratio:,.0f} times as long as our Mondrian")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
