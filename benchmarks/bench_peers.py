"""ODkAnon beside packages from PyPI that do part of the same, as ratios of processor time within one run.

    python -m venv peers && peers/bin/pip install . anonypy anjana pycanon
    peers/bin/python benchmarks/bench_peers.py

Those that are not installed are left out. What is compared with what, on the same trips and with k = 10:

* ``anonypy``: its Mondrian on the coordinates of both ends, with ours. Both cut boxes at medians; without suppression.
* ``anjana``: k-anonymity by generalising whole columns and suppressing up to 10 % of the records, with our OIGH: also
  one level for all origins and one for all destinations, on the same H3 hierarchies, with the same budget. Anjana gets
  its hierarchies ready made, as integers, which is its fastest way; ours makes them and counts the pairs within its
  time. Anjana lifts the column with more values until the rule holds, OIGH finds the best of all pairs of levels, and
  ODkAnon need not lift all places alike: G tells what that is worth.
* ``pycanon``: the smallest class of a table with a row for each trip, with our count of the pairs of the same table.
  The whole audit of a release, which reads the trips from a file and checks much more, is measured beside it.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import json
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet
from bench_methods import K, generated_trips, seconds

from odkanon import ODMatrix, Release, Rule, utility
from odkanon.audit import TripsSource, audit_releases
from odkanon.methods.method_registry import anonymize
from odkanon.model.od import od_matrix
from odkanon.model.provenance import Source
from odkanon.zoning.cells import Cells, cell_to_latlng, cell_to_str
from odkanon.zoning.hierarchy import Hierarchy, h3_hierarchy

COLUMNS = ["start_lon", "start_lat", "end_lon", "end_lat"]
ENDS = ["origin", "destination"]
RULE = Rule(trips=K)
BUDGET = 0.10


def peer(name: str) -> Any | None:
    """Return a package if it is installed, with pandas, which all of them need."""
    if importlib.util.find_spec(name.split(".")[0]) is None or importlib.util.find_spec("pandas") is None:
        return None
    return importlib.import_module(name)


def frame_of(**columns: npt.NDArray[Any]) -> Any:
    return importlib.import_module("pandas").DataFrame(columns)


def matrix(origin: Cells, destination: Cells) -> ODMatrix:
    trees = h3_hierarchy(origin), h3_hierarchy(destination)
    leaf = [
        np.searchsorted(tree.leaves, ends).astype(np.int32)
        for tree, ends in zip(trees, (origin, destination), strict=True)
    ]
    return od_matrix(*trees, *leaf, source=Source(len(origin)))


def protected(origin: Cells, destination: Cells, method: str) -> Release:
    return anonymize(matrix(origin, destination), RULE, method=method, budget=BUDGET)


def mondrian(trips: int) -> dict[str, Any] | None:
    """Compare with anonypy."""
    anonypy = peer("anonypy")
    if anonypy is None:
        return None
    origin, destination, _ = generated_trips(trips)
    od = matrix(origin, destination)
    (start_lat, start_lon), (end_lat, end_lon) = cell_to_latlng(origin), cell_to_latlng(destination)
    points = frame_of(**dict(zip(COLUMNS, (start_lon, start_lat, end_lon, end_lat), strict=True)))
    points["nothing"] = "x"
    preserver = anonypy.Preserver(points, COLUMNS, "nothing")
    theirs = seconds(lambda: preserver.anonymize_k_anonymity(k=K))
    ours = seconds(lambda: anonymize(od, RULE, method="mondrian"))
    return {"trips": trips, "theirs_over_ours": round(theirs / ours, 1)}


def whole_columns(trips: int) -> dict[str, Any] | None:
    """Compare with anjana."""
    anjana = peer("anjana.anonymity")
    if anjana is None:
        return None
    origin, destination, _ = generated_trips(trips)
    ours: dict[str, tuple[float, Release]] = {
        method: timed(partial(protected, origin, destination, method)) for method in ("oigh", "odkanon")
    }
    od = ours["oigh"][1].od
    trees = dict(zip(ENDS, (od.origins, od.destinations), strict=True))
    levels = {name: _levels(tree) for name, tree in trees.items()}
    table = frame_of(origin=origin.astype(np.int64), destination=destination.astype(np.int64))
    with contextlib.redirect_stdout(sys.stderr):
        took, theirs = timed(lambda: anjana.k_anonymity(table, [], ENDS, K, 100 * BUDGET, levels))
    zones = [theirs[name].to_numpy() for name in ENDS]
    g = np.sum([_sizes(tree, zone) for tree, zone in zip(trees.values(), zones, strict=True)], axis=0).mean()
    classes = len(np.unique(np.stack(zones), axis=1).T)
    return {
        "trips": trips,
        **{f"theirs_over_our_{method}": round(took / spent, 1) for method, (spent, _) in ours.items()},
        "anjana": _quality(took, float(g), classes, len(theirs) / trips),
        **{
            method: _quality(spent, utility(od, made).g or 0.0, len(made.classes), made.classes.trips.sum() / trips)
            for method, (spent, made) in ours.items()
        },
    }


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the least processor time of some work, and what it made."""
    made: list[Any] = []
    return seconds(lambda: made.append(work())), made[0]


