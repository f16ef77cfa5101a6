"""The recipe of a release: everything its steward knows, in a file beside the folder and never inside it."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from odkanon._version import __version__
from odkanon.core.atomic_write import pending
from odkanon.core.parsing import parse_json
from odkanon.errors import FileMissingError, InputError, UnreadableFileError
from odkanon.release_format.folder import SavedRelease, open_release
from odkanon.release_format.names import INDEX, MANIFEST, PACKAGE, PAGE, RECIPE_SUFFIX, sha256

FORMAT = 1
_PACKAGES = ("duckdb", "h3", "h3ronpy", "numpy", "pyarrow")
"""Dependencies whose version can change the last digit of a number."""
_COMPARED = ("method", "rule", "parameters", "input", "published", "suppressed")
"""The parts of a manifest in which two recipes are compared."""


def recipe_path(folder: Path) -> Path:
    """Return where the recipe of a release folder is: ``NAME.recipe.json`` beside the folder ``NAME``."""
    folder = folder.absolute()
    return folder.with_name(f"{folder.name}{RECIPE_SUFFIX}")


def described_folder(recipe: Path) -> Path:
    """Return the release folder that a recipe describes, from the name of its file."""
    return recipe.with_name(recipe.name.removesuffix(RECIPE_SUFFIX))


def make_recipe(
    folder: Path,
    account: Mapping[str, Any],
    *,
    digest: str,
    source: Mapping[str, Any],
    command: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Return the content of the recipe beside a folder.

    * ``account``: the full manifest and the leaf counts of one release, or those of several by name.
    * ``digest``: the SHA-256 of the manifest or index in the folder, which ties the recipe to the folder.
    * ``source``: the input, and how it was read.
    * ``command``: the options of the command that made the release, if any.
    """
    return {
        "format": FORMAT,
        "version": __version__,
        "versions": {"odkanon": __version__, "python": platform.python_version(), **dict(_package_versions())},
        "release": folder.name,
        "public_sha256": digest,
        **account,
        "input": dict(source),
        "command": None if command is None else dict(command),
    }


@cache
def _package_versions() -> tuple[tuple[str, str], ...]:
    """Return packages and their versions; cached, since the lookup takes as long as writing a small release."""
    return tuple(installed_versions(_PACKAGES).items())


def installed_versions(packages: Iterable[str]) -> dict[str, str]:
    """Return the versions of those packages that are installed."""
    found = {}
    for name in packages:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _public_file(folder: Path) -> Path | None:
    """Return the manifest or the index of a folder."""
    return next((folder / name for name in (MANIFEST, INDEX) if (folder / name).is_file()), None)


def public_digest(path: Path) -> str | None:
    """Return the digest of a file, or of the manifest or index of a folder; None where there is neither."""
    file = _public_file(path) if path.is_dir() else path
    return sha256(file) if file is not None and file.is_file() else None


def read_recipe(folder: str | Path) -> dict[str, Any] | None:
    """Read the recipe beside a release folder, or beside the folder of linked releases that it is part of.

    Returns
    -------
    dict or None
        None if there is no recipe.

    Raises
    ------
    InputError
        If there is a file of that name that is not a recipe.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from odkanon import Rule, anonymize, make_survey, read_trips
    >>> from odkanon.read.od_matrix import build_od
    >>> release = anonymize(build_od(read_trips(make_survey().slice(0, 4000)), resolution=7), Rule(trips=10))
    >>> with TemporaryDirectory() as folder:
    ...     recipe = read_recipe(release.save(Path(folder) / "release"))
    >>> recipe is None
    False
    """
    folder = Path(folder)
    waiting = pending(folder.absolute())
    if _matches(waiting, folder):  # a killed run has put the folder in place, but not the recipe
        return _read(waiting)
    path = recipe_path(folder)
    return _read(path) if path.exists() else _linked_recipe(folder.absolute())


def _linked_recipe(folder: Path) -> dict[str, Any] | None:
    """Return the part of the recipe of linked releases that describes one of them."""
    linked = read_recipe(folder.parent) if (folder.parent / INDEX).is_file() else None
    if linked is None or folder.name not in linked.get("releases", {}):
        return None
    return {**linked, "release": folder.name, **linked["releases"][folder.name]}


