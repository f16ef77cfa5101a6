"""Flows for the maps of flowmap.blue, kepler.gl and scikit-mobility."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odkanon.attributes.hierarchies import WEEK
from odkanon.core.atomic_write import write_text
from odkanon.core.sql import write_csv
from odkanon.errors import InputError
from odkanon.release_format.folder import SavedRelease
from odkanon.release_format.names import guard_text
from odkanon.zoning.zone_nodes import cell_nodes

log = logging.getLogger(__name__)
LOCATIONS, FLOWS, TIMELESS = "locations.csv", "flows.csv", "flows-without-time.csv"
KEPLER = "kepler.json"
_NAMES = ("origin", "dest", "count")
MONDAY = "2001-01-01"
"""The placeholder for rows without a date: a Monday, long enough ago not to be taken for the real date."""
_DAYS = {day: f"2001-01-{number:02}" for number, day in enumerate(WEEK, start=1)}
_DAYS |= {"working days": _DAYS["Monday"], "weekend": _DAYS["Saturday"]}


def _date(label: str) -> str | None:
    return label if re.fullmatch(r"\d{4}-\d{2}(-\d{2})?", label) else None


def _hour(label: str) -> str | None:
    return f"{label[:2]}:00" if re.fullmatch(r"\d{2}(-\d{2})?", label) else None


_START_OF: dict[str, Callable[[str], str | None]] = {"date": _date, "weekday": _DAYS.get, "hour": _hour}
"""For each attribute of time, the start of a label's period; None where the label is no time."""


def write_flowmap(release: SavedRelease, measure: str, folder: Path, *, coarse_times: bool = False) -> None:
    """Write ``locations.csv`` (id, name, lat, lon) and ``flows.csv`` (origin, dest, count), for flowmap.blue.

    The flows of a cube by time have a fourth column, ``time`` (see `start_times`). Rows without a time go to
    ``flows-without-time.csv``, with the labels they do have: in the same file they would vanish from the map as soon
    as its reader filters by time. Together both files count all trips. Other attributes are summed over.
    """
    release = release.with_outlines("a flow map")
    lon, lat = release.centroids.round(7).T
    ids = _zone_ids(release)
    write_csv(pa.table({"id": ids, "name": ids, "lat": lat, "lon": lon}), folder / LOCATIONS)
    axes = time_axes(release)
    if coarse_times and not axes:
        raise InputError(f"{release.name} has no attribute of time; leave out coarse times")
    if not axes:
        write_csv(_flows(release.without_attributes(), measure, _NAMES), folder / FLOWS)
        return
    flows, times = _flows(release, measure, _NAMES), start_times(release, coarse=coarse_times)
    timeless = pc.is_null(times)
    _warn_of_timeless(flows.column(_NAMES[-1]), timeless, measure)
    write_csv(_summed(flows.append_column("time", times).filter(pc.invert(timeless))), folder / FLOWS)
    labels = guard_text(release.table.select(axes))
    for axis in axes:
        flows = flows.append_column(axis, labels.column(axis))
    write_csv(_summed(flows.filter(timeless)), folder / TIMELESS)


def write_kepler(release: SavedRelease, measure: str, folder: Path) -> None:
    """Write ``flows.csv`` and ``kepler.json``, a map of kepler.gl with the same flows and a ready flow layer.

    Flows between H3 cells are given by their cells, others by the centroids of their zones. Attributes of a cube are
    summed over.
    """
    release = release.with_outlines("a map of kepler.gl").without_attributes()
    flows, index = _flows(release, measure, ("origin", "destination", measure)), release.zone_index
    if cell_nodes(index.ids) is not None and not any("-" in zone for zone in index.ids):
        mode, columns = "H3", {"sourceH3": "origin", "targetH3": "destination"}
    else:
        mode, columns = "LAT_LNG", {name: name for name in ("lat0", "lng0", "lat1", "lng1")}
        for number, zones in enumerate((index.origin, index.destination)):
            for name, side in (("lng", 0), ("lat", 1)):
                flows = flows.append_column(f"{name}{number}", pa.array(release.centroids[zones, side].round(7)))
    columns |= {"count": measure, "sourceName": "origin", "targetName": "destination"}
    lng, lat = np.median(release.centroids, axis=0).round(4).tolist()
    write_csv(flows, folder / FLOWS)
    document = _kepler_map(release.name, flows, mode, columns, {"latitude": lat, "longitude": lng})
    write_text(folder / KEPLER, json.dumps(document, ensure_ascii=False, allow_nan=False) + "\n")


def _kepler_map(
    name: str, flows: pa.Table, mode: str, columns: dict[str, str], view: dict[str, float]
) -> dict[str, Any]:
    """Return a saved map of kepler.gl (schema version 1): data, layer and view."""
    types = ["string" if pa.types.is_string(field.type) else "real" for field in flows.schema]
    fields = [
        {"name": column, "type": of, "format": "", "analyzerType": "STRING" if of == "string" else "FLOAT"}
        for column, of in zip(flows.column_names, types, strict=True)
    ]
    rows = [list(row) for row in zip(*(column.to_pylist() for column in flows.columns), strict=True)]
    data = {"id": "flows", "label": name, "color": [143, 47, 191], "allData": rows, "fields": fields}
    layer = {
        "dataId": "flows",
        "label": "flows",
        "columnMode": mode,
        "columns": columns,
        "isVisible": True,
        "visConfig": {"flowClusteringEnabled": False, "flowAdaptiveScalesEnabled": True, "maxTopFlowsDisplayNum": 5000},
    }
    state = {"layers": [{"id": "flows", "type": "flow", "config": layer}], "filters": []}
    config = {"visState": state, "mapState": {**view, "zoom": 10}, "mapStyle": {"styleType": "positron"}}
    return {
        "datasets": [{"version": "v1", "data": data}],
        "config": {"version": "v1", "config": config},
        "info": {"app": "kepler.gl", "title": name},
    }


