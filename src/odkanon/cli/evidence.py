"""``odkanon evidence`` and ``check``: attacks on a release, and the policy that it has to meet."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from odkanon.cli.common_options import command
from odkanon.cli.console import console, make_table
from odkanon.cli.request_options import InputOptions
from odkanon.core.parsing import parse_json
from odkanon.errors import InputError, UnreadableFileError


@command(
    """
    release: RELEASE  Folder of a release.
    --trips FILE  The trips behind it, with the same reading options. Repeatable. [default: those that the recipe names]
    --output -o OUT  Write OUT.html and OUT.json, outside the release.
    --earlier RELEASE  An earlier release of the same trips. Repeatable.
    --policy FILE  The policy of your organisation; see `odkanon check --template`.
    --seconds SECONDS  The time limit of each attack.
    --queue FOLDER  Instead of one release: write the sheets of all in FOLDER that have none, beside their recipes, and
        FOLDER/queue.html with verdicts and decisions.
    --decide WORD  Record what was decided about the release, approved, refused or returned, beside its recipe.
    --by NAME  With --decide: who decided.
    --note TEXT  With --decide: why, or on which conditions.
    noise: --compare-noise  Also show how accurate noise at several epsilon would be on these trips (minutes).
    --force  Replace OUT.html and OUT.json.
    """
)
def evidence(
    how: InputOptions,
    release: Path | None = None,
    trips: list[Path] = [],  # noqa: B006 - typer copies it
    output: Path | None = None,
    earlier: list[Path] | None = None,
    policy: Path | None = None,
    seconds: float = 30.0,
    queue: Path | None = None,
    decide: str | None = None,
    by: str | None = None,
    note: str | None = None,
    noise: bool = False,
    force: bool = False,
) -> None:
    """Attack a release with the trips behind it, and write a sheet for the person who approves it. Do not publish it.

    Examples
    --------
    `odkanon evidence release --policy policy.toml -o evidence`

    `odkanon evidence release --trips survey.parquet --resolution 8 -o evidence`

    `odkanon evidence --queue releases/ --policy policy.toml`

    `odkanon evidence releases/may --decide approved --by "R. Soto" --note "until 2030"`
    """
    from rich.text import Text

    if queue is not None:
        _show_queue(queue, release, policy, seconds)
        return
    if decide is not None and release is not None:
        from odkanon.evidence.review_queue import record_decision

        console.print(f"Wrote {record_decision(release, decide, by=by or '', note=note or '')}")
        return
    if release is None or output is None:
        raise InputError("evidence needs a release and -o OUT; or --queue FOLDER with the releases in it")

    from odkanon.cli.console import stages
    from odkanon.core.atomic_write import write_whole
    from odkanon.evidence.gather import gather_evidence
    from odkanon.evidence.review_queue import trips_of
    from odkanon.evidence.sheet_page import page
    from odkanon.release_format.names import RECIPE_SUFFIX
    from odkanon.release_format.recipe import described_folder
    from odkanon.release_format.targets import check_files

    release = described_folder(release) if release.name.endswith(RECIPE_SUFFIX) else release

    files = [output.with_name(f"{output.name}.{suffix}") for suffix in ("html", "json")]
    check_files(*files, force=force)
    with stages() as stage:
        found = gather_evidence(
            release,
            how(trips) if trips else trips_of(release),
            earlier=earlier or (),
            policy=policy,
            seconds=seconds,
            noise=noise,
            stage=stage,
        )
    for each in found.content["attacks"]:
        style = {"found": "bold red", "clean": "green"}.get(each["verdict"], "yellow")
        console.print(Text.assemble((f"{each['verdict']:>14}", style), f"  {each['title']}: {each['message']}"))
    write_whole(files[0], page(found.content))
    write_whole(files[1], json.dumps(found.content, indent=2, ensure_ascii=False) + "\n")
    show_verdict(found.content["verdict"])
    console.print(f"Wrote {files[0]} and {files[1]}: for your reviewer; do not publish them.")
    _exit(found.broken)


def _show_queue(folder: Path, release: Path | None, policy: Path | None, seconds: float) -> None:
    """Write the sheets and the queue of a folder, and print it."""
    from odkanon.cli.console import stages
    from odkanon.evidence.review_queue import QUEUE, review_queue

    if release is not None:
        raise InputError(f"--queue is about all releases in {folder}; leave out {release}")
    with stages() as stage:
        entries = review_queue(folder, policy=policy, seconds=seconds, stage=stage)
    headings = ("release", "verdict", "decision")
    table = make_table(f"Releases in {folder}", headings, left=headings)
    for each in entries:
        made = "waiting" if each.decision is None else f"{each.decision.decision} by {each.decision.by}"
        table.add_row(each.name, each.verdict, f"{made}; changed since" if each.outdated else made)
    console.print(table)
    console.add_result(queue=[{**vars(each), "decision": each.decision and vars(each.decision)} for each in entries])
    console.print(f"Wrote {folder / QUEUE}, and the sheets beside the recipes: do not publish them.")
    raise typer.Exit(1 if any(each.verdict == "do not publish" for each in entries) else 0)


def show_verdict(verdict: Mapping[str, Any]) -> None:
    """Print the verdict of a sheet, and what is to be decided."""
    style = {"may be published": "bold green", "do not publish": "bold red"}.get(verdict["verdict"], "bold yellow")
    points = "".join(f"\n  {at}. {each['question']}" for at, each in enumerate(verdict["points"], 1))
    console.print(f"Verdict: {verdict['verdict']}{':' if points else '.'}", style=style)
    if points:
        console.print(points.removeprefix("\n"))


@command(
    """
    release: RELEASE  Folder of a release.
    --policy FILE  The policy of your organisation; see `odkanon check --template`.
    --evidence FILE  The .json file of `odkanon evidence`, if the policy requires attacks.
    --template  Write a policy with comments, for you to edit, and check nothing.
    --output -o FILE  With --template: the new file. [default: the terminal]
    --force  Replace an existing FILE.
    """
)
def check(
    release: Path | None = None,
    policy: Path | None = None,
    evidence: Path | None = None,
    template: bool = False,
    output: Path | None = None,
    force: bool = False,
) -> None:
    """Check a release against the policy of your organisation, for example in a pipeline.

    Examples
    --------
    `odkanon check --template -o policy.toml`

    `odkanon check release --policy policy.toml --evidence evidence.json`
    """
    from odkanon.evidence.policy import check_release, read_policy

    if template:
        _write_template(output, force=force)
        return
    if release is None or policy is None:
        raise InputError("check needs a release and --policy FILE; `odkanon check --template` writes such a file")
    requirements, content = read_policy(policy), None
    if evidence is not None:
        try:
            content = parse_json(evidence.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            advice = "expected the .json file of `odkanon evidence`"
            raise UnreadableFileError.because(evidence, error, advice=advice) from None
    broken = check_release(release, requirements, content)
    console.add_result(release=release, policy=policy, meets_policy=not broken, broken=broken)
    if not broken:
        console.print(f"{release} meets {policy}.")
    _exit(broken)


def _write_template(output: Path | None, *, force: bool) -> None:
    from odkanon.core.atomic_write import check_new, write_whole
    from odkanon.evidence.policy import EXAMPLE

    if output is None:
        typer.echo(EXAMPLE, nl=False)
        return
    check_new(output, force=force)
    write_whole(output, EXAMPLE)
    console.print(f"Wrote {output}; edit it to state what your organisation requires.")


def _exit(broken: list[str]) -> None:
    for line in broken:
        console.print(f"broken: {line}")
    raise typer.Exit(1 if broken else 0)
