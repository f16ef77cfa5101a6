"""Values that go over several lines, and quotes that are left open: no line is lost in a value that is not its own."""

from __future__ import annotations

import logging
import re

import duckdb

from odkanon.errors import InputError
from odkanon.read.tables.table import first_line, open_quote, quote_name, rejected_lines
from odkanon.read.tables.text_files import TextFile

log = logging.getLogger(__name__)

_BREAKS = r"(?:\r?\n)+"


def rows_across_lines(connection: duckdb.DuckDBPyConnection, scan: str, file: TextFile) -> int:
    """Return how many rows a text has whose lines alone do not tell; raise unless each line is part of one.

    Where a quote is left open, what follows is taken for text up to the next quote, and DuckDB may pass over many
    lines without a word. So the file is read once more than usual, and its lines are counted in its values.
    """
    try:
        read, more, across, first = connection.execute(_counted(scan, file.columns)).fetchall()[0]
    except duckdb.Error as error:
        raise InputError(
            f"{file.name} cannot be read ({first_line(error)}); it has a quote or a carriage return where none should "
            "be, so save it again with one kind of line end, and with quotes inside of values written twice"
        ) from None
    open_at = open_quote(connection)
    if open_at is not None:
        raise open_at
    rows = int(read) + rejected_lines(connection, [file.path])
    found = rows + int(more) + sum(len(re.findall(_BREAKS, name)) for name in file.columns)
    if found != file.lines.below:
        raise InputError(
            f"{file.name} has {file.lines.below:,} lines below its header, but {found:,} were read; a quote may be "
            "left open in it, so look for values with a single quote, and write it twice"
        )
    if across:
        log.warning(
            "%s has %s rows with values that go over several lines, row %s the first; if they should not, a quote is "
            "left open there",
            file.name,
            f"{across:,}",
            f"{first:,}",
        )
    return rows


def _counted(scan: str, columns: tuple[str, ...]) -> str:
    """Return the query for all rows, how many lines values have besides their first, in how many rows, and which."""
    broken = [f"replace(coalesce({quote_name(name)}, ''), chr(13) || chr(10), chr(10))" for name in columns]
    # Empty lines are no lines, so that a run of line breaks is one.
    lines = " + ".join(
        f"length(regexp_replace({each}, '\\n+', chr(10), 'g')) - length(replace({each}, chr(10), ''))"
        for each in broken
    )
    return (
        "SELECT count(*), coalesce(sum(more), 0), count(*) FILTER (more > 0), min(n) FILTER (more > 0) "
        f"FROM (SELECT {lines} AS more, row_number() OVER () AS n FROM {scan})"
    )
