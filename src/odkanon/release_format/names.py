"""The files of a release folder: their names, and how JSON and CSV are written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from odkanon.core.atomic_write import write_text

MANIFEST, PARQUET, CSV, ZONES, PACKAGE, PAGE = (
    "release.json",
    "classes.parquet",
    "classes.csv",
    "zones.geojson",
    "datapackage.json",
    "report.html",
)
MATRIX, MATRIX_PARQUET, MATRIX_ZONES = "matrix.csv", "matrix.parquet", "matrix_zones.geojson"
"""Estimates between places, and the places where they are polygons."""
FILES = (CSV, PARQUET, ZONES, MATRIX, MATRIX_PARQUET, MATRIX_ZONES, MANIFEST, PACKAGE, PAGE)
INDEX = "index.json"
"""The manifest of a folder of linked releases, which holds a folder for each."""
RECIPE_SUFFIX = ".recipe.json"  # the end of the name of the recipe beside a folder
WHOLE = "whole"  # the folder of the unsegmented release in a folder of linked releases

_FORMULA = r"[\p{Z}\p{Cf}\x00-\x08\x0a-\x1f]*[=+\-@＝＋－＠﹢﹣﹦﹫]"
"""The signs that begin a formula, in any width, also after spaces and invisible characters."""
_GUARD = ((rf"([;\t])('|{_FORMULA})", r"\1'\2"), (rf"^(['\t\r\n]|{_FORMULA})", r"'\1"))
"""Where an apostrophe is inserted; spreadsheets of some languages also split cells at semicolons or tabs."""
_UNGUARD = (("^'", ""), (r"([;\t])'", r"\1"))


def guard_text(table: pa.Table) -> pa.Table:
    """Return a table for CSV whose text no spreadsheet evaluates as a formula.

    An apostrophe is put in front of text that begins with ``= + - @`` (of any width, also after spaces), with a tab,
    a line break or an apostrophe. What follows a semicolon or a tab is treated as text in its own right.
    `unguard_text` reverses this exactly.

    Examples
    --------
    >>> import pyarrow as pa
    >>> codes = pa.table({"origin": ["=1+1", "'a", "b"]})
    >>> guard_text(codes)["origin"].to_pylist()
    ["'=1+1", "''a", 'b']
    >>> unguard_text(guard_text(codes)).equals(codes)
    True
    """
    return _replace_text(table, _GUARD)


def unguard_text(table: pa.Table) -> pa.Table:
    """Reverse `guard_text`."""
    return _replace_text(table, _UNGUARD)


def read_guarded_csv(path: Path, types: Mapping[str, pa.DataType]) -> pa.Table:
    """Read a CSV file that was written with `guard_text`."""
    lines = pyarrow.csv.ParseOptions(newlines_in_values=True)
    typed = pyarrow.csv.ConvertOptions(column_types=types, strings_can_be_null=False)
    return unguard_text(pyarrow.csv.read_csv(path, parse_options=lines, convert_options=typed))


def _replace_text(table: pa.Table, replacements: Sequence[tuple[str, str]]) -> pa.Table:
    for number, name in enumerate(table.column_names):
        if pa.types.is_string(table.schema.field(name).type):
            text = table.column(name)
            for pattern, replacement in replacements:
                text = pc.replace_substring_regex(text, pattern, replacement)
            table = table.set_column(number, name, text)
    return table


def write_json(path: Path, content: Mapping[str, Any], indent: int | None) -> None:
    """Write JSON as UTF-8, ending in a newline."""
    separators = (",", ":") if indent is None else None
    text = json.dumps(content, indent=indent, separators=separators, ensure_ascii=False, allow_nan=False)
    write_text(path, text + "\n")


def sha256(path: Path) -> str:
    """Return the SHA-256 digest of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def public_digests(folder: Path) -> dict[str, str]:
    """Return the digests of the files that a manifest lists."""
    names = (CSV, PARQUET, ZONES, MATRIX, MATRIX_PARQUET, MATRIX_ZONES)
    return {name: sha256(folder / name) for name in names if (folder / name).exists()}


def late_mark(path: Path) -> Path:
    """Return the mark of a file of trips that a correction could not add: ``FILE.late.json`` beside it."""
    return path.with_name(f"{path.name}.late.json")
