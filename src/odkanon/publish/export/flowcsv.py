"""Flows as plain tables for flowmap.blue and scikit-mobility."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from odkanon.core.atomic_write import write_text
from odkanon.core.sql import write_csv
from odkanon.errors import InputError
from odkanon.publish.export.flow_times import time_axes, times
from odkanon.release_format.folder import SavedRelease
from odkanon.release_format.names import guard_text

log = logging.getLogger(__name__)
LOCATIONS, FLOWS, TIMELESS = "locations.csv", "flows.csv", "flows-without-time.csv"
_NAMES = ("origin", "dest", "count")


def flowmap_files(release: SavedRelease) -> tuple[str, ...]:
    """Return the files of a flow map; a cube that tells of time has one more, for rows that do not."""
    return (LOCATIONS, FLOWS, *([TIMELESS] if time_axes(release) else []))


def earlier_rest(folder: Path) -> Path | None:
    """Return the flows without time of an earlier flow map in a folder; None where there are none that we wrote."""
    starts = {FLOWS: ",".join((*_NAMES, "time")) + "\n", TIMELESS: ",".join(_NAMES) + ","}
    for name, start in starts.items():
        try:
            with (folder / name).open("rb") as file:
                if file.read(len(start)) != start.encode():
                    return None
        except OSError:
            return None
    return folder / TIMELESS


def write_flowmap(release: SavedRelease, measure: str, folder: Path, *, coarse_times: bool = False) -> None:
    """Write ``locations.csv`` (id, name, lat, lon) and ``flows.csv`` (origin, dest, count), for flowmap.blue.

    The flows of a cube by time have a fourth column, ``time`` (see `odkanon.publish.export.flow_times`). Rows
    without one are in ``flows-without-time.csv``, with what they do tell of it: in the same file they would disappear
    from the map as soon as somebody chooses a time. The counts of both add up to all trips. Modes and the like are
    added up.
    """
    release.check_outlines("a flow map")
    lon, lat = release.centres.round(7).T
    ids = _ids(release)
    write_csv(pa.table({"id": ids, "name": ids, "lat": lat, "lon": lon}), folder / LOCATIONS)
    axes = time_axes(release)
    if coarse_times and not axes:
        raise InputError(f"{release.name} tells of no time, so that there is nothing to tell by part of the day")
    if not axes:
        write_csv(_flows(release.over_places(), measure, _NAMES), folder / FLOWS)
        return
    flows, when = _flows(release, measure, _NAMES), times(release, coarse=coarse_times)
    timeless = pc.is_null(when)
    _say_timeless(flows.column(_NAMES[-1]), timeless, measure)
    write_csv(_added_up(flows.append_column("time", when).filter(pc.invert(timeless))), folder / FLOWS)
    said = guard_text(release.flows.select(axes))
    for axis in axes:
        flows = flows.append_column(axis, said.column(axis))
    write_csv(_added_up(flows.filter(timeless)), folder / TIMELESS)


def _added_up(flows: pa.Table) -> pa.Table:
    """Return flows with those added up that differ in nothing but their count, sorted."""
    count = _NAMES[-1]
    others = [name for name in flows.column_names if name != count]
    sums = flows.group_by(others, use_threads=False).aggregate([(count, "sum")]).rename_columns([*others, count])
    return sums.select(flows.column_names).sort_by([(name, "ascending") for name in others])


def _say_timeless(counts: pa.ChunkedArray, timeless: pa.Array, measure: str) -> None:
    without, whole = pc.sum(counts.filter(timeless)).as_py() or 0, pc.sum(counts).as_py() or 0
    if without:
        what = "trips" if measure == "trips" else f"of the {measure}"
        log.warning(
            "%s of %s %s have no time that the map could show; they are in %s",
            f"{without:,.0f}",
            f"{whole:,.0f}",
            what,
            TIMELESS,
        )


def write_skmob(release: SavedRelease, measure: str, folder: Path) -> None:
    """Write ``tessellation.geojson`` (tile_ID) and ``flows.csv`` (origin, destination, flow), for scikit-mobility.

    Zones of some methods overlap; flows still name theirs by ``tile_ID``.
    """
    release.check_outlines("a tessellation")
    release = release.over_places()
    features = [
        {"type": "Feature", "properties": {"tile_ID": zone}, "geometry": outline}
        for zone, outline in zip(_ids(release).to_pylist(), release.places.outlines, strict=True)
    ]
    text = json.dumps({"type": "FeatureCollection", "features": features}, ensure_ascii=False, allow_nan=False)
    write_text(folder / "tessellation.geojson", text + "\n")
    write_csv(_flows(release, measure, ("origin", "destination", "flow")), folder / "flows.csv")


def _flows(release: SavedRelease, measure: str, names: tuple[str, str, str]) -> pa.Table:
    release.measure(measure)  # raises where the release does not have it
    ids, places = _ids(release), release.places
    columns = [ids.take(pa.array(places.origin)), ids.take(pa.array(places.destination)), release.flows.column(measure)]
    return pa.table(dict(zip(names, columns, strict=True)))


def _ids(release: SavedRelease) -> pa.ChunkedArray:
    """Return the names of zones as they stand in every file of an export, safe in spreadsheets."""
    return guard_text(pa.table({"id": pa.array(release.places.ids, pa.string())})).column("id")
