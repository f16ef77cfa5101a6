"""``odkanon export``: a release in the format of another program."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from odkanon.cli.console import console, say
from odkanon.cli.option_rules import was_given
from odkanon.errors import InputError


class ExportFormat(StrEnum):
    """What to export to."""

    omx = "omx"
    gpkg = "gpkg"
    geoparquet = "geoparquet"
    geojson = "geojson"
    flowmap = "flowmap"
    skmob = "skmob"
    csv = "csv"
    parquet = "parquet"


class Counted(StrEnum):
    """What a flow counts."""

    trips = "trips"
    weight = "weight"


def export(
    context: typer.Context,
    release: Annotated[
        Path, typer.Argument(metavar="RELEASE", help="Folder of a release, or of segments.", show_default=False)
    ],
    to: Annotated[
        ExportFormat,
        typer.Option(
            "--to",
            help="omx: matrices for transport models. gpkg (GeoPackage), geoparquet, geojson: zones and flow lines for "
            "GIS. flowmap: tables for flowmap.blue. skmob: tessellation and flows for scikit-mobility. csv, parquet: "
            "with --onto.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="PATH", help="A file for omx and gpkg, else a folder.")
    ],
    measure: Annotated[Counted, typer.Option(help="With flowmap and skmob: what flows count.")] = Counted.trips,
    zones: Annotated[
        list[Path],
        typer.Option(
            "--zones",
            metavar="RELEASE",
            help="Have the zones of this release, too, also where nothing flows: months get one shape. Repeatable.",
            show_default=False,
        ),
    ] = [],  # noqa: B006 - typer copies it
    where: Annotated[
        str | None,
        typer.Option(
            "--where",
            metavar="EXPR",
            rich_help_panel="Of a cube",
            help="Only rows all of whose trips are such, as in 'mode == \"car\"'. [default: all]",
            show_default=False,
        ),
    ] = None,
    coarse_times: Annotated[
        bool,
        typer.Option(
            "--coarse-times",
            rich_help_panel="Of a cube",
            help="With flowmap: tell time by part of the day, working days and weekend, or month. More rows know it.",
        ),
    ] = False,
    onto: Annotated[
        Path | None,
        typer.Option(
            "--onto",
            metavar="FILE",
            rich_help_panel="On your own zones",
            help="Spread the release over these polygons: GeoJSON, GeoPackage, Shapefile or GeoParquet, in any "
            "reference system. For omx, csv and parquet.",
            show_default=False,
        ),
    ] = None,
    code: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="NAME",
            rich_help_panel="On your own zones",
            help="With --onto: the property that has the codes of the zones.",
            show_default=False,
        ),
    ] = None,
    weights: Annotated[
        Path | None,
        typer.Option(
            "--weights",
            metavar="FILE",
            rich_help_panel="On your own zones",
            help="With --onto: spread by these instead of by area; a table lat,lon,weight or cell,weight.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files of the same name.")] = False,
) -> None:
    """Write a release in the format of another program.

    Examples
    --------
    `odkanon export release --to omx -o matrix.omx`

    `odkanon export release --to geoparquet -o gis`

    `odkanon export february --zones january --to omx -o february.omx`

    `odkanon export cube --to flowmap --where 'mode == "car"' -o cars`

    `odkanon export release --onto communes.gpkg --id CODE --to omx -o communes.omx`
    """
    from odkanon.publish.export.formats import export_release

    if was_given(context, "measure") and to.value not in ("flowmap", "skmob"):
        raise InputError(f"--measure does not apply with --to {to.value}: it has both; leave it out")
    written = export_release(
        release,
        to.value,
        output,
        measure=measure.value,
        force=force,
        zones=zones,
        where=where,
        coarse_times=coarse_times,
        onto=onto,
        code=code,
        weights=weights,
    )
    console.tell(written=written)
    say(f"Wrote {', '.join(str(path) for path in written)}")
