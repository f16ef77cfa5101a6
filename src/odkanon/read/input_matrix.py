"""An input as an OD matrix in memory, whether it holds trips or records between zones."""

from __future__ import annotations

from collections.abc import Sequence

from odkanon.model.od import ODMatrix
from odkanon.read.attributes.spec import AttributeSpec, cube_of_attributes, sources_of
from odkanon.read.input_spec import InputSpec
from odkanon.read.od_table import od_of
from odkanon.read.tables.open_table import Table
from odkanon.read.trips import trips_of


def matrix_of(reading: InputSpec, *, attributes: Sequence[AttributeSpec] = (), table: Table | None = None) -> ODMatrix:
    """Read an input, which may be open already, into memory; with kinds, trips are counted by these as well."""
    table = reading.open() if table is None else table
    if reading.kind_of(table) == "trips":
        trips = trips_of(reading, sources_of(attributes), table=table)
        return cube_of_attributes(trips, attributes, resolution=reading.finest, within=reading.area)
    return od_of(reading, attributes, table=table)
