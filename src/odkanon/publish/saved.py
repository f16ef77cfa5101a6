"""A release as it lies in its folder: flows between zones, and where the zones are."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet

from odkanon.errors import InputError
from odkanon.publish.save import MANIFEST

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SavedRelease:
    """A release that was read back.

    Attributes
    ----------
    name : str
        The folder.
    flows : pyarrow.Table
        ``origin, destination, trips`` and, where known, ``weight, persons``.
    features : list of dict
        The zones of both axes as GeoJSON features.
    ids : list of str
        Names of all zones, of both axes together, sorted. Where a name means different places on the two axes, it
        begins with ``origin:`` or ``destination:``.
    outlines : list of dict or None
        For each of them its GeoJSON geometry, where known.
    origin, destination : array of int
        For each flow, the numbers of its zones among them.
    """

    name: str
    flows: pa.Table
    features: list[dict[str, Any]]
    ids: list[str]
    outlines: list[dict[str, Any] | None]
    origin: npt.NDArray[np.int64]
    destination: npt.NDArray[np.int64]

    def measure(self, name: str) -> Floats:
        """Return the trips or the weight of each flow."""
        if name not in self.flows.column_names:
            known = ", ".join(self.flows.column_names[2:])
            raise InputError(f"the release {self.name} has no {name}; choose among {known}")
        return np.asarray(self.flows.column(name).to_numpy(), dtype=np.float64)

    @property
    def measures(self) -> list[str]:
        """What is published of flows besides the number of persons, which does not add up."""
        return [name for name in ("trips", "weight") if name in self.flows.column_names]

    @cached_property
    def shapes(self) -> npt.NDArray[Any]:
        """The outline of each zone, None where it is not known; needs shapely."""
        return to_shapes(self.outlines)

    @cached_property
    def centres(self) -> Floats:
        """Longitude and latitude of the middle of each zone; NaN where it has no outline."""
        shapely = import_shapely()
        centre = shapely.centroid(self.shapes)
        lon = (shapely.get_x(centre) + 180) % 360 - 180
        return np.stack([lon, shapely.get_y(centre)], axis=1)

    def check_outlines(self, purpose: str) -> None:
        """Raise if a zone has no outline."""
        without = [zone for zone, outline in zip(self.ids, self.outlines, strict=True) if outline is None]
        if without:
            raise InputError(
                f"{purpose} needs to know where zones are, and {len(without):,} of them have no outline (first: "
                f"{without[0]}); give their polygons to anonymize with --zones-geojson"
            )


def read_release(folder: Path) -> SavedRelease:
    """Read a release from its folder."""
    if not (folder / MANIFEST).is_file():
        raise InputError(f"{folder} is not a release; give a folder that `odkanon anonymize` has written")
    try:
        flows = pyarrow.parquet.read_table(folder / "classes.parquet")
        features = json.loads((folder / "zones.geojson").read_text(encoding="utf-8"))["features"]
    except (OSError, ValueError, KeyError, pa.ArrowException) as error:
        raise InputError(f"the release {folder} is damaged ({error}); make it again") from None
    outlines = {
        axis: {f["properties"]["id"]: f["geometry"] for f in features if f["properties"]["axis"] == axis}
        for axis in ("origin", "destination")
    }
    elsewhere = {
        zone
        for zone in outlines["origin"].keys() & outlines["destination"].keys()
        if outlines["origin"][zone] != outlines["destination"][zone]
    }
    named = {
        axis: {zone: f"{axis}:{zone}" if zone in elsewhere else zone for zone in zones}
        for axis, zones in outlines.items()
    }
    places = {named[axis][zone]: outline for axis, zones in outlines.items() for zone, outline in zones.items()}
    ids = sorted(places)
    number = {zone: position for position, zone in enumerate(ids)}
    ends = [
        np.array([number[named[axis][zone]] for zone in flows.column(axis).to_pylist()], dtype=np.int64)
        for axis in ("origin", "destination")
    ]
    return SavedRelease(str(folder), flows, features, ids, [places[zone] for zone in ids], ends[0], ends[1])


def import_shapely() -> Any:
    """Return the package for geometry, which is optional, or say how to get it."""
    try:
        return import_module("shapely")
    except ImportError:
        raise InputError("exports with geometry need shapely: pip install 'odkanon[geo]'") from None


def to_shapes(outlines: list[dict[str, Any] | None]) -> npt.NDArray[Any]:
    """Return GeoJSON geometries as shapely ones."""
    texts = np.array([None if outline is None else json.dumps(outline) for outline in outlines], dtype=object)
    return np.asarray(import_shapely().from_geojson(texts))
