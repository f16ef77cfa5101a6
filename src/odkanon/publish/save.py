"""Releases as folders: all of it or nothing, the same bytes for the same input, and a recipe beside each."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.parquet

from odkanon.core.atomic_write import check_new, exclusive_lock, move_into_place, partial_folder, restore, write_text
from odkanon.core.parsing import parse_json
from odkanon.core.sql import connect, write_csv
from odkanon.errors import InputError, RefusedError
from odkanon.model.release import Release
from odkanon.publish.report import is_built, page_of
from odkanon.release_format.datapackage import package_of
from odkanon.release_format.folder import SavedRelease
from odkanon.release_format.manifest import public_manifest
from odkanon.release_format.names import (
    CSV,
    FILES,
    MANIFEST,
    PACKAGE,
    PAGE,
    PARQUET,
    ZONES,
    classes_table,
    guard_text,
    sha256,
    write_json,
    zones_geojson,
)
from odkanon.release_format.recipe import account, check_outside, make_recipe, read_recipe, recipe_path, settle_recipe
from odkanon.release_format.verify import check_written


def save_release(
    release: Release,
    folder: Path,
    *,
    force: bool = False,
    source: Mapping[str, Any] | None = None,
    command: Mapping[str, Any] | None = None,
) -> Path:
    """Write a release as a folder that may be published, and its recipe beside it, all or nothing.

    The files are ``classes.csv``, ``classes.parquet``, ``zones.geojson``, ``release.json``, ``datapackage.json`` and,
    where this installation carries the built page, ``report.html``. They are written into a hidden folder beside the
    target, read back and compared, and then take its place: whoever kills the run finds the earlier release, the new
    one, or none. ``NAME.recipe.json`` beside the folder ``NAME`` is for whoever keeps the data: all numbers in full,
    what was read and how.

    Parameters
    ----------
    force : bool
        Replace an earlier release. A folder with anything else in it is never replaced.
    source, command : mapping, optional
        What was read and how, and the options of the command, for the recipe.
    """
    if release.refusal:
        raise RefusedError(f"nothing can be published: {release.refusal}")
    check_target(folder, force=force)
    with partial_folder(folder) as partial:
        made = partial / "release"
        write_public(release, made, folder.name)
        read = {"sha256": release.input.source.sha256, **release.input.source.reading, **(source or {})}
        digest = sha256(made / MANIFEST)
        recipe = make_recipe(folder, with_files(account(release), made), digest=digest, source=read, command=command)
        beside = partial / recipe_path(folder).name
        write_json(beside, recipe, indent=2)
        move_into_place(made, folder, check=lambda: _check_free(folder, force=force), beside=beside)
    return folder


def write_public(release: Release, folder: Path, name: str) -> None:
    """Write the files of a release that may be published into a new folder, and check what was written."""
    folder.mkdir()
    table, zones, about = classes_table(release), zones_geojson(release), public_manifest(release)
    pyarrow.parquet.write_table(table, folder / PARQUET)
    with closing(connect()) as connection:
        write_csv(guard_text(table), folder / CSV, connection)
        write_json(folder / ZONES, zones, indent=None)
        about["files"] = public_digests(folder)
        write_json(folder / MANIFEST, about, indent=2)
        check_written(release, folder, connection)
    package = package_of(folder, name, about, table.column_names, zones["features"])
    write_json(folder / PACKAGE, package, indent=2)
    if is_built():
        page = page_of([SavedRelease(name, about, zones["features"], table)])
        write_text(folder / PAGE, page)


def public_digests(folder: Path) -> dict[str, str]:
    """Return the digests of the files that a manifest names."""
    return {name: sha256(folder / name) for name in (CSV, PARQUET, ZONES)}


def with_files(told: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the account of a release with the digests of all files in its folder but the manifest."""
    files = {name: sha256(folder / name) for name in FILES if name != MANIFEST and (folder / name).exists()}
    return {**told, "about": {**told["about"], "files": files}}


def check_target(folder: Path, *, force: bool) -> None:
    """Raise if a release cannot go to this folder; worth asking before the work begins."""
    prepare_target(folder)
    _check_free(folder, force=force)


def _check_free(folder: Path, *, force: bool) -> None:
    if folder.exists():
        check_only_ours(folder, FILES, needed=MANIFEST)
    check_new(folder, force=force)
    check_new(recipe_path(folder), force=force)


def prepare_target(folder: Path) -> None:
    """Clear up what a killed run has left of a folder and its recipe, and raise if the recipe cannot go beside it."""
    check_outside(recipe_path(folder))
    with exclusive_lock(folder):  # what another run is about to put in place is not left by a killed one
        restore(folder)
        settle_recipe(folder)
        if not folder.exists() or folder.is_dir():
            read_recipe(folder)


def _says_rule(manifest: Path) -> bool:
    """Tell whether a file is the manifest of a release; others may have a file of its name."""
    try:
        return {"rule", "method"} <= set(parse_json(manifest.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return False


def check_only_ours(folder: Path, names: Collection[str], *, needed: str) -> None:
    """Raise unless a folder is empty, or has the needed file and none but files of these names."""
    if not folder.is_dir():
        raise InputError(f"{folder} exists and is not a folder; choose another name")
    there = sorted(path.name for path in folder.iterdir())
    if there and (needed not in there or not _says_rule(folder / needed)):
        raise InputError(f"{folder} exists and is not a release; choose another folder")
    foreign = [name for name in there if name not in names or (folder / name).is_dir()]
    if foreign:
        raise InputError(f"{folder} has {foreign[0]} in it, which is no part of a release; move it away first")
