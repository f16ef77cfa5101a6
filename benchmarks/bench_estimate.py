"""How right estimated flows are: CPC on squares (means over four shifts), coverage of intervals, cubes.

    python benchmarks/bench_estimate.py SURVEY.parquet [--where COLUMN=VALUE] [--cube 1,2,17,9] [--zones 350]

Prints, as JSON, CPC of the estimate and of even spreading for several methods; for half of the households (persons,
trips) against the other half, beside the raw half; the share of flows whose number of trips lies in the interval, by
classes of the estimate; and for a cube by mode and slot of the day CPC, the bias of the share that stays, and totals by
slot. Trips outside the quantiles 0.5 % and 99.5 % of any coordinate are left out.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import shapely
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

import odkanon
from odkanon.estimate.flow_estimates import ReleaseReader, read_flows
from odkanon.estimate.target_areas import PolygonAreas, ZoneFootprints
from odkanon.publish.save import as_saved
from odkanon.zoning.spherical_geometry import Projection

ENDS = ["start_lat", "start_lon", "end_lat", "end_lon"]
SHIFTS = (0.0, 0.25, 0.5, 0.75)
SLOTS = {"00-07": 7, "07-09": 9, "09-17": 17, "17-20": 20, "20-24": 24}
CLASSES = (0.05, 0.5, 2, 5, 10, 20, 50, 100, 1e9)


def read(path: str, where: list[str]) -> pa.Table:
    """Return the trips of a survey inside the usual quantiles."""
    table = pq.read_table(path)
    for condition in where:
        column, _, value = condition.partition("=")
        table = table.filter(pc.equal(table[column], value))
    for name in ENDS:
        table = table.filter(pc.and_(pc.is_valid(table[name]), pc.greater(pc.abs(table[name]), 0.1)))
    for name in ENDS:
        low, high = np.quantile(table[name].to_numpy(), [0.005, 0.995])
        table = table.filter(pc.and_(pc.greater_equal(table[name], low), pc.less_equal(table[name], high)))
    return table


class Squares:
    """Squares of a map that begin at some share of their side."""

    def __init__(self, about: Projection, km: float, shift: float, ends: Any) -> None:
        self.about, self.km, self.shift = about, km, shift
        self.keys = np.unique(np.concatenate([self.key(*end) for end in ends]))
        self.ids = [str(key) for key in self.keys.tolist()]

    def key(self, lat: Any, lon: Any) -> Any:
        """Return a number for the square of each point."""
        x, y = (
            np.floor(each / (1000 * self.km) + self.shift).astype(np.int64) for each in self.about.to_metres(lat, lon)
        )
        return (x + (1 << 20)) * (1 << 21) + y + (1 << 20)

    def number(self, lat: Any, lon: Any) -> Any:
        """Return for each point the position of its area."""
        key = self.key(lat, lon)
        at = np.searchsorted(self.keys, key).clip(max=len(self.keys) - 1)
        return np.where(self.keys[at] == key, at, -1)

    def relation(self, zones: ZoneFootprints) -> Any:
        """Return which zones lie inside which areas, and which share any part."""
        corners = [np.divmod(self.keys, 1 << 21)[axis] - (1 << 20) - self.shift for axis in (0, 1)]
        side = 1000 * self.km
        south, west = self.about.to_degrees(corners[0] * side, corners[1] * side)
        north, east = self.about.to_degrees((corners[0] + 1) * side, (corners[1] + 1) * side)
        return PolygonAreas(self.ids, shapely.box(west, south, east, north)).relation(zones)


class Truth:
    """Trips on a map."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        lat, lon = ([table[f"{end}_{side}"].to_numpy() for end in ("start", "end")] for side in ("lat", "lon"))
        self.about = Projection.around(np.concatenate(lat), np.concatenate(lon))
        self.ends = list(zip(lat, lon, strict=True))

    def squares(self, km: float, shift: float) -> Any:
        """Return the squares of one size that have trips."""
        return Squares(self.about, km, shift, self.ends)

    def flows(self, areas: Any, some: Any = slice(None)) -> Any:
        """Return the trips between areas, of some rows."""
        count = len(areas.ids)
        ends = [areas.number(lat[some], lon[some]) for lat, lon in self.ends]
        inside = (ends[0] >= 0) & (ends[1] >= 0)
        return csr_array((np.ones(inside.sum()), (ends[0][inside], ends[1][inside])), shape=(count, count))


