"""Views of a cube: the matrix of a mode, a time of day or everyone, as sums of published rows.

A view is computed from published rows only, so it discloses nothing that the cube does not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from odkanon.core.sql import write_csv
from odkanon.errors import RefusedError
from odkanon.estimate.row_combinations import matching_rows
from odkanon.model.axes import Subject
from odkanon.model.release import Release
from odkanon.release_format.contents import classes_table, public_axes
from odkanon.release_format.folder import SavedRelease, open_release
from odkanon.release_format.names import MANIFEST, guard_text, sha256, write_json
from odkanon.release_format.targets import OutputFolder, only_files

CSV, PARQUET, ABOUT = "view.csv", "view.parquet", "view.json"
POSSIBLE = "possible"


@dataclass(frozen=True, eq=False)
class CubeView:
    """The trips of a cube that match a filter, between its zones.

    Attributes
    ----------
    release : str
        Name of the folder of the release.
    where : str or None
        The filter; None for all trips.
    table : pyarrow.Table
        ``origin, destination``; ``trips`` that match for certain, and ``trips_possible``, those of rows whose
        attributes are too coarse to decide: between none and all of them match. ``weight`` and ``weight_possible``
        likewise.
    """

    release: str
    where: str | None
    table: pa.Table
    subject: Subject = field(default_factory=Subject)

    def total(self, column: str | None = None) -> float:
        """Return the sum of a column, by default of what is counted."""
        return float(self.table.column(column or self.subject.unit).to_numpy().sum())

    def save(self, folder: str | Path, *, force: bool = False, digest: str | None = None) -> Path:
        """Write the view as CSV and Parquet, with a note of the release that it is from.

        Parameters
        ----------
        folder : path
            The output folder.
        force : bool
            Replace an earlier view.
        digest : str, optional
            The SHA-256 of the release's ``release.json``.
        """
        folder = Path(folder)
        target = OutputFolder(folder, only_files({CSV, PARQUET, ABOUT}, "a view"), force=force)
        with target.replaced() as made:
            pyarrow.parquet.write_table(self.table, made / PARQUET)
            write_csv(guard_text(self.table), made / CSV)
            write_json(made / ABOUT, self._about(digest), indent=2)
        return folder

    def _about(self, digest: str | None) -> dict[str, Any]:
        unit, words = self.subject.unit, self.subject.words
        sums = {name: self.total(name) for name in self.table.column_names if name not in self.subject.places}
        return {
            "release": self.release,
            "release_sha256": digest,
            "where": self.where,
            "sums": {name: int(value) if name.startswith(unit) else value for name, value in sums.items()},
            "meaning": {
                unit: words("trips that certainly match"),
                f"{unit}_{POSSIBLE}": words("trips of rows with too little detail; between none and all of them match"),
            },
        }


def view_release(folder: str | Path, where: str | None = None) -> CubeView:
    """Return the trips of a saved cube that match a filter, as a matrix between its zones.

    Parameters
    ----------
    folder : path
        A cube, as ``odkanon anonymize --by`` writes it.
    where : str, optional
        Comparisons of its attributes, joined by ``and``: ``==``, ``!=``, ``in [...]`` and ``not in [...]``, with
        values or groups of values. All trips by default.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from odkanon import Rule, anonymize, make_survey, read_trips
    >>> from odkanon.read.od_matrix import build_od
    >>> cube = build_od(read_trips(make_survey().slice(0, 4000)), by=["sex"], resolution=8)
    >>> release = anonymize(cube, Rule(trips=10), method="cascade")
    >>> with TemporaryDirectory() as folder:
    ...     women = view_release(release.save(Path(folder) / "cube"), 'sex == "Woman"')
    >>> women.table.column_names[:4]
    ['origin', 'destination', 'trips', 'trips_possible']
    """
    return make_view(open_release(folder), where)


def save_view(folder: str | Path, output: str | Path, where: str | None = None, *, force: bool = False) -> CubeView:
    """Write a view of a saved cube, with the digest of the release; see `view_release` and `CubeView.save`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from odkanon import Rule, anonymize, make_survey, read_trips
    >>> from odkanon.read.od_matrix import build_od
    >>> cube = build_od(read_trips(make_survey().slice(0, 4000)), by=["sex"], resolution=8)
    >>> release = anonymize(cube, Rule(trips=10), method="cascade")
    >>> with TemporaryDirectory() as folder:
    ...     saved = release.save(Path(folder) / "cube")
    ...     men = save_view(saved, Path(folder) / "men", 'sex == "Man"')
    ...     sorted(path.name for path in (Path(folder) / "men").iterdir())
    ['view.csv', 'view.json', 'view.parquet']
    """
    view = view_release(folder, where)
    view.save(output, force=force, digest=sha256(Path(folder) / MANIFEST))
    return view


def view_in_memory(release: Release, where: str | None = None) -> CubeView:
    """Return the trips of an unsaved cube that match a filter; see `view_release`."""
    if release.refusal:
        raise RefusedError.nothing_publishable(release.refusal)
    about = {**release.subject.to_dict(), **public_axes(release)}
    return make_view(SavedRelease(release.method, about, [], classes_table(release)), where)


def make_view(release: SavedRelease, where: str | None = None) -> CubeView:
    """Return the trips of a cube that match a filter; see `view_release`."""
    certain, possible = matching_rows(release, where)
    places = list(release.subject.places)
    columns: dict[str, Any] = {name: release.table.column(name) for name in places}
    sums = []
    for measure in release.measures:
        masses = release.table.column(measure).to_numpy()
        for name, rows in ((measure, certain), (f"{measure}_{POSSIBLE}", possible & ~certain)):
            columns[name] = pa.array(np.where(rows, masses, 0).astype(masses.dtype))
            sums.append(name)
    table = pa.table(columns).filter(pa.array(possible))
    table = table.group_by(places, use_threads=False).aggregate([(name, "sum") for name in sums])
    table = table.rename_columns([*places, *sums]).sort_by([(place, "ascending") for place in places])
    return CubeView(release.name, where, table, release.subject)
