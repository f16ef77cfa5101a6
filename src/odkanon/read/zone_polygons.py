"""Polygons of the user's own with their codes: GeoJSON, GeoPackage, Shapefile, GeoParquet, in any reference system."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet

from odkanon.core.parsing import parse_json
from odkanon.errors import InputError, nearest

POLYGON_FILES = (".gpkg", ".shp", ".zip", ".parquet", ".geoparquet")
"""Endings of files of polygons besides GeoJSON."""
Shapes = npt.NDArray[Any]
_NEEDS = "polygons in files need pyogrio, pyproj and shapely: pip install 'odkanon[geo]'"


@dataclass(frozen=True, eq=False)
class Polygons:
    """Zones of the user's own.

    Attributes
    ----------
    codes : list of str
        In the order of the file; 52 and 52.0 are the same code.
    shapes : array of shapely geometries
        Their outlines, in degrees (longitude, latitude).
    """

    codes: list[str]
    shapes: Shapes

    @property
    def numbers(self) -> npt.NDArray[np.int64] | None:
        """The codes as whole numbers; None unless all of them are (007 is none, for it would come back as 7)."""
        if not all(code.lstrip("-").isdigit() and str(int(code)) == code for code in self.codes):
            return None
        return np.array([int(code) for code in self.codes], dtype=np.int64)


def read_polygons(path: str | Path, code: str | None = None, *, any_code: bool = False) -> Polygons:
    """Read polygons and their codes.

    Parameters
    ----------
    path : path
        A GeoJSON, GeoPackage, Shapefile (``.shp`` or zipped) or GeoParquet file; its reference system is read from it,
        and is WGS 84 where it names none.
    code : str, optional
        The property with the codes; may be left out if there is only one, or one called ``id``.

    any_code : bool
        The codes do not matter; number the rows.

    Notes
    -----
    Rows with the same code are parts of one zone, which stands where its first part does.
    """
    path = Path(path)
    if not path.exists():
        raise InputError(f"there is no file {path}")
    fields, wkb, crs = _geoparquet(path) if path.suffix in (".parquet", ".geoparquet") else _ogr(path)
    shapes = _in_degrees(_polygonal(wkb, path), crs, path)
    if any_code:
        return Polygons(list(map(str, range(len(wkb)))), shapes)
    name = _code_field(list(fields), code, path)
    codes = [_text(value) for value in fields[name]]
    missing = [number for number, text in enumerate(codes, start=1) if text in ("", "None", "nan")]
    if missing:
        raise InputError(f"{path}: polygon {missing[0]} has no {name}; give every zone a code")
    return _put_together(codes, shapes)


def polygon_features(path: Path) -> list[dict[str, Any]]:
    """Return the polygons of a file as GeoJSON features in degrees, with all their properties."""
    import shapely

    fields, wkb, crs = _geoparquet(path) if path.suffix in (".parquet", ".geoparquet") else _ogr(path)
    outlines = shapely.to_geojson(_in_degrees(_polygonal(wkb, path), crs, path))
    return [
        {
            "type": "Feature",
            "properties": {name: values[row] for name, values in fields.items()},
            "geometry": json.loads(outline),
        }
        for row, outline in enumerate(outlines)
    ]


def _ogr(path: Path) -> tuple[dict[str, list[Any]], Shapes, str | None]:
    try:
        import pyogrio
        from pyogrio.raw import read
    except ImportError:
        raise InputError(_NEEDS) from None
    source = f"/vsizip/{path}" if path.suffix == ".zip" else str(path)
    try:
        about, _, wkb, values = read(source)
    except (pyogrio.errors.DataSourceError, pyogrio.errors.DataLayerError, ValueError) as error:
        raise InputError(f"{path} cannot be read as polygons ({error})") from None
    columns = {str(name): list(column) for name, column in zip(about["fields"], values, strict=True)}
    return columns, wkb, about["crs"]


def _geoparquet(path: Path) -> tuple[dict[str, list[Any]], Shapes, str | None]:
    try:
        table = pyarrow.parquet.ParquetFile(path).read()
        about = parse_json((table.schema.metadata or {})[b"geo"])
        primary = about["primary_column"]
        crs = about["columns"][primary].get("crs")
    except (OSError, pa.ArrowException, KeyError, ValueError):
        raise InputError(f"{path} is not GeoParquet: it has no geometry that can be read") from None
    columns = {name: table.column(name).to_pylist() for name in table.column_names if name != primary}
    wkb = np.array(table.column(primary).to_pylist(), dtype=object)
    return columns, wkb, None if crs is None else json.dumps(crs)


def _code_field(fields: list[str], code: str | None, path: Path) -> str:
    if code is not None and code not in fields:
        raise InputError(f"{path} has no property {code!r}{nearest(code, fields)}; it has {', '.join(fields)}")
    chosen = code or next((name for name in fields if len(fields) == 1 or name.lower() == "id"), None)
    if chosen is None:
        raise InputError(f"{path} has several properties; say which holds the codes: {', '.join(fields) or 'none'}")
    return chosen


def _text(value: Any) -> str:
    """Return a code as people write it."""
    number = isinstance(value, float | np.floating) and float(value).is_integer()
    return str(int(value)) if number else str(value).strip()


def _polygonal(wkb: Shapes, path: Path) -> Shapes:
    try:
        import shapely
    except ImportError:
        raise InputError(_NEEDS) from None
    shapes = shapely.force_2d(shapely.from_wkb(wkb, on_invalid="ignore"))  # such as a ring that is not closed
    attributes = {3, 6}
    others = [number for number, kind in enumerate(shapely.get_type_id(shapes), start=1) if kind not in attributes]
    if len(shapes) == 0 or others:
        which = f"row {others[0]} is none" if others else "it has no rows"
        raise InputError(f"{path} should hold polygons, but {which}")
    try:
        return np.asarray(shapely.make_valid(shapes))
    except shapely.errors.ShapelyError as error:  # such as coordinates that are no numbers
        raise InputError(f"{path} has a polygon that cannot be read ({error})") from None


def _in_degrees(shapes: Shapes, crs: str | None, path: Path) -> Shapes:
    import shapely

    if crs is not None:
        try:
            import pyproj
        except ImportError:
            raise InputError(_NEEDS) from None
        to_degrees = pyproj.Transformer.from_crs(pyproj.CRS.from_user_input(crs), "EPSG:4326", always_xy=True)

        def transform(points: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
            return np.stack(to_degrees.transform(points[:, 0], points[:, 1]), axis=1)

        shapes = shapely.transform(shapes, transform)
    west, south, east, north = shapely.total_bounds(shapes)
    if not (
        np.isfinite([west, south, east, north]).all() and -360 <= west <= east <= 360 and -90 <= south <= north <= 90
    ):
        raise InputError(f"{path}: the polygons do not lie on the globe; does the file name its reference system?")
    return np.asarray(shapes)


def _put_together(codes: list[str], shapes: Shapes) -> Polygons:
    import shapely

    order = list(dict.fromkeys(codes))
    if len(order) == len(codes):
        return Polygons(codes, shapes)
    parts: dict[str, list[Any]] = {code: [] for code in order}
    for code, shape in zip(codes, shapes, strict=True):
        parts[code].append(shape)
    return Polygons(order, np.array([shapely.union_all(parts[code]) for code in order], dtype=object))
