"""The input of a study: a path, a table, a description of an input, or data that have been read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Literal, TypedDict

from odkanon.errors import InputError
from odkanon.model.od import ODMatrix
from odkanon.read.area import Area
from odkanon.read.input_spec import InputSpec
from odkanon.read.od_table import spec_to_matrix
from odkanon.zoning.hierarchy import Hierarchy


class ReadingOptions(TypedDict, total=False):
    """The options for reading an input, with the names that they have in `odkanon.anonymize`."""

    resolution: int | None
    columns: Mapping[str, str] | None
    where: str | Sequence[str] | None
    within: Area | str | None
    since: str | date | None
    until: str | date | None
    hierarchy: Hierarchy | str | Path | None
    boundaries: str | Path | None
    zoning: Any
    zone_id: str | None
    zone_parents: str | Sequence[str]
    crs: str | None
    read_as: Literal["trips", "od"] | None
    encoding: str | None
    delimiter: str | None
    timezone: str | None
    decimal: str | None
    time_format: str | None


_SPEC_NAMES = {"boundaries": "outlines", "read_as": "kind"}


def check_unread(reading: ReadingOptions, allowed: Sequence[str] = ()) -> None:
    """Raise if reading options are given for data that have been read."""
    given = [name for name, value in reading.items() if value is not None and name not in allowed]
    if given:
        raise InputError(f"{given[0]} is an option for reading, and this input has been read already; leave it out")


def input_spec(source: Any, reading: ReadingOptions) -> InputSpec:
    """Return the description of an input that is to be read."""
    if isinstance(source, InputSpec):
        check_unread(reading)
        return source
    options = {_SPEC_NAMES.get(name, name): value for name, value in reading.items() if value is not None}
    for name in {"since", "until"} & options.keys():
        options[name] = str(options[name])
    return InputSpec(source, **options)  # type: ignore[arg-type]


def input_matrix(source: Any, reading: ReadingOptions) -> ODMatrix:
    """Return the OD matrix of an input, which may be read already."""
    if isinstance(source, ODMatrix):
        check_unread(reading)
        return source
    return spec_to_matrix(input_spec(source, reading))
