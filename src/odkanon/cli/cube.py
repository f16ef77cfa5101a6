"""``odkanon anonymize --by``: one table of places and kinds of trips, in which every trip stands once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odkanon.cli.options import parse_age_bands
from odkanon.cli.say import say

if TYPE_CHECKING:
    from odkanon.model.od import ODMatrix
    from odkanon.model.release import Release
    from odkanon.model.rule import Rule
    from odkanon.read.reading import Reading

METHOD = "cascade"
"""The method that publishes by kinds of trips."""


def anonymize_cube(
    reading: Reading,
    output: Path,
    *,
    by: Sequence[str],
    age_bands: str | None,
    make_rule: Callable[[ODMatrix], Rule],
    options: dict[str, Any],
    force: bool,
    command: dict[str, Any],
) -> None:
    """Read trips, release them by places and attributes, and say what came out."""
    from odkanon.cli.cautions import warn_of_rule
    from odkanon.cli.progress import stages
    from odkanon.cli.show import show_files, show_release
    from odkanon.methods import anonymize
    from odkanon.publish.save import check_target, save_release
    from odkanon.read.trips import trips_of
    from odkanon.together.axes import columns_of_axes, cube_of, name_of

    check_target(output, force=force)
    bands = parse_age_bands(age_bands)
    with stages() as stage:
        stage(f"reading {reading.name}")
        trips = trips_of(reading, columns_of_axes(by))
        od = cube_of(trips, by, resolution=reading.finest, within=reading.area, age_bands=bands)
        rule = make_rule(od)
        stage(f"protecting {od.trips:,} trips by {', '.join(map(name_of, by))}")
        release = anonymize(od, rule, method=METHOD, **options)
        stage(f"writing {output}")
        save_release(release, output, force=force, source=reading.said(), command=command)
    show_release(od, release)
    show_known(release)
    warn_of_rule(release)
    if reading.uses_hours or "hour" in map(name_of, by):
        say(reading.clock)
    show_files(output)


def show_known(release: Release) -> None:
    """Print the share of trips by what is known of them."""
    from odkanon.cli.say import console, make_table
    from odkanon.quality.known import known

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
