"""``odkanon evidence``, ``policy`` and ``check``: what a release withstands, and what an office asks of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from odkanon.cli.console import console, say
from odkanon.cli.input_options import InputOptions, reads
from odkanon.core.parsing import parse_json
from odkanon.errors import InputError

Policy = Annotated[
    Path | None, typer.Option("--policy", metavar="FILE", help="What your office asks; see `odkanon policy`.")
]


@reads
def evidence(
    how: InputOptions,
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="Folder of a release.", show_default=False)],
    trips: Annotated[
        Path, typer.Option("--trips", metavar="FILE", help="The trips that it was made of; read them as then.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="OUT", help="Writes OUT.html and OUT.json, outside the release.")
    ],
    earlier: Annotated[
        list[Path] | None,
        typer.Option("--earlier", metavar="RELEASE", help="Another release of the same trips. Repeatable."),
    ] = None,
    policy: Policy = None,
    seconds: Annotated[float, typer.Option("--seconds", help="How long each attack may take.")] = 30.0,
    no_yardstick: Annotated[
        bool, typer.Option("--no-yardstick", help="Do not compare with differential privacy.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace OUT.html and OUT.json.")] = False,
) -> None:
    """Attack a release with its own trips, and write a sheet for whoever signs it. Not for publication.

    Stop an attack with Ctrl-C: the sheet then says how far it came.

    Example:

    `odkanon evidence release --trips survey.parquet --policy policy.toml -o evidence`
    """
    from rich.text import Text

    from odkanon.cli.stages import stages
    from odkanon.core.atomic_write import check_new, write_whole
    from odkanon.evidence.gather import gather_evidence
    from odkanon.evidence.sheet_page import page
    from odkanon.release_format.recipe import check_outside

    files = [output.with_name(f"{output.name}.{kind}") for kind in ("html", "json")]
    check_outside(output)
    for path in files:
        check_new(path, force=force)
    with stages() as stage:
        found = gather_evidence(
            release,
            how(trips),
            earlier=earlier or (),
            policy=policy,
            seconds=seconds,
            with_yardstick=not no_yardstick,
            stage=stage,
        )
    for each in found.content["attacks"]:
        style = {"found": "bold red", "clean": "green"}.get(each["verdict"], "yellow")
        console.print(Text.assemble((f"{each['verdict']:>14}", style), f"  {each['title']}: {each['message']}"))
    if found.content["yardstick"] is not None:
        console.print(found.content["yardstick"]["words"])
    write_whole(files[0], page(found.content))
    write_whole(files[1], json.dumps(found.content, indent=2, ensure_ascii=False) + "\n")
    console.print(f"Wrote {files[0]} and {files[1]}: for your reviewer, not for publication.")
    _end(found.broken)


def policy(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where to; the terminal if not given.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE.")] = False,
) -> None:
    """Write an example of a policy, with comments: what your office asks of a release.

    Example:

    `odkanon policy -o policy.toml`
    """
    from odkanon.core.atomic_write import check_new, write_whole
    from odkanon.evidence.policy import EXAMPLE

    if output is None:
        typer.echo(EXAMPLE, nl=False)
        return
    check_new(output, force=force)
    write_whole(output, EXAMPLE)
    say(f"Wrote {output}; change it to what your office asks.")


def check(
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="Folder of a release.", show_default=False)],
    policy: Annotated[Path, typer.Option("--policy", metavar="FILE", help="What your office asks of it.")],
    evidence: Annotated[
        Path | None,
        typer.Option("--evidence", metavar="FILE", help="The .json of `odkanon evidence`, if it asks for attacks."),
    ] = None,
) -> None:
    """Hold a release against the policy of your office; for pipelines.

    Example:

    `odkanon check release --policy policy.toml --evidence evidence.json`
    """
    from odkanon.evidence.policy import check_release, read_policy

    asked, content = read_policy(policy), None
    if evidence is not None:
        try:
            content = parse_json(evidence.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"{evidence} cannot be read ({error}); it should be the .json of evidence") from None
    broken = check_release(release, asked, content)
    if not broken:
        say(f"{release} keeps {policy}.")
    _end(broken)


def _end(broken: list[str]) -> None:
    for line in broken:
        say(f"broken: {line}")
    raise typer.Exit(1 if broken else 0)
