"""A release as it lies in its folder: flows between zones, and where the zones are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet

from odkanon.core.arrays import Ints
from odkanon.core.parsing import parse_json
from odkanon.core.paths import plain
from odkanon.errors import InputError
from odkanon.linked.fixed_zoning import Zoning, zoning_of_features
from odkanon.methods.cascade.reuse import EarlierRows
from odkanon.methods.method_registry import METHODS
from odkanon.model.measures import ADDITIVE, MEASURES
from odkanon.model.od import AXES
from odkanon.release_format.conversions import import_shapely, to_shapes
from odkanon.release_format.names import CSV, MANIFEST, PARQUET, ZONES, read_rows
from odkanon.release_format.recipe import INDEX, read_recipe, with_leaves
from odkanon.zoning.zone_nodes import ZoneNodes, attribute_nodes

Floats = npt.NDArray[np.float64]
_FARTHEST = 1_000
"""Degrees; an outline across the date line may go beyond 180."""
WHOLE = "whole"
"""The folder of the release of everything, among those of segments."""


@dataclass(frozen=True, eq=False)
class Places:
    """The zones of both axes together.

    Attributes
    ----------
    ids : list of str
        Names of all zones, sorted. Where a name means different places on the two axes, it begins with ``origin:`` or
        ``destination:``.
    outlines : list of dict or None
        For each of them its GeoJSON geometry, where known.
    origin, destination : array of int
        For each flow, the numbers of its zones among them.
    """

    ids: list[str]
    outlines: list[dict[str, Any] | None]
    origin: Ints
    destination: Ints


@dataclass(frozen=True, eq=False)
class SavedRelease:
    """What the folder of a release holds.

    Attributes
    ----------
    name : str
        The folder's own name; never a path, so that a page does not tell where it was made.
    about : dict
        The content of ``release.json``.
    zones : list of dict
        The zones of both axes as GeoJSON features.
    flows : pyarrow.Table
        ``origin, destination``, the axes of a cube, ``trips`` and, where known, the other measures.
    """

    name: str
    about: dict[str, Any]
    zones: list[dict[str, Any]]
    flows: pa.Table

    def measure(self, name: str) -> Floats:
        """Return the trips or the weight of each flow."""
        if name not in self.flows.column_names:
            known = ", ".join(own for own in self.flows.column_names if own in MEASURES)
            raise InputError(f"the release {self.name} has no {name}; choose among {known}")
        return np.asarray(self.flows.column(name).to_numpy(), dtype=np.float64)

    @property
    def measures(self) -> list[str]:
        """What is published of flows that adds up; the number of persons does not."""
        return [name for name in ADDITIVE if name in self.flows.column_names]

    @property
    def axes(self) -> list[str]:
        """The axes of a cube besides the two places; none for other releases."""
        return [axis["name"] for axis in self.about.get("axes", [])]

    @property
    def attributes(self) -> list[tuple[ZoneNodes, Ints]]:
        """For each axis of a cube what its rows tell, each once, and for each row the number of its own."""
        return [
            attribute_nodes(np.array(self.flows.column(axis["name"]).to_pylist(), dtype=np.str_), axis["levels"])
            for axis in self.about.get("axes", [])
        ]

    def over_places(self) -> SavedRelease:
        """Return the same flows with all kinds of trips added up, one for each pair of zones."""
        if not self.axes:
            return self
        sums = self.flows.group_by(list(AXES), use_threads=False).aggregate([(name, "sum") for name in self.measures])
        sums = sums.rename_columns([*AXES, *self.measures])
        return replace(self, flows=sums.sort_by([(axis, "ascending") for axis in AXES]))

    @property
    def nested(self) -> bool:
        """Whether flows lie in each other."""
        method = METHODS.get(self.about.get("method", ""))
        return method is not None and method.nested

    @property
    def earlier_rows(self) -> EarlierRows:
        """The rows of a cascade without their numbers, to be used for other trips; see `odkanon.anonymize`."""
        if self.axes or not self.nested:
            raise InputError(f"{self.name} is no cascade between places, so that it has no rows to use for other trips")
        ends = [np.array(self.flows.column(axis).to_pylist(), dtype=np.str_) for axis in AXES]
        return EarlierRows(self.name, ends[0], ends[1])

    @property
    def zoning(self) -> Zoning:
        """The zones without their numbers, to be laid over other data; see `odkanon.linked.fixed_zoning`."""
        if self.axes:
            raise InputError(
                f"{self.name} is a cube, whose zones lie in each other and differ by kind of trip; they cannot be used "
                "for other data: make a cube of that data"
            )
        if self.nested:
            raise InputError(f"{self.name} is a cascade: its rows lie in each other, and are no zoning")
        return zoning_of_features(self.zones, self.name)

    @cached_property
    def places(self) -> Places:
        """The zones of both axes as one list."""
        outlines = {
            axis: {zone["properties"]["id"]: zone.get("geometry") for zone in self.zones_of(axis)} for axis in AXES
        }
        both = outlines["origin"].keys() & outlines["destination"].keys()
        elsewhere = {zone for zone in both if outlines["origin"][zone] != outlines["destination"][zone]}
        named = {
            axis: {zone: f"{axis}:{zone}" if zone in elsewhere else zone for zone in zones}
            for axis, zones in outlines.items()
        }
        place = {named[axis][zone]: outline for axis, zones in outlines.items() for zone, outline in zones.items()}
        ids = sorted(place)
        number = {zone: position for position, zone in enumerate(ids)}
        ends = [
            np.array([number[named[axis][zone]] for zone in self.flows.column(axis).to_pylist()], dtype=np.int64)
            for axis in AXES
        ]
        return Places(ids, [place[zone] for zone in ids], ends[0], ends[1])

    def zones_of(self, axis: str) -> list[dict[str, Any]]:
        """Return the zones of one axis."""
        return [zone for zone in self.zones if zone["properties"]["axis"] == axis]

    @cached_property
    def shapes(self) -> npt.NDArray[Any]:
        """The outline of each of the `places`, None where it is not known; needs shapely."""
        return to_shapes(self.places.outlines)

    @cached_property
    def centres(self) -> Floats:
        """Longitude and latitude of the middle of each of the `places`; NaN where it has no outline."""
        shapely = import_shapely()
        centre = shapely.centroid(self.shapes)
        lon = (shapely.get_x(centre) + 180) % 360 - 180
        return np.stack([lon, shapely.get_y(centre)], axis=1)

    def check_outlines(self, purpose: str) -> None:
        """Raise if a zone has no outline."""
        places = self.places
        without = [zone for zone, outline in zip(places.ids, places.outlines, strict=True) if outline is None]
        if without:
            raise InputError(
                f"{purpose} needs to know where zones are, and {len(without):,} of them have no outline (first: "
                f"{without[0]}); give their polygons when the release is made"
            )


def read_release(folder: str | Path) -> SavedRelease:
    """Read a release from its folder.

    Raises
    ------
    InputError
        If the folder is not a release, one of its files cannot be read, or they do not go together.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from odkanon import Rule, anonymize, make_survey, read_trips
    >>> from odkanon.read.od_matrix import build_od
    >>> release = anonymize(build_od(read_trips(make_survey()), resolution=7), Rule(trips=10))
    >>> with TemporaryDirectory() as folder:
    ...     saved = read_release(release.save(Path(folder) / "release"))
    >>> saved.flows.num_rows == len(release.classes)
    True
    >>> zones = saved.zoning  # for `odkanon.release_on_zones`
    """
    folder = plain(Path(folder))
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; give the folder of a release")
    if (folder / INDEX).is_file():
        raise InputError(f"{folder} holds several releases; give one of them, such as {folder / WHOLE}")
    about, zones = _read_json(folder / MANIFEST), _read_json(folder / ZONES).get("features")
    flows = _read_flows(folder, _axis_names(about, folder))
    release = SavedRelease(folder.resolve().name, about, zones if isinstance(zones, list) else [], flows)
    _check_zones(release, folder)
    return release


def with_zones_of(release: SavedRelease, others: Sequence[SavedRelease]) -> SavedRelease:
    """Return a release with the zones of others as well, between which nothing flows."""
    zones = {(zone["properties"]["axis"], zone["properties"]["id"]): zone for zone in release.zones}
    for zone in (zone for other in others for zone in other.zones):
        about = zone["properties"]
        empty = {name: 0 if name in ADDITIVE else value for name, value in about.items()}
        zones.setdefault((about["axis"], about["id"]), {**zone, "properties": empty})
    return release if len(zones) == len(release.zones) else replace(release, zones=list(zones.values()))


def read_full(folder: str | Path) -> SavedRelease:
    """Read a release with all that its recipe adds: every number in full, and observed leaves. Not for publishing.

    Raises
    ------
    InputError
        If there is no recipe beside the folder.
    """
    public, recipe = read_release(folder), read_recipe(folder)
    if recipe is None:
        raise InputError(f"there is no recipe beside {folder}; only whoever made the release has it")
    zones = with_leaves(public.zones, recipe["zones"])
    return SavedRelease(public.name, {**public.about, **recipe["about"]}, zones, public.flows)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = parse_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        needed = f"{MANIFEST}, {ZONES} and {PARQUET}"
        raise InputError(f"{path.parent} is not a release: it has no {path.name}; a release has {needed}") from None
    except (ValueError, OSError) as error:
        raise InputError(f"{path} is not valid JSON ({error}); save the release again") from None
    if not isinstance(content, dict):
        raise InputError(f"{path} does not hold a JSON object; save the release again")
    return content


def _axis_names(about: dict[str, Any], folder: Path) -> list[str]:
    """Return the axes of a cube as its manifest lists them."""
    try:
        for axis in about.get("axes", []):
            if not all(isinstance(value, str) for level in axis["levels"] for value in level):
                raise ValueError(f"the levels of {axis['name']!r} are not all text")
            if not all(len(level) == len(axis["levels"][0]) for level in axis["levels"]):
                raise ValueError(f"the levels of {axis['name']!r} differ in length")
        return [str(axis["name"]) for axis in about.get("axes", [])]
    except (KeyError, TypeError, IndexError, ValueError) as error:
        raise InputError(f"the axes in {folder / MANIFEST} lack something ({error}); save the release again") from None


def _read_flows(folder: Path, axes: list[str]) -> pa.Table:
    path = next((folder / name for name in (PARQUET, CSV) if (folder / name).exists()), None)
    if path is None:
        raise InputError(f"{folder} has neither {PARQUET} nor {CSV}; save the release again")
    types = dict.fromkeys([*AXES, *axes], pa.string()) | dict.fromkeys(MEASURES, pa.int64())
    types["weight"] = pa.float64()
    try:
        # Not as part of a dataset: a folder called sex=Woman is no column.
        flows = pyarrow.parquet.ParquetFile(path).read() if path.name == PARQUET else read_rows(path, types)
        missing = [name for name in (*AXES, *axes, "trips") if name not in flows.column_names]
        if missing:
            raise InputError(f"{path} lacks the column(s) {', '.join(missing)}; save the release again")
        known = [name for name in types if name in flows.column_names]
        # What rows say besides, such as the hour or the mode, is text, whatever it looks like.
        others = [name for name in flows.column_names if name not in types]
        wanted = [*((name, types[name]) for name in known), *((name, pa.string()) for name in others)]
        return flows.select([*known, *others]).cast(pa.schema(wanted))
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path} cannot be read ({error}); save the release again") from None


def _check_zones(release: SavedRelease, folder: Path) -> None:
    """Raise unless every zone has a name, once for each axis, and every flow is between zones."""
    try:
        ids: dict[str, list[str]] = {axis: [] for axis in AXES}
        for zone in release.zones:
            ids[zone["properties"]["axis"]].append(zone["properties"]["id"])
            _check_outline(zone.get("geometry"))
        names = {axis: set(own) for axis, own in ids.items()}
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise InputError(f"a zone in {folder / ZONES} lacks something ({error}); save the release again") from None
    for axis in AXES:
        if len(names[axis]) < len(ids[axis]) or not all(isinstance(zone, str) for zone in ids[axis]):
            raise InputError(f"{folder / ZONES} names an {axis} zone twice, or not in text; save the release again")
        unknown = set(release.flows.column(axis).to_pylist()) - names[axis]
        if unknown:
            raise InputError(f"{folder}: flows name the zone {min(map(str, unknown))!r}, which {ZONES} lacks")


def _check_outline(outline: Any) -> None:
    """Raise unless a geometry is none, a polygon or several, of points that are somewhere."""
    if outline is None:
        return
    parts = {"Polygon": [outline["coordinates"]], "MultiPolygon": outline["coordinates"]}[outline["type"]]
    for ring in (ring for rings in parts for ring in rings):
        points = np.array(ring)
        if points.dtype.kind not in "if" or points.ndim != 2 or points.shape[1] < 2 or len(points) < 4:
            raise ValueError("an outline is no ring of points")
        if not np.all(np.abs(points) <= _FARTHEST) or ring[0] != ring[-1]:
            raise ValueError("an outline leaves the globe, or does not close")
