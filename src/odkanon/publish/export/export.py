"""Releases in the formats of other programs, written from the folder of a release: all of it or nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from odkanon.core.outputs import check_new, partial_folder
from odkanon.errors import InputError, nearest
from odkanon.publish.export.flowcsv import write_flowmap, write_skmob
from odkanon.publish.export.geo import write_geojson, write_geoparquet
from odkanon.publish.export.omx import write_omx
from odkanon.publish.saved import SavedRelease, read_release

Writer = Callable[[SavedRelease, Path, str], None]

FILES: dict[str, tuple[str, ...]] = {
    "omx": (),
    "geoparquet": ("zones.parquet", "flows.parquet"),
    "geojson": ("zones.geojson", "flows.geojson"),
    "flowmap": ("locations.csv", "flows.csv"),
    "skmob": ("tessellation.geojson", "flows.csv"),
}
"""The files of each format; none where the format is a single file, which may have any name."""

_WRITERS: dict[str, Writer] = {
    "omx": lambda release, path, measure: write_omx(release, path),
    "geoparquet": lambda release, path, measure: write_geoparquet(release, path),
    "geojson": lambda release, path, measure: write_geojson(release, path),
    "flowmap": write_flowmap,
    "skmob": write_skmob,
}


def export_release(
    folder: str | Path, to: str, output: str | Path, *, measure: str = "trips", force: bool = False
) -> list[Path]:
    """Write a saved release in the format of another program, and return the files.

    Parameters
    ----------
    folder : path
        A release, as `Release.save` or ``odkanon anonymize`` has written it.
    to : {"omx", "geoparquet", "geojson", "flowmap", "skmob"}
        The format.
    output : path
        A file for OMX, a folder for the others.
    measure : {"trips", "weight"}
        What flows count in formats that have a single number for each: flowmap and skmob.
    force : bool
        Replace files of the same name; other files in the folder stay.
    """
    if to not in FILES:
        raise InputError(f"there is no format {to!r}; choose among {', '.join(FILES)}{nearest(to, FILES)}")
    output = Path(output)
    targets = [output / name for name in FILES[to]] or [output]
    _check(output, targets, single=not FILES[to], force=force)
    release = read_release(folder)
    with partial_folder(output) as partial:
        _WRITERS[to](release, partial if FILES[to] else partial / output.name, measure)
        if FILES[to]:
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
