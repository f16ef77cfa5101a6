"""Segments that were released together, read for one page that shows them one at a time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from odkanon.core.parsing import parse_json
from odkanon.errors import InputError
from odkanon.release_format.folder import SavedRelease, read_release
from odkanon.release_format.recipe import INDEX


def is_index(folder: Path) -> bool:
    """Tell whether a folder holds segments released together instead of one release."""
    return (folder / INDEX).is_file()


def read_index(folder: Path) -> list[SavedRelease]:
    """Read a folder of segments: the whole, then each published segment, named by what it is.

    Raises
    ------
    InputError
        If the index or one of the releases that it names cannot be read.
    """
    return [replace(read_release(folder / name), name=title) for title, name in _listed(folder)]


def index_folders(folder: Path) -> list[Path]:
    """Return the folders of the whole and of each published segment."""
    return [folder / name for _, name in _listed(folder)]


def _listed(folder: Path) -> list[tuple[str, str]]:
    """Return the title and the folder of each release that an index lists."""
    try:
        content = parse_json((folder / INDEX).read_text(encoding="utf-8"))
        parts = [(str(content["whole"]), str(content["whole"]))]
        parts += [
            (", ".join(f"{name}: {label}" for name, label in part["segment"].items()), str(part["folder"]))
            for part in content["segments"]
            if part["folder"] is not None
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{folder / INDEX} does not list its segments ({error}); save them again") from None
    return parts
