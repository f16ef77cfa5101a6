"""Releases written as folders: all or nothing, the same bytes for the same input, with a recipe beside each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import closing
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet

from odkanon.core.atomic_write import write_text
from odkanon.core.sql import connect, write_csv
from odkanon.errors import RefusedError
from odkanon.estimate.flat_matrix import write_matrix
from odkanon.estimate.questions import zones_of_tree
from odkanon.linked import LinkedReleases
from odkanon.linked.linked_release import Part
from odkanon.methods.method_registry import words_for
from odkanon.model.provenance import Source
from odkanon.model.release import Release
from odkanon.model.rule import Rule
from odkanon.publish.manifests import full_manifest, public_manifest
from odkanon.publish.report import PageTexts, is_built, make_page
from odkanon.publish.report.place_page import make_place_page
from odkanon.release_format.contents import leaf_counts, make_index, published_tables
from odkanon.release_format.datapackage import describe_package, size_and_digest
from odkanon.release_format.folder import SavedRelease
from odkanon.release_format.names import (
    CSV,
    FILES,
    INDEX,
    MANIFEST,
    PACKAGE,
    PAGE,
    PARQUET,
    WHOLE,
    ZONES,
    guard_text,
    public_digests,
    sha256,
    write_json,
)
from odkanon.release_format.public_rule import publishable_rule
from odkanon.release_format.recipe import make_recipe
from odkanon.release_format.targets import ReleaseTarget
from odkanon.release_format.verify import verify_written

MAX_NAME_BYTES = 100
"""Of the name of a segment's folder: file systems allow 255 bytes, and numbers and suffixes are added."""


def save_release(
    release: Release,
    folder: Path,
    *,
    force: bool = False,
    matrix: Any = None,
    texts: PageTexts | None = None,
    source: Mapping[str, Any] | None = None,
    command: Mapping[str, Any] | None = None,
) -> Path:
    """Write a release as a folder that can be published, and its recipe beside it, all or nothing.

    The files are ``classes.csv``, ``classes.parquet``, ``zones.geojson``, ``matrix.csv``, ``matrix.parquet``,
    ``release.json``, ``datapackage.json`` and, if the page was built, ``report.html``. They are written into a hidden
    folder beside the target, read back and compared, and then moved into place: a killed run leaves the earlier
    release, the new one, or none. ``NAME.recipe.json`` beside the folder ``NAME`` is for the steward of the data: exact
    numbers, and what was read and how.

    Parameters
    ----------
    force : bool
        Replace an earlier release. A folder with anything else in it is never replaced.
    matrix : int, path or GeoDataFrame, optional
        The places of ``matrix.csv``; see `odkanon.estimate.flat_matrix`. By default cells of resolution 7, or of a
        coarser one where these would be more than 4,000.
    texts : PageTexts, optional
        What the release is called on its page and in its data package.
    source, command : mapping, optional
        What was read and how, and the options of the command, for the recipe.
    """
    if release.refusal:
        raise RefusedError.nothing_publishable(release.refusal)
    with ReleaseTarget(folder, force=force).replaced() as (made, recipe):
        write_public(release, made, folder.name, matrix, texts)
        digest, read = sha256(made / MANIFEST), _source(release.input.source, source)
        content = make_recipe(folder, _account(release, made), digest=digest, source=read, command=command)
        write_json(recipe, content, indent=2)
    return folder


def save_linked(
    linked: LinkedReleases,
    folder: Path,
    *,
    force: bool = False,
    matrix: Any = None,
    texts: PageTexts | None = None,
    source: Mapping[str, Any] | None = None,
    command: Mapping[str, Any] | None = None,
) -> Path:
    """Write linked releases as a folder of release folders with an ``index.json``, all or nothing.

    Publishing some of the folders is as safe as publishing all of them. Adding a release that was made separately is
    not. One recipe beside the folder describes all of them; see `save_release`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from odkanon import anonymize, make_survey
    >>> linked = anonymize(make_survey(), k=10, segment="sex", resolution=7)
    >>> with TemporaryDirectory() as folder:
    ...     sorted(path.name for path in save_linked(linked, Path(folder) / "releases").iterdir())
    ['index.json', 'sex=Man', 'sex=Woman', 'whole']
    """
    with ReleaseTarget(folder, force=force, linked=True).replaced() as (made, recipe):
        segments = _published_segments(linked)
        releases = {WHOLE: linked.whole}
        releases |= {name: part.release for name, part in segments.items() if part.release is not None}
        rule = publishable_rule(*releases.values())
        public = {name: _with_rule(each, rule) for name, each in releases.items()}
        for name, release in public.items():
            write_public(release, made / name, name, matrix, texts)
        listed = {name: (part.dimension, part.segment) for name, part in segments.items()}
        write_json(made / INDEX, make_index(public[WHOLE], listed, made), indent=2)
        accounts = {name: _account(release, made / name) for name, release in releases.items()}
        account = {**_segment_account(linked), "releases": accounts}
        digest, read = sha256(made / INDEX), _source(linked.whole.input.source, source)
        write_json(recipe, make_recipe(folder, account, digest=digest, source=read, command=command), indent=2)
    return folder


