"""The files of a release folder: what they are called, and what the rows and zones in them say.

Everything here follows from the published classes and from the zones alone: the folder may be read by anybody.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from odkanon.core.arrays import Codes, group_sum
from odkanon.core.atomic_write import write_text
from odkanon.core.weights import from_units
from odkanon.model.measures import ADDITIVE, MEASURES
from odkanon.model.od import AXES, Axis
from odkanon.model.release import Release
from odkanon.zoning.zones import Zones

MANIFEST, PARQUET, CSV, ZONES, PACKAGE, PAGE = (
    "release.json",
    "classes.parquet",
    "classes.csv",
    "zones.geojson",
    "datapackage.json",
    "report.html",
)
FILES = (CSV, PARQUET, ZONES, MANIFEST, PACKAGE, PAGE)
_SIGNS = r"[\p{Z}\p{Cf}\x00-\x08\x0a-\x1f]*[=+\-@＝＋－＠﹢﹣﹦﹫]"
"""What begins a formula: its signs, in any width, also behind spaces and what is not seen."""
_AHEAD = ((rf"([;\t])('|{_SIGNS})", r"\1'\2"), (rf"^(['\t\r\n]|{_SIGNS})", r"'\1"))
"""Where an apostrophe goes; spreadsheets of some languages part cells at semicolons, or at tabs."""


def classes_table(release: Release) -> pa.Table:
    """Return the published classes as a table: ``origin, destination`` and every measure that is known."""
    classes = release.classes
    columns: dict[str, Any] = {
        "origin": pa.array(release.origins.ids[classes.origin].tolist(), pa.string()),
        "destination": pa.array(release.destinations.ids[classes.destination].tolist(), pa.string()),
    }
    columns |= {name: pa.array(values.tolist(), pa.string()) for name, values in classes.attributes.items()}
    for measure in MEASURES:
        masses = getattr(classes, measure)
        if masses is not None:
            columns[measure] = from_units(masses, classes.scale) if measure == "weight" else masses
    return pa.table(columns)


def guard_text(table: pa.Table) -> pa.Table:
    """Return a table for CSV in which no text is taken for a formula by a spreadsheet.

    Text that begins with ``= + - @``, of any width and also behind spaces, with a tab or a line break gets an
    apostrophe in front, and so does text that begins with an apostrophe. What follows a semicolon or a
    tab counts as text of its own. `unguard_text` takes one off, and everything is as it was.

    Examples
    --------
    >>> import pyarrow as pa
    >>> codes = pa.table({"origin": ["=1+1", "'a", "b"]})
    >>> guard_text(codes)["origin"].to_pylist()
    ["'=1+1", "''a", 'b']
    >>> unguard_text(guard_text(codes)).equals(codes)
    True
    """
    return _change_text(table, _AHEAD)


def unguard_text(table: pa.Table) -> pa.Table:
    """Undo `guard_text`."""
    return _change_text(table, (("^'", ""), (r"([;\t])'", r"\1")))


def read_rows(path: Path, types: Mapping[str, pa.DataType]) -> pa.Table:
    """Read a CSV file of ours, with text as it was before it was made safe for spreadsheets."""
    lines = pyarrow.csv.ParseOptions(newlines_in_values=True)
    typed = pyarrow.csv.ConvertOptions(column_types=types, strings_can_be_null=False)
    return unguard_text(pyarrow.csv.read_csv(path, parse_options=lines, convert_options=typed))


def _change_text(table: pa.Table, changes: Sequence[tuple[str, str]]) -> pa.Table:
    for number, name in enumerate(table.column_names):
        if pa.types.is_string(table.schema.field(name).type):
            text = table.column(name)
            for pattern, instead in changes:
                text = pc.replace_substring_regex(text, pattern, instead)
            table = table.set_column(number, name, text)
    return table


def zones_geojson(release: Release) -> dict[str, Any]:
    """Return every zone of both axes as GeoJSON, with what is published of it."""
    features = [feature for axis in AXES for feature in _features(release, *axis_of(release, axis), axis)]
    return {"type": "FeatureCollection", "features": features}


def axis_of(release: Release, axis: Axis) -> tuple[Zones, Codes]:
    """Return the zones of an axis, and for each class the number of its zone."""
    if axis == "origin":
        return release.origins, release.classes.origin
    return release.destinations, release.classes.destination


def _features(release: Release, zones: Zones, zone_of_class: Codes, axis: Axis) -> list[dict[str, Any]]:
    masses: dict[str, Any] = {}
    for measure in ADDITIVE:
        own = getattr(release.classes, measure)
        if own is not None:
            summed = group_sum(zone_of_class, len(zones), own)
            masses[measure] = from_units(summed, release.classes.scale) if measure == "weight" else summed
    return [
        {
            "type": "Feature",
            "properties": {
                "axis": axis,
                **zones.describe(zone),
                **{name: values[zone].item() for name, values in masses.items()},
            },
            "geometry": zones.geometry(zone),
        }
        for zone in range(len(zones))
    ]


def write_json(path: Path, content: Mapping[str, Any], indent: int | None) -> None:
    """Write JSON as UTF-8, ending in a newline."""
    separators = (",", ":") if indent is None else None
    text = json.dumps(content, indent=indent, separators=separators, ensure_ascii=False, allow_nan=False)
    write_text(path, text + "\n")


def sha256(path: Path) -> str:
    """Return the digest of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
