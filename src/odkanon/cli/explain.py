"""``odkanon explain``: the information that a release lost, for its producer."""

from __future__ import annotations

from pathlib import Path

from odkanon.cli.common_options import command
from odkanon.cli.request_options import InputOptions
from odkanon.errors import InvalidValueError


@command(
    """
    release: RELEASE  Folder of a release.
    --trips FILE  The trips behind the release; give the same reading options. Repeatable.
    --output -o FILE  The page (.html), outside the release.
    --km KM  The side of the squares on which flows are compared.
    --onto FILE  Compare flows between these polygons instead, with codes in --id.
    --force  Replace the page and its table.
    """
)
def explain(
    how: InputOptions,
    release: Path,
    trips: list[Path],
    output: Path,
    km: float = 2.0,
    onto: Path | None = None,
    force: bool = False,
) -> None:
    """Show which flows a release suppressed or coarsened, and where.

    Writes a page with a map and a table (.csv) of every flow. Both contain trips that the release protects: do not
    publish them.

    Examples
    --------
    `odkanon explain release --trips survey.parquet -o lost.html`
    """
    from odkanon.cli.console import console, stages
    from odkanon.core.atomic_write import whole_file, write_whole
    from odkanon.core.sql import write_csv
    from odkanon.release_format.names import guard_text
    from odkanon.release_format.targets import check_files
    from odkanon.study.information_loss import explain_release

    table = output.with_suffix(".csv")
    if output.suffix != ".html":
        raise InvalidValueError.suffix(output, ".html")
    check_files(output, table, force=force)
    # Polygons to compare on and those of the release have one option for their codes.
    code = how.values["zone_id"] if onto is not None else None
    spec = how(trips) if how.values["zoning"] is not None else how(trips, zone_id=None)
    with stages() as stage:
        stage(f"comparing {release} with {spec.name}")
        loss = explain_release(release, spec, km=km, onto=onto, id_column=code)
        write_whole(output, loss.to_html())
        with whole_file(table) as partial:
            write_csv(guard_text(loss.to_arrow()), partial)
    console.add_result(written=[output, table], place=loss.summary.name, cpc=loss.summary.cpc)
    near = "" if loss.summary.large_near is None else f"; {loss.summary.large_near:.0%} of the large ones are close"
    right = f"Accuracy of flows between places ({loss.summary.name}): {loss.summary.cpc:.0%}{near}."
    console.print(f"{right} {loss.summary.context}".rstrip())
    console.print(f"Wrote {output} and {table}: do not publish them, they contain trips that the release protects.")
