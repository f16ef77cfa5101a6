"""``odkanon rerun`` and ``correct``: a release once more, of the same input, the next one, or a corrected one."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import chdir, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import typer

from odkanon.cli.common_options import command
from odkanon.cli.console import console, make_table
from odkanon.cli.old_names import current_options
from odkanon.cli.option_rules import OF_ZONES
from odkanon.core.parsing import format_count
from odkanon.core.system import remote
from odkanon.errors import InputError, OptionConflictError, nearest


@command(
    """
    recipe: RECIPE  NAME.recipe.json, or the folder NAME beside it.
    source: --input FILE  Another input. Repeatable. [default: the same]
    --output -o DIR  Folder for the release. [default: none; only compare]
    --until DAY  With --input: the day before which the next period ends.
    --keep-zones  With --input: use the zones of the release, or the rows of a cascade. [default: zones are made anew]
    --force  Replace an earlier release in DIR.
    """
)
def rerun(
    context: typer.Context,
    recipe: Path,
    source: list[Path] = [],  # noqa: B006 - typer copies it
    output: Path | None = None,
    until: str | None = None,
    keep_zones: bool = False,
    force: bool = False,
) -> None:
    """Repeat a release from its recipe, with the same options, and print the differences.

    Without -o nothing is written: the release is repeated and compared byte for byte.

    Examples
    --------
    `odkanon rerun january.recipe.json`

    `odkanon rerun january.recipe.json --input february.csv -o february --keep-zones`
    """
    from odkanon.release_format.recipe import compare_recipes, read_recipe_file, recipe_path

    content = read_recipe_file(recipe)
    if source and output is None:
        raise InputError("a release of another input needs a folder: -o DIR")
    noisy = _redraws(content, output)
    beside = (recipe_path(recipe) if recipe.is_dir() else recipe).absolute().parent
    command = _command(content, beside)
    there = command["folder"]
    changes: dict[str, Any] = {"source": [_seen_from(there, path) for path in source]} if source else {}
    changes |= _next_period(
        content, command["options"], until, os.path.relpath(beside / content["release"], there), new=bool(source)
    )
    if keep_zones:
        if not source:
            raise OptionConflictError.between(
                "--keep-zones", "--input", "the same trips have the same zones", missing=True
            )
        _fix_zones(command["options"], os.path.relpath(beside / content["release"], there))
    if not source and "-" in command["options"].get("source", ()):
        raise InputError("the release was made from standard input; give it as a file with --input FILE")
    with TemporaryDirectory() if output is None else nullcontext() as kept:
        made = (Path(kept or "") / content["release"]) if output is None else output.absolute()
        changes["output"] = str(made) if output is None else _seen_from(there, output)
        with chdir(there), console.muted() if output is None else nullcontext():
            # Without defaults: the present odkanon.toml must not affect the options of the recipe.
            options = command["options"] | changes | ({"force": True} if force else {})
            run_command(context, command["name"], options, defaults={})
        differences = compare_recipes(content, read_recipe_file(made))
        if output is None:
            differences = [each for each in differences if each.what != "option output"]
        _show_differences(differences)
        if source:
            _show_zones(command["options"], content["release"])
        same = noisy or _compare(beside / content["release"], made)
    if not source and not same:
        raise typer.Exit(1)


def _redraws(recipe: Mapping[str, Any], output: Path | None) -> bool:
    """Return whether a release has noise, which is drawn anew and costs epsilon again; raise if only to compare."""
    from odkanon.methods.method_registry import METHODS

    about = recipe.get("about", {})
    method = METHODS.get(str(about.get("method")))
    if method is None or not method.noisy:
        return False
    cost = f"epsilon = {about['parameters']['epsilon']:g} and delta = {about['parameters']['delta']:g}"
    if output is None:
        raise InputError(
            f"noise is drawn anew each time, so the release cannot be repeated to compare; with -o DIR another one is "
            f"drawn, which spends {cost} again"
        )
    console.print(f"The noise is drawn anew: other numbers than before, and {cost} spent again.", style="bold yellow")
    return True


@command(
    """
    release: RELEASE  Folder of the published release.
    source: --input FILE  The corrected trips of the same period. Repeatable.
    --output -o DIR  Folder for the correction.
    --trips FILE  The trips of the release. [default: those that the recipe names]
    --late FILE  Write the added trips that cannot be published now, to be read with those of the next period.
    --force  Replace earlier outputs.
    """
)
def correct(
    release: Path,
    source: list[Path] = [],  # noqa: B006 - typer copies it
    output: Path | None = None,
    trips: Path | None = None,
    late: Path | None = None,
    force: bool = False,
) -> None:
    """Correct a published release where both tables together disclose no group below the rule; refuse otherwise.

    Examples
    --------
    `odkanon correct may --input may-corrected.csv -o may-2 --late late.csv`
    """
    from odkanon.evidence.correction import correct as run

    if not source:
        raise InputError("a correction needs the corrected trips; give them", option="input FILE")
    made = run(release, source[0] if len(source) == 1 else source, output, trips=trips, late=late, force=force)
    console.add_result(**vars(made))
    if made.release is not None and made.supplement:
        console.print(
            f"{made.release} has {format_count(made.added, 'added trips')}, on the rows of {release}: add the two. "
            "They share no trip."
        )
    elif made.release is not None:
        console.print(
            f"{made.release} replaces {release}: {format_count(made.flows, 'flows')} changed, "
            f"{format_count(made.added, 'trips')} were added and {made.removed:,} taken out."
        )
    if made.not_added or made.not_removed:
        console.print(
            f"Not changed, because too few share each change: {format_count(made.not_added, 'trips')} to be added, "
            f"{made.not_removed:,} to be taken out."
        )
    if made.late is not None:
        console.print(f"Wrote {made.late}: read it with the trips of the next period; do not publish it.")
    elif made.not_added:
        console.print("Publish the trips to be added with the next period: --late FILE writes them.")


def _command(recipe: Mapping[str, Any], beside: Path) -> dict[str, Any]:
    """Return the command in a recipe, with the folder in which to run it."""
    command = recipe.get("command")
    if not isinstance(command, dict) or not isinstance(command.get("options"), dict):
        raise InputError(
            "the recipe has no command: the release was made in Python or in the explorer; repeat it there"
        )
    name, release = str(command.get("name")), recipe.get("release")
    if name != "anonymize":
        raise InputError(f"the recipe has the command {name!r}, which makes no release{nearest(name, ['anonymize'])}")
    if not isinstance(release, str) or release in ("", "..") or Path(release).name != release:
        raise InputError(
            f"the recipe names the release {release!r}, which is not a folder name; it was damaged or edited"
        )
    folder = beside / str(command.get("folder", "."))
    if not folder.is_dir():
        raise InputError(f"the release was made in {folder}, which is not there; move the recipe back")
    return {**command, "options": current_options(command["options"]), "folder": folder.resolve()}


def _next_period(
    recipe: Mapping[str, Any], options: dict[str, Any], until: str | None, release: str, *, new: bool
) -> dict[str, Any]:
    """Return the options for the period after that of a release; periods that overlap would share trips."""
    ends = recipe["input"].get("until")
    if until is not None and (not new or ends is None):
        raise InputError("--until applies only with --input, and only if the release has a period; leave it out")
    if not new or ends is None:
        return {}
    if until is None:
        raise InputError(f"the period of the release ends before {ends}; give the end of the next one with --until DAY")
    options.pop("since", None)
    return {"after": release, "until": until}


def _fix_zones(options: dict[str, Any], release: str) -> None:
    """Turn the options of a release into those of one on its zones, in place."""
    if options.get("by") or options.get("place"):
        raise InputError("a table by attributes or by one place has zones of its own; leave out --keep-zones")
    if options.get("zones_of") is None:
        options["zones_of"] = release
    for name in OF_ZONES:
        options.pop(name, None)


def _show_zones(options: Mapping[str, Any], release: str) -> None:
    """Print whether the next release has the zones of the last one."""
    kept = options.get("zones_of")
    if kept is None:
        console.print(f"The zones were made anew for these trips; --keep-zones uses those of {release}.")
    else:
        console.print(f"The zones are those of {kept}.")


def _seen_from(folder: Path, path: Path) -> str:
    """Return a path relative to another folder; addresses and standard input stay as they are."""
    if str(path) == "-" or remote(path) is not None or folder == Path.cwd().resolve():
        return str(path)
    return os.path.relpath(path, folder)


def run_command(
    context: typer.Context, name: str, options: Mapping[str, Any], *, defaults: dict[str, Any] | None = None
) -> None:
    """Run another command of the program from within one.

    * ``options``: by name of the parameter.
    * ``defaults``: values of options that are not given; by default those in ``odkanon.toml``.
    """
    from odkanon.cli.commands import COMMANDS, every_command

    command = every_command().get(name)
    if command is None:
        raise InputError(f"this version has no command {name!r}{nearest(name, COMMANDS)}")
    words = words_of(command, options)
    with command.make_context(name, words, parent=context.parent, default_map=defaults) as inner:
        command.invoke(inner)


def words_of(command: Any, options: Mapping[str, Any]) -> list[str]:
    """Return options, by the name of their parameter, as the words of a command line."""
    parameters = {each.name: each for each in command.params}
    words: list[str] = []
    last: list[str] = []
    for name, value in options.items():
        if name not in parameters:
            raise InputError(f"the recipe has the option {name!r}, which this version does not know")
        parameter = parameters[name]
        values: Sequence[Any] = value if isinstance(value, list) else [value]
        if parameter.param_type_name == "argument":
            last += [str(each) for each in values]
        elif parameter.is_flag:
            words += [parameter.opts[0]] * bool(value)
        else:
            words += [word for each in values for word in (parameter.opts[0], str(each))]
    return [*words, "--", *last]


def _show_differences(differences: Sequence[Any]) -> None:
    console.add_result(differences=[vars(each) for each in differences])
    if not differences:
        console.print("Options, versions and counts are the same.")
        return
    table = make_table("What differs", ("", "then", "now"), left=("",))
    for each in differences:
        table.add_row(each.what, _short(each.before), _short(each.after))
    console.print(table)


def _short(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"
    text = "-" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    is_digest = len(text) == 64 and set(text) <= set("0123456789abcdef")
    return f"{text[:8]}..." if is_digest else text


def _compare(before: Path, after: Path) -> bool:
    """Return whether two releases are the same byte for byte, and print it."""
    from odkanon.release_format.recipe import differing_files

    if not before.is_dir():
        console.print(f"There is no {before.name} beside the recipe to compare with.")
        return True
    unlike = differing_files(before, after)
    console.add_result(same_bytes=not unlike, unlike_files=unlike)
    outcome = (
        f"Other bytes than {before.name} in: {', '.join(unlike)}" if unlike else f"The same bytes as {before.name}"
    )
    console.print(f"{outcome}.")
    return not unlike