def common_part(truth: Any, found: Any, trips: float, published: float) -> float:
    return float(2 * truth.minimum(found).sum() / (trips + published))


def cpc(reader: ReleaseReader, truth: Truth, km: float) -> float:
    """Return the mean CPC over the shifts, the release scaled to the trips that it is compared with."""
    trips, published = truth.table.num_rows, float(reader.measures["trips"].sum())
    scale = trips / published if abs(trips - published) > 0.2 * trips else 1.0
    found = []
    for shift in SHIFTS:
        areas = truth.squares(km, shift)
        estimate = reader.expected(areas, areas)["trips"] * scale
        found.append(common_part(truth.flows(areas), estimate, trips, published * scale))
    return round(float(np.mean(found)), 4)


def publish(table: pa.Table, **options: Any) -> odkanon.Release:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release: odkanon.Release = odkanon.anonymize(table.select([*ENDS, *options.get("by", [])]), k=10, **options)
    return release


def halves(table: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return two halves of the households, persons or trips."""
    unit = next((name for name in ("household_id", "person_id") if name in table.column_names), None)
    if unit is None or table[unit].null_count:
        number = np.arange(table.num_rows)
    else:
        number = np.unique(table[unit].to_numpy(zero_copy_only=False), return_inverse=True)[1]
    one = np.random.default_rng(1).random(int(number.max()) + 1)[number] < 0.5
    return table.filter(pa.array(one)), table.filter(pa.array(~one))


def half_and_half(table: pa.Table) -> dict[str, Any]:
    one, other = halves(table)
    truth, raw = Truth(other), Truth(one)
    reader = read_flows(as_saved(publish(one, method="cascade")))
    found: dict[str, Any] = {}
    for km in (1, 2, 4, 8):
        own = []
        for shift in SHIFTS:
            areas = truth.squares(km, shift)
            scale = other.num_rows / one.num_rows
            own.append(common_part(truth.flows(areas), raw.flows(areas) * scale, other.num_rows, other.num_rows))
        found[f"{km} km"] = {"release": cpc(reader, truth, km), "raw half": round(float(np.mean(own)), 4)}
        found[f"{km} km"]["share"] = round(found[f"{km} km"]["release"] / found[f"{km} km"]["raw half"], 4)
    return found


def coverage(reader: ReleaseReader, truth: Truth) -> dict[str, Any]:
    """Return the share of flows inside their interval and the number of flows, by classes of the estimate."""
    inside, count = np.zeros(len(CLASSES) - 1), np.zeros(len(CLASSES) - 1)
    outside = 0
    for km in (2, 4):
        for shift in SHIFTS[::2]:
            areas = truth.squares(km, shift)
            table = reader.between(areas, areas).table
            number = {name: at for at, name in enumerate(areas.ids)}
            origin, destination = (
                np.array([number[x] for x in table[a].to_pylist()]) for a in ("origin", "destination")
            )
            true = np.asarray(truth.flows(areas).toarray()[origin, destination])
            column = {name: table[name].to_numpy() for name in table.column_names[2:]}
            kind = np.digitize(column["estimate"], CLASSES) - 1
            good = (true >= column["interval_low"]) & (true <= column["interval_high"])
            inside += np.bincount(kind, good, len(inside))
            count += np.bincount(kind, minlength=len(inside))
            high = table["high"].fill_null(1 << 40).to_numpy()
            outside += int(((true < column["low"]) | (true > high)).sum())
    many = np.array(CLASSES[:-1]) >= 2
    named = {
        f"{low:g} to {high:g}": [round(float(a / max(b, 1)), 3), int(b)]
        for low, high, a, b in zip(CLASSES[:-1], CLASSES[1:], inside, count, strict=True)
    }
    return {"from 2": round(float(inside[many].sum() / count[many].sum()), 3), **named, "outside bounds": outside}


class Voronoi:
    """Zones around random trip ends."""

    def __init__(self, truth: Truth, count: int) -> None:
        self.about = truth.about
        lat, lon = (np.concatenate([end[side] for end in truth.ends]) for side in (0, 1))
        x, y = self.about.to_metres(lat, lon)
        random = np.random.default_rng(4)
        self.tree = cKDTree(np.stack([x, y], axis=1)[random.choice(len(x), count, replace=False)])
        self.ids = [str(number) for number in range(count)]

    def number(self, lat: Any, lon: Any) -> Any:
        """Return for each point the position of its area."""
        return self.tree.query(np.stack(self.about.to_metres(np.asarray(lat), np.asarray(lon)), axis=1))[1]

    def relation(self, zones: ZoneFootprints) -> Any:
        """Return which zones lie inside which areas, and which share any part."""
        raise NotImplementedError


def random_zones(reader: ReleaseReader, truth: Truth, count: int) -> float:
    areas: Any = Voronoi(truth, count)
    estimate = reader.expected(areas, areas)["trips"]
    trips = truth.table.num_rows
    return round(common_part(truth.flows(areas), estimate, trips, float(reader.measures["trips"].sum())), 4)


def by_mode(table: pa.Table, modes: list[str]) -> dict[str, Any]:
    """Return how right a cube by five modes and five slots of the day is, on squares of 4 and 8 km."""
    table = table.filter(pc.and_(pc.is_valid(table["mode"]), pc.is_valid(table["start_time"])))
    mode = [value if value in modes else "others" for value in map(str, table["mode"].to_pylist())]
    hour = pc.hour(table["start_time"]).to_numpy()
    slot = np.array(list(SLOTS))[np.searchsorted(list(SLOTS.values()), hour, side="right")]
    table = table.select(ENDS).append_column("means", pa.array(mode)).append_column("slot", pa.array(slot))
    truth, value = Truth(table), np.array(mode)
    started = time.process_time()
    saved = as_saved(publish(table, method="cascade", by=["means", "slot"]))
    reader = read_flows(saved, {"means": mode[0], "slot": "00-07"})
    found: dict[str, Any] = {"seconds": round(time.process_time() - started, 1)}
    trips, published = table.num_rows, float(reader.measures["trips"].sum())
    for km in (4, 8):
        common, stays, totals = [], [], dict.fromkeys(SLOTS, 0.0)
        for shift in SHIFTS:
            areas = truth.squares(km, shift)
            right = 0.0
            for one in sorted(set(mode)):
                for when in SLOTS:
                    some = (value == one) & (slot == when)
                    true = truth.flows(areas, some)
                    estimate = reader.expected(areas, areas, {"means": one, "slot": when})["trips"]
                    right += float(true.minimum(estimate).sum())
                    totals[when] += float(estimate.sum()) / len(SHIFTS)
                    stays.append(
                        (true.sum(), true.diagonal().sum() / true.sum(), estimate.diagonal().sum() / estimate.sum())
                    )
            common.append(2 * right / (trips + published))
        size, before, after = np.array(stays).T
        found[f"{km} km"] = {
            "cpc": round(float(np.mean(common)), 4),
            "bias of stays": round(float(np.average(after - before, weights=size)), 4),
            "totals": {when: round(total / float((slot == when).sum()), 3) for when, total in totals.items()},
        }
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("survey", nargs="?", help="trips with coordinates; by default the built-in survey")
    arguments.add_argument("--where", action="append", default=[], help="COLUMN=VALUE")
    arguments.add_argument("--methods", default="cascade,odkanon,atg-soft")
    arguments.add_argument("--cube", default="", help="four modes, the others being one")
    arguments.add_argument("--zones", type=int, default=350)
    given = arguments.parse_args()
    table = read(given.survey, given.where) if given.survey else odkanon.make_survey()
    truth, result = Truth(table), {"trips": table.num_rows}
    for method in given.methods.split(","):
        release = publish(table, method=method)
        started = time.process_time()
        reader = read_flows(as_saved(release))
        seconds = round(time.process_time() - started, 2)
        even = {place.name: round(place.cpc, 4) for place in release.accuracy["trips"].squares}
        result[method] = {
            "cells": len(reader.tree),
            "seconds": seconds,
            "estimate": {f"{km} km": cpc(reader, truth, km) for km in (1, 2, 4, 8)},
            "even": even,
            f"{given.zones} zones": random_zones(reader, truth, given.zones),
            "intervals": coverage(reader, truth),
        }
        print(method, json.dumps(result[method]), file=sys.stderr, flush=True)
    result["half against half"] = half_and_half(table)
    if given.cube:
        result["cube"] = by_mode(table, given.cube.split(","))
    result["peak_gib"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
