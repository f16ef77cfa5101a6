"""The recipe of a release: everything its steward knows, in a file beside the folder and never in it."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from odkanon._version import __version__
from odkanon.core.atomic_write import pending
from odkanon.core.parsing import parse_json
from odkanon.errors import InputError
from odkanon.model.od import AXES
from odkanon.model.release import Release
from odkanon.release_format.manifest import manifest
from odkanon.release_format.names import MANIFEST, ZONES, axis_of, sha256

FORMAT = 1
_TAKE_PART = ("duckdb", "h3", "h3ronpy", "numpy", "pyarrow")
INDEX = "index.json"
"""What a folder of segments has instead of a manifest."""


def recipe_path(folder: Path) -> Path:
    """Return where the recipe of a release folder is: ``NAME.recipe.json`` beside the folder ``NAME``."""
    folder = folder.absolute()
    return folder.with_name(f"{folder.name}.recipe.json")


def check_outside(*paths: Path) -> None:
    """Raise if a file that only the steward should have lies in a folder that is to be published."""
    for path in paths:
        for folder in path.resolve().parents:
            if ((folder / MANIFEST).is_file() and (folder / ZONES).is_file()) or _is_index(folder / INDEX):
                raise InputError(f"{path} lies in the release {folder}, which is to be published; write it elsewhere")


def _is_index(path: Path) -> bool:
    """Tell whether a file lists segments released together; others may have a file of its name."""
    try:
        return {"whole", "segments"} <= set(parse_json(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return False


def account(release: Release) -> dict[str, Any]:
    """Return the full account of one release: all that is known of it, and the observed leaves of its zones."""
    return {"about": manifest(release), "zones": zone_account(release)}


def zone_account(release: Release) -> dict[str, dict[str, list[int] | None]]:
    """Return the observed leaves of the zones of each axis, in the order of ``zones.geojson``."""
    leaves = {axis: axis_of(release, axis)[0].leaves for axis in AXES}
    return {axis: {"leaves": None if own is None else own.tolist()} for axis, own in leaves.items()}


def with_leaves(features: Sequence[dict[str, Any]], zones: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the zones of a release with the observed leaves that only its steward knows."""
    left = {axis: iter(zones[axis]["leaves"] or ()) for axis in AXES}
    return [
        {**feature, "properties": {**own, "leaves": next(left[own["axis"]], None)}}
        for feature in features
        for own in [feature["properties"]]
    ]


def make_recipe(
    folder: Path, told: Mapping[str, Any], *, digest: str, source: Mapping[str, Any], command: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return what the recipe says.

    Parameters
    ----------
    folder : Path
        The folder that it goes with.
    told : mapping
        The `account` of one release, or of several by name.
    digest : str
        Of the file that names the others in the folder, which tells whether recipe and folder belong together.
    source : mapping
        What was read, and how.
    command : mapping, optional
        The options of the command that made it.
    """
    return {
        "format": FORMAT,
        "version": __version__,
        "versions": versions(),
        "release": folder.name,
        "public_sha256": digest,
        **told,
        "input": dict(source),
        "command": None if command is None else dict(command),
    }


def versions() -> dict[str, str]:
    """Return the versions of what took part, which can change a number in its last digit."""
    return {"odkanon": __version__, "python": platform.python_version(), **dict(_installed())}


@cache
def _installed() -> tuple[tuple[str, str], ...]:
    """Return packages and their versions; to look them up takes as long as to write a small release."""
    found = []
    for name in _TAKE_PART:
        with suppress(PackageNotFoundError):
            found.append((name, version(name)))
    return tuple(found)


def public_digest(path: Path) -> str | None:
    """Return the digest of a file, or of the file that names all others of a release; None where there is neither."""
    if path.is_dir():
        path = next((path / name for name in (MANIFEST, INDEX) if (path / name).is_file()), path)
    return sha256(path) if path.is_file() else None


def read_recipe(folder: str | Path) -> dict[str, Any] | None:
    """Read the recipe beside a release folder, or beside the folder of segments that it is one of; None for none.

    Raises
    ------
    InputError
        If there is a file of that name that is not a recipe.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from odkanon import Rule, anonymize, make_survey, read_trips
    >>> from odkanon.read.od_matrix import build_od
    >>> release = anonymize(build_od(read_trips(make_survey()), resolution=7), Rule(trips=10))
    >>> with TemporaryDirectory() as folder:
    ...     recipe = read_recipe(release.save(Path(folder) / "release"))
    >>> recipe is None
    False
    """
    folder = Path(folder)
    waiting = pending(folder.absolute())
    if _goes_with(waiting, folder):  # a killed run has put the folder in place, but not the recipe
        return _read(waiting)
    path = recipe_path(folder)
    return _read(path) if path.exists() else _of_part(folder.absolute())


def _of_part(folder: Path) -> dict[str, Any] | None:
    """Return what the recipe of segments released together says about one of them."""
    together = read_recipe(folder.parent) if (folder.parent / INDEX).is_file() else None
    if together is None or folder.name not in together.get("releases", {}):
        return None
    return {**together, "release": folder.name, **together["releases"][folder.name]}


def settle_recipe(folder: Path) -> None:
    """Put the recipe in place that a killed run has left waiting, if its folder is there; else remove it."""
    waiting = pending(folder.absolute())
    if _goes_with(waiting, folder):
        waiting.replace(recipe_path(folder))
    waiting.unlink(missing_ok=True)


def _goes_with(path: Path, folder: Path) -> bool:
    public = next((folder / name for name in (MANIFEST, INDEX) if (folder / name).is_file()), None)
    if public is None or not path.is_file():
        return False
    try:
        return bool(_read(path)["public_sha256"] == sha256(public))
    except InputError:
        return False


def read_recipe_file(path: Path) -> dict[str, Any]:
    """Read a recipe, given itself or the folder that it goes with."""
    if path.is_dir():
        found = read_recipe(path)
        if found is None:
            raise InputError(f"there is no recipe beside {path}; it should be {recipe_path(path).name}")
        return found
    if not path.is_file():
        raise InputError(f"there is no file {path}; give the recipe beside a release, NAME.recipe.json")
    return _read(path)


def _read(path: Path) -> dict[str, Any]:
    try:
        content = parse_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read ({error}); it should be the recipe of a release") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT or "public_sha256" not in content:
        raise InputError(f"{path} is not the recipe of a release; move it away, or choose another name")
    return content
