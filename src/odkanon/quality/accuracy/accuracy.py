"""How useful a release is: what people do with a matrix, done with the release and with the input, and compared."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from odkanon.core.arrays import Ints
from odkanon.model.od import Matrix
from odkanon.model.release import Release
from odkanon.quality.accuracy.comparison import compare_on, measured
from odkanon.quality.accuracy.even_spread import Rows, merged
from odkanon.quality.accuracy.result import Accuracy
from odkanon.quality.accuracy.row_masses import masses_of, masses_to_spread
from odkanon.quality.accuracy.squares import Places, Squares
from odkanon.quality.accuracy.trip_lengths import compare_lengths, lengths_after
from odkanon.quality.accuracy.truth import Ends, by_length, engine_of, on_places
from odkanon.quality.accuracy.zone_nodes import Nodes, attribute_nodes, place_nodes
from odkanon.quality.accuracy.zone_samples import Boxes, Parts, areas_of, leaf_points
from odkanon.zoning.cells import Floats
from odkanon.zoning.projection import Projection
from odkanon.zoning.zones import Zones

SIZES = (1.0, 2.0, 4.0, 8.0)
"""Sides of the squares, in km."""


def accuracy(release: Release, *, sizes: Sequence[float] = SIZES, zones: Places | None = None) -> dict[str, Accuracy]:
    """Measure how useful a release is, in each measure of the input; empty where it is not known where zones lie.

    T is the input counted on places that no method had a hand in: squares on an equal-area map around the data, and
    the user's own zones if given. M is the release on the same places, each row spread evenly over the area of its two
    zones; a row that has finer rows inside it stands for the rest of its area. In a cube rows are spread over kinds of
    trips likewise, and flows of all kinds are compared. Linear in the pairs of the input, which stay where they are,
    and in the rows of the release.

    Parameters
    ----------
    release : Release
        What to measure; its input has to be at hand.
    sizes : sequence of float
        Sides of the squares in km, rising; each a multiple of the one before.
    zones : Places, optional
        Places of the user's own, on the map of `map_of` its input.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from odkanon import Rule, anonymize, build_od, read_trips
    >>> ends = {"start_lat": 48.85, "start_lon": 2.35, "end_lat": 48.86, "end_lon": 2.29}
    >>> trips = read_trips(pa.table({name: [value] * 12 for name, value in ends.items()}))
    >>> accuracy(anonymize(build_od(trips), Rule(trips=10)))["trips"].sentence()
    'Flows between places of 4 km are right to 100%; good from 1 km upward.'
    """
    matrix = release.matrix
    found = None if matrix is None else map_of(matrix)
    if matrix is None or found is None:
        return {}
    if len(release.classes) and not (release.origins.are_located and release.destinations.are_located):
        return {}
    about, ends = found
    measures = tuple(measure for measure in ("trips", "weight") if measure in release.input.measures)
    rows, areas = spreadable(
        (release.origins, release.destinations),
        (release.classes.origin.astype(np.int64), release.classes.destination.astype(np.int64)),
        masses_of(release, measures),
        matrix,
        about,
        _attributes(release, matrix),
    )
    engine, squares, spots = engine_of(matrix, measures), [], areas
    for size in sizes:
        square = Squares(size)
        counted, engine = on_places(engine, matrix, places_of_leaves(square, ends), measures)
        spots = spots[0].on(square), spots[1].on(square)  # larger squares are made of these
        squares.append(measured(square, size, compare_on(square, counted, rows, spots), rows))
    own = None
    if zones is not None:
        counted, _ = on_places(engine_of(matrix, measures), matrix, places_of_leaves(zones, ends), measures)
        own = measured(zones, None, compare_on(zones, counted, rows, areas), rows)
    lengths = compare_lengths(by_length(matrix, ends, measures), lengths_after(rows, areas))
    return {
        measure: Accuracy(tuple(told[index] for told in squares), None if own is None else own[index], *lengths[index])
        for index, measure in enumerate(measures)
    }


def map_of(matrix: Matrix) -> tuple[Projection, Ends] | None:
    """Return the map on which releases are compared with their input, and the leaves of both axes on it, to the metre.

    None where it is not known where leaves lie.
    """
    points = [leaf_points(tree) for tree in (matrix.origins, matrix.destinations)]
    lat, lon = (np.concatenate([end[side] for end in points]) for side in (0, 1))
    if len(lat) == 0 or not np.isfinite(lat).all():
        return None
    about = Projection.around(lat, lon)
    (x, y), (to_x, to_y) = (about.to_metres(*end) for end in points)
    return about, Ends((np.rint(x), np.rint(y)), (np.rint(to_x), np.rint(to_y)))


def _attributes(release: Release, matrix: Matrix) -> list[tuple[Nodes, Ints]]:
    """Return the kinds of trips that the rows of a cube tell, axis by axis, as its readers know them."""
    told = release.classes.attributes
    return [attribute_nodes(told[axis.name], axis.listed(told[axis.name].tolist())) for axis in matrix.axes]


def spreadable(
    zones: tuple[Zones, Zones],
    rows: tuple[Ints, Ints],
    mass: Floats,
    matrix: Matrix,
    about: Projection,
    attributes: Sequence[tuple[Nodes, Ints]] = (),
) -> tuple[Rows, tuple[Parts | Boxes, Parts | Boxes]]:
    """Return rows between zones as masses to spread, and where the zones lie.

    Parameters
    ----------
    zones, rows : tuple
        The zones of both axes, and for each row their numbers.
    mass : array of float, shape (rows, measures)
        What is published of each row.
    matrix : Matrix
        The input; it says how fine its leaves are.
    about : Projection
        The map.
    attributes : sequence of tuple
        For each other axis of a cube its nodes, and for each row the number of its own.
    """
    ends = zip(zones, (matrix.origins, matrix.destinations), rows, strict=True)
    axes = [(place_nodes(side, tree), which) for side, tree, which in ends]
    found = merged(Rows(*rows, masses_to_spread(mass, [*axes, *attributes])))
    return found, areas_of(zones, (matrix.origins.resolution, matrix.destinations.resolution), about)


def places_of_leaves(places: Places, ends: Ends) -> tuple[Ints, Ints]:
    """Return for each leaf of both axes the number of its place."""
    return places.of(*ends.origin), places.of(*ends.destination)
