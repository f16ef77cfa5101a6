"""``odkanon export``: releases in the formats of other programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

import typer

from odkanon.cli.common_options import command
from odkanon.cli.console import console
from odkanon.cli.option_rules import was_given
from odkanon.core.parsing import format_count
from odkanon.errors import InputError, OptionConflictError


class ExportFormat(StrEnum):
    """The format of an export."""

    omx = "omx"
    gpkg = "gpkg"
    geoparquet = "geoparquet"
    geojson = "geojson"
    flowmap = "flowmap"
    kepler = "kepler"
    pmtiles = "pmtiles"
    skmob = "skmob"
    csv = "csv"
    parquet = "parquet"
    matrix = "matrix"
    trips = "trips"
    xlsx = "xlsx"
    dcat = "dcat"


class ExportMeasure(StrEnum):
    """The measure of exported flows."""

    trips = "trips"
    weight = "weight"


@command(
    """
    releases: RELEASE...  Folder of a release, or of segments. With --to dcat: of any number of releases.
    --output -o PATH  A file for omx, gpkg, pmtiles and dcat, else a folder.
    --to  omx: matrices for transport models. gpkg (GeoPackage), geoparquet, geojson: zones and flow lines for GIS.
        flowmap: tables for flowmap.blue. kepler: a map for kepler.gl. pmtiles: tiles for web maps. skmob: tessellation
        and flows for scikit-mobility. csv, parquet: with --onto. xlsx: a table by place
        and attribute, with bounds. matrix: matrix.csv and matrix.parquet, computed again.
        trips: single trips drawn from the estimate, with points, for simulations; as many as each row lists.
        dcat: entries of a data catalogue. [default: matrix; of releases by attribute, the flows that match --where, as
        CSV and Parquet]
    --where EXPR  Export only rows in which all trips match, such as 'mode == "car" and hour == "07-09"'. For releases
        by attribute. [default: all]
    --measure  With flowmap, kepler and skmob: what flows count.
    zones: --zones-of RELEASE  Include the zones of this release, even those without flows, so that the matrices of
        several months have the same shape. Repeatable.
    --force  Replace files of the same name.
    Releases by attribute (--by):
    --wide  With --to xlsx: a row for each pair of places, and a column for each combination of attributes.
    --coarse-times  With flowmap: give times as part of the day, working day or weekend, or month, which more rows have.
    Your own zones:
    --onto FILE  Estimate the flows between these polygons: GeoJSON, GeoPackage, Shapefile or GeoParquet, in any
        reference system. For omx, csv and parquet.
    code: --id NAME  With --onto: the property with the codes of the polygons.
    --even  With --onto: spread every flow evenly over the area of its zones instead.
    --weights FILE  With --onto: spread flows in proportion to these weights instead of area; a table lat,lon,weight or
        cell,weight.
    Data catalogues (--to dcat):
    --publisher NAME  The publisher of the releases.
    --homepage URL  The address of the catalogue; a release is at URL/NAME.
    --licence URL  The address of the licence of the data.
    --country CODE  Three letters, such as FRA.
    --date DAY  The day of the entries, such as 2026-11-15.
    """
)
def export(
    context: typer.Context,
    releases: list[Path],
    output: Path,
    to: ExportFormat | None = None,
    where: str | None = None,
    measure: ExportMeasure = (ExportMeasure.trips),
    zones: list[Path] = [],  # noqa: B006 - typer copies it
    force: bool = False,
    wide: bool = False,
    coarse_times: bool = False,
    onto: Path | None = None,
    code: str | None = None,
    even: bool = False,
    weights: Path | None = None,
    publisher: str | None = None,
    homepage: str | None = None,
    licence: str | None = None,
    country: str | None = None,
    date: str | None = None,
) -> None:
    """Write a release in the format of another program.

    Examples
    --------
    `odkanon export release --to omx -o matrix.omx`

    `odkanon export release --to geoparquet -o gis`

    `odkanon export february --zones-of january --to omx -o february.omx`

    `odkanon export cube --where 'mode == "car" and hour == "07-09"' -o car-morning`

    `odkanon export cube --where 'mode == "car"' --to flowmap -o cars`

    `odkanon export release --onto communes.gpkg --id CODE --to omx -o communes.omx`

    `odkanon export cube --to xlsx --wide --onto communes.gpkg --id CODE -o communes.xlsx`

    `odkanon export cube --to trips -o drawn`

    `odkanon export january february --to dcat -o catalogue.jsonld --publisher "City of X" --homepage
    https://data.x.org --licence https://creativecommons.org/licenses/by/4.0/ --country FRA --date 2026-11-15`
    """
    if to is ExportFormat.dcat:
        entry = {"publisher": publisher, "homepage": homepage, "licence": licence, "country": country, "date": date}
        _export_catalogue(releases, output, entry, force=force)
        return
    if len(releases) > 1:
        raise InputError(f"export takes one release at a time, not {len(releases)}; only --to dcat takes several")
    if to is None and onto is not None:
        to = ExportFormat.csv
    if to is None:
        from odkanon.release_format.folder import is_linked_folder, open_release

        linked = is_linked_folder(releases[0])
        if where is None and (
            linked or not (open_release(releases[0]).axes or open_release(releases[0]).subject.place)
        ):
            to = ExportFormat.matrix
    if to is None:
        _export_matrix(releases[0], output, where, force=force)
        return
    if was_given(context, "measure") and to.value not in ("flowmap", "kepler", "skmob"):
        raise OptionConflictError.between("--measure", f"--to {to.value}", "it has both measures")
    by_attribute = to is ExportFormat.omx and onto is not None and where is None and weights is None and not even
    if to is ExportFormat.xlsx or (by_attribute and _has_attributes(releases[0])):
        _export_plain(releases[0], output, to, onto, code, wide=wide, force=force)
        return
    from odkanon.publish.export.formats import export_release

    written = export_release(
        releases[0],
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
        even=even,
    )
    console.add_result(written=written)
    console.print(f"Wrote {', '.join(str(path) for path in written)}")


def _has_attributes(release: Path) -> bool:
    from odkanon.release_format.folder import open_release

    return bool(open_release(release).axes)


def _export_plain(
    release: Path, output: Path, to: ExportFormat, onto: Path | None, code: str | None, *, wide: bool, force: bool
) -> None:
    """Write estimates by place and attribute, as a workbook or as matrices, and print how much of them is certain."""
    from odkanon.estimate.flat_matrix import matrix_places
    from odkanon.publish.export.plain_table import read_plain_table, write_matrices_by_attribute, write_workbook
    from odkanon.release_format.folder import open_release
    from odkanon.release_format.targets import check_files

    check_files(output, force=force)
    saved = open_release(release)
    own = matrix_places(saved, release) if onto is None and code is None and "matrix" in saved.manifest else None
    found = read_plain_table(saved, own if onto is None else str(onto), code)
    if to is ExportFormat.omx:
        write_matrices_by_attribute(found, output, force=force)
    else:
        write_workbook(found, output, wide=wide, force=force)
    console.add_result(written=[output], flows=found.table.num_rows, exact=found.exact)
    console.paragraph(
        f"Wrote {output}: {format_count(found.table.num_rows, 'flows')} between "
        f"{format_count(len(found.places), 'places', 'place')}{', by ' * bool(found.axes)}{' and '.join(found.axes)}. "
        f"{found.exact:.1%} of the trips are certain to be where it has them; the others are estimated, within bounds."
    )


def _export_matrix(release: Path, output: Path, where: str | None, *, force: bool) -> None:
    """Write the matrix of the matching trips of a release by attribute."""
    from odkanon.publish.attribute_view import save_view

    view = save_view(release, output, where, force=force)
    trips, possible = view.total(), view.total(f"{view.subject.unit}_possible")
    console.add_result(folder=output, pairs=view.table.num_rows, trips=trips, trips_possible=possible)
    pairs = format_count(view.table.num_rows, "pairs of zones", "pair of zones")
    matching = format_count(trips, "trips match", "trip matches")
    if view.subject.place is not None:
        pairs, matching = format_count(view.table.num_rows, "zones"), f"{trips:,.0f} {view.subject.unit} match"
    console.print(f"Wrote {output}: {matching}, between {pairs}; up to {possible:,.0f} more might.")


def _export_catalogue(releases: Sequence[Path], output: Path, entry: dict[str, str | None], *, force: bool) -> None:
    """Describe releases for a data portal: mobilityDCAT-AP, as JSON-LD."""
    from odkanon.core.atomic_write import check_new, write_whole
    from odkanon.publish.dcat import Publisher, describe_catalogue

    missing = [f"--{name}" for name, value in entry.items() if value is None]
    if missing:
        raise InputError(f"--to dcat needs {', '.join(missing)}")
    check_new(output, force=force)
    catalogue = describe_catalogue(releases, Publisher(*(str(value) for value in entry.values())))
    write_whole(output, json.dumps(catalogue, indent=2, ensure_ascii=False) + "\n")
    console.print(f"Wrote {output}: {format_count(len(releases), 'entries', 'entry')}.")


@command(
    """
    release: RELEASE  Folder of a release.
    origin: --from PLACE  Where trips start: a town, a code of --onto, the id of a zone, an H3 cell, or
        latitude,longitude (the cell of resolution 7 there). [default: anywhere]
    destination: --to PLACE  Where they end.
    --where EXPR  Count only trips that match, such as 'mode == "car" and hour == "07-09"'. For releases by attribute.
        [default: all]
    --onto FILE  Polygons with the places.
    code: --id NAME  With --onto: the property with the names or codes of the polygons.
    """
)
def ask(
    release: Path,
    origin: str | None = None,
    destination: str | None = None,
    where: str | None = None,
    onto: Path | None = None,
    code: str | None = None,
) -> None:
    """Estimate the trips from one place to another.

    The answer is an estimate, an interval that contains the number of published trips in four of five cases, and bounds
    that hold for certain.

    Examples
    --------
    `odkanon ask release --from 'Viña del Mar' --to Valparaíso`

    `odkanon ask release --from 'Viña del Mar' --to Valparaíso --onto communes.gpkg --id NAME`

    `odkanon ask release --from 48.85,2.35 --to 48.9,2.3`

    `odkanon ask cube --from 871fb4662ffffff --where 'mode == "car"'`
    """
    from odkanon.estimate.questions import sentence
    from odkanon.estimate.town_names import AROUND
    from odkanon.release_format.folder import open_release

    if origin is None and destination is None:
        raise InputError("ask about a place: --from, --to, or both")
    saved = open_release(release)
    flows = saved.estimate(
        onto=onto, code=code, origin=origin or "anywhere", destination=destination or "anywhere", where=where
    )
    row = (flows.table.to_pylist() or [{}])[0]
    ends = (("from", row.get("origin", "")), ("to", row.get("destination", "")))
    towns = " ".join(f"{side} {name}" for side, name in ends if name.startswith(AROUND))
    answer = f"{towns}: {sentence(flows)}" if towns else sentence(flows)
    console.add_result(answer=answer, **row)
    console.print(f"{answer[0].upper()}{answer[1:]}.")
