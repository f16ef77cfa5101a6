"""Estimated flows between zones of the user's own, with all that is outside as one more zone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from odkanon.core.arrays import Ints
from odkanon.estimate.flow_estimates import LEAST, FlowEstimates, read_flows
from odkanon.estimate.row_combinations import Where
from odkanon.estimate.target_areas import PolygonAreas, ZoneFootprints
from odkanon.model.axes import AXES
from odkanon.publish.onto.zone_matrix import OUTSIDE
from odkanon.read.tables.geo_files import ZonePolygons
from odkanon.release_format.folder import SavedRelease
from odkanon.zoning.cells import Floats

_FEW = 1_000
"""Zones up to which every flow above 0 is listed."""
_COLUMNS = {
    "estimate": "trips",
    "low": "trips_low",
    "high": "trips_high",
    "interval_low": "trips_interval_low",
    "interval_high": "trips_interval_high",
}


@dataclass(frozen=True, eq=False)
class EstimatedMatrix:
    """Estimated flows between given zones.

    Attributes
    ----------
    codes : list of str
        The zones, in the order of their file, and last the outside.
    numbers : array of int or None
        The codes as integers, if they are; the outside is 0, or -1 if a zone has the code 0.
    flows : FlowEstimates
        The estimates between them.
    """

    codes: list[str]
    numbers: Ints | None
    flows: FlowEstimates

    @cached_property
    def ends(self) -> tuple[Ints, Ints]:
        """For each flow the positions of its zones."""
        position = {code: at for at, code in enumerate(self.codes)}
        origin, destination = (
            np.array([position[code] for code in self.flows.table.column(axis).to_pylist()], dtype=np.int64)
            for axis in AXES
        )
        return origin, destination

    @property
    def cores(self) -> dict[str, Floats]:
        """By name, a value for each flow: the estimate, its bounds and interval, and the weight where there is one."""
        table = self.flows.table
        columns = {_COLUMNS.get(name, str(name)): table.column(name) for name in table.column_names}
        wanted = [name for name in (*_COLUMNS.values(), "weight") if name in columns and not columns[name].null_count]
        return {name: np.asarray(columns[name].to_numpy(), dtype=np.float64) for name in wanted}

    def table(self) -> pa.Table:
        """Return the flows in the order of the zones."""
        order = np.lexsort(self.ends[::-1])
        columns: dict[str, Any] = {
            axis: self._names.take(pa.array(end[order])) for axis, end in zip(AXES, self.ends, strict=True)
        }
        columns |= {name: values[order] for name, values in self.cores.items()}
        return pa.table(columns)

    def margins(self) -> pa.Table:
        """Return what starts and ends in each zone."""
        sums: dict[str, Any] = {"zone": self._names}
        for name in ("trips", "weight"):
            if name in self.cores:
                for end, side in zip(self.ends, ("from", "to"), strict=True):
                    sums[f"{name}_{side}"] = np.round(np.bincount(end, self.cores[name], len(self.codes)), 6)
        return pa.table(sums)

    @cached_property
    def _names(self) -> pa.Array:
        return pa.array(self.codes if self.numbers is None else self.numbers)


def estimates_onto(release: SavedRelease, polygons: ZonePolygons, where: Where = None) -> EstimatedMatrix:
    """Return the estimated flows of a release between polygons.

    Examples
    --------
    >>> import odkanon
    >>> from odkanon.publish.save import as_saved
    >>> from odkanon.read.tables.geo_files import ZonePolygons
    >>> import shapely
    >>> release = odkanon.anonymize(odkanon.make_survey().slice(0, 4000), k=10, method="cascade", resolution=8)
    >>> halves = ZonePolygons(["west", "east"], np.array([shapely.box(1, 48, 2.3, 50), shapely.box(2.3, 48, 4, 50)]))
    >>> estimates_onto(as_saved(release), halves).margins().column("zone").to_pylist()
    ['west', 'east', 'outside']
    """
    release.require_flows("a matrix on other zones")
    areas = _WithOutside(PolygonAreas(polygons.codes, polygons.shapes))
    least = 1e-6 if len(polygons.codes) <= _FEW else LEAST
    flows = read_flows(release, where).between(areas, areas, where=where, least=least)
    numbers = polygons.numbers
    if numbers is not None:
        numbers = np.append(numbers, -1 if 0 in numbers else 0)
    return EstimatedMatrix(areas.ids, numbers, flows)


@dataclass(frozen=True, eq=False)
class _WithOutside:
    """Polygons, and everything that is in none of them."""

    polygons: PolygonAreas

    @property
    def ids(self) -> list[str]:
        return [*self.polygons.ids, OUTSIDE]

    def number(self, lat: Floats, lon: Floats) -> Ints:
        found = self.polygons.number(lat, lon)
        return np.where(found < 0, len(self.polygons.ids), found)

    def relation(self, zones: ZoneFootprints) -> tuple[Any, Any]:
        from scipy.sparse import csr_array, hstack

        inside, meets = self.polygons.relation(zones)
        outside = np.asarray(meets.sum(axis=1)).ravel() == 0
        partly = np.asarray(inside.sum(axis=1)).ravel() == 0
        return (
            hstack([inside, csr_array(outside[:, None].astype(float))]).tocsr(),
            hstack([meets, csr_array(partly[:, None].astype(float))]).tocsr(),
        )