def _with_rule(release: Release, rule: Rule) -> Release:
    """Return a release that states another rule, which its rows meet and its residual may not."""
    stated = copy(release)
    object.__setattr__(stated, "spec", replace(release.spec, rule=rule))
    return stated


def write_public(release: Release, folder: Path, name: str, matrix: Any = None, texts: PageTexts | None = None) -> None:
    """Write the public files of a release into a folder, and verify what was written."""
    folder.mkdir(exist_ok=True)
    (table, zones), manifest = published_tables(release), public_manifest(release)
    pyarrow.parquet.write_table(table, folder / PARQUET)
    with closing(connect()) as connection:
        write_csv(guard_text(table), folder / CSV, connection)
        write_json(folder / ZONES, zones, indent=None)
        if matrix is None and release.matrix is not None:
            matrix = zones_of_tree(release.matrix.origins)
        estimated = write_matrix(SavedRelease(name, manifest, zones["features"], table), folder, matrix, connection)
        manifest = manifest if estimated is None else {**manifest, "matrix": estimated}
        written = {**manifest, "files": public_digests(folder)}
        write_json(folder / MANIFEST, written, indent=2)
        verify_written(release, manifest, folder, connection)
    package = describe_package(
        name,
        manifest,
        method=words_for(release.method),
        columns=table.column_names,
        zones=zones["features"],
        files=size_and_digest(folder),
        texts=None if texts is None else texts.titles,
    )
    write_json(folder / PACKAGE, package, indent=2)
    saved = SavedRelease(name, written, zones["features"], table)
    if release.subject.place is not None:
        write_text(folder / PAGE, make_place_page(saved))
    elif is_built():
        write_text(folder / PAGE, make_page([saved], texts=texts))


def as_saved(release: Release, name: str = "release") -> SavedRelease:
    """Return a release as it would be read back."""
    table, zones = published_tables(release)
    return SavedRelease(name, public_manifest(release), zones["features"], table)


def _account(release: Release, folder: Path) -> dict[str, Any]:
    """Return the account of a release in its recipe, with the digests of all its public files but the manifest."""
    files = {name: sha256(folder / name) for name in FILES if name != MANIFEST and (folder / name).exists()}
    return {"about": {**full_manifest(release), "files": files}, "zones": leaf_counts(release)}


def _source(source: Source, given: Mapping[str, Any] | None) -> dict[str, Any]:
    return {"sha256": source.sha256, **source.reading, **(given or {})}


def _published_segments(linked: LinkedReleases) -> dict[str, Part]:
    """Return the segments with a published release, by a name that every file system accepts."""
    taken, published = {WHOLE, INDEX}, {}
    for part in linked.parts:
        if part.release is None:
            continue
        stem = re.sub(r"[^\w=,+.-]+", "_", part.title).encode()[:MAX_NAME_BYTES].decode(errors="ignore")
        name, number = stem, 2
        while name.lower() in taken:
            name, number = f"{stem}~{number}", number + 1
        taken.add(name.lower())
        published[name] = part
    return published


def _segment_account(linked: LinkedReleases) -> dict[str, Any]:
    """Return the account of the segments in the recipe, including suppressed ones."""
    return {
        "coarseness": linked.coarseness,
        "suppressed": linked.suppressed,
        "segments": [
            {
                "dimension": part.dimension,
                "segment": part.segment,
                "published": part.release is not None,
                **({"joined": part.joined} if part.joined else {}),
            }
            for part in linked.parts
        ],
    }
