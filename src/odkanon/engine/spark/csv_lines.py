"""CSV on Spark: Spark splits files into lines, and DuckDB reads the lines of each task like a file.

The properties of whole files (header, encoding, number of lines) are collected in one pass.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odkanon.engine.spark.backend import Batches, clear_errors, task_connection
from odkanon.errors import InputError, UnreadableFileError
from odkanon.read.tables.open_table import open_text
from odkanon.read.tables.table import SourceTable, rejected_lines
from odkanon.read.tables.text_files import MARKS, ScratchCopy, TextFormat, parse_header
from odkanon.read.tables.text_sniffing import SAMPLE_LINES, detect_encoding

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LINES = (
    "CAST(value AS BINARY) AS line",
    "xxhash64(_metadata.file_path, _metadata.file_block_start) AS block",
    "_metadata.file_block_start = 0 AS opening",
)
_SEEN = "what STRING, line BINARY, number BIGINT"
_COUNTED = "rows BIGINT, unreadable BIGINT"
_EXCERPT = 60


@dataclass(frozen=True)
class Lines:
    """How tasks read the lines of text files."""

    header: bytes
    """The first line of every file."""
    text: TextFormat
    """Their format, in full."""
    name: str
    """Their name in messages."""
    count: int
    """Number of lines below the headers."""

    def __call__(self, connection: duckdb.DuckDBPyConnection, batches: Batches) -> SourceTable:
        """Register the lines of a task as ``source``, split into columns."""
        copy = ScratchCopy()
        with copy.path.open("wb") as file:
            file.write(self.header + b"\n")
            for lines, _ in _apart(batches):
                file.write(_joined(lines))
        table = open_text(connection, copy.path, self.text, self.name, copy)
        connection.execute(f"CREATE TEMP VIEW source AS SELECT * FROM {table.scan}")
        return table


def lines_of(session: SparkSession, paths: Sequence[str]) -> DataFrame:
    """Return the raw lines of text files, with the file block of each."""
    return session.read.option("lineSep", "\n").text(list(paths)).selectExpr(*_LINES)


def scan_lines(frame: DataFrame, name: str, given: TextFormat) -> Lines:
    """Detect header, encoding and number of lines of text files in one pass."""
    if given.encoding is not None and "\n".encode(given.encoding).removeprefix(codecs.BOM_UTF8) != b"\n":
        raise _for_duckdb(name, f"is in {given.encoding}, which Spark cannot split into lines")
    seen: dict[str, list[Any]] = {}
    with clear_errors(f"{name} cannot be read by Spark"):
        for what, line, number in frame.mapInArrow(_scan, _SEEN).collect():
            seen.setdefault(what, []).append(number if line is None else bytes(line))
    headers = seen.get("header", [])
    if not headers:
        raise UnreadableFileError.empty(name)
    header = _one_header(headers, name)
    if "quote" in seen:
        excerpt = seen["quote"][0][:_EXCERPT].decode(given.encoding or "utf-8", errors="replace")
        raise _for_duckdb(name, f"has a quote that does not end on its line ({excerpt}), and Spark reads line by line")
    if "return" in seen:
        raise _for_duckdb(name, "has a carriage return in the middle of a line")
    encoding = given.encoding or "utf-8"
    if given.encoding is None and "broken" in seen:
        encoding = detect_encoding(seen["strange"][:SAMPLE_LINES], name)
    delimiter, _ = parse_header(name, header.decode(encoding, errors="replace").encode(), given)
    return Lines(header, TextFormat(encoding, delimiter), name, sum(seen["lines"]))


def first_lines(frame: DataFrame, lines: Lines, count: int) -> SourceTable:
    """Return the table of the first lines, from which columns are detected."""
    with clear_errors(f"{lines.name} cannot be read by Spark"):
        rows = frame.take(count + 1)
    columns = zip(*((bytes(line), block, opening) for line, block, opening in rows), strict=True)
    batch = pa.record_batch([pa.array(column) for column in columns], names=["line", "block", "opening"])
    connection = task_connection()
    table = lines(connection, iter([batch]))
    return SourceTable(connection, "source", table.columns, lines.name, keeper=table)


def count_unreadable(frame: DataFrame, lines: Lines) -> int:
    """Return the number of lines that cannot be split into columns."""

    def count(batches: Batches) -> Batches:
        connection = task_connection()
        keeper = lines(connection, batches)
        rows = connection.sql("SELECT count(*) FROM (SELECT COLUMNS(*) FROM source)").fetchall()[0][0]
        yield pa.record_batch({"rows": [rows], "unreadable": [rejected_lines(connection)]})
        del keeper

    with clear_errors():
        return sum(row["unreadable"] for row in frame.mapInArrow(count, _COUNTED).collect())


def _one_header(headers: Sequence[bytes], name: str) -> bytes:
    mark = next((mark for mark in MARKS if headers[0].startswith(mark)), b"")
    if b"\0" in headers[0]:
        what = f"is in {MARKS[mark]}, which Spark cannot split into lines" if mark else "is not text"
        raise _for_duckdb(name, what)
    plain = {header.removeprefix(codecs.BOM_UTF8) for header in headers}
    if len(plain) > 1:
        raise InputError(f"the files of {name} have different headers; put only files with the same columns together")
    return plain.pop()


def _for_duckdb(name: str, what: str) -> InputError:
    return InputError(f"{name} {what}; use DuckDB, or convert it to UTF-8 or Parquet", option="engine duckdb")


def _apart(batches: Batches) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Yield lines and, separately, the headers among them."""
    last: int | None = None
    for batch in batches:
        block = np.asarray(batch.column("block"))
        header = batch.column("opening").to_numpy(zero_copy_only=False).astype(bool)
        header[1:] &= block[1:] != block[:-1]
        header[:1] &= block[:1] != last
        # Spark splits at \n; the \r that Windows writes before it is no part of the line either.
        lines = pc.replace_substring_regex(batch.column("line"), b"\r$", b"")
        yield lines.filter(pa.array(~header)), lines.filter(pa.array(header))
        last = int(block[-1]) if len(block) else last


