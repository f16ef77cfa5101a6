"""Series of releases: how each flow changed from one release to the next, from published numbers alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from odkanon.core.atomic_write import write_text
from odkanon.core.sql import write_csv
from odkanon.errors import InputError
from odkanon.methods.method_registry import is_nested
from odkanon.model.axes import AXES
from odkanon.publish.report import is_built, make_page
from odkanon.release_format.folder import SavedRelease, open_release
from odkanon.release_format.names import PAGE, guard_text
from odkanon.release_format.targets import OutputFolder, only_files

CHANGES = "changes.csv"


@dataclass(frozen=True, eq=False)
class ReleaseSeries:
    """The flows of several releases side by side."""

    names: tuple[str, ...]
    """Names of the releases, in order."""
    table: pa.Table
    """``origin, destination``, ``trips NAME`` for each release and ``change NAME`` for each but the first: the
    difference from the release before. A flow that a release does not list has no number there: it is below the rule or
    outside the zones, which is not zero. Flows with noise are those estimated between cells, where every flow has a
    number, with ``interval_low NAME, interval_high NAME``: an 80 % interval."""

    @property
    def common_flows(self) -> int:
        """The number of flows that all releases list."""
        columns = [self.table.column(f"trips {name}") for name in self.names]
        return int(np.count_nonzero(np.all([column.is_valid().to_numpy() for column in columns], axis=0)))

    def total(self, name: str) -> int:
        """Return the trips that a release lists."""
        return int(sum(value for value in self.table.column(f"trips {name}").to_pylist() if value is not None))


def make_series(releases: Sequence[SavedRelease]) -> ReleaseSeries:
    """Put releases side by side, flow by flow.

    Raises `InputError` if their zones differ, or their rows cannot be compared one by one.
    """
    names = tuple(release.name for release in releases)
    if len(names) < 2 or len(set(names)) < len(names):
        raise InputError("a series needs two releases or more, with different names")
    noisy = [release.is_noisy for release in releases]
    if any(noisy) and not all(noisy):
        raise InputError(
            f"{names[noisy.index(True)]} has estimates with noise and {names[noisy.index(False)]} has counts; a change "
            "from the one to the other would be mostly noise"
        )
    if all(noisy):
        tables = [release.estimate().table for release in releases]
        trips = [_by_flow(table, np.round(table.column("estimate").to_numpy(), 1).tolist()) for table in tables]
    else:
        for release in releases:
            _check_comparable(release)
        _check_same_outlines(releases)
        tables = [release.table for release in releases]
        trips = [_by_flow(table, table.column("trips").to_pylist()) for table in tables]
    flows = sorted({flow for own in trips for flow in own})
    if not any(flow in trips[0] and flow in trips[1] for flow in flows):
        raise InputError(
            f"{names[0]} and {names[1]} have no flow in common; make the later releases on the zones of the first",
            option="zones",
        )
    columns: dict[str, pa.Array] = {
        axis: pa.array([flow[at] for flow in flows], pa.string()) for at, axis in enumerate(AXES)
    }
    if all(noisy):  # a flow too small to be estimated is estimated to be nothing
        trips = [{flow: own.get(flow, 0) for flow in flows} for own in trips]
    kind = pa.float64() if all(noisy) else pa.int64()
    for name, own, table in zip(names, trips, tables, strict=True):
        columns[f"trips {name}"] = pa.array([own.get(flow) for flow in flows], kind)
        for bound in ("interval_low", "interval_high") if all(noisy) else ():
            bounds = _by_flow(table, table.column(bound).to_pylist())
            columns[f"{bound} {name}"] = pa.array([bounds.get(flow, 0) for flow in flows], pa.int64())
    for name, before, after in zip(names[1:], trips, trips[1:], strict=False):
        change = [round(after[flow] - before[flow], 1) if flow in before and flow in after else None for flow in flows]
        columns[f"change {name}"] = pa.array(change, kind)
    return ReleaseSeries(names, pa.table(columns))


def _by_flow(table: pa.Table, values: list[Any]) -> dict[tuple[str, ...], Any]:
    """Return values by origin and destination."""
    places = zip(*(table.column(axis).to_pylist() for axis in AXES), strict=True)
    return dict(zip(places, values, strict=True))


def write_series(
    releases: Sequence[str | Path | SavedRelease], output: str | Path, *, force: bool = False
) -> ReleaseSeries:
    """Write a series as a folder with a table of changes and a page, all or nothing.

    Parameters
    ----------
    releases : sequence of path or SavedRelease
        Two releases or more on the same zones, in order, with different names.
    output : path
        The folder to write.
    force : bool
        Replace an earlier series.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from odkanon import Rule, anonymize, build_od, make_survey, read_trips
    >>> od = build_od(read_trips(make_survey()), resolution=7)
    >>> with TemporaryDirectory() as folder:
    ...     release = anonymize(od, Rule(trips=10), method="odkanon")
    ...     saved = [release.save(Path(folder) / name) for name in ("may", "june")]
    ...     series = write_series(saved, Path(folder) / "series")
    >>> set(series.table.column("change june").to_pylist())
    {0}
    """
    target = OutputFolder(Path(output), only_files({CHANGES, PAGE}, "a series"), force=force)
    target.check()
    opened = [each if isinstance(each, SavedRelease) else open_release(each) for each in releases]
    series = make_series(opened)
    with target.replaced() as made:
        write_csv(guard_text(series.table), made / CHANGES)
        if is_built():
            write_text(made / PAGE, make_page(opened))
    return series


def _check_comparable(release: SavedRelease) -> None:
    if release.axes or is_nested(str(release.manifest.get("method"))):
        raise InputError(
            f"a row of {release.name} lists only the trips that no finer row lists, so rows of two releases cannot be "
            "compared; export both to zones of your own first"
        )
    if any(zone["properties"].get("kind") == "box" for zone in release.features):
        raise InputError(f"the zones of {release.name} are boxes that no other release has; choose another method")


def _check_same_outlines(releases: Sequence[SavedRelease]) -> None:
    """Raise where a zone id has different outlines in two releases."""
    known: dict[tuple[str, str], tuple[object, str]] = {}
    for release in releases:
        for zone in release.features:
            own = zone["properties"]
            outline, first = known.setdefault((own["axis"], own["id"]), (zone.get("geometry"), release.name))
            if outline != zone.get("geometry"):
                raise InputError(f"the zone {own['id']!r} has another outline in {release.name} than in {first}")
