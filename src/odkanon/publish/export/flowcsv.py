"""Flows as plain tables for flowmap.blue and scikit-mobility."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa

from odkanon.core.outputs import write_text
from odkanon.publish.files import guard_text
from odkanon.publish.saved import SavedRelease
from odkanon.read.tables.open import write_csv


def write_flowmap(release: SavedRelease, folder: Path, measure: str) -> None:
    """Write ``locations.csv`` (id, name, lat, lon) and ``flows.csv`` (origin, dest, count), for flowmap.blue."""
    release.check_outlines("a flow map")
    release = release.over_places()
    lon, lat = release.centres.round(7).T
    ids = _ids(release)
    locations = pa.table({"id": ids, "name": ids, "lat": lat, "lon": lon})
    write_csv(locations, folder / "locations.csv")
    write_csv(_flows(release, measure, ("origin", "dest", "count")), folder / "flows.csv")


def write_skmob(release: SavedRelease, folder: Path, measure: str) -> None:
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
