"""Accuracy of a release: flows and trip lengths estimated from it, compared with those of the input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from odkanon.core.arrays import Ints
from odkanon.core.parsing import check_result
from odkanon.engine.dispatch import open_workspace
from odkanon.estimate.flow_estimates import ReleaseReader, can_estimate, read_flows
from odkanon.estimate.target_areas import ZoneFootprints
from odkanon.model.measures import exact_masses
from odkanon.model.od import Matrix
from odkanon.model.release import Release
from odkanon.quality.accuracy.comparison import (
    FlowAccuracy,
    FlowComparison,
    LeafPoints,
    TrueFlows,
    compare_flows,
    compare_lengths,
    count_flows,
    count_lengths,
    locate_leaves,
    measure_flows,
    sample_lengths,
    with_limits,
)
from odkanon.quality.accuracy.even_spread import RowMasses, merge_rows
from odkanon.quality.accuracy.row_masses import masses_to_spread, stack_masses
from odkanon.quality.accuracy.squares import MapZones, Squares
from odkanon.quality.accuracy.zone_samples import ZoneBoxes, ZonePoints, leaf_areas, leaf_points, locate_zones
from odkanon.release_format.contents import make_manifest, published_tables
from odkanon.release_format.folder import SavedRelease
from odkanon.zoning.cells import Floats
from odkanon.zoning.spherical_geometry import Projection, cell_area_km2, polygon_area_km2
from odkanon.zoning.zone_nodes import TreeNodes, ZoneNodes, attribute_nodes, place_nodes
from odkanon.zoning.zones import Zones

SIZES = (1.0, 2.0, 4.0, 8.0)
"""Sides of the squares, in km."""
SIDES = 2
"""The smallest side of a square, in leaves: smaller squares carry no information on trips placed by leaf."""
_SMALL = 0.02
"""Remainders of nested rows up to this share of their area count as covered."""
GOOD = 0.8
"""The CPC from which flows between places are called good."""


@dataclass(frozen=True)
class Accuracy:
    """Accuracy of a release in one measure.

    Attributes
    ----------
    squares : tuple of FlowAccuracy
        On squares, from the smallest that the location of the trips allows.
    zones : FlowAccuracy or None
        On the user's own zones, if given.
    length_overlap : float
        Overlap of the trip length distributions of input and release, from 0 to 1.
    length_before, length_after : float or None
        Mean straight-line length of a trip in km, in the input and in the release.

    References
    ----------
    Lenormand, Huet, Gargiulo, Deffuant: "A universal model of commuting networks", PLoS ONE 7(10), 2012, e45985 (CPC).
    """

    squares: tuple[FlowAccuracy, ...]
    zones: FlowAccuracy | None
    length_overlap: float
    length_before: float
    length_after: float | None

    @property
    def good_from(self) -> float | None:
        """The smallest side in km from which flows between squares are good at every size; None if there is none."""
        good = None
        for place in reversed(self.squares):
            if place.right < GOOD:
                break
            good = place.km
        return good

    def on_squares(self, km: float) -> FlowAccuracy | None:
        """Return the accuracy on squares of a given side; None if they are too small for what is known of the trips."""
        return next((place for place in self.squares if place.km == km), None)

    def sentence(self, km: float = 4.0) -> str:
        """Return the main result as a sentence."""
        chosen = self._nearest(km)
        good = self.good_from
        largest = self.squares[-1].name
        upward = f"good from {good:g} km upward" if good else f"below {GOOD:.0%} up to {largest}"
        return f"Flows between places of {chosen.name} are right to {chosen.right:.0%}{chosen.context}; {upward}."

    def _nearest(self, km: float) -> FlowAccuracy:
        return min(self.squares, key=lambda place: abs((place.km or 0) - km))

    def as_dict(self) -> dict[str, Any]:
        """Return all numbers in full, for files."""
        return {**asdict(self), "squares": [asdict(place) for place in self.squares], "good_from_km": self.good_from}


def accuracy(
    release: Release, *, sizes: Sequence[float] = SIZES, zones: MapZones | None = None, estimate: bool = True
) -> dict[str, Accuracy]:
    """Return the accuracy of a release in each measure of the input; empty if the location of zones is unknown.

    T is the input counted on places that no method has chosen: squares on an equal-area map around the data, and the
    user's own zones if given. It is counted at the coordinates of the trips; where only the zones of both ends are
    known, squares with a side below that of two zones are left out, since T would be as blurred as M. M is the release
    on the same places, each row spread evenly over the area of its two zones; a row that contains finer rows covers
    the remainder of its area. Rows of a cube are also spread over the values below their own, and flows with any
    values are compared. Linear in the pairs of the input, which stay where they are, and in the rows of the release.

    Parameters
    ----------
    release : Release
        With its input at hand.
    sizes : sequence of float
        Sides of the squares in km, rising; each a multiple of the one before.
    zones : MapZones, optional
        The user's own places, on the map from `map_leaves`.
    estimate : bool
        Compare flows as a reader of the release estimates them, too, not only rows that are spread evenly, and state
        what totals and distances alone, and half of the input, would reach.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from odkanon import Rule, anonymize, read_trips
    >>> from odkanon.read.od_matrix import build_od
    >>> ends = {"start_lat": 48.85, "start_lon": 2.35, "end_lat": 48.86, "end_lon": 2.29}
    >>> trips = read_trips(pa.table({name: [value] * 12 for name, value in ends.items()}))
    >>> found = accuracy(anonymize(build_od(trips), Rule(trips=10)))["trips"]
    >>> [round(square.cpc, 2) for square in found.squares]
    [1.0, 1.0, 1.0, 1.0]
    """
    check_result("the release", release, "spec", "anonymize")
    matrix = release.matrix
    found = None if matrix is None else map_leaves(matrix.located)
    if matrix is None or found is None:
        return {}
    sizes = [size for size in sizes if size >= SIDES * leaf_side(matrix.located)]
    if not sizes and zones is None:
        return {}
    if len(release.classes) and not (release.origins.are_located and release.destinations.are_located):
        return {}
    about, leaves = found
    measures = tuple(measure for measure in ("trips", "weight") if exact_masses(release.classes, measure) is not None)
    rows, areas = rows_to_spread(
        (release.origins, release.destinations),
        (release.classes.origin.astype(np.int64), release.classes.destination.astype(np.int64)),
        stack_masses({name: exact_masses(release.classes, name) for name in measures}, release.classes.scale),
        matrix,
        about,
        _attributes(release, matrix),
    )
    engine, squares, spots = None, [], areas
    reader = read_flows(saved) if estimate and sizes and can_estimate(saved := _saved(release)) else None
    for size in sizes:
        square = Squares(size)
        truth, engine = count_flows(matrix.located, locate_leaves(square, leaves), measures, engine)
        spots = spots[0].on(square), spots[1].on(square)  # larger squares are made of these
        found_here = measure_flows(square, size, compare_flows(square, truth, rows, spots), rows)
        if estimate:
            found_here = with_limits(square, truth, found_here)
        squares.append(found_here if reader is None else _with_estimate(found_here, truth, reader, square, about))
    own = None
    if zones is not None:
        truth, _ = count_flows(matrix.located, locate_leaves(zones, leaves), measures)
        own = measure_flows(zones, None, compare_flows(zones, truth, rows, areas), rows)
    lengths = compare_lengths(count_lengths(matrix.located, leaves, measures), sample_lengths(rows, areas))
    return {
        measure: Accuracy(tuple(each[index] for each in squares), None if own is None else own[index], *lengths[index])
        for index, measure in enumerate(measures)
    }


def _saved(release: Release) -> SavedRelease:
    """Return a release as its readers see it."""
    table, zones = published_tables(release)
    return SavedRelease(release.method, make_manifest(release, parameters={}, quality=None), zones["features"], table)


def _with_estimate(
    found: Sequence[FlowAccuracy], truth: TrueFlows, reader: ReleaseReader, places: MapZones, about: Projection
) -> list[FlowAccuracy]:
    """Return the accuracy in each measure with that of the estimate."""
    estimate = estimate_flows(truth, reader, places, about).estimate
    results = []
    for at, (name, each) in enumerate(zip(reader.measures, found, strict=False)):
        before = truth.mass[:, at]
        whole = float(before.sum()) + float(reader.measures[name].sum())
        results.append(replace(each, estimated=round(2 * float(np.minimum(before, estimate[:, at]).sum()) / whole, 9)))
    return results + list(found[len(results) :])


def estimate_flows(truth: TrueFlows, reader: ReleaseReader, places: MapZones, about: Projection) -> FlowComparison:
    """Return the estimates between the places that the input has flows between; none stay in places without trips."""
    origins, destinations = (_PlacesAsAreas(places, about, numbers) for numbers in truth.places)
    expected = reader.expected_of(origins, destinations, (truth.origin, truth.destination))
    _, *both = np.intersect1d(*truth.places, return_indices=True)
    stay = reader.expected_of(origins, destinations, (both[0], both[1]))
    return FlowComparison(
        truth, np.stack(list(expected.values()), axis=1), np.array([each.sum() for each in stay.values()])
    )


@dataclass(frozen=True, eq=False)
class _PlacesAsAreas:
    """The places of a map as areas that flows can be estimated between; no bounds are asked for."""

    places: MapZones
    about: Projection
    numbers: Ints

    @property
    def ids(self) -> list[str]:
        return [str(number) for number in self.numbers.tolist()]

    def number(self, lat: Floats, lon: Floats) -> Ints:
        found = self.places.locate(*self.about.to_metres(lat, lon))
        at = np.searchsorted(self.numbers, found).clip(max=len(self.numbers) - 1)
        return np.where(self.numbers[at] == found, at, -1)

    def relation(self, zones: ZoneFootprints) -> tuple[Any, Any]:
        raise NotImplementedError


def map_leaves(matrix: Matrix) -> tuple[Projection, LeafPoints] | None:
    """Return the map on which releases are compared with their input, and the leaves on it, to the metre.

    None if the location of leaves is unknown.
    """
    points = [leaf_points(tree) for tree in (matrix.origins, matrix.destinations)]
    lat, lon = (np.concatenate([end[side] for end in points]) for side in (0, 1))
    if len(lat) == 0 or not np.isfinite(lat).all():
        return None
    about = Projection.around(lat, lon)
    (x, y), (to_x, to_y) = (about.to_metres(*end) for end in points)
    return about, LeafPoints((np.rint(x), np.rint(y)), (np.rint(to_x), np.rint(to_y)))


def leaf_side(matrix: Matrix) -> float:
    """Return the side in km of a square as large as the leaf in which an average trip ends."""
    tree = matrix.destinations
    if tree.resolution is not None:
        return float(np.sqrt(cell_area_km2(str(tree.labels(0)[len(tree.leaves) // 2]))))
    areas = np.array([polygon_area_km2((tree.outlines or {}).get(str(leaf), {})) for leaf in tree.leaves])
    (trips,) = open_workspace(matrix).engine(frozenset()).node_masses("destination", "trips")[:1]
    return float(np.sqrt(np.average(areas, weights=trips)))


def _attributes(release: Release, matrix: Matrix) -> list[tuple[ZoneNodes, Ints]]:
    """Return the values of the rows of a cube, axis by axis, in the tree that a reader can see."""
    values = release.classes.attributes
    return [attribute_nodes(values[axis.name], axis.listed(values[axis.name].tolist())) for axis in matrix.axes]


def rows_to_spread(
    zones: tuple[Zones, Zones],
    rows: tuple[Ints, Ints],
    mass: Floats,
    matrix: Matrix,
    about: Projection,
    attributes: Sequence[tuple[ZoneNodes, Ints]] = (),
) -> tuple[RowMasses, tuple[ZonePoints | ZoneBoxes, ZonePoints | ZoneBoxes]]:
    """Return rows between zones as masses to spread, and the areas of the zones.

    Parameters
    ----------
    zones, rows : tuple
        The zones of both axes, and for each row their numbers.
    mass : array of float, shape (rows, measures)
        Published mass of each row.
    matrix : Matrix
        The input, which determines how fine leaves are.
    about : Projection
        The map.
    attributes : sequence of tuple
        For each attribute of a cube its nodes, and for each row the number of its own.
    """
    ends = zip(zones, (matrix.origins, matrix.destinations), rows, strict=True)
    axes = [(place_nodes(side, tree), which) for side, tree, which in ends]
    found = merge_rows(RowMasses(*rows, masses_to_spread(mass, [*axes, *attributes], least=_SMALL)))
    known = matrix.located
    if all(isinstance(nodes, TreeNodes) for nodes, _ in axes):
        trees, inside = (matrix.origins, matrix.destinations), known is not matrix
        first, second = (leaf_areas(side, tree, about, inside) for side, tree in zip(zones, trees, strict=True))
        return found, (first, second)
    return found, locate_zones(zones, (known.origins.resolution, known.destinations.resolution), about)
