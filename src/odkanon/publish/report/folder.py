"""Reading a saved release folder back, with no more than the standard library where CSV is at hand."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from odkanon.errors import InputError

COUNTS = ("trips", "weight", "persons")
INDEX = "index.json"


@dataclass(frozen=True)
class SavedRelease:
    """What a release folder holds.

    Attributes
    ----------
    name : str
        The folder's own name; never a path, so that a page does not tell where it was made.
    about : dict
        The content of ``release.json``.
    zones : sequence of dict
        The GeoJSON features of ``zones.geojson``.
    classes : dict of str to list
        The columns of ``classes.csv`` or ``classes.parquet``.
    """

    name: str
    about: dict[str, Any]
    zones: Sequence[dict[str, Any]]
    classes: dict[str, list[Any]]


def read_folder(folder: Path) -> SavedRelease:
    """Read one saved release.

    Raises
    ------
    InputError
        If the folder is not a saved release, or one of its files cannot be read.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; give the folder of a saved release")
    about = _read_json(folder / "release.json")
    zones = _read_json(folder / "zones.geojson").get("features", [])
    return SavedRelease(folder.resolve().name, about, zones, _read_classes(folder))


def is_index(folder: Path) -> bool:
    """Tell whether a folder holds segments released together instead of one release."""
    return (folder / INDEX).is_file() and not (folder / "release.json").exists()


def read_index(folder: Path) -> list[SavedRelease]:
    """Read a folder of segments released together: the whole, then each published segment, named by what it is.

    Raises
    ------
    InputError
        If the index or one of the releases that it names cannot be read.
    """
    content = _read_json(folder / INDEX)
    try:
        parts = [(str(content["whole"]), str(content["whole"]))]
        parts += [
            (
                f"{part['dimension']}: {part['segment']}" if part.get("dimension") else str(part["segment"]),
                part["folder"],
            )
            for part in content["segments"]
            if part["folder"] is not None
        ]
    except (KeyError, TypeError) as error:
        raise InputError(f"{folder / INDEX} does not list its segments ({error}); save them again") from None
    return [replace(read_folder(folder / name), name=title) for title, name in parts]


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(
            f"{path.parent} has no {path.name}; a saved release has release.json, zones.geojson and classes.csv"
        ) from None
    except ValueError as error:
        raise InputError(f"{path} is not valid JSON ({error}); save the release again") from None
    if not isinstance(content, dict):
        raise InputError(f"{path} does not hold a JSON object; save the release again")
    return content


def _read_classes(folder: Path) -> dict[str, list[Any]]:
    if (folder / "classes.csv").exists():
        return _read_csv(folder / "classes.csv")
    if (folder / "classes.parquet").exists():
        return _read_parquet(folder / "classes.parquet")
    raise InputError(f"{folder} has neither classes.csv nor classes.parquet; save the release again")


def _read_csv(path: Path) -> dict[str, list[Any]]:
    with path.open(newline="", encoding="utf-8") as lines:
        rows = csv.reader(lines)
        header = next(rows, [])
        columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in header]
    table: dict[str, list[Any]] = dict(zip(header, columns, strict=True))
    _require_columns(table, path)
    try:
        for name, convert in (("trips", int), ("weight", float), ("persons", int)):
            if name in table:
                table[name] = [convert(text) for text in table[name]]
    except ValueError as error:
        raise InputError(f"{path}: {error}; save the release again") from None
    return table


def _read_parquet(path: Path) -> dict[str, list[Any]]:
    import pyarrow.parquet as pq  # only here: a page made from CSV needs no pyarrow

    table: dict[str, list[Any]] = pq.read_table(path).to_pydict()
    _require_columns(table, path)
    return table


def _require_columns(table: dict[str, list[Any]], path: Path) -> None:
    missing = [name for name in ("origin", "destination", "trips") if name not in table]
    if missing:
        raise InputError(f"{path} lacks the column(s) {', '.join(missing)}; save the release again")
