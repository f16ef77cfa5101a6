"""How long each method takes on 100,000 trips, for each protection target, beside ODkAnon on participants.

Run with ``python benchmarks/bench_methods.py [trips [method ...]]``; ``310000 treecut freezones`` has 300,000
pairs. Only ratios measured in one run say anything: seconds depend on the machine and on who else uses it.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np

from odkanon.methods import METHODS
from odkanon.methods.method_registry import DEFAULT_METHOD
from odkanon.model.od import ODMatrix, od_matrix
from odkanon.model.provenance import Source
from odkanon.model.rule import Rule
from odkanon.zoning.cells import Cells, latlng_to_cell
from odkanon.zoning.hierarchy import h3_hierarchy

K = 10
_LONG = 2.0
"""Seconds, beside which the disturbance by other programs is small."""


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
    return od_matrix(
        origins,
        destinations,
        *numbers,
        weight=weight,
        contributors={"persons": person},
        source=Source(rows=len(origin)),
    )


def seconds(run: Callable[[], object], repeat: int = 3) -> float:
    """Return the least processor time of a few runs, which other programs on the machine disturb least.

    What takes long enough by itself is run once only.
    """
    best = float("inf")
    for _ in range(repeat):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
        if best > _LONG:
            break
    return best


def method_seconds(od: ODMatrix, names: Sequence[str] = ()) -> dict[tuple[str, str], float]:
    """Time every method on every protection target; some methods, beside ODkAnon, on participants only."""
    targets: tuple[str, ...] = ("participants",) if names else ("participants", "population", "persons")
    rules = {target: Rule.protect(target, k=K, of=od) for target in targets}
    return {
        (name, target): seconds(lambda method=method, rule=rule: method.function(od, rule))  # type: ignore[misc]
        for name, method in METHODS.items()
        if not names or name in (DEFAULT_METHOD, *names)
        for target, rule in rules.items()
    }


def main(trips: int = 100_000, names: Sequence[str] = ()) -> None:
    od = od_of(*generated_trips(trips))
    measured = method_seconds(od, names)
    first = measured["odkanon", "participants"]
    rows = {
        f"{name}, {target}": {"seconds": round(took, 3), "in_odkanons": round(took / first, 2)}
        for (name, target), took in measured.items()
    }
    print(json.dumps({"trips": trips, "pairs": len(od), **rows}, indent=2))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000, sys.argv[2:])
