"""``odkanon export``: a release in the format of another program."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class ExportFormat(StrEnum):
    """What to export to."""

    omx = "omx"
    geoparquet = "geoparquet"
    geojson = "geojson"
    flowmap = "flowmap"
    skmob = "skmob"


class Counted(StrEnum):
    """What a flow counts."""

    trips = "trips"
    weight = "weight"


def export(
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="Folder of a release.", show_default=False)],
    to: Annotated[
        ExportFormat,
        typer.Option(
            "--to",
            help="omx: matrices for transport models. geoparquet, geojson: zones and flow lines for GIS. flowmap: "
            "tables for flowmap.blue. skmob: tessellation and flows for scikit-mobility.",
            show_default=False,
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="PATH", help="A file for omx, a folder otherwise.")],
    measure: Annotated[Counted, typer.Option(help="With flowmap and skmob: what flows count.")] = Counted.trips,
    force: Annotated[bool, typer.Option("--force", help="Replace files of the same name.")] = False,
) -> None:
    """Write a release in the format of another program.

    Examples
    --------
    `odkanon export release --to omx -o matrix.omx`

    `odkanon export release --to geoparquet -o gis`
    """
    from odkanon.publish.export.export import export_release

    written = export_release(release, to.value, output, measure=measure.value, force=force)
    typer.echo(f"Wrote {', '.join(str(path) for path in written)}")
