"""Views of a cube: the matrix of a mode, of the morning, of everyone, as sums of published rows.

A view is a calculation on what is published; whoever has the folder can make every view, so that it tells nothing new.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet

from odkanon.attributes.filter_grammar import conjunction
from odkanon.attributes.hierarchies import UNLISTED
from odkanon.core.arrays import Bools
from odkanon.core.atomic_write import check_new, move_into_place, partial_folder
from odkanon.core.sql import write_csv
from odkanon.errors import InputError, RefusedError, nearest
from odkanon.model.od import AXES
from odkanon.model.release import Release
from odkanon.release_format.folder import SavedRelease, read_release
from odkanon.release_format.manifest import public_axes
from odkanon.release_format.names import MANIFEST, classes_table, guard_text, sha256, write_json

log = logging.getLogger(__name__)

CSV, PARQUET, ABOUT = "view.csv", "view.parquet", "view.json"
POSSIBLE = "possible"


@dataclass(frozen=True, eq=False)
class View:
    """Some of the trips of a cube, between its zones.

    Attributes
    ----------
    release : str
        Of which release, by the name of its folder.
    where : str or None
        Which trips; None for all.
    table : pyarrow.Table
        ``origin, destination``; ``trips`` that are certainly such, and ``trips_possible``, those of rows that tell too
        little to say: between none and all of them are. ``weight`` and ``weight_possible`` likewise.
    """

    release: str
    where: str | None
    table: pa.Table

    def total(self, column: str = "trips") -> float:
        """Return the sum of a column."""
        return float(self.table.column(column).to_numpy().sum())

    def save(self, folder: str | Path, *, force: bool = False, digest: str | None = None) -> Path:
        """Write the view as CSV and Parquet, with a note of which release it is.

        Parameters
        ----------
        folder : path
            Where to.
        force : bool
            Replace an earlier view.
        digest : str, optional
            The SHA-256 of the release's ``release.json``.
        """
        folder = Path(folder)
        if folder.exists() and not (folder.is_dir() and {path.name for path in folder.iterdir()} <= _FILES):
            raise InputError(f"{folder} exists and is not a view; choose another folder")
        check_new(folder, force=force)
        with partial_folder(folder) as partial:
            made = partial / "view"
            made.mkdir()
            pyarrow.parquet.write_table(self.table, made / PARQUET)
            write_csv(guard_text(self.table), made / CSV)
            write_json(made / ABOUT, self._about(digest), indent=2)
            move_into_place(made, folder, check=lambda: check_new(folder, force=force))
        return folder

    def _about(self, digest: str | None) -> dict[str, Any]:
        sums = {name: self.total(name) for name in self.table.column_names if name not in AXES}
        return {
            "release": self.release,
            "release_sha256": digest,
            "where": self.where,
            "sums": {name: int(value) if name.startswith("trips") else value for name, value in sums.items()},
            "meaning": {
                "trips": "trips that are certainly such",
                "trips_possible": "trips of rows that tell too little to say; between none and all of them are such",
            },
        }


_FILES = {CSV, PARQUET, ABOUT}


def view_release(folder: str | Path, where: str | None = None) -> View:
    """Return some of the trips of a saved cube as a matrix between its zones.

    Parameters
    ----------
    folder : path
        A cube, as ``odkanon anonymize --by`` writes it.
    where : str, optional
        Comparisons of its axes, joined by ``and``: ``==``, ``!=``, ``in [...]`` and ``not in [...]``, with values or
        groups of values. All trips by default.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from odkanon import Rule, anonymize, make_survey, read_trips
    >>> from odkanon.read.od_matrix import build_od
    >>> cube = build_od(read_trips(make_survey()), by=["sex"], resolution=8)
    >>> release = anonymize(cube, Rule(trips=10), method="cascade")
    >>> with TemporaryDirectory() as folder:
    ...     women = view_release(release.save(Path(folder) / "cube"), 'sex == "Woman"')
    >>> women.table.column_names[:4]
    ['origin', 'destination', 'trips', 'trips_possible']
    """
    return view_of(read_release(folder), where)


def view_in_memory(release: Release, where: str | None = None) -> View:
    """Return some of the trips of a cube that was not saved; see `view_release`."""
    if release.refusal:
        raise RefusedError(f"nothing can be published: {release.refusal}")
    return view_of(SavedRelease(release.method, public_axes(release), [], classes_table(release)), where)


def view_of(release: SavedRelease, where: str | None = None) -> View:
    """Return some of the trips of a cube; see `view_release`."""
    if not release.axes:
        raise InputError(f"{release.name} tells of places only, so that there is nothing to choose among its trips")
    certain, possible = rows_where(release, where)
    columns: dict[str, Any] = {name: release.flows.column(name) for name in AXES}
    sums = []
    for measure in release.measures:
        masses = release.flows.column(measure).to_numpy()
        for name, rows in ((measure, certain), (f"{measure}_{POSSIBLE}", possible & ~certain)):
            columns[name] = pa.array(np.where(rows, masses, 0).astype(masses.dtype))
            sums.append(name)
    table = pa.table(columns).filter(pa.array(possible))
    table = table.group_by(list(AXES), use_threads=False).aggregate([(name, "sum") for name in sums])
    table = table.rename_columns([*AXES, *sums]).sort_by([(axis, "ascending") for axis in AXES])
    return View(release.name, where, table)


def rows_where(release: SavedRelease, where: str | None) -> tuple[Bools, Bools]:
    """Return of which rows of a cube all trips are asked for, and of which some may be; see `view_release`."""
    certain = np.ones(release.flows.num_rows, dtype=bool)
    possible = certain.copy()
    levels = {axis["name"]: np.array(axis["levels"], dtype=np.str_) for axis in release.about["axes"]}
    for name, wanted in _wanted(where, levels).items():
        said = np.array(release.flows.column(name).to_pylist(), dtype=np.str_)
        for value in np.unique(said):
            here, inside = said == value, (levels[name] == value).any(axis=0)
            if not inside.any():
                raise InputError(f"{release.name} has {name} {str(value)!r}, which {MANIFEST} does not list")
            certain[here] &= bool((wanted[inside] == ALL).all())
            possible[here] &= bool((wanted[inside] != NONE).any())
    return certain, possible


def certain_rows(release: SavedRelease, where: str | None) -> Bools:
    """Return of which rows all trips are asked for, and say how many trips of others may be; all of them for None."""
    if where is None:
        return np.ones(release.flows.num_rows, dtype=bool)
    if not release.axes:
        raise InputError(f"{release.name} tells of places only, so that there is nothing to choose among its trips")
    certain, possible = rows_where(release, where)
    unsure = int(release.measure("trips")[possible & ~certain].sum())
    if unsure:
        log.warning(
            "up to %s more trips may be such; their rows tell too little to say, and are left out", f"{unsure:,}"
        )
    return certain


NONE, SOME, ALL = 0, 1, 2
"""How many of the trips of a value are asked for; of what a list leaves out, some at most."""


def _wanted(where: str | None, levels: dict[str, npt.NDArray[np.str_]]) -> dict[str, npt.NDArray[np.int8]]:
    """Return for each axis that is asked about, how many of the trips of each of its values are wanted."""
    wanted: dict[str, npt.NDArray[np.int8]] = {}
    for comparison in [] if where is None else conjunction(where):
        name = comparison.name
        if name not in levels:
            raise InputError(f"the cube has no {name!r}{nearest(name, levels)}; it has {', '.join(levels)}")
        wanted.setdefault(name, np.full(levels[name].shape[1], ALL, dtype=np.int8))
        inside = np.full_like(wanted[name], NONE)
        for value in map(str, comparison.values):
            found = (levels[name] == value).any(axis=0)
            # A value that the list leaves out may stand behind any row that does not say.
            part = np.where(found, ALL, NONE) if found.any() else np.where(levels[name][0] == UNLISTED, SOME, NONE)
            inside = np.maximum(inside, part.astype(np.int8))
        wanted[name] = np.minimum(wanted[name], inside if comparison.operator in ("==", "in") else ALL - inside)
    return wanted


def save_view(folder: str | Path, output: str | Path, where: str | None = None, *, force: bool = False) -> View:
    """Make a view of a saved cube and write it, with the digest of the release; see `view_release` and `View.save`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from odkanon import Rule, anonymize, make_survey, read_trips
    >>> from odkanon.read.od_matrix import build_od
    >>> cube = build_od(read_trips(make_survey()), by=["sex"], resolution=8)
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
