"""Study areas: sets of H3 cells, or the polygons in a file."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from odkanon.core.arrays import Bools
from odkanon.core.parsing import parse_json
from odkanon.errors import InputError, UnreadableFileError, nearest
from odkanon.read.coordinates import check_degrees
from odkanon.read.tables.geo_files import POLYGON_FILES, read_polygons
from odkanon.zoning.cells import (
    Cells,
    cell_radius,
    cell_to_latlng,
    cell_to_parent,
    cell_to_resolution,
    is_valid_cell,
    str_to_cell,
)

PARIS_CENTRE = ("861fb4667ffffff", "861fb4677ffffff", "861fb466fffffff", "861fb4647ffffff", "861fb475fffffff")
NAMED = {"paris-centre": PARIS_CENTRE}
"""Named areas: ``paris-centre`` is that of the paper's experiments, five cells of resolution 6."""


@dataclass(frozen=True, eq=False)
class Area:
    """A study area. A cell is inside if it is a descendant of one of ``cells``, or its centre is in ``shape``."""

    cells: Cells = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    shape: Any = None

    def contains(self, cells: Cells) -> Bools:
        """Return which cells, all of one resolution, are inside."""
        distinct, number = np.unique(cells, return_inverse=True)
        inside = np.zeros(len(distinct), dtype=bool)
        if self.shape is not None:
            import shapely

            lat, lng = cell_to_latlng(distinct)
            inside |= shapely.contains_xy(self.shape, lng, lat)
        finest = int(cell_to_resolution(distinct[:1]).max(initial=0))
        for resolution in np.unique(cell_to_resolution(self.cells)).tolist():
            if resolution > finest:
                raise InputError(
                    f"the area has cells of resolution {resolution}, finer than the {finest} of the trips; "
                    "use coarser cells for the area, or a finer resolution"
                )
            inside |= np.isin(cell_to_parent(distinct, resolution), self.cells)
        return inside[number]

    def mask(self, resolution: int) -> Cells:
        """Return the disjoint cells, up to a resolution, that cover the area: the publicly known extent of places."""
        cells = self.cells
        if self.shape is not None:
            cells = np.unique(np.concatenate([cells, self._cells_of_shape(resolution)]))
        finer = cell_to_resolution(cells)
        covered = np.zeros(len(cells), dtype=bool)
        for coarse in np.unique(finer).tolist():
            below = finer > coarse
            covered[below] |= np.isin(cell_to_parent(cells[below], coarse), cells[finer == coarse])
        return cells[~covered]

    def _cells_of_shape(self, resolution: int) -> Cells:
        import h3
        import shapely

        # Candidates extend beyond the edge, and are then tested like the ends of trips.
        wide = self.shape.buffer(3 * cell_radius(resolution))
        found = h3.h3shape_to_cells(h3.geo_to_h3shape(shapely.geometry.mapping(wide)), resolution)
        cells = np.array(sorted(h3.str_to_int(cell) for cell in found), dtype=np.uint64)
        return cells[Area(shape=self.shape).contains(cells)]


def read_area(text: str) -> Area:
    """Return an area by name, from a polygon file, a file of cells, or cells separated by commas or spaces.

    Examples
    --------
    >>> len(read_area("paris-centre").cells)
    5
    >>> len(read_area("861fb4667ffffff, 861fb4677ffffff").cells)
    2
    """
    path = Path(text)
    if text in NAMED and not path.exists():
        text = ",".join(NAMED[text])
    if _is_file(path):
        if path.suffix.lower() in POLYGON_FILES:
            return Area(shape=_union(read_polygons(path, any_code=True).shapes))
        content = path.read_text(encoding="utf-8", errors="replace")
        if content.lstrip().startswith("{"):
            return Area(shape=_shape(content, text))
        text = content
    words = text.replace(",", " ").split()
    cells = str_to_cell(pa.array(words, pa.string()))
    wrong = [word for word, good in zip(words, is_valid_cell(cells), strict=True) if not good]
    if wrong or not words:
        what = (wrong or [text])[0]
        raise InputError(
            f"the area {what!r} is neither a file nor an H3 cell{nearest(what, NAMED)}; "
            "give a GeoJSON file, or cells separated by commas"
        )
    return Area(cells=np.unique(cells))


def _is_file(path: Path) -> bool:
    """Return whether a file exists; a list of cells may be too long for a path."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _union(shapes: Any) -> Any:
    import shapely

    return shapely.union_all(shapes)


def _shape(content: str, name: str) -> Any:
    import shapely

    try:
        shape = shapely.from_geojson(json.dumps(parse_json(content)))
    except (ValueError, shapely.errors.GEOSException) as error:
        raise UnreadableFileError.because(name, error, as_="GeoJSON") from None
    shape = _union(shapely.get_parts(shape))
    if shape.is_empty or shape.area == 0:
        raise InputError(f"{name} has no polygon; an area needs at least one")
    check_degrees(shape.bounds, name)
    return shape
