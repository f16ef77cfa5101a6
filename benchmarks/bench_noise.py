"""How right a noisy release is, read as anybody would read it: CPC on squares by epsilon, means over seeds.

    python benchmarks/bench_noise.py OD.parquet [--unit trip|person] [--epsilon 1 3 10] [--seeds 10]

The area is the cells of resolution 6 that have a trip: taken from the data here, so that figures of several files can
be compared; a release takes it from the user.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

import odkanon
from odkanon.estimate.flow_estimates import ReleaseReader, read_flows
from odkanon.methods.noise.method import noise
from odkanon.model.od import ODMatrix
from odkanon.model.rule import NO_RULE
from odkanon.publish.save import as_saved
from odkanon.read.area import Area
from odkanon.zoning.cells import cell_to_parent
from odkanon.zoning.spherical_geometry import Projection

SIZES = (1.0, 2.0, 4.0, 8.0)


@dataclass(frozen=True, eq=False)
class SquareAreas:
    """Squares of one size on an equal-area map, numbered as they occur."""

    about: Projection
    km: float
    shift: float
    keys: Any

    @property
    def ids(self) -> Any:
        """The names of the squares."""
        return self.keys

    def key(self, lat: Any, lon: Any) -> Any:
        """Return the squares of points."""
        x, y = self.about.to_metres(lat, lon)
        side = 1000 * self.km
        return np.floor(x / side + self.shift).astype(np.int64) * 1_000_000 + np.floor(y / side + self.shift).astype(
            int
        )

    def number(self, lat: Any, lon: Any) -> Any:
        """Return the positions of the squares of points; -1 for others."""
        key = self.key(lat, lon)
        at = np.searchsorted(self.keys, key).clip(max=len(self.keys) - 1)
        return np.where(self.keys[at] == key, at, -1)


def squares_of(reader: ReleaseReader, od: ODMatrix, about: Projection, km: float, shift: float) -> SquareAreas:
    empty = SquareAreas(about, km, shift, np.empty(0, np.int64))
    points = [(reader.tree.points.lat, reader.tree.points.lon), od.origins.centres, od.destinations.centres]
    return SquareAreas(about, km, shift, np.unique(np.concatenate([empty.key(*each) for each in points])))


def cpc(reader: ReleaseReader, od: ODMatrix, about: Projection, km: float, shift: float) -> float:
    """Return the common part of commuters between an estimate and the trips."""
    from scipy.sparse import csr_array

    areas: Any = squares_of(reader, od, about, km, shift)
    wide = len(areas.keys)
    ends = (
        areas.number(*od.origins.centres)[od.flows.origin],
        areas.number(*od.destinations.centres)[od.flows.destination],
    )
    truth = csr_array((od.flows.trips.astype(float), ends), shape=(wide, wide))
    estimate = reader.expected(areas, areas)["trips"]
    return float(2 * truth.minimum(estimate).sum() / (truth.sum() + estimate.sum()))


def read(path: str, where: str | None) -> ODMatrix:
    od = odkanon.read_matrix(path, engine="memory", where=where)
    cells = np.unique(np.concatenate([cell_to_parent(tree.leaves, 6) for tree in (od.origins, od.destinations)]))
    return odkanon.read_matrix(path, engine="memory", where=where, within=Area(cells=cells))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("source")
    options.add_argument("--unit", default="trip")
    options.add_argument("--where")
    options.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 3.0, 10.0])
    options.add_argument("--seeds", type=int, default=10)
    given = options.parse_args()
    od = read(given.source, given.where)
    lat, lon = (np.concatenate([od.origins.centres[at], od.destinations.centres[at]]) for at in (0, 1))
    about = Projection.around(lat, lon)
    for epsilon in given.epsilon:
        found, start = [], time.perf_counter()
        for _ in range(given.seeds):
            release = noise(od, NO_RULE, epsilon=epsilon, unit=given.unit)
            reader = read_flows(as_saved(release))
            found.append([cpc(reader, od, about, km, 0.0) for km in SIZES])
        table = np.array(found)
        mean, spread = table.mean(axis=0), table.std(axis=0)
        print(
            json.dumps(
                {
                    "unit": given.unit,
                    "epsilon": epsilon,
                    "cpc": dict(zip(map(str, SIZES), [round(float(each), 3) for each in mean], strict=True)),
                    "sd": [round(float(each), 4) for each in spread],
                    "rows": len(release.classes),
                    "seconds": round((time.perf_counter() - start) / given.seeds, 1),
                }
            ),
            flush=True,
        )


if __name__ == "__main__":
    main()
