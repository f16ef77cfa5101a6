"""Release folders made up for the tests, in the format that every saved release has."""

from __future__ import annotations

import csv
import hashlib
import json
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import h3

Class = tuple[str, str, int]
"""Origin zone, destination zone, trips."""

Shapes = Mapping[str, Mapping[str, dict[str, Any] | None]]
"""For each axis, the geometry of every zone."""

MEAN_WEIGHT = 100.5
PARIS = (48.8566, 2.3522)
AXES = ("origin", "destination")


def hexagon(cell: str) -> dict[str, Any]:
    ring = [[longitude, latitude] for latitude, longitude in h3.cell_to_boundary(cell)]
    return {"type": "Polygon", "coordinates": [[*ring, ring[0]]]}


def box(west: float, south: float, east: float, north: float) -> dict[str, Any]:
    return {
        "type": "Polygon",
        "coordinates": [[[west, south], [east, south], [east, north], [west, north], [west, south]]],
    }


def disk(resolution: int, rings: int, place: tuple[float, float] = PARIS) -> list[str]:
    return sorted(h3.grid_disk(h3.latlng_to_cell(*place, resolution), rings))


def some_flows(origins: Sequence[str], destinations: Sequence[str], each: int, seed: int = 1) -> list[Class]:
    """`each` destinations for every origin, sizes from the threshold upwards with a long tail."""
    dice = random.Random(seed)
    many = min(each, len(destinations))
    return sorted(
        (origin, destination, 10 + int(dice.paretovariate(1.1)))
        for origin in origins
        for destination in dice.sample(list(destinations), many)
    )


