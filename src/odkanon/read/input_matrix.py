"""An input as an OD matrix in memory, whether it holds trips or records between zones."""

from __future__ import annotations

from collections.abc import Sequence

from odkanon.model.od import ODMatrix
from odkanon.read.attributes.spec import Kind, cube_of_kinds, sources_of
from odkanon.read.input_spec import Reading
from odkanon.read.od_table import od_of
from odkanon.read.tables.open_table import Table
from odkanon.read.trips import trips_of


def matrix_of(reading: Reading, *, kinds: Sequence[Kind] = (), table: Table | None = None) -> ODMatrix:
    """Read an input, which may be open already, into memory; with kinds, trips are counted by these as well."""
    table = reading.open() if table is None else table
    if reading.kind_of(table) == "trips":
        trips = trips_of(reading, sources_of(kinds), table=table)
        return cube_of_kinds(trips, kinds, resolution=reading.finest, within=reading.area)
    return od_of(reading, kinds, table=table)
