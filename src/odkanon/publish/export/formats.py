"""Releases in the formats of other programs, written from the folder of a release: all of it or nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from odkanon.core.atomic_write import check_new, partial_folder
from odkanon.errors import InputError, nearest
from odkanon.publish.attribute_view import certain_rows
from odkanon.publish.export.flowcsv import FLOWS, LOCATIONS, earlier_rest, flowmap_files, write_flowmap, write_skmob
from odkanon.publish.export.geo_files import write_geojson, write_geopackage, write_geoparquet
from odkanon.publish.export.omx import write_omx
from odkanon.publish.onto import zone_files as onto_files
from odkanon.publish.report.segment_pages import index_folders, is_index
from odkanon.release_format.folder import SavedRelease, read_release, with_zones_of
from odkanon.release_format.names import MANIFEST
from odkanon.release_format.recipe import INDEX

Writer = Callable[[SavedRelease, str, Path], None]

FILES: dict[str, tuple[str, ...]] = {
    "omx": (),
    "gpkg": (),
    "geoparquet": ("zones.parquet", "flows.parquet"),
    "geojson": ("zones.geojson", "flows.geojson"),
    "flowmap": (LOCATIONS, FLOWS),
    "skmob": ("tessellation.geojson", "flows.csv"),
}
"""The files of each format; none where the format is a single file, which may have any name."""

_WRITERS: dict[str, Writer] = {
    "omx": lambda release, measure, path: write_omx(release, path),
    "gpkg": lambda release, measure, path: write_geopackage(release, path),
    "geoparquet": lambda release, measure, path: write_geoparquet(release, path),
    "geojson": lambda release, measure, path: write_geojson(release, path),
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
    where: str | None = None,
    coarse_times: bool = False,
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
        Replace files of the same name; other files in the folder stay, except those that an earlier flow map has left
        there besides: its flows without time.
    zones : sequence of path
        Releases whose zones are to be there as well, also where nothing flows, so that two months have the same shape.
    where : str, optional
        Of a cube, only rows all of whose trips are such, as in `odkanon.view_release`. A warning says how many trips
        may be such besides.
    coarse_times : bool
        In the flow map of a cube, tell time by part of the day, working days and weekend, or month, which more rows
        know than the hour or the day; see `odkanon.publish.export.flow_times`.
    onto : path, optional
        A file of polygons to spread the release over, for "omx", "csv" and "parquet"; see `odkanon.publish.onto`.
    code : str, optional
        With ``onto``: the property that has the codes of the polygons.
    weights : path, optional
        With ``onto``: spread by these instead of by area; a table ``lat, lon, weight`` or ``cell, weight``.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from odkanon import Rule, anonymize, make_survey, read_trips
    >>> from odkanon.read.od_matrix import build_od
    >>> release = anonymize(build_od(read_trips(make_survey()), resolution=7), Rule(trips=10))
    >>> with TemporaryDirectory() as folder:
    ...     saved = release.save(Path(folder) / "release")
    ...     written = export_release(saved, "flowmap", Path(folder) / "flows")
    >>> [path.name for path in written]
    ['locations.csv', 'flows.csv']
    """
    _check_asked(to, onto=onto, zones=zones, own=(code, weights), cube=(where, coarse_times))
    folder, output = Path(folder), Path(output)
    if is_index(folder):
        ending = "" if (FILES[to] if onto is None else onto_files.FILES[to]) else f".{to}"
        how: dict[str, Any] = {"measure": measure, "force": force, "zones": zones, "where": where}
        how |= {"coarse_times": coarse_times, "onto": onto, "code": code, "weights": weights}
        output.mkdir(parents=True, exist_ok=True)
        parts = index_folders(folder)
        return [path for part in parts for path in export_release(part, to, output / f"{part.name}{ending}", **how)]
    if onto is not None:
        asked: dict[str, Any] = {
            "onto": Path(onto),
            "code": code,
            "weights": None if weights is None else Path(weights),
            "where": where,
        }
        return _written(output, onto_files.FILES[to], partial(onto_files.write_onto, folder, to, **asked), force=force)
    _check(output, FILES[to], force=force)
    release = _chosen(with_zones_of(read_release(folder), [read_release(each) for each in zones]), where)
    if to != "flowmap":
        return _written(output, FILES[to], partial(_WRITERS[to], release, measure), force=force)
    write = partial(write_flowmap, release, measure, coarse_times=coarse_times)
    return _written(output, flowmap_files(release), write, force=force)


def _check_asked(
    to: str,
    *,
    onto: str | Path | None,
    zones: Sequence[str | Path],
    own: tuple[str | None, str | Path | None],
    cube: tuple[str | None, bool],
) -> None:
    """Raise unless what is asked for goes together."""
    if onto is not None:
        if zones:
            raise InputError("on zones of your own all are there anyway; leave out the other releases")
        onto_files.check_format(to)
    elif own != (None, None):
        raise InputError("codes and weights belong to zones of your own; name their file, too")
    elif to in onto_files.FILES and to not in FILES:
        raise InputError(f"a release is {to} already; this format is for a matrix on zones of your own")
    elif to not in FILES:
        raise InputError(f"there is no format {to!r}; choose among {', '.join(FILES)}{nearest(to, FILES)}")
    if cube[1] and to != "flowmap":
        raise InputError("times are told in flow maps only; leave out that they be coarse")


def _chosen(release: SavedRelease, where: str | None) -> SavedRelease:
    """Return a release with the rows of which all trips are asked for."""
    return release if where is None else replace(release, flows=release.flows.filter(certain_rows(release, where)))


def _written(output: Path, files: Sequence[str], write: Callable[[Path], None], *, force: bool) -> list[Path]:
    """Write the files of a format, all of them or none; a single one, which may have any name, if none are named."""
    targets = _check(output, files, force=force)
    stale = earlier_rest(output) if FLOWS in files else None
    with partial_folder(output) as made:
        write(made if files else made / output.name)
        if files:
            output.mkdir(exist_ok=True)
        for target in targets:
            (made / target.name).replace(target)
    if stale is not None and stale not in targets:
        stale.unlink()
    return targets


def _check(output: Path, files: Sequence[str], *, force: bool) -> list[Path]:
    """Return where files go; raise if some are there, or a folder where a file should be."""
    single = not files
    if output.exists() and output.is_dir() == single:
        raise InputError(f"{output} is a {'folder' if single else 'file'}; this format needs a {_KIND[single]}")
    place = output.parent if single else output
    if any((place / name).exists() for name in (MANIFEST, INDEX)):
        raise InputError(f"{place} is a release, in which an export would be published as part of it; choose another")
    targets = [output / name for name in files] or [output]
    for target in targets:
        check_new(target, force=force)
    return targets


_KIND = {True: "file", False: "folder"}
