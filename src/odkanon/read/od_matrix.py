"""From trips to OD matrices in memory, by origin, destination and attributes, and to segments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from odkanon.attributes.dimensions import Dimension, combine_attributes
from odkanon.attributes.spec import AGE_BANDS, parse_attributes, parse_segments, segment_attributes
from odkanon.errors import InvalidValueError
from odkanon.model.od import LOCATED, ODMatrix, od_matrix
from odkanon.read.area import Area
from odkanon.read.attribute_values import AttributeColumns, table_to_axes
from odkanon.read.polygon_zoning import OUTSIDE_ZONES
from odkanon.read.trips import OUTSIDE, Trips
from odkanon.zoning.cells import Cells
from odkanon.zoning.hierarchy import index_cells


def build_od(
    trips: Trips,
    *,
    resolution: int = 10,
    within: Area | None = None,
    by: Sequence[str] = (),
    age_bands: Sequence[int] = AGE_BANDS,
) -> ODMatrix:
    """Count trips by origin and destination on H3 cells, and by attributes for a cube.

    Parameters
    ----------
    trips : Trips
        The trips, with the columns of the attributes.
    resolution : int
        H3 resolution of the leaves, in [0, 15]; 10 is some 130 m across. Trips that were read with a zoning are counted
        between its polygons instead.
    within : Area, optional
        Keep trips with both ends inside; the others count as rejected.
    by : sequence of str
        Attributes: ``mode`` (a column), ``mode:car=1+2,bus=3`` (groups of its values; all others are ``other``),
        ``purpose:lookup.csv`` (a table of nested values), ``hour`` or ``hour:0-7,7-9``, ``weekday``, ``date`` (by day,
        then month), ``age`` (in bands).
    age_bands : sequence of int
        Lower bounds of the age bands, the first excepted.

    Examples
    --------
    >>> from odkanon import Rule, anonymize, make_survey, read_trips
    >>> trips = read_trips(make_survey())
    >>> od = build_od(trips, resolution=7)
    >>> od.trips, od.origins.resolution
    (81291, 7)
    >>> cube = build_od(trips, resolution=8, by=["sex"])
    >>> release = anonymize(cube, Rule(trips=10), method="cascade")
    >>> release.to_arrow().column_names[:4]
    ['origin', 'destination', 'sex', 'trips']
    """
    if not isinstance(trips, Trips):
        raise InvalidValueError.expected("trips", "the result of read_trips", trips)
    period = (trips.source.reading.get("since"), trips.source.reading.get("until"))
    attributes = parse_attributes(by, age_bands, period) if by else []
    return count_trips(trips, resolution, within, lambda inside: table_to_axes(inside.table, attributes))


def count_trips(
    trips: Trips,
    resolution: int,
    within: Area | None,
    columns: Callable[[Trips], AttributeColumns] = lambda trips: ((), ()),
) -> ODMatrix:
    """Count trips by origin, destination and attributes; see `build_od`.

    Parameters
    ----------
    columns : callable
        Given the trips inside the area, returns the attribute axes, and for each the values of the trips.
    """
    if within is not None or trips.zoning is not None:
        trips = trips.reject(~trips.inside(resolution, within), OUTSIDE if trips.zoning is None else OUTSIDE_ZONES)
    axes, values = columns(trips)
    counted: dict[str, Any] = {"weight": trips.weight, "scale": trips.scale, "source": trips.source}
    named: dict[str, Any] = {"contributors": trips.contributors, "axes": axes, "attributes": values}
    if trips.zoning is None:
        matrix = cells_to_matrix(trips.cells(resolution), within, **counted, **named)
        if resolution >= LOCATED:
            return matrix
    else:
        origin, destination = (end.astype(np.int32) for end in trips.zones(trips.zoning))
        matrix = od_matrix(trips.zoning.tree, trips.zoning.tree, origin, destination, **counted, **named)
    return replace(matrix, finer=cells_to_matrix(trips.cells(LOCATED), None, **counted))


def cells_to_matrix(ends: tuple[Cells, Cells], within: Area | None, **counted: Any) -> ODMatrix:
    """Return the matrix of records between H3 cells, all of them inside the area; see `odkanon.model.od.od_matrix`."""
    # The area is public, so places outside of it are known to be empty and must not dilute a class.
    (origins, origin), (destinations, destination) = map(index_cells, ends)
    origins, destinations = (replace(tree, within=within) for tree in (origins, destinations))
    return od_matrix(origins, destinations, origin, destination, **counted)


def make_dimensions(
    trips: Trips | ODMatrix, specs: Sequence[str], *, age_bands: Sequence[int] = AGE_BANDS
) -> list[Dimension]:
    """Split trips into segments.

    Parameters
    ----------
    trips : Trips or ODMatrix
        Trips with the columns of the attributes; or a matrix by these attributes, whose rows are then split.
    specs : sequence of str
        ``sex`` (a column), ``age`` (in bands), ``hour`` (in which a trip starts), ``hour:6-9,9-16`` (time slots), or
        combinations such as ``sex*age``.
    age_bands : sequence of int
        Lower bounds of the age bands, the first excepted.

    Examples
    --------
    >>> from odkanon import make_survey, read_trips
    >>> trips = read_trips(make_survey())
    >>> [len(each) for each in make_dimensions(trips, ["sex", "hour:6-9,9-16", "sex*age"])]
    [2, 3, 14]
    """
    segments = parse_segments(specs, age_bands)
    if isinstance(trips, ODMatrix):
        axes, values = trips.axes, trips.flows.attributes
    else:
        axes, values = table_to_axes(trips.table, segment_attributes(specs, age_bands))
    labels = {axis.asked: axis.tree.leaves[value] for axis, value in zip(axes, values, strict=True)}
    return [combine_attributes(text, parts, labels) for text, parts in segments.items()]