def write_skmob(release: SavedRelease, measure: str, folder: Path) -> None:
    """Write ``tessellation.geojson`` (tile_ID) and ``flows.csv`` (origin, destination, flow), for scikit-mobility.

    Zones of some methods overlap; flows still refer to them by ``tile_ID``.
    """
    release = release.with_outlines("a tessellation").without_attributes()
    features = [
        {"type": "Feature", "properties": {"tile_ID": zone}, "geometry": outline}
        for zone, outline in zip(_zone_ids(release).to_pylist(), release.zone_index.outlines, strict=True)
    ]
    text = json.dumps({"type": "FeatureCollection", "features": features}, ensure_ascii=False, allow_nan=False)
    write_text(folder / "tessellation.geojson", text + "\n")
    write_csv(_flows(release, measure, ("origin", "destination", "flow")), folder / "flows.csv")


def flowmap_files(release: SavedRelease) -> tuple[str, ...]:
    """Return the files of a flow map; a cube by time has one more, for rows without a time."""
    return (LOCATIONS, FLOWS, *([TIMELESS] if time_axes(release) else []))


def stale_flowmap_file(folder: Path) -> Path | None:
    """Return the flows without time that an earlier flow map of ours left in a folder; None where there are none."""
    starts = {FLOWS: ",".join((*_NAMES, "time")) + "\n", TIMELESS: ",".join(_NAMES) + ","}
    for name, start in starts.items():
        try:
            with (folder / name).open("rb") as file:
                if file.read(len(start)) != start.encode():
                    return None
        except OSError:
            return None
    return folder / TIMELESS


def time_axes(release: SavedRelease) -> list[str]:
    """Return the attributes of a cube that are times."""
    return [axis for axis in _START_OF if axis in release.axes]


def start_times(release: SavedRelease, *, coarse: bool = False) -> pa.Array:
    """Return when the trips of each row start; null unless the row has a time on every attribute of time.

    It is the start of an hour, a time slot or a day; if ``coarse``, that of a part of the day, of the working days or
    the weekend, or of a month. All times have the same precision: otherwise a row by part of the day has no time, and
    if ``coarse``, rows by hour are assigned to their part of the day. Rows without a date get a placeholder
    (`MONDAY`), or the day of its week that they name. Where rows have a date, it determines the weekday.

    Times are written as flowmap.blue reads them: ``2024-03-05``, ``2024-03`` or ``2024-03-05 07:00``.
    """
    starts = {axis: _axis_starts(release, axis, coarse=coarse) for axis in time_axes(release)}
    placeholder = pa.repeat(MONDAY, release.table.num_rows)
    days = starts.get("date", starts.get("weekday", placeholder))
    if "hour" not in starts:
        return days
    # Hours of a month are assigned to its first day.
    is_month = pc.equal(pc.utf8_length(days), len("2001-01"))
    first_day = pc.if_else(is_month, pc.binary_join_element_wise(days, "01", "-"), days)
    return pc.binary_join_element_wise(first_day, starts["hour"], " ")


def _axis_starts(release: SavedRelease, axis: str, *, coarse: bool) -> pa.Array:
    """Return the start of each row's period on one attribute; null where it has none."""
    levels = next(each["levels"] for each in release.manifest["axes"] if each["name"] == axis)
    level = max(len(levels) - 2, 0) if coarse else 0
    above = {own: top for below in levels[: level + 1] for own, top in zip(below, levels[level], strict=True)}
    labels = release.table.column(axis).combine_chunks().dictionary_encode()
    starts = [_START_OF[axis](above[label]) if label in above else None for label in labels.dictionary.to_pylist()]
    return pa.array(starts, pa.string()).take(labels.indices)


def _summed(flows: pa.Table) -> pa.Table:
    """Return flows with the counts of equal rows summed, sorted."""
    count = _NAMES[-1]
    others = [name for name in flows.column_names if name != count]
    sums = flows.group_by(others, use_threads=False).aggregate([(count, "sum")]).rename_columns([*others, count])
    return sums.select(flows.column_names).sort_by([(name, "ascending") for name in others])


def _warn_of_timeless(counts: pa.ChunkedArray, timeless: pa.Array, measure: str) -> None:
    without, whole = pc.sum(counts.filter(timeless)).as_py() or 0, pc.sum(counts).as_py() or 0
    if without:
        what = "trips" if measure == "trips" else f"of the {measure}"
        numbers = f"{without:,.0f} of {whole:,.0f} {what}"
        log.warning("%s have no time that the map could show; they are in %s", numbers, TIMELESS)


def _flows(release: SavedRelease, measure: str, names: tuple[str, str, str]) -> pa.Table:
    release.measure(measure)  # raises where the release does not have it
    ids, index = _zone_ids(release), release.zone_index
    columns = [ids.take(pa.array(index.origin)), ids.take(pa.array(index.destination)), release.table.column(measure)]
    return pa.table(dict(zip(names, columns, strict=True)))


def _zone_ids(release: SavedRelease) -> pa.ChunkedArray:
    """Return the ids of zones as all files of an export contain them, guarded against spreadsheets."""
    return guard_text(pa.table({"id": pa.array(release.zone_index.ids, pa.string())})).column("id")