def save(
    folder: Path,
    flows: Sequence[Class],
    shapes: Shapes | None = None,
    *,
    weights: bool = True,
    **about: Any,
) -> Path:
    """Write a release folder and its recipe; zones are H3 cells unless shapes are given for each axis."""
    folder.mkdir(parents=True)
    with (folder / "classes.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["origin", "destination", "trips", *(["weight", "persons"] if weights else [])])
        for origin, destination, trips in flows:
            more = [round(trips * MEAN_WEIGHT * (0.5 + trips % 7 / 6), 3), math.ceil(trips / 2)] if weights else []
            rows.writerow([origin, destination, trips, *more])
    features = [
        feature for number, axis in enumerate(AXES) for feature in _features(axis, number, flows, shapes, weights)
    ]
    zones = {"type": "FeatureCollection", "features": features}
    (folder / "zones.geojson").write_text(json.dumps(zones), encoding="utf-8")
    full = _about(flows, weights) | about
    (folder / "release.json").write_text(json.dumps(_public(full)), encoding="utf-8")
    digest = hashlib.sha256((folder / "release.json").read_bytes()).hexdigest()
    leaves = {
        axis: {"leaves": [_leaves(zone) for zone in features if zone["properties"]["axis"] == axis]} for axis in AXES
    }
    recipe = {"format": 1, "release": folder.name, "public_sha256": digest, "about": full, "zones": leaves}
    folder.with_name(f"{folder.name}.recipe.json").write_text(json.dumps(recipe), encoding="utf-8")
    return folder


def _leaves(zone: dict[str, Any]) -> int | None:
    resolution = zone["properties"]["resolution"]
    return None if resolution is None else int(7 ** (10 - resolution))


def _public(full: Mapping[str, Any]) -> dict[str, Any]:
    """What release.json says of a release, given everything about it."""
    kept = {name: full[name] for name in ("version", "rule", "method", "parameters", "axes") if name in full}
    published = {name: value for name, value in full["published"].items() if name != "share"}
    rounded = {
        measure: {name: None if value is None else float(f"{value:.2g}") for name, value in numbers.items()}
        for measure, numbers in full["utility"].items()
    }
    most = full.get("unlisted", {"at_most_trips": published["trips"] // 9})
    return {"format": 1, **kept, "published": published, "unlisted": most, "quality": rounded}


def _features(
    axis: str,
    end: int,
    flows: Iterable[Class],
    shapes: Shapes | None,
    weights: bool,
) -> list[dict[str, Any]]:
    trips: dict[str, int] = {}
    for flow in flows:
        zone = str(flow[end])
        trips[zone] = trips.get(zone, 0) + flow[2]
    features = []
    for zone, mass in sorted(trips.items()):
        own: dict[str, Any] = {"axis": axis, "id": zone, "kind": "box", "resolution": None, "trips": mass}
        if shapes is None:
            own |= {"kind": "cell", "resolution": h3.get_resolution(zone)}
        if weights:
            own["weight"] = mass * MEAN_WEIGHT
        geometry = hexagon(zone) if shapes is None else shapes[axis][zone]
        features.append({"type": "Feature", "properties": own, "geometry": geometry})
    return features


def _about(flows: Sequence[Class], weights: bool) -> dict[str, Any]:
    published = sum(trips for _, _, trips in flows)
    total = math.ceil(published / 0.9) or 100
    weight = {"weight": published * MEAN_WEIGHT} if weights else {}
    quality = {"c_dm": 48_912_345.0, "c_avg": 6.13, "g": 852.31, "e": 1.0234}
    protection: dict[str, Any] = {"trips": {"min": 11, "threshold": 10, "below": 0, "share": 0.0}}
    if weights:
        protection["weight"] = {"min": 552.75, "threshold": 1005.0, "below": 42, "share": 0.105}
        protection["persons"] = {"min": 6, "threshold": 10, "below": 17, "share": 0.0425}
    return {
        "version": "0.1.0",
        "input": {
            "rows": total + 312,
            "trips": total + 312,
            **weight,
            "rejected": {"with missing coordinates": {"rows": 312, "trips": 312}},
        },
        "rule": {"trips": 10, "k": 10},
        "method": "odkanon",
        "parameters": {"budget": 0.1, "suppress": "after"},
        "published": {
            "classes": len(flows),
            "origins": len({flow[0] for flow in flows}),
            "destinations": len({flow[1] for flow in flows}),
            "trips": published,
            **weight,
            "share": published / total,
        },
        "suppressed": {"pairs": 1234, "trips": total - published, "share": 1 - published / total},
        "utility": {"trips": quality, **({"weight": quality | {"g": 861.7}} if weights else {})},
        "privacy": protection,
        "limit": {"g": 321.4},
        "seconds": 0.31,
    }


def hexagons(folder: Path) -> Path:
    """A small H3 release: 19 origin zones of one level, 13 destination zones of two levels."""
    origins = disk(8, 2)
    coarse = h3.cell_to_parent(h3.latlng_to_cell(*PARIS, 8), 7)
    fine = [cell for cell in origins if h3.cell_to_parent(cell, 7) != coarse]
    return save(folder, some_flows(origins, [coarse, *fine], 8))


def nested(folder: Path, **about: Any) -> Path:
    """A release with rows at four resolutions: what a fine row does not list stands in a coarser one.

    Around the middle trips are known between cells of resolution 9, farther out between coarser ones; some trips stay
    inside their cell.
    """
    dice = random.Random(3)
    middle = h3.latlng_to_cell(*PARIS, 6)
    flows: dict[tuple[str, str], int] = {}
    for level, many in ((9, 160), (8, 90), (7, 40), (6, 8)):
        cells = sorted(h3.cell_to_children(middle, level)) if level > 6 else disk(6, 1)
        cells.sort(key=lambda cell: h3.great_circle_distance(PARIS, h3.cell_to_latlng(cell)))
        cells = cells[: 40 if level > 7 else 12]
        for number in range(many):
            origin, destination = dice.choice(cells), dice.choice(cells)
            if number % 6 == 0:
                destination = origin
            flows[origin, destination] = 10 + int(dice.paretovariate(1.0))
    rows = [(origin, destination, trips) for (origin, destination), trips in sorted(flows.items())]
    return save(folder, rows, weights=False, method="cascade", **about)


def nested_pair(folder: Path) -> tuple[Path, Path]:
    """Two nested releases of different trips: the flows to some cells grew, others are only known coarser by now."""
    with (nested(folder / "march", unlisted={"at_most_trips": 0}) / "classes.csv").open(newline="") as file:
        rows = [(row["origin"], row["destination"], int(row["trips"])) for row in csv.DictReader(file)]
    later: dict[tuple[str, str], int] = {}
    for number, (origin, destination, trips) in enumerate(rows):
        if h3.get_resolution(destination) == 9 and number % 5 == 0:
            destination = h3.cell_to_parent(destination, 7)
        later[origin, destination] = later.get((origin, destination), 0) + trips * (3 if number % 3 == 0 else 1)
    flows = [(origin, destination, trips) for (origin, destination), trips in sorted(later.items())]
    april = save(folder / "april", flows, weights=False, method="cascade", unlisted={"at_most_trips": 0})
    return folder / "march", april


HOURS = (["any"] * 4, ["06-09", "06-09", "15-18", "15-18"], ["06", "07", "15", "16"])
"""Hours from no hour at all to the finest."""
CUBE = [
    {"name": "mode", "levels": [["bus", "car"], ["any", "any"]]},
    {"name": "hour", "levels": list(reversed(HOURS))},
]


def cube(folder: Path) -> Path:
    """A nested release whose finer rows also tell the mode and the hour; coarser ones tell less."""
    nested(folder, axes=CUBE)
    path = folder / "classes.csv"
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["origin", "destination", "mode", "hour", "trips"])
        for number, row in enumerate(rows):
            level = h3.get_resolution(row["origin"])
            mode = ("bus", "car")[number % 2] if level > 7 else "any"
            hour = HOURS[level - 7][number % 3 % 2 * 2] if level > 7 else "any"
            table.writerow([row["origin"], row["destination"], mode, hour, row["trips"]])
    return folder


def segments(folder: Path) -> Path:
    """A folder of segments that were released together."""
    zones = disk(8, 1)
    for number, name in enumerate(("whole", "hour=06-09", "hour=15-18")):
        save(folder / name, some_flows(zones, zones, 4, seed=number), parameters={"segment": {"hour": name[5:]}})
    listed = [
        {"dimension": "hour", "segment": {"hour": "06-09"}, "folder": "hour=06-09"},
        {"dimension": "hour", "segment": {"hour": "15-18"}, "folder": "hour=15-18"},
        {"dimension": "hour", "segment": {"hour": "22-24"}, "folder": None},
    ]
    index = {"version": "0.1.0", "whole": "whole", "segments": listed}
    (folder / "index.json").write_text(json.dumps(index), encoding="utf-8")
    return folder


def boxes(folder: Path, many: int = 60) -> Path:
    """A Mondrian release: every class has its own, overlapping pair of boxes, and neither G nor E."""
    dice = random.Random(2)
    shapes: dict[str, dict[str, dict[str, Any] | None]] = {axis: {} for axis in AXES}
    flows = []
    for number in range(many):
        for axis in AXES:
            west, south = 2.2 + 0.2 * dice.random(), 48.8 + 0.1 * dice.random()
            shapes[axis][f"{axis[0]}{number}"] = box(west, south, west + 0.05, south + 0.03)
        flows.append((f"o{number}", f"d{number}", 10 + number))
    utility = {"trips": {"c_dm": 12_345.0, "c_avg": 3.95, "g": None, "e": None}}
    return save(folder, flows, shapes, weights=False, method="mondrian", parameters={}, utility=utility, limit=None)


def pair(folder: Path) -> tuple[Path, Path]:
    """Two releases that share most zones; the second splits one origin zone of the first into its children."""
    zones = disk(7, 1)
    split = zones[2]
    finer = sorted([*(zone for zone in zones if zone != split), *h3.cell_to_children(split, 8)])
    first = save(folder / "participants", some_flows(zones, zones, 5))
    rule = {"weight": 1005.0, "k": 10}
    return first, save(folder / "population", some_flows(finer, zones, 5), rule=rule)


def large(folder: Path) -> Path:
    """5,000 zones and 200,000 flows."""
    origins, destinations = disk(9, 29)[:2500], disk(9, 29)[-2500:]
    return save(folder, some_flows(origins, destinations, 80))
