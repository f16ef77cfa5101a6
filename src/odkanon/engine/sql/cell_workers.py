"""H3 cells of a stream of batches, by several processes: the H3 library keeps other threads waiting.

The helpers are plain child processes with a pipe each, not ``multiprocessing``, which would run the caller's main
module again. They end when their pipe does, so none survives a killed run.
"""

from __future__ import annotations

import os
import struct
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odkanon.core.subprocesses import start_python
from odkanon.read.crs import ends_in_degrees
from odkanon.read.tables.column_names import COORDINATES
from odkanon.zoning.cells import Cells, Floats, latlng_to_cell

_HEADER = struct.Struct("<qi")


def placed(batch: pa.RecordBatch, cells: tuple[Cells, Cells]) -> pa.RecordBatch:
    """Return a batch with cells, as signed integers, in place of its coordinates."""
    names = [name for name in batch.schema.names if name not in COORDINATES]
    ends = [pa.array(end.view(np.int64)) for end in cells]
    return pa.record_batch([*ends, *(batch.column(name) for name in names)], names=["origin", "destination", *names])


def coordinates(batch: pa.RecordBatch) -> list[Floats]:
    """Return the coordinates of a batch; zeros for rows that were rejected, whatever they held."""
    good = pc.equal(batch.column("reason"), 0)
    return [np.asarray(pc.if_else(good, batch.column(name), 0.0)) for name in COORDINATES]


@dataclass(frozen=True)
class ToDegrees:
    """Turns the coordinates of batches into degrees, and away what is nowhere on the globe.

    Attributes
    ----------
    crs : str
        What the coordinates are, such as ``EPSG:32719``.
    reason : int
        The number of the reason for which rows are turned away.
    """

    crs: str
    reason: int

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch with degrees; a row that was turned away before keeps its reason."""
        degrees, good = ends_in_degrees(coordinates(batch), self.crs)
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        lost = pc.and_(pc.equal(columns["reason"], 0), pa.array(~good))
        columns["reason"] = pc.if_else(lost, pa.scalar(self.reason, columns["reason"].type), columns["reason"])
        columns |= {name: pa.array(values) for name, values in zip(COORDINATES, degrees, strict=True)}
        return pa.record_batch(columns)


def place_batch(batch: pa.RecordBatch, resolution: int) -> pa.RecordBatch:
    """Put the trips of one batch on cells."""
    start_lat, start_lon, end_lat, end_lon = coordinates(batch)
    ends = latlng_to_cell(start_lat, start_lon, resolution), latlng_to_cell(end_lat, end_lon, resolution)
    return placed(batch, ends)


def place_batches(batches: Iterable[pa.RecordBatch], resolution: int, helpers: int) -> Iterator[pa.RecordBatch]:
    """Put the trips of many batches on cells, in order, with some helper processes."""
    if helpers < 2:
        yield from (place_batch(batch, resolution) for batch in batches)
        return
    with _helpers(helpers) as pool:
        waiting: deque[tuple[pa.RecordBatch, _Helper]] = deque()
        for number, batch in enumerate(batches):
            helper = pool[number % helpers]
            if len(waiting) == helpers:
                done, by = waiting.popleft()
                yield placed(done, by.answer())
            helper.ask(coordinates(batch), resolution)
            waiting.append((batch, helper))
        for done, by in waiting:
            yield placed(done, by.answer())


class _Helper:
    """A child process that answers with the cells of the points it is asked about."""

    def __init__(self) -> None:
        self.process = start_python("from odkanon.engine.sql.cell_workers import serve; serve()")
        self._cells: tuple[Cells, Cells] | None = None
        self._thread: threading.Thread | None = None

    def ask(self, lat_lon: list[Floats], resolution: int) -> None:
        # Both ends of a pipe block when it is full, so each question has a thread to see it through.
        self._thread = threading.Thread(target=self._converse, args=(lat_lon, resolution), daemon=True)
        self._thread.start()

    def _converse(self, lat_lon: list[Floats], resolution: int) -> None:
        self._cells = None
        count = len(lat_lon[0])
        try:
            assert self.process.stdin is not None
            assert self.process.stdout is not None
            self.process.stdin.write(_HEADER.pack(count, resolution))
            for values in lat_lon:
                self.process.stdin.write(np.ascontiguousarray(values).data)
            self.process.stdin.flush()
            first, second = (_receive(self.process.stdout, np.empty(count, dtype=np.uint64)) for _ in range(2))
            self._cells = (first, second)
        except (OSError, EOFError):
            return

    def answer(self) -> tuple[Cells, Cells]:
        assert self._thread is not None
        self._thread.join()
        if self._cells is None:
            raise MemoryError("a helper process ended early")
        return self._cells


@contextmanager
def _helpers(count: int) -> Iterator[list[_Helper]]:
    pool = [_Helper() for _ in range(count)]
    try:
        yield pool
    finally:
        for helper in pool:
            assert helper.process.stdin is not None
            helper.process.kill()
            helper.process.stdin.close()
            if helper.process.stdout is not None:
                helper.process.stdout.close()
            helper.process.wait()


def _receive(stream: Any, values: Any) -> Any:
    """Fill an array from a stream."""
    view, read = values.view(np.uint8), 0
    while read < len(view):
        got = stream.readinto(view[read:].data)
        if not got:
            raise EOFError
        read += got
    return values


def serve() -> None:
    """Answer questions from standard input until it ends, be it in the middle of one because the run was killed."""
    source, target = sys.stdin.buffer, sys.stdout.buffer
    try:
        while len(header := source.read(_HEADER.size)) == _HEADER.size:
            count, resolution = _HEADER.unpack(header)
            lat_lon = [_receive(source, np.empty(count)) for _ in range(4)]
            for end in (lat_lon[:2], lat_lon[2:]):
                target.write(latlng_to_cell(end[0], end[1], resolution).data)
            target.flush()
    except (EOFError, BrokenPipeError):
        os._exit(1)  # without another try to write what nobody reads


def helper_count(rows: int) -> int:
    """Return how many helpers are worth starting for so many trips."""
    return 0 if rows < 2_000_000 else min(os.cpu_count() or 1, 16)
