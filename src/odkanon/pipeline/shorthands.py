"""Implementations behind the methods of `odkanon.Release`, and its HTML in notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from odkanon.core.parsing import format_number
from odkanon.errors import ColumnNotFoundError, InputError, InvalidValueError, RefusedError
from odkanon.model.od import AXES
from odkanon.release_format.contents import classes_table, zones_geojson
from odkanon.release_format.conversions import FlowTable as FlowTable
from odkanon.release_format.conversions import ZoneTable as ZoneTable

if TYPE_CHECKING:
    from odkanon.core.arrays import Ints
    from odkanon.estimate.flow_estimates import FlowEstimates as FlowEstimates
    from odkanon.linked import LinkedReleases
    from odkanon.model.od import Axis, ODMatrix
    from odkanon.model.release import Release
    from odkanon.publish.attribute_view import CubeView as CubeView
    from odkanon.quality.accuracy.accuracy import Accuracy as Accuracy
    from odkanon.quality.lower_bound import LowerBound as LowerBound
    from odkanon.release_format.conversions import FlowMatrix as FlowMatrix
    from odkanon.zoning.hierarchy import Hierarchy


def flow_table(release: Release) -> FlowTable:
    """Return the published flows, weights in their own unit."""
    return FlowTable(classes_table(release))


def zone_table(release: Release) -> ZoneTable:
    """Return the zones of the published flows, with what begins or ends in each."""
    return ZoneTable(zones_geojson(release)["features"])


def estimate(release: Release, question: dict[str, Any]) -> FlowEstimates:
    """Return the flows that a reader of the saved release would estimate."""
    from odkanon.publish.save import as_saved

    return as_saved(release).estimate(**question)


def save(release: Release, folder: Path, **options: Any) -> Path:
    """Write a release; see `odkanon.publish.save.save_release`."""
    from odkanon.publish.save import save_release

    return save_release(release, folder, **options)


def save_linked(linked: LinkedReleases, folder: Path, **options: Any) -> Path:
    """Write releases that are safe side by side; see `odkanon.publish.save.save_linked`."""
    from odkanon.publish.save import save_linked

    return save_linked(linked, folder, **options)


def view(release: Release, where: str | None) -> CubeView:
    """Return some of the trips of a cube as a matrix."""
    from odkanon.publish.attribute_view import view_in_memory

    return view_in_memory(release, where)


def cautions_of(release: Release | LinkedReleases) -> list[str]:
    """Return the cautions about a release."""
    from odkanon.pipeline.cautions import cautions

    return cautions(release)


def lower_bound(release: Release) -> LowerBound | None:
    """Return the G that no release of the same input can beat."""
    from odkanon.quality.lower_bound import release_bound

    return release_bound(release)


def accuracy_of(release: Release) -> dict[str, Accuracy]:
    """Return how right the flows of a release are, by measure."""
    from odkanon.quality.accuracy.accuracy import accuracy

    return accuracy(release)


def locate(release: Release, trips: Any) -> pa.Table:
    """Return the flow of each trip; see `odkanon.Release.locate`."""
    if release.od.axes:
        raise InputError("the flow of a trip in a cube also depends on its attributes; locate trips of a plain release")
    table = trips if isinstance(trips, pa.Table) else _to_arrow(trips)
    pair = _pair_of_rows(release, *(_leaves(table, axis, release.od.tree(axis)) for axis in AXES))
    flow = np.where((pair >= 0) & release.published[pair], release.area_of_pair[pair], -1)
    columns = {"flow": pa.array(flow, mask=flow < 0)}
    for axis, zones in zip(AXES, (release.origins, release.destinations), strict=True):
        ids = np.append(zones.ids[getattr(release.classes, axis)], "")  # the last one is for -1
        columns[axis] = pa.array(ids[flow], mask=flow < 0)
    return pa.table(columns)


def _to_arrow(trips: Any) -> pa.Table:
    from odkanon.core.sql import connect

    if hasattr(trips, "__arrow_c_stream__") or hasattr(trips, "__dataframe__"):
        return pa.table(trips)
    if hasattr(trips, "columns") and hasattr(trips, "iloc"):
        return pa.Table.from_pandas(trips, preserve_index=False)
    with connect() as connection:
        return connection.from_parquet(str(trips)).to_arrow_table()


def _leaves(table: pa.Table, axis: Axis, tree: Hierarchy) -> Ints:
    """Return the number of the leaf in which each trip begins or ends; -1 where there is none."""
    from odkanon.read.tables.column_names import resolve
    from odkanon.zoning.cells import cell_to_parent, latlng_to_cell, str_to_cell

    found = resolve(_Columns("the table of trips", tuple(table.column_names)), None, also=None)
    place = {"origin": ("start_lat", "start_lon"), "destination": ("end_lat", "end_lon")}[axis]
    if tree.resolution is not None and all(name in found for name in place):
        lat, lon = (table.column(found[name]).cast(pa.float64()).to_numpy(zero_copy_only=False) for name in place)
        good = np.isfinite(lat) & np.isfinite(lon) & (np.abs(lat) <= 90) & (np.abs(lon) <= 180)
        ids = latlng_to_cell(np.where(good, lat, 0.0), np.where(good, lon, 0.0), tree.resolution)
    elif axis in found:
        codes = table.column(found[axis]).combine_chunks()
        good = codes.is_valid().to_numpy(zero_copy_only=False)
        if tree.resolution is None:
            ids = np.where(good, np.asarray(codes.fill_null("").to_pylist(), dtype=np.str_), "")
        else:
            ids = cell_to_parent(str_to_cell(codes.fill_null(str(0))), tree.resolution)
    else:
        raise ColumnNotFoundError.from_missing("the table of trips", axis, table.column_names)
    order = np.argsort(tree.leaves, kind="stable")
    at = np.searchsorted(tree.leaves[order], ids).clip(max=len(order) - 1)
    leaf = order[at]
    return np.where(good & (tree.leaves[leaf] == ids), leaf, -1)


def _pair_of_rows(release: Release, origin: Ints, destination: Ints) -> Ints:
    """Return the OD pair of each trip; -1 where the input has none."""
    flows, width = release.od.flows, len(release.od.destinations.leaves)
    keys = flows.origin.astype(np.int64) * width + flows.destination
    order = np.argsort(keys, kind="stable")
    wanted = np.where((origin >= 0) & (destination >= 0), origin * width + destination, -1)
    at = order[np.searchsorted(keys[order], wanted).clip(max=max(len(order) - 1, 0))]
    return np.where(keys[at] == wanted, at, -1)


class _Columns:
    """A table by name and columns, as `resolve` takes it."""

    def __init__(self, name: str, columns: tuple[str, ...]) -> None:
        self.name, self.columns = name, columns


def od_html(od: ODMatrix) -> str:
    """Return an OD matrix as HTML: its totals, and the rejected rows of the input."""
    rows = {"OD pairs": f"{len(od):,}", "trips": f"{od.trips:,}"}
    if od.weight is not None:
        rows["weight"] = format_number(od.weight)
    rows |= {name: f"{count:,}" for name, count in od.contributors.items()}
    rows["origin leaves"] = f"{len(od.origins.leaves):,}"
    rows["destination leaves"] = f"{len(od.destinations.leaves):,}"
    rows |= {f"rejected rows {reason}": f"{part.rows:,}" for reason, part in od.source.rejected.items()}
    return _table("OD matrix (not protected)", rows)


def release_html(release: Release) -> str:
    """Return a release as HTML: its statement, what is published, and its largest flows."""
    from odkanon.release_format.contents import classes_table
    from odkanon.release_format.conversions import FlowTable
    from odkanon.release_format.public_rule import promise

    if release.refusal:
        return _table("Release", {"nothing is published": release.refusal})
    published = int(release.classes.trips.sum())
    rows = {
        "method": release.method,
        "published flows": f"{len(release.classes):,}",
        "origin zones": f"{len(release.origins):,}",
        "destination zones": f"{len(release.destinations):,}",
        "published trips": f"{published:,} of {release.input.trips:,} ({published / max(release.input.trips, 1):.1%})",
    }
    return _table(promise(release), rows) + FlowTable(classes_table(release))._repr_html_()


def linked_html(linked: LinkedReleases) -> str:
    """Return linked releases as HTML: their statement, and a row for the whole and each segment."""
    from odkanon.release_format.public_rule import linked_promise

    rows = {"whole": f"{len(linked.whole.classes):,} flows"}
    rows |= {
        part.title: part.reason or "" if part.release is None else f"{len(part.release.classes):,} flows"
        for part in linked.parts
    }
    return _table(linked_promise(linked.whole), rows)


@dataclass(frozen=True)
class NotebookMap:
    """A page that a notebook displays below the cell that made it."""

    page: str = field(repr=False)
    """A complete HTML document that makes no requests."""
    height: int
    """In pixels."""

    def _repr_html_(self) -> str:
        # Sandboxed, so that neither the page nor the notebook can access the other.
        return (
            f'<iframe srcdoc="{escape(self.page)}" sandbox="allow-scripts allow-downloads" title="Map of the release" '
            f'style="width: 100%; height: {self.height}px; border: 0"></iframe>'
        )


def release_map(release: Release, *, height: int = 800) -> NotebookMap:
    """Return the page of a release for a notebook, as `Release.save` writes it to ``report.html``.

    * ``release``: the release.
    * ``height``: height of the frame in pixels, in [100, 10000].

    Examples
    --------
    >>> from odkanon import Rule, anonymize, make_survey, read_trips
    >>> from odkanon.read.od_matrix import build_od
    >>> release = anonymize(build_od(read_trips(make_survey().slice(0, 4000)), resolution=7), Rule(trips=10))
    >>> release.map(height=400)._repr_html_()[:15]
    '<iframe srcdoc='
    """
    from odkanon.publish.manifests import public_manifest
    from odkanon.publish.report import make_page
    from odkanon.release_format.contents import classes_table, zones_geojson
    from odkanon.release_format.folder import SavedRelease

    if release.refusal:
        raise RefusedError(f"there is no map to show: {release.refusal}")
    if not 100 <= height <= 10_000:
        raise InvalidValueError.expected("the height of a map", "from 100 to 10,000 pixels", height)
    features = zones_geojson(release)["features"]
    saved = SavedRelease("release", public_manifest(release), features, classes_table(release))
    return NotebookMap(make_page([saved]), height)


def _table(caption: str, rows: Mapping[str, str]) -> str:
    body = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows.items())
    return f"<table><caption>{escape(caption)}</caption><tbody>{body}</tbody></table>"