def _joined(lines: pa.Array) -> bytes:
    """Return lines as the text of a file."""
    if not len(lines):
        return b""
    whole = pc.binary_join(pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines), b"\n")
    return bytes(whole[0].as_py()) + b"\n"


def _scan(batches: Batches) -> Batches:
    """Yield the findings on the lines of a task, one row each."""
    count = 0
    findings: list[tuple[str, bytes | None, int]] = []
    strange: list[bytes] = []
    known: set[str] = set()
    for lines, headers in _apart(batches):
        findings += [("header", header, 1) for header in headers.to_pylist()]
        count += len(lines) - (pc.sum(pc.equal(pc.binary_length(lines), 0)).as_py() or 0)
        odd = lines.filter(pc.equal(pc.bit_wise_and(pc.count_substring(lines, b'"'), 1), 1))
        if len(odd) and "quote" not in known:
            known.add("quote")
            findings.append(("quote", odd[0].as_py(), len(odd)))
        if "return" not in known and pc.any(pc.match_substring(lines, b"\r")).as_py():
            known.add("return")
            findings.append(("return", None, 1))
        whole = b"\n".join([*headers.to_pylist(), _joined(lines)])
        if whole.isascii():
            continue
        if not _is_utf8(whole) and "broken" not in known:
            known.add("broken")
            findings.append(("broken", None, 1))
        if len(strange) < SAMPLE_LINES:
            strange += [line for line in whole.split(b"\n") if not line.isascii()][:SAMPLE_LINES]
    findings += [("strange", line, 1) for line in strange[:SAMPLE_LINES]] + [("lines", None, count)]
    what, line, number = zip(*findings, strict=True)
    yield pa.record_batch(
        [pa.array(what), pa.array(line, pa.binary()), pa.array(number, pa.int64())], names=["what", "line", "number"]
    )


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
