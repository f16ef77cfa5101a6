"""How right a noisy release is, read as anybody would read it: CPC on squares by epsilon, means over draws.

    python benchmarks/bench_noise.py TRIPS [--unit trip] [--epsilon 1 3 10] [--draws 10] [--where EXPR]

The area is the cells of resolution 6 that have a trip: taken from the data here, so that figures of several files can
be compared; a release takes it from the user.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np

import odkanon
from odkanon.estimate.flow_estimates import read_flows
from odkanon.evidence.noise_comparison import SIZES, FlowsOnSquares
from odkanon.methods.method_registry import anonymize
from odkanon.model.rule import NO_RULE
from odkanon.publish.save import as_saved
from odkanon.read.area import Area
from odkanon.zoning.cells import cell_to_parent


def read(path: str, where: str | None) -> odkanon.ODMatrix:
    od = odkanon.read_matrix(path, engine="memory", where=where)
    cells = np.unique(np.concatenate([cell_to_parent(tree.leaves, 6) for tree in (od.origins, od.destinations)]))
    return odkanon.read_matrix(path, engine="memory", where=where, within=Area(cells=cells))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("source")
    options.add_argument("--unit", default="trip")
    options.add_argument("--where")
    options.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 3.0, 10.0])
    options.add_argument("--draws", type=int, default=10)
    given = options.parse_args()
    on = FlowsOnSquares(read(given.source, given.where))
    for epsilon in given.epsilon:
        found, start = [], time.perf_counter()
        rows = 0
        for _ in range(given.draws):
            release = anonymize(on.od, NO_RULE, method="noise", epsilon=epsilon, unit=given.unit)
            reader = read_flows(as_saved(release))
            found.append([on.cpc_of_reader(reader, km) for km in SIZES])
            rows = len(release.classes)
        table: Any = np.array(found)
        line = {
            "unit": given.unit,
            "epsilon": epsilon,
            "cpc": dict(zip(map(str, SIZES), table.mean(axis=0).round(3).tolist(), strict=True)),
            "sd": table.std(axis=0).round(4).tolist(),
            "rows": rows,
            "seconds": round((time.perf_counter() - start) / given.draws, 1),
        }
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
