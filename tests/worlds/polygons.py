"""A town of polygons: a lookup table of squares in districts, their outlines, and trips between them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

from odkanon import read_matrix
from odkanon.model.od import ODMatrix
from odkanon.read.zone_hierarchy import with_outlines
from odkanon.zoning.hierarchy import Hierarchy
from odkanon.zoning.lookup import lookup_hierarchy

SIDE = 0.01


def square(column: float, row: float) -> dict[str, Any]:
    """Return a square of the grid as GeoJSON."""
    west, south = 2 + SIDE * column, 48 + SIDE * row
    east, north = west + SIDE, south + SIDE
    ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
    return {"type": "Polygon", "coordinates": [[[round(x, 6), round(y, 6)] for x, y in ring]]}


def square_tree(width: int, steps: tuple[int, ...] = (3, 6)) -> Hierarchy:
    """Return a grid of squares, grouped into larger squares of some sides, with the outlines of the small ones."""
    places = [(column, row) for column in range(width) for row in range(width)]
    table = {"leaf": [name(*place) for place in places]}
    for step in steps:
        table[f"of {step}"] = [f"{step}-{column // step:02}-{row // step:02}" for column, row in places]
    return replace(lookup_hierarchy(pa.table(table)), outlines={name(*place): square(*place) for place in places})


def name(column: int, row: int) -> str:
    """Return the code of a square."""
    return f"s{column:03}{row:03}"


def outlined(tree: Hierarchy) -> Hierarchy:
    """Return the tree of squares with the outlines of its larger squares, too."""
    features = [
        {"type": "Feature", "properties": {"id": zone}, "geometry": shape}
        for zone, shape in (tree.outlines or {}).items()
    ]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "zones.geojson"
        path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
        return with_outlines(tree, path)


def square_town(
    seed: int, *, width: int = 12, trips: int = 3000, steps: tuple[int, ...] = (3, 6), all_outlined: bool = False
) -> ODMatrix:
    """Return trips between the squares, many around a few centres that no district has in its middle."""
    random = np.random.default_rng(seed)
    centres = random.uniform(0, width, size=(4, 2))
    ends = centres[random.integers(0, 4, size=(2, trips))] + random.normal(0, width / 7, size=(2, trips, 2))
    column, row = np.clip(ends, 0, width - 1e-9).astype(int).transpose(2, 0, 1)
    origin, destination = ([name(x, y) for x, y in zip(column[axis], row[axis], strict=True)] for axis in (0, 1))
    tree = square_tree(width, steps)
    ends_of_trips = pa.table({"origin": origin, "destination": destination})
    return read_matrix(ends_of_trips, hierarchy=outlined(tree) if all_outlined else tree, engine="memory")


def patchwork(seed: int, count: int, west: float, south: float, east: float, north: float) -> Any:
    """Return the irregular polygons around random points, which fill a box: an array of shapely geometries."""
    import shapely

    random = np.random.default_rng(seed)
    points = np.stack([random.uniform(west, east, count), random.uniform(south, north, count)], axis=1)
    box = shapely.box(west, south, east, north)
    cells = shapely.get_parts(shapely.voronoi_polygons(shapely.multipoints(points), extend_to=box))
    return shapely.intersection(cells, box)


def write_zones(path: Path, shapes: Any, crs: str = "EPSG:4326", **properties: Sequence[str]) -> Path:
    """Write polygons in degrees to a GeoPackage or GeoJSON file in some reference system."""
    import pyogrio.raw
    import pyproj
    import shapely

    convert = pyproj.Transformer.from_crs("EPSG:4326", crs, always_xy=True)
    # Sides that are straight in degrees are curves elsewhere.
    close = shapes if crs == "EPSG:4326" else shapely.segmentize(shapes, 0.0005)
    moved = shapely.transform(close, lambda points: np.stack(convert.transform(*points.T), axis=1))
    pyogrio.raw.write(
        str(path),
        shapely.to_wkb(moved),
        [np.array(values, dtype=object) for values in properties.values()],
        list(properties),
        crs=crs,
        geometry_type="Unknown",
        driver="GPKG" if path.suffix == ".gpkg" else "GeoJSON",
    )
    return path
