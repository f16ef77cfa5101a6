"""``odkanon anonymize --segment``: the whole and its segments, released together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odkanon.cli.console import console
from odkanon.cli.engine_options import parse_age_bands
from odkanon.core.formatting import format_count
from odkanon.errors import InputError

if TYPE_CHECKING:
    from odkanon.engine.protocols import Matrix
    from odkanon.engine.selection import EngineName
    from odkanon.linked import LinkedReleases
    from odkanon.linked.fixed_zoning import Zoning
    from odkanon.methods.cascade.reuse import EarlierRows
    from odkanon.model.release import Release
    from odkanon.model.rule import Rule
    from odkanon.read.input_spec import InputSpec


def read_earlier(folder: Path | None) -> Zoning | EarlierRows | None:
    """Read ``--zones``: the zones of a release, of the whole of a folder of segments, or the rows of a cascade."""
    from odkanon.release_format.folder import WHOLE, read_release
    from odkanon.release_format.recipe import INDEX

    if folder is None:
        return None
    release = read_release(folder / WHOLE if (folder / INDEX).is_file() else folder)
    return release.earlier_rows if release.nested and not release.axes else release.zoning


def read_earlier_zones(folder: Path | None) -> Zoning | None:
    """Read ``--zones`` where it takes one zoning for all flows."""
    from odkanon.methods.cascade.reuse import EarlierRows

    earlier = read_earlier(folder)
    if isinstance(earlier, EarlierRows):
        raise InputError(f"{folder} is a cascade: its rows lie in each other, and are no zoning for segments")
    return earlier


def read_after(reading: InputSpec, earlier: Path | None) -> InputSpec:
    """Return the part of an input that ``--after`` leaves: what is new since an earlier release."""
    from odkanon.linked.disjoint_periods import only_new
    from odkanon.release_format.recipe import read_recipe_file

    return reading if earlier is None else only_new(reading, read_recipe_file(earlier)["input"], str(earlier))


def anonymize_segments(
    reading: InputSpec,
    output: Path,
    *,
    segments: list[str],
    age_bands: str | None,
    segment_budget: float,
    protect_intervals: bool,
    make_rule: Callable[[Matrix], Rule],
    method: str,
    options: dict[str, Any],
    zones: Path | None,
    force: bool,
    engine: EngineName | None,
    memory_limit: int | None,
    spark_master: str | None,
    command: dict[str, Any],
) -> None:
    """Read trips, release them by segments, and say what came out."""
    from odkanon.cli.progress import stages
    from odkanon.cli.summaries import show_recipe
    from odkanon.cli.warnings import warn_of_rule
    from odkanon.engine.selection import load
    from odkanon.linked import make_dimensions, release_linked
    from odkanon.publish.linked_folder import check_index_target, save_linked
    from odkanon.read.attributes.dimensions import segment_attributes

    check_index_target(output, force=force)
    attributes, zoning = segment_attributes(segments, parse_age_bands(age_bands)), read_earlier_zones(zones)
    with stages() as stage:
        stage(f"reading {reading.name}")
        loaded = load(
            reading, engine=engine, memory_limit=memory_limit, spark_master=spark_master, attributes=attributes
        )
        od = loaded.in_memory()
        dimensions, rule = make_dimensions(od, segments), make_rule(od)
        stage(f"protecting {od.trips:,} trips and their segments")
        together = release_linked(
            od,
            rule,
            dimensions,
            segment_budget=segment_budget,
            protect_intervals=protect_intervals,
            zoning=zoning,
            method=method,
            **options,
        )
        stage(f"writing {output}")
        save_linked(together, output, force=force, source=reading.said(), command=command)
    summarize_linked(together)
    warn_of_rule(together.whole)
    if reading.uses_hours or any("hour" in dimension.keys for dimension in dimensions):
        console.print(reading.clock)
    written = 1 + sum(part.release is not None for part in together.parts)
    console.print(f"Wrote {output}: {format_count(written, 'releases')} on the same zones, and index.json")
    show_recipe(output)


def summarize_linked(together: LinkedReleases) -> None:
    """Print the whole and each segment in one table."""
    from odkanon.cli.console import console, make_table
    from odkanon.cli.summaries import show_input, warn_of_few_persons
    from odkanon.publish.linked_folder import linked_promise
    from odkanon.quality.privacy import privacy
    from odkanon.quality.utility import utility

    for name, share in together.over_budget.items():
        console.print(
            f"The tables by {name} leave out {share:.1%} of the trips, more than the {together.budget:.1%} allowed: no "
            "zones do with less. Use broader groups or fewer of them, or allow more with --segment-budget.",
            style="bold red",
        )
    show_input(together.whole.od)
    console.print(linked_promise(together.whole), style="bold")
    table = make_table(
        "The whole and its segments, on the same zones",
        ("table", "trips", "flows", "of few persons", "suppressed", "G"),
        left=("table",),
    )
    rows = [("whole", together.whole, None), *((part.title, part.release, part.reason) for part in together.parts)]
    for title, release, reason in rows:
        if release is None:
            table.add_row(title, "-", reason, "-", "-", "-")
            continue
        persons = privacy(release).get("persons")
        table.add_row(
            title,
            f"{release.od.trips:,}",
            f"{len(release.classes):,}",
            "-" if persons is None else f"{persons.below:,}",
            f"{_left_out(release):.1%}",
            f"{utility(release.od, release).g:,.1f}",
        )
    console.print(table)
    _warn_of_rare(together)
    for part in together.parts:
        if part.joined:
            names = ", ".join(",".join(each.values()) for each in part.joined)
            console.print(f"{part.title} is {names}: too rare for tables of their own.")
    warn_of_few_persons(together.whole)


def _left_out(release: Release) -> float:
    return 1 - float(release.classes.trips.sum()) / release.od.trips


def _warn_of_rare(together: LinkedReleases) -> None:
    """Say of which tables more is left out than of all of them together, which is what the budget is about."""
    from odkanon.cli.console import console

    for name, share in together.suppressed.items():
        shares = {
            part.title: 1.0 if part.release is None else _left_out(part.release)
            for part in together.parts
            if part.dimension == name
        }
        more = [title for title, own in shares.items() if together.budget is not None and own > together.budget]
        if more and name not in together.over_budget:
            worst = max(more, key=lambda title: shares[title])
            console.print(
                f"Caution: the {together.budget:.1%} are for all tables by {name} together, which leave out "
                f"{share:.1%}. {len(more):,} of {len(shares):,} leave out more by themselves, {worst} the most "
                f"({shares[worst]:.1%}).",
                style="yellow",
            )
