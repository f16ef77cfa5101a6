"""Segments released together, as one folder of releases: all of them or nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from odkanon._version import __version__
from odkanon.core.atomic_write import check_new, move_into_place, partial_folder
from odkanon.core.parsing import parse_json
from odkanon.errors import InputError
from odkanon.linked import LinkedReleases
from odkanon.linked.linked_release import Part
from odkanon.model.release import Release
from odkanon.publish.save import check_only_ours, prepare_target, with_files, write_public
from odkanon.release_format.folder import WHOLE
from odkanon.release_format.manifest import statement
from odkanon.release_format.names import FILES, MANIFEST, sha256, write_json
from odkanon.release_format.recipe import INDEX, account, make_recipe, recipe_path

MOST_BYTES = 100
"""Of the name of a folder: file systems take 255 bytes, and numbers and endings come on top."""


def save_linked(
    together: LinkedReleases,
    folder: Path,
    *,
    force: bool = False,
    source: Mapping[str, Any] | None = None,
    command: Mapping[str, Any] | None = None,
) -> Path:
    """Write the whole and its segments as a folder of releases with an ``index.json``, all or nothing.

    Publishing only some of the folders is as safe as publishing all of them. Adding a release that was made
    separately is not. One recipe beside the folder has the full account of each; see `save_release`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from odkanon import Rule, make_survey, read_trips
    >>> from odkanon.linked.linked_release import release_linked
    >>> from odkanon.read.od_matrix import make_dimensions
    >>> trips = read_trips(make_survey())
    >>> linked = release_linked(trips, Rule(trips=10), make_dimensions(trips, ["sex"]), resolution=7)
    >>> with TemporaryDirectory() as folder:
    ...     sorted(path.name for path in save_linked(linked, Path(folder) / "releases").iterdir())
    ['index.json', 'sex=Man', 'sex=Woman', 'whole']
    """
    check_index_target(folder, force=force)
    releases = {WHOLE: together.whole}
    shown = _shown(together)
    releases |= {name: part.release for name, part in shown.items() if part.release is not None}
    with partial_folder(folder) as partial:
        made = partial / "release"
        made.mkdir()
        for name, release in releases.items():
            write_public(release, made / name, name)
        write_json(made / INDEX, _index(together.whole, shown, made), indent=2)
        accounts = {name: with_files(account(release), made / name) for name, release in releases.items()}
        told = {**_shares(together), "releases": accounts}
        own = together.whole.input.source
        read = {"sha256": own.sha256, **own.reading, **(source or {})}
        recipe = make_recipe(folder, told, digest=sha256(made / INDEX), source=read, command=command)
        beside = partial / recipe_path(folder).name
        write_json(beside, recipe, indent=2)
        move_into_place(made, folder, check=lambda: _check_free(folder, force=force), beside=beside)
    return folder


def check_index_target(folder: Path, *, force: bool) -> None:
    """Raise if segments cannot go to this folder; worth asking before the work begins."""
    prepare_target(folder)
    _check_free(folder, force=force)


def _check_free(folder: Path, *, force: bool) -> None:
    if folder.exists():
        _check_only_segments(folder)
    check_new(folder, force=force)
    check_new(recipe_path(folder), force=force)


def _check_only_segments(folder: Path) -> None:
    if folder.is_dir() and not any(folder.iterdir()):
        return
    if not (folder / INDEX).is_file():
        raise InputError(f"{folder} exists and does not hold segments released together; choose another folder")
    parts = _parts(folder / INDEX)
    for path in sorted(folder.iterdir()):
        if path.name in parts:
            check_only_ours(path, FILES, needed=MANIFEST)
        elif path.name != INDEX:
            raise InputError(f"{folder} has {path.name} in it, which is no part of the releases; move it away first")


def _parts(index: Path) -> set[str]:
    try:
        told = parse_json(index.read_text(encoding="utf-8"))
        return {WHOLE, *(part["folder"] for part in told["segments"])}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{index} cannot be read ({error}); choose another folder") from None


def _shown(together: LinkedReleases) -> dict[str, Part]:
    """Return the segments of which something is published, by a name that every file system takes."""
    taken, shown = {WHOLE, INDEX}, {}
    for part in together.parts:
        if part.release is None:
            continue
        plain = _cut(re.sub(r"[^\w=,+.-]+", "_", part.title), MOST_BYTES)
        name, number = plain, 2
        while name.lower() in taken:
            name, number = f"{plain}~{number}", number + 1
        taken.add(name.lower())
        shown[name] = part
    return shown


def _cut(name: str, most: int) -> str:
    """Return as many whole characters of a name as fit: file systems count bytes."""
    return name.encode()[:most].decode(errors="ignore")


def linked_promise(whole: Release) -> str:
    """Return what tables promise that were released together, given that of the whole."""
    told = f"{statement(whole.rule)} So is every group that sums and differences of these tables single out."
    if not whole.parameters.get("protect_intervals"):
        return told
    return f"{told} No flow below that is known to exist, or to within less than is asked for."


def _index(whole: Release, shown: Mapping[str, Part], folder: Path) -> dict[str, Any]:
    """Return the public index; a segment of which nothing is published is not in it."""
    return {
        "version": __version__,
        "statement": linked_promise(whole),
        "whole": WHOLE,
        "segments": [
            {"dimension": part.dimension, "segment": part.segment, "folder": name} for name, part in shown.items()
        ],
        "files": {f"{name}/{MANIFEST}": sha256(folder / name / MANIFEST) for name in (WHOLE, *shown)},
    }


def _shares(together: LinkedReleases) -> dict[str, Any]:
    """Return what only the steward should know of all segments together."""
    return {
        "coarseness": together.coarseness,
        "suppressed": together.suppressed,
        "segments": [
            {
                "dimension": part.dimension,
                "segment": part.segment,
                "published": part.release is not None,
                **({"joined": part.joined} if part.joined else {}),
            }
            for part in together.parts
        ],
    }
