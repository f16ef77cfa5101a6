"""``odkanon anonymize --by``: one table of places and kinds of trips, in which every trip stands once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odkanon.cli.console import console
from odkanon.cli.engine_options import parse_age_bands

if TYPE_CHECKING:
    from odkanon.engine.protocols import Matrix
    from odkanon.engine.selection import EngineName
    from odkanon.model.release import Release
    from odkanon.model.rule import Rule
    from odkanon.read.input_spec import InputSpec

METHOD = "cascade"
"""The method that publishes by kinds of trips."""


def anonymize_cube(
    reading: InputSpec,
    output: Path,
    *,
    by: Sequence[str],
    age_bands: str | None,
    make_rule: Callable[[Matrix], Rule],
    options: dict[str, Any],
    force: bool,
    engine: EngineName | None,
    memory_limit: int | None,
    spark_master: str | None,
    command: dict[str, Any],
) -> None:
    """Read trips, release them by places and attributes, and say what came out."""
    from odkanon.cli.progress import stages
    from odkanon.cli.summaries import show_files, show_release
    from odkanon.cli.warnings import warn_of_days, warn_of_residual, warn_of_rule
    from odkanon.engine.selection import load
    from odkanon.methods import anonymize
    from odkanon.publish.save import check_target, save_release
    from odkanon.read.attributes.hierarchies import name_of, parse_attributes

    check_target(output, force=force)
    attributes = parse_attributes(by, parse_age_bands(age_bands), (reading.since, reading.until))
    with stages() as stage:
        stage(f"reading {reading.name}")
        od = load(reading, engine=engine, memory_limit=memory_limit, spark_master=spark_master, attributes=attributes)
        rule = make_rule(od)
        stage(f"protecting {od.summary.trips:,} trips by {', '.join(map(name_of, by))}")
        release = anonymize(od, rule, method=METHOD, **options)
        stage(f"writing {output}")
        save_release(release, output, force=force, source=reading.said(), command=command)
    show_release(od, release)
    show_known(release)
    warn_of_rule(release)
    warn_of_residual(release)
    if "date" in map(name_of, by):
        warn_of_days(reading.since, reading.until)
    if reading.uses_hours or "hour" in map(name_of, by):
        console.print(reading.clock)
    show_files(output)


def show_known(release: Release) -> None:
    """Print the share of trips by what is known of them."""
    from odkanon.cli.console import console, make_table
    from odkanon.quality.attribute_coverage import known

    table = make_table(
        "Share of trips by what is known of them",
        ("known", "in full", "in part at least"),
        left=("known",),
    )
    for found in known(release):
        table.add_row(" and ".join(found.axes), f"{found.full:.1%}", f"{found.part:.1%}")
    console.print(table)
    console.print(
        f"Detail was given up in this order: {release.parameters['give_up']}. A detail that was given up is 'any'.",
        style="dim",
    )