def settle_recipe(folder: Path) -> None:
    """Finish a killed run: put its recipe in place if its folder is there, otherwise remove the recipe."""
    waiting = pending(folder.absolute())
    if _matches(waiting, folder):
        waiting.replace(recipe_path(folder))
    waiting.unlink(missing_ok=True)


def _matches(recipe: Path, folder: Path) -> bool:
    """Return whether a recipe was written together with a folder."""
    public = _public_file(folder)
    if public is None or not recipe.is_file():
        return False
    try:
        return bool(_read(recipe)["public_sha256"] == sha256(public))
    except InputError:
        return False


def read_recipe_file(path: Path) -> dict[str, Any]:
    """Read a recipe, given its own path or that of the folder that it describes."""
    if path.is_dir():
        found = read_recipe(path)
        if found is None:
            raise FileMissingError.at(path, what="recipe beside", advice=f"it should be {recipe_path(path).name}")
        return found
    if not path.is_file():
        raise FileMissingError.at(path, advice="give the recipe beside a release, NAME.recipe.json")
    return _read(path)


def _read(path: Path) -> dict[str, Any]:
    try:
        content = parse_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UnreadableFileError.because(path, error, as_="the recipe of a release") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT or "public_sha256" not in content:
        raise InputError(f"{path} is not the recipe of a release; move it away, or choose another name")
    return content


def with_leaf_counts(features: Sequence[dict[str, Any]], zones: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return zones with the numbers of their observed leaves, which only the steward knows."""
    left = {axis: iter(own["leaves"] or ()) for axis, own in zones.items()}
    return [
        {**feature, "properties": {**own, "leaves": next(left[own["axis"]], None)}}
        for feature in features
        for own in [feature["properties"]]
    ]


def open_full(folder: str | Path) -> SavedRelease:
    """Open a release with everything that its recipe adds: exact numbers and leaf counts. Not for publication.

    Raises
    ------
    InputError
        If there is no recipe beside the folder.
    """
    public, recipe = open_release(folder), read_recipe(folder)
    if recipe is None:
        advice = "only the steward who made the release has it"
        raise FileMissingError.at(folder, what="recipe beside", advice=advice)
    features = with_leaf_counts(public.features, recipe["zones"])
    return SavedRelease(public.name, {**public.manifest, **recipe["about"]}, features, public.table)


@dataclass(frozen=True)
class RecipeDifference:
    """An entry in which two recipes differ; None where one of them lacks it."""

    what: str
    before: Any
    after: Any


def compare_recipes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[RecipeDifference]:
    """Return the differences between two recipes: versions, options, input files, and the numbers of each release."""
    first, second = dict(_entries(before)), dict(_entries(after))
    return [
        RecipeDifference(name, first.get(name), second.get(name))
        for name in dict.fromkeys([*first, *second])
        if first.get(name) != second.get(name)
    ]


def _entries(recipe: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield from _flatten("version of", recipe.get("versions", {}))
    command = recipe.get("command") or {}
    yield from _flatten("option", command.get("options", {}))
    yield from _flatten("content of", command.get("files", {}))
    releases = recipe.get("releases") or {"": recipe}
    for name, account in releases.items():
        about = account.get("about", {})
        yield from _flatten(name, {part: about.get(part) for part in _COMPARED})


def _flatten(prefix: str, value: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, Mapping):
        yield prefix, value
        return
    for name, part in value.items():
        if name != "seconds":
            yield from _flatten(f"{prefix} {name}".strip(), part)


def differing_files(first: Path, second: Path) -> list[str]:
    """Return the files that differ between two release folders, or are missing from one of them.

    The page and the data package contain the name of their folder, and are compared only where both names are equal.
    """
    digests = [
        {path.relative_to(folder).as_posix(): sha256(path) for path in folder.rglob("*") if path.is_file()}
        for folder in (first, second)
    ]
    same_name = first.name == second.name
    return [
        name
        for name in sorted({*digests[0], *digests[1]})
        if digests[0].get(name) != digests[1].get(name) and (same_name or not name.endswith((PAGE, PACKAGE)))
    ]
