"""The information lost by a release, flow by flow, for its producer only."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pyarrow as pa

from odkanon.core.arrays import Ints
from odkanon.core.registry import import_extra
from odkanon.errors import InputError, InvalidValueError
from odkanon.estimate.flow_estimates import can_estimate, read_flows
from odkanon.model.od import ODMatrix
from odkanon.publish.onto.zone_matrix import attribute_levels
from odkanon.quality.accuracy.accuracy import estimate_flows, map_leaves, rows_to_spread
from odkanon.quality.accuracy.comparison import (
    LENGTHS,
    NEAR,
    FlowAccuracy,
    compare_flows,
    count_flows,
    count_lengths,
    length_bands,
    locate_leaves,
    measure_flows,
    sample_lengths,
    with_limits,
)
from odkanon.quality.accuracy.squares import GivenZones, MapZones, Squares, square_position
from odkanon.read.input_spec import ReadOptions, as_input_spec, check_unread, lists_read_options
from odkanon.read.od_table import spec_to_matrix
from odkanon.read.tables.geo_files import ZonePolygons, read_polygons
from odkanon.release_format.folder import SavedRelease, open_release
from odkanon.zoning.cells import Floats
from odkanon.zoning.spherical_geometry import Projection
from odkanon.zoning.zones import Zones

GONE = 0.05  # the share of its trips below which a flow counts as gone
MIN_KM, MAX_KM = 0.05, 1000.0


@dataclass(frozen=True, eq=False)
class InformationLoss:
    """The flows of a release beside those of its input, between squares or given polygons."""

    release: str
    """The name of the release."""
    places: list[str]
    """The names of the places."""
    outlines: list[list[Floats]]
    """The rings of each place in metres on the map."""
    origin: Ints
    destination: Ints
    """The places of each flow of the input."""
    before: Floats
    after: Floats
    """The trips of each flow in the input and in the release."""
    elsewhere: float
    """Trips in the release between places without trips in the input."""
    summary: FlowAccuracy
    """The accuracy of the flows."""
    lengths: list[tuple[float, float, float]]
    """For each band of trip lengths, its lower bound in km, and the shares of trips before and after."""

    def to_arrow(self) -> pa.Table:
        """Return every flow of the input as an Arrow table, by descending absolute difference."""
        after = self.after.round(3)
        off = (after - self.before).round(3)
        order = np.lexsort((self.destination, self.origin, -np.abs(off)))
        names = np.array(self.places, dtype=object)
        return pa.table(
            {
                "origin": pa.array(names[self.origin[order]], pa.string()),
                "destination": pa.array(names[self.destination[order]], pa.string()),
                "trips": self.before[order],
                "release": after[order],
                "difference": off[order],
                "verdict": pa.array(_verdicts(self.before, after)[order], pa.string()),
            }
        )

    def to_pandas(self) -> Any:
        """Return the table of `to_arrow` as a pandas DataFrame."""
        import_extra("pandas", purpose="a DataFrame", extra="dataframes")
        return self.to_arrow().to_pandas()

    def to_html(self) -> str:
        """Return a self-contained page with a map and the flows that changed most. Not for publication."""
        from odkanon.study.information_loss_page import page

        return page(self)


@lists_read_options
def explain_release(
    release: str | Path,
    trips: Any,
    *,
    km: float = 2.0,
    onto: str | Path | ZonePolygons | None = None,
    id_column: str | None = None,
    **reading: Unpack[ReadOptions],
) -> InformationLoss:
    """Compare a saved release with the trips that it was made from, flow by flow. Not for publication.

    Parameters
    ----------
    release : path
        The folder of the release.
    trips : path, sequence of paths, table, InputSpec or ODMatrix
        The trips, to be read as they were for the release.
    km : float
        The side of the squares to compare on, in [0.05, 1000].
    onto : path or ZonePolygons, optional
        ZonePolygons to compare on instead of squares.
    id_column : str, optional
        The property with the codes of the polygons; needed if there are several, and none is called ``id``.
    **reading
        Options for reading ``trips``, such as ``resolution`` and ``where``; see `odkanon.anonymize`.

    Returns
    -------
    InformationLoss
        Convert it with `InformationLoss.to_pandas` or `InformationLoss.to_html`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from odkanon import Rule, anonymize, make_survey, read_trips
    >>> from odkanon.read.od_matrix import build_od
    >>> od = build_od(read_trips(make_survey().slice(0, 4000)), resolution=7)
    >>> with TemporaryDirectory() as folder:
    ...     saved = anonymize(od, Rule(trips=10)).save(Path(folder) / "release")
    ...     loss = explain_release(saved, od, km=4)
    >>> loss.to_arrow().column_names
    ['origin', 'destination', 'trips', 'release', 'difference', 'verdict']
    """
    if not MIN_KM <= km <= MAX_KM:
        raise InvalidValueError.expected("the side of the squares", f"from {MIN_KM:g} to {MAX_KM:g} km", km)
    if isinstance(trips, ODMatrix):
        check_unread(reading)
    od = trips if isinstance(trips, ODMatrix) else spec_to_matrix(as_input_spec(trips, reading))
    saved = open_release(release)
    polygons = onto if onto is None or isinstance(onto, ZonePolygons) else read_polygons(onto, id_column)
    located = map_leaves(od.located)
    if located is None:
        raise InputError("flows can be explained only if the location of zones is known; give their boundaries")
    published = int(saved.measure("trips").sum())
    if published > od.trips:
        raise InputError(
            f"{saved.name} publishes {published:,} trips, but the input has only {od.trips:,}: it was made from "
            "others; give those"
        )
    about, ends = located
    places: MapZones = Squares(km) if polygons is None else _polygon_places(polygons, about)
    zones = _zones(saved, "origin"), _zones(saved, "destination")
    numbers = _zone_numbers(saved, zones[0], "origin"), _zone_numbers(saved, zones[1], "destination")
    rows, areas = rows_to_spread(zones, numbers, saved.measure("trips")[:, None], od, about, attribute_levels(saved))
    counted, _ = count_flows(od.located, locate_leaves(places, ends), ("trips",))
    if can_estimate(saved):
        compared = estimate_flows(counted, read_flows(saved), places, about)
    else:
        compared = compare_flows(places, counted, rows, areas)
    known = np.union1d(*counted.places)
    origins, destinations = (np.searchsorted(known, place) for place in counted.places)
    lengths = [
        length_bands(*each) for each in (count_lengths(od.located, ends, ("trips",)), sample_lengths(rows, areas))
    ]
    after = compared.estimate[:, 0]
    summary = measure_flows(places, None if polygons is not None else km, compared, rows)
    return InformationLoss(
        saved.name,
        *_draw_places(known, km, polygons, about),
        origins[counted.origin],
        destinations[counted.destination],
        counted.mass[:, 0],
        after,
        published - float(after.sum()),
        with_limits(places, counted, summary)[0],
        list(zip((0.0, *LENGTHS[1:]), *(part.tolist() for part in lengths), strict=True)),
    )


def _zones(release: SavedRelease, axis: str) -> Zones:
    """Return the zones of an axis, with what is needed to locate them."""
    features = release.axis_features(axis)
    about = [feature["properties"] for feature in features]
    ids = np.array([zone["id"] for zone in about], dtype=np.str_)
    if any(zone.get("kind") == "box" for zone in about):
        rings = [np.array(feature["geometry"]["coordinates"][0]) for feature in features]
        return Zones(ids, bounds=np.array([[*ring.min(axis=0), *ring.max(axis=0)] for ring in rings]))
    if any(zone.get("cells") for zone in about):
        return Zones(ids, cells=tuple(tuple(zone.get("cells") or [zone["id"]]) for zone in about))
    resolution = [zone.get("resolution") for zone in about]
    if any(each is not None for each in resolution):
        return Zones(ids, resolution=np.array([-1 if each is None else each for each in resolution]))
    outlines = {zone["id"]: feature["geometry"] for zone, feature in zip(about, features, strict=True)}
    if any(zone.get("places") for zone in about):
        return Zones(ids, outlines=outlines, places=tuple(tuple(zone.get("places", ())) for zone in about))
    return Zones(ids, level=np.array([zone.get("level", 1) for zone in about]), outlines=outlines)


def _zone_numbers(release: SavedRelease, zones: Zones, axis: str) -> Ints:
    number = {zone: position for position, zone in enumerate(zones.ids.tolist())}
    return np.array([number[zone] for zone in release.table.column(axis).to_pylist()], dtype=np.int64)


def _verdicts(before: Floats, after: Floats) -> Any:
    ratio = after / before
    words = [ratio < GONE, ratio <= 1 - NEAR, ratio < 1 + NEAR]
    return np.select(words, ["gone", "less", "near"], "more").astype(object)


def _polygon_places(polygons: ZonePolygons, about: Projection) -> GivenZones:
    import shapely

    tree = shapely.STRtree(polygons.shapes)

    def locate(x: Floats, y: Floats) -> Ints:
        lat, lon = about.to_degrees(x, y)
        place = np.full(len(x), len(polygons.codes), dtype=np.int64)
        point, inside = tree.query(shapely.points(lon, lat), predicate="intersects")
        place[point[::-1]] = inside[::-1]  # on a shared border, the first polygon
        return place

    return GivenZones("zones", locate)


def _draw_places(
    known: Ints, km: float, polygons: ZonePolygons | None, about: Projection
) -> tuple[list[str], list[list[Floats]]]:
    """Return the names of places, and their outlines on the map."""
    if polygons is None:
        side = 1000 * km
        column, row = (np.asarray(part * side, dtype=np.float64) for part in square_position(known))
        lat, lon = about.to_degrees(column + side / 2, row + side / 2)
        names = [  # without a leading minus, which a spreadsheet would take for a formula
            f"{abs(a):.4f}{'N' if a >= 0 else 'S'} {abs(b):.4f}{'E' if b >= 0 else 'W'}"
            for a, b in zip(lat.tolist(), lon.tolist(), strict=True)
        ]
        square = np.array([[0, 0], [side, 0], [side, side], [0, side]])
        return names, [[square + np.array([x, y])] for x, y in zip(column.tolist(), row.tolist(), strict=True)]
    import shapely

    names = [*polygons.codes, "outside"]
    outlines = []
    for place in known.tolist():
        parts = shapely.get_parts(polygons.shapes[place]) if place < len(polygons.codes) else []
        rings = [np.asarray(part.exterior.coords) for part in parts if part.geom_type == "Polygon"]
        outlines.append([np.stack(about.to_metres(ring[:, 1], ring[:, 0]), axis=1) for ring in rings])
    return [names[place] for place in known.tolist()], outlines
