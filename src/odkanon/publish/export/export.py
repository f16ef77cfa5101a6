"""Releases in the formats of other programs, written from the folder of a release: all of it or nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from odkanon.core.outputs import check_new, partial_folder
from odkanon.errors import InputError, nearest
from odkanon.publish.export.flowcsv import write_flowmap, write_skmob
from odkanon.publish.export.geo import write_geojson, write_geopackage, write_geoparquet
from odkanon.publish.export.omx import write_omx
from odkanon.publish.onto import write as onto_files
from odkanon.publish.report.segments import index_folders, is_index
from odkanon.publish.saved import SavedRelease, read_release, with_zones_of

Writer = Callable[[SavedRelease, Path, str], None]

FILES: dict[str, tuple[str, ...]] = {
    "omx": (),
    "gpkg": (),
    "geoparquet": ("zones.parquet", "flows.parquet"),
    "geojson": ("zones.geojson", "flows.geojson"),
    "flowmap": ("locations.csv", "flows.csv"),
    "skmob": ("tessellation.geojson", "flows.csv"),
}
"""The files of each format; none where the format is a single file, which may have any name."""

_WRITERS: dict[str, Writer] = {
    "omx": lambda release, path, measure: write_omx(release, path),
    "gpkg": lambda release, path, measure: write_geopackage(release, path),
    "geoparquet": lambda release, path, measure: write_geoparquet(release, path),
    "geojson": lambda release, path, measure: write_geojson(release, path),
    "flowmap": write_flowmap,
    "skmob": write_skmob,
}


def export_release(
    folder: str | Path,
    to: str,
    output: str | Path,
    *,
    measure: str = "trips",
    force: bool = False,
    zones: Sequence[str | Path] = (),
    onto: str | Path | None = None,
    code: str | None = None,
    weights: str | Path | None = None,
) -> list[Path]:
    """Write a saved release in the format of another program, and return the files.

    Parameters
    ----------
    folder : path
        A release, as `Release.save` or ``odkanon anonymize`` has written it, or segments released together.
    to : {"omx", "gpkg", "geoparquet", "geojson", "flowmap", "skmob"}
        The format.
    output : path
        A file for OMX and GeoPackage, a folder for the others. Of segments released together, always a folder, in
        which each has its own, named as it is.
    measure : {"trips", "weight"}
        What flows count in formats that have a single number for each: flowmap and skmob.
    force : bool
        Replace files of the same name; other files in the folder stay.
    zones : sequence of path
        Releases whose zones are to be there as well, also where nothing flows, so that two months have the same shape.
    onto : path, optional
        A file of polygons to spread the release over, for "omx", "csv" and "parquet"; see `odkanon.publish.onto`.
    code : str, optional
        With ``onto``: the property that has the codes of the polygons.
    weights : path, optional
        With ``onto``: spread by these instead of by area; a table ``lat, lon, weight`` or ``cell, weight``.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from odkanon import Rule, anonymize, build_od, make_survey, read_trips
    >>> release = anonymize(build_od(read_trips(make_survey()), resolution=7), Rule(trips=10))
    >>> with TemporaryDirectory() as folder:
    ...     saved = release.save(Path(folder) / "release")
    ...     written = export_release(saved, "flowmap", Path(folder) / "flows")
    >>> [path.name for path in written]
    ['locations.csv', 'flows.csv']
    """
    if onto is None:
        if code is not None or weights is not None:
            raise InputError("codes and weights belong to zones of your own; name their file, too")
        if to in onto_files.FILES and to not in FILES:
            raise InputError(f"a release is {to} already; this format is for a matrix on zones of your own")
        if to not in FILES:
            raise InputError(f"there is no format {to!r}; choose among {', '.join(FILES)}{nearest(to, FILES)}")
    else:
        if zones:
            raise InputError("on zones of your own all are there anyway; leave out the other releases")
        onto_files.check_format(to)
    output = Path(output)
    if is_index(Path(folder)):
        ending = "" if (FILES[to] if onto is None else onto_files.FILES[to]) else f".{to}"
        parts = index_folders(Path(folder))
        how: dict[str, Any] = {
            "measure": measure,
            "force": force,
            "zones": zones,
            "onto": onto,
            "code": code,
            "weights": weights,
        }
        output.mkdir(parents=True, exist_ok=True)
        return [path for part in parts for path in export_release(part, to, output / f"{part.name}{ending}", **how)]
    files = FILES[to] if onto is None else onto_files.FILES[to]
    targets = [output / name for name in files] or [output]
    _check(output, targets, single=not files, force=force)
    with partial_folder(output) as partial:
        target = partial if files else partial / output.name
        if onto is None:
            release = with_zones_of(read_release(Path(folder)), [read_release(each) for each in zones])
            _WRITERS[to](release, target, measure)
        else:
            given = None if weights is None else Path(weights)
            onto_files.write_onto(Path(folder), to, target, onto=Path(onto), code=code, weights=given)
        if files:
            output.mkdir(exist_ok=True)
        for target in targets:
            (partial / target.name).replace(target)
    return targets


def _check(output: Path, targets: list[Path], *, single: bool, force: bool) -> None:
    if output.exists() and output.is_dir() == single:
        raise InputError(f"{output} is a {'folder' if single else 'file'}; this format needs a {_KIND[single]}")
    for target in targets:
        check_new(target, force=force)


_KIND = {True: "file", False: "folder"}
