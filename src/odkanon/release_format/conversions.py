"""Published flows and zones as the tables of other libraries: Arrow, pandas, polars, scipy and GeoPandas."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from odkanon.core.parsing import format_count
from odkanon.core.registry import import_extra
from odkanon.errors import ColumnNotFoundError

_EXTRA = "dataframes"
_ROWS_IN_HTML = 5


class FlowMatrix(NamedTuple):
    """Flows as a labelled sparse matrix."""

    values: Any
    """A scipy.sparse matrix of what flows from each origin zone (row) to each destination zone (column)."""
    origins: list[str]
    destinations: list[str]
    """The ids of the zones of rows and columns, sorted."""


@dataclass(frozen=True, eq=False, repr=False)
class FlowTable:
    """The published flows of a release, one a row.

    Libraries that read Arrow through its PyCapsule interface (polars, DuckDB, pandas 3) take it as it is.

    Examples
    --------
    >>> import pyarrow as pa
    >>> flows = FlowTable(pa.table({"origin": ["a", "a"], "destination": ["a", "b"], "trips": [10, 12]}))
    >>> flows
    FlowTable(2 flows: origin, destination, trips)
    >>> flows.to_matrix().values.toarray().tolist()
    [[10.0, 12.0]]
    """

    table: pa.Table
    """``origin, destination``, the attributes of a cube, and the published measures; weights in their own unit."""

    def to_arrow(self) -> pa.Table:
        """Return the flows as an Arrow table."""
        return self.table

    def to_pandas(self) -> Any:
        """Return the flows as a pandas DataFrame."""
        import_extra("pandas", purpose="a DataFrame", extra=_EXTRA)
        return self.table.to_pandas()

    def to_polars(self) -> Any:
        """Return the flows as a polars DataFrame."""
        return import_extra("polars", purpose="a polars DataFrame", extra=_EXTRA).from_arrow(self.table)

    def to_matrix(self, measure: str = "trips") -> FlowMatrix:
        """Return one measure of the flows as a sparse matrix with the ids of its rows and columns.

        Rows of a cube that differ only in their attributes are added up.

        Parameters
        ----------
        measure : str
            A published measure that is additive: ``trips`` or ``weight``.
        """
        from scipy import sparse

        if measure not in self.table.column_names:
            raise ColumnNotFoundError.from_missing("the table of flows", measure, self.table.column_names)
        values = np.asarray(self.table.column(measure).to_numpy(), dtype=np.float64)
        ends = (np.array(self.table.column(axis).to_pylist(), dtype=np.str_) for axis in ("origin", "destination"))
        (origins, row), (destinations, column) = (np.unique(end, return_inverse=True) for end in ends)
        matrix = sparse.csr_matrix((values, (row, column)), shape=(len(origins), len(destinations)))
        return FlowMatrix(matrix, origins.tolist(), destinations.tolist())

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"FlowTable({format_count(len(self), 'flows')}: {', '.join(self.table.column_names)})"

    def _repr_html_(self) -> str:
        names = self.table.column_names
        counted = next(field.name for field in self.table.schema if pa.types.is_primitive(field.type))
        order = [(counted, "descending"), *((name, "ascending") for name in names[: names.index(counted)])]
        header = "".join(f"<th>{escape(name)}</th>" for name in names)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(_text(row[name]))}</td>" for name in names) + "</tr>"
            for row in self.table.sort_by(order).slice(0, _ROWS_IN_HTML).to_pylist()
        )
        return f"<table><caption>Largest flows</caption><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>"


@dataclass(frozen=True, eq=False, repr=False)
class ZoneTable:
    """The zones of both axes of a release, one a row.

    Examples
    --------
    >>> zones = ZoneTable([{"properties": {"axis": "origin", "id": "a", "trips": 22}, "geometry": None}])
    >>> zones, zones.to_arrow().column_names
    (ZoneTable(1 zone, 0 with a geometry), ['axis', 'id', 'trips'])
    """

    features: Sequence[dict[str, Any]]
    """GeoJSON features in longitude and latitude (EPSG:4326), as in ``zones.geojson``."""

    def to_arrow(self) -> pa.Table:
        """Return the properties of the zones as an Arrow table, without geometries."""
        properties = [feature["properties"] for feature in self.features]
        names = dict.fromkeys(name for own in properties for name in own)
        return pa.table({name: pa.array([own.get(name) for own in properties]) for name in names})

    def to_pandas(self) -> Any:
        """Return the properties of the zones as a pandas DataFrame, without geometries."""
        import_extra("pandas", purpose="a DataFrame", extra=_EXTRA)
        return self.to_arrow().to_pandas()

    def to_geopandas(self) -> Any:
        """Return the zones as a GeoDataFrame in EPSG:4326; a zone of unknown outline has no geometry."""
        geopandas = import_extra("geopandas", purpose="a GeoDataFrame", extra=_EXTRA)
        shapes = to_shapes([feature.get("geometry") for feature in self.features])
        return geopandas.GeoDataFrame(self.to_pandas(), geometry=shapes, crs="EPSG:4326")

    def __len__(self) -> int:
        return len(self.features)

    def __repr__(self) -> str:
        known = sum(feature.get("geometry") is not None for feature in self.features)
        return f"ZoneTable({format_count(len(self), 'zones')}, {known:,} with a geometry)"


def to_shapes(geometries: Sequence[dict[str, Any] | None]) -> npt.NDArray[Any]:
    """Return GeoJSON geometries as shapely geometries, None where there is none."""
    texts = np.array([None if each is None else json.dumps(each) for each in geometries], dtype=object)
    import shapely

    return np.asarray(shapely.from_geojson(texts))


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,.10g}" if isinstance(value, int | float) else str(value)
