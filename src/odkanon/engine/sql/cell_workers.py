"""H3 cells for a stream of batches in several processes, since the H3 library holds the interpreter lock.

The workers are plain child processes with a pipe each, not ``multiprocessing``, which would run the caller's main
module again. They end when their pipe does, so none survives a killed run.
"""

from __future__ import annotations

import os
import struct
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odkanon.core.arrays import Ints
from odkanon.core.system import start_python
from odkanon.model.od import AXES, LOCATED
from odkanon.read.coordinates import ends_in_degrees
from odkanon.read.tables.column_names import COORDINATES
from odkanon.zoning.cells import Floats
from odkanon.zoning.point_location import NOWHERE, CellFinder, PlaceFinder

_HEADER = struct.Struct("<qi")


LOCATED_ENDS = ("located_origin", "located_destination")


def with_places(batch: pa.RecordBatch, places: Sequence[Ints]) -> pa.RecordBatch:
    """Return a batch with places, as signed integers, instead of its coordinates."""
    names = [name for name in batch.schema.names if name not in COORDINATES]
    ends = dict(zip((*AXES, *LOCATED_ENDS), map(pa.array, places), strict=False))
    return pa.record_batch([*ends.values(), *(batch.column(name) for name in names)], names=[*ends, *names])


def cells_of_ends(ends: Sequence[Floats], resolution: int) -> list[Ints]:
    """Return the cells of both ends; with coarse ones, also those at which a release is compared with its trips."""
    levels = [resolution] if resolution >= LOCATED else [resolution, LOCATED]
    return [CellFinder(level).find(lat, lon) for level in levels for lat, lon in (ends[:2], ends[2:])]


def coordinates(batch: pa.RecordBatch) -> list[Floats]:
    """Return the coordinates of a batch, with zeros for rejected rows."""
    good = pc.equal(batch.column("reason"), 0)
    return [np.asarray(pc.if_else(good, batch.column(name), 0.0)) for name in COORDINATES]


@dataclass(frozen=True)
class DegreeConverter:
    """Converts the coordinates of batches to degrees, and rejects points that are nowhere on the globe."""

    crs: str
    """The coordinate reference system, such as ``EPSG:32719``."""
    reason: int
    """The number of the reason for which rows are rejected."""

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch in degrees; a row that was rejected before keeps its reason."""
        degrees, good = ends_in_degrees(coordinates(batch), self.crs)
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        lost = pc.and_(pc.equal(columns["reason"], 0), pa.array(~good))
        columns["reason"] = pc.if_else(lost, pa.scalar(self.reason, columns["reason"].type), columns["reason"])
        columns |= {name: pa.array(values) for name, values in zip(COORDINATES, degrees, strict=True)}
        return pa.record_batch(columns)


@dataclass(frozen=True)
class Placement:
    """The places of the ends of trips."""

    finder: PlaceFinder
    """Finds the cells or polygons."""
    degrees: DegreeConverter | None = None
    """Converts coordinates that are not degrees."""
    outside: int = 0
    """With polygons, the number of the reason for which trips outside of them are rejected."""

    @property
    def resolution(self) -> int:
        """Resolution of the cells to find; with polygons, of those at which a release is compared with its trips."""
        return self.finder.resolution if isinstance(self.finder, CellFinder) else LOCATED

    @property
    def is_located(self) -> bool:
        """Whether trips have `LOCATED_ENDS` as well."""
        return not isinstance(self.finder, CellFinder) or self.resolution < LOCATED

    def places(self, ends: Sequence[Floats], cells: Sequence[Ints] | None = None) -> list[Ints]:
        """Return the places of both ends, and their `LOCATED_ENDS`, given the cells if they are known."""
        cells = cells_of_ends(ends, self.resolution) if cells is None else cells
        if isinstance(self.finder, CellFinder):
            return list(cells)
        return [self.finder.find(ends[0], ends[1]), self.finder.find(ends[2], ends[3]), *cells]

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch with the places of its trips instead of coordinates."""
        return place_batch(batch if self.degrees is None else self.degrees(batch), self)


def place_batch(batch: pa.RecordBatch, placement: Placement, cells: Sequence[Ints] | None = None) -> pa.RecordBatch:
    """Return a batch in degrees with the places of its trips; a row that was rejected before keeps its reason."""
    places = placement.places(coordinates(batch), cells)
    placed = with_places(batch, places)
    lost = (places[0] == NOWHERE) | (places[1] == NOWHERE)
    if not lost.any():
        return placed
    at = placed.schema.get_field_index("reason")
    reason = np.asarray(placed.column(at))
    reason = np.where(lost & (reason == 0), placement.outside, reason)
    return placed.set_column(at, "reason", pa.array(reason, placed.schema.field(at).type))


def place_batches(batches: Iterable[pa.RecordBatch], placement: Placement, workers: int) -> Iterator[pa.RecordBatch]:
    """Yield batches in degrees with the places of their trips, in order; cells are computed by worker processes."""
    if workers < 2:
        yield from (place_batch(batch, placement) for batch in batches)
        return
    with _workers(workers) as pool:
        waiting: deque[tuple[pa.RecordBatch, _Worker]] = deque()
        for number, batch in enumerate(batches):
            worker = pool[number % workers]
            if len(waiting) == workers:
                done, by = waiting.popleft()
                yield place_batch(done, placement, by.answer())
            worker.ask(coordinates(batch), placement.resolution)
            waiting.append((batch, worker))
        for done, by in waiting:
            yield place_batch(done, placement, by.answer())


class _Worker:
    """A child process that returns the cells of points."""

    def __init__(self) -> None:
        self.process = start_python("from odkanon.engine.sql.cell_workers import serve; serve()")
        self._cells: list[Ints] | None = None
        self._thread: threading.Thread | None = None

    def ask(self, lat_lon: list[Floats], resolution: int) -> None:
        # Both ends of a pipe block when it is full, so each request has its own thread.
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
            columns = 2 if resolution >= LOCATED else 4
            self._cells = [_receive(self.process.stdout, np.empty(count, dtype=np.int64)) for _ in range(columns)]
        except (OSError, EOFError):
            return

    def answer(self) -> list[Ints]:
        assert self._thread is not None
        self._thread.join()
        if self._cells is None:
            raise MemoryError("a worker process ended early")
        return self._cells


@contextmanager
def _workers(count: int) -> Iterator[list[_Worker]]:
    pool = [_Worker() for _ in range(count)]
    try:
        yield pool
    finally:
        for worker in pool:
            assert worker.process.stdin is not None
            worker.process.kill()
            worker.process.stdin.close()
            if worker.process.stdout is not None:
                worker.process.stdout.close()
            worker.process.wait()


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
    """Answer requests from standard input until it ends, possibly within a request if the run was killed."""
    source, target = sys.stdin.buffer, sys.stdout.buffer
    try:
        while len(header := source.read(_HEADER.size)) == _HEADER.size:
            count, resolution = _HEADER.unpack(header)
            lat_lon = [_receive(source, np.empty(count)) for _ in range(4)]
            for cells in cells_of_ends(lat_lon, resolution):
                target.write(cells.data)
            target.flush()
    except (EOFError, BrokenPipeError):
        os._exit(1)  # without flushing buffers that nobody reads


def worker_count(rows: int) -> int:
    """Return the number of workers worth starting for a number of trips."""
    return 0 if rows < 2_000_000 else min(os.cpu_count() or 1, 16)