def _quality(took: float, g: float, classes: int, published: float) -> dict[str, Any]:
    return {"seconds": round(took, 4), "G": round(g, 1), "classes": classes, "suppressed": round(1 - published, 4)}


def _levels(tree: Hierarchy) -> dict[int, npt.NDArray[np.int64]]:
    """Return a hierarchy as anjana wants it: for each level, the ancestor of each leaf."""
    return {level: tree.ids[level].astype(np.int64)[tree.codes[level]] for level in range(tree.top + 1)}


def _sizes(tree: Hierarchy, zone: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return how many leaves the zone of each trip has."""
    level = next(level for level in range(tree.top + 1) if np.isin(zone, tree.ids[level].astype(np.int64)).all())
    order = np.argsort(tree.ids[level])
    place = np.searchsorted(tree.ids[level][order], zone.astype(np.uint64))
    return np.asarray(tree.sizes[level][order][place])


def smallest_class(trips: int) -> dict[str, Any] | None:
    """Compare with pycanon, on the trips as they are and on the published ones."""
    pycanon = peer("pycanon.anonymity")
    if pycanon is None:
        return None
    origin, destination, _ = generated_trips(trips)
    release = protected(origin, destination, "oigh")
    raw, published = [origin, destination], _zones_of_trips(release, origin, destination)
    found: dict[str, Any] = {"trips": trips}
    spent = {}
    for name, ends in (("raw", raw), ("published", published)):
        table = frame_of(**{end: zone.astype(np.int64) for end, zone in zip(ENDS, ends, strict=True)})
        spent[name], theirs = timed(partial(pycanon.k_anonymity, table, ENDS))
        took, od = timed(partial(matrix, *ends))
        ours = od.flows.trips
        assert theirs == ours.min()
        found[name] = {"k": int(theirs), "classes": len(ours), "theirs_over_ours": round(spent[name] / took, 1)}
    whole = _audit_seconds(release, origin, destination)
    found["published"]["theirs_over_our_whole_audit"] = round(spent["published"] / whole, 2)
    return found


def _zones_of_trips(release: Release, origin: Cells, destination: Cells) -> list[Cells]:
    """Return the zones of both ends of each published trip."""
    nodes, ids = [], []
    for tree, ends, end in zip((release.od.origins, release.od.destinations), (origin, destination), ENDS, strict=True):
        level = release.parameters[f"{end}_level"]
        nodes.append(tree.codes[level][np.searchsorted(tree.leaves, ends)].astype(np.int64))
        ids.append(tree.ids[level])
    _, number, count = np.unique(nodes[0] * len(ids[1]) + nodes[1], return_inverse=True, return_counts=True)
    return [zone[node[count[number] >= K]] for zone, node in zip(ids, nodes, strict=True)]


def _audit_seconds(release: Release, origin: Cells, destination: Cells) -> float:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trips.parquet"
        ends = dict(zip(ENDS, (cell_to_str(origin), cell_to_str(destination)), strict=True))
        pa.parquet.write_table(pa.table(ends), path)
        saved = release.save(Path(folder) / "release")
        took, report = timed(lambda: audit_releases([saved], trips=TripsSource(path)))
        assert report.clean, report
        return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trips", type=float, default=1e5, help="for anonypy and pycanon")
    parser.add_argument("--anjana-trips", default="1e3,1e4,1e5", help="it takes minutes for the largest")
    options = parser.parse_args()
    sizes = [int(float(size)) for size in options.anjana_trips.split(",")]
    result = {
        "mondrian_of_anonypy": mondrian(int(options.trips)),
        "whole_columns_of_anjana": [row for row in map(whole_columns, sizes) if row] or None,
        "smallest_class_by_pycanon": smallest_class(int(options.trips)),
    }
    print(json.dumps({name: found or "not installed" for name, found in result.items()}, indent=2))


if __name__ == "__main__":
    main()
