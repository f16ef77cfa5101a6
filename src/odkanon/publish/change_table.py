"""Several releases side by side: how each flow changed from one to the next, from published numbers alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from odkanon.core.atomic_write import check_new, move_into_place, partial_folder, write_text
from odkanon.core.sql import write_csv
from odkanon.errors import InputError
from odkanon.methods.method_registry import METHODS
from odkanon.model.od import AXES
from odkanon.publish.report import is_built, page_of
from odkanon.release_format.folder import SavedRelease, read_release
from odkanon.release_format.names import PAGE, guard_text

CHANGES = "changes.csv"


@dataclass(frozen=True, eq=False)
class Series:
    """What became of each flow.

    Attributes
    ----------
    names : tuple of str
        Of the releases, in their order.
    table : pyarrow.Table
        ``origin, destination``, ``trips NAME`` for each release and ``change NAME`` for each but the first: the trips
        more or less than in the release before. A flow that is not listed has no number: it is below the rule, or
        outside, and not zero.
    """

    names: tuple[str, ...]
    table: pa.Table

    @property
    def lasting(self) -> int:
        """How many flows all releases list."""
        columns = [self.table.column(f"trips {name}") for name in self.names]
        return int(np.count_nonzero(np.all([column.is_valid().to_numpy() for column in columns], axis=0)))

    def total(self, name: str) -> int:
        """Return the trips that a release lists."""
        return int(sum(value for value in self.table.column(f"trips {name}").to_pylist() if value is not None))


def series_of(releases: Sequence[SavedRelease]) -> Series:
    """Put releases side by side, flow by flow.

    Raises
    ------
    InputError
        If they are not on the same zones, or of a kind whose rows cannot be compared one by one.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from odkanon import Rule, anonymize, make_survey, read_trips
    >>> from odkanon.read.od_matrix import build_od
    >>> od = build_od(read_trips(make_survey()), resolution=7)
    >>> with TemporaryDirectory() as folder:
    ...     saved = [
    ...         read_release(anonymize(od, Rule(trips=k)).save(Path(folder) / name))
    ...         for name, k in (("january", 10), ("february", 10))
    ...     ]
    >>> series = series_of(saved)
    >>> set(series.table.column("change february").to_pylist())
    {0}
    """
    names = tuple(release.name for release in releases)
    if len(names) < 2 or len(set(names)) < len(names):
        raise InputError("a series is of two releases or more, each with a name of its own")
    for release in releases:
        _check_comparable(release)
    _check_same_places(releases)
    trips = [
        dict(zip(zip(*(release.flows.column(axis).to_pylist() for axis in AXES), strict=True), own, strict=True))
        for release in releases
        for own in [release.flows.column("trips").to_pylist()]
    ]
    flows = sorted({flow for own in trips for flow in own})
    if not any(flow in trips[0] and flow in trips[1] for flow in flows):
        raise InputError(
            f"{names[0]} and {names[1]} have no flow in common; make the later ones on the zones of the first",
            option="zones",
        )
    columns = [pa.array([own.get(flow) for flow in flows], pa.int64()) for own in trips]
    made: dict[str, pa.Array] = {
        axis: pa.array([flow[at] for flow in flows], pa.string()) for at, axis in enumerate(AXES)
    }
    made |= {f"trips {name}": column for name, column in zip(names, columns, strict=True)}
    for name, before, after in zip(names[1:], trips, trips[1:], strict=False):
        change = [after[flow] - before[flow] if flow in before and flow in after else None for flow in flows]
        made[f"change {name}"] = pa.array(change, pa.int64())
    return Series(names, pa.table(made))


def save_series(folders: Sequence[Path], output: Path, *, force: bool = False) -> Series:
    """Write a series as a folder with a table and a page, all or nothing."""
    check_new(output, force=force)
    if output.exists() and (not output.is_dir() or {path.name for path in output.iterdir()} - {CHANGES, PAGE}):
        raise InputError(f"{output} is not a series; choose another folder")
    releases = [read_release(folder) for folder in folders]
    series = series_of(releases)
    with partial_folder(output) as partial:
        made = partial / "series"
        made.mkdir()
        write_csv(guard_text(series.table), made / CHANGES)
        if is_built():
            write_text(made / PAGE, page_of(releases))
        move_into_place(made, output, check=lambda: check_new(output, force=force))
    return series


def _check_comparable(release: SavedRelease) -> None:
    method = METHODS.get(str(release.about.get("method")))
    if release.axes or (method is not None and method.nested):
        raise InputError(
            f"a row of {release.name} lists the trips that no finer row lists, so rows of two releases cannot be "
            "compared; put both on the same zones first, with export and zones of your own"
        )
    if any(zone["properties"].get("kind") == "box" for zone in release.zones):
        raise InputError(f"the zones of {release.name} are boxes of its own; choose a method on a hierarchy")


def _check_same_places(releases: Sequence[SavedRelease]) -> None:
    """Raise where one name means different places in two releases."""
    known: dict[tuple[str, str], tuple[object, str]] = {}
    for release in releases:
        for zone in release.zones:
            about = zone["properties"]
            place, first = known.setdefault((about["axis"], about["id"]), (zone.get("geometry"), release.name))
            if place != zone.get("geometry"):
                raise InputError(f"the zone {about['id']!r} lies elsewhere in {release.name} than in {first}")
