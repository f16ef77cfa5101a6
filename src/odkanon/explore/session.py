"""A session of the explorer: makes releases for the page, drops outdated requests, and caches results."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any, ParamSpec, TypeVar

from odkanon.errors import InvalidValueError, RefusedError, TargetExistsError
from odkanon.explore.data import EVERYONE, ExplorerData, ExploreRequest
from odkanon.explore.worker_process import StoppedError, WorkerProcess
from odkanon.methods import anonymize
from odkanon.model.release import Release
from odkanon.publish.manifests import bounds_and_accuracy, full_manifest
from odkanon.publish.report.basemap import build_basemap, build_labels
from odkanon.publish.report.page_model import build_model
from odkanon.quality.utility import utility
from odkanon.release_format.contents import classes_table, leaf_counts, zones_geojson
from odkanon.release_format.folder import SavedRelease
from odkanon.release_format.recipe import with_leaf_counts

CACHED = 24  # the number of releases kept, so that going back, saving and details need no second run
NO_PAGE = ""  # the page of requests to save, which no later request stops
CURVE = (2, 3, 5, 7, 10, 14, 20, 30, 40, 55, 75, 100)
CURVE_METHOD = "odkanon"
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _-]{0,63}")
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)", re.IGNORECASE)

P = ParamSpec("P")
T = TypeVar("T")


class Session:
    """The exploration of one input.

    * ``folder``: the folder for saved releases.
    """

    def __init__(self, data: ExplorerData, folder: Path) -> None:
        self.data, self.folder = data, folder
        self.controls = data.control_ranges()
        self._releases: OrderedDict[ExploreRequest, Release] = OrderedDict()
        self._newest: OrderedDict[str, int] = OrderedDict()
        # Fast releases run one at a time, slow ones in worker processes, so that no slider waits for them.
        self._busy: list[tuple[str, WorkerProcess]] = []
        self._idle: list[WorkerProcess] = []
        self._lock, self._work, self._closed = Lock(), Lock(), False
        self._curves: dict[ExploreRequest, dict[str, Any]] = {}
        self._details: dict[ExploreRequest, dict[str, Any]] = {}

    def begin(self, page: str, number: int) -> None:
        """Record the newest request of a page, and stop the tasks of older ones."""
        with self._lock:
            if number < self._newest.get(page, 0):
                raise StoppedError("replaced by a newer request")
            self._newest[page] = number
            self._newest.move_to_end(page)
            while len(self._newest) > CACHED:
                self._newest.popitem(last=False)
        self.stop(page)

    def check_current(self, page: str, number: int) -> None:
        """Raise if the page has sent a newer request."""
        if self._newest.get(page, number) != number:
            raise StoppedError("replaced by a newer request")

    def stop(self, page: str) -> None:
        """Stop the worker processes of a page."""
        with self._lock:
            workers = [worker for owner, worker in self._busy if owner == page]
        for worker in workers:
            worker.stop()

    def close(self) -> None:
        """Stop all worker processes."""
        with self._lock:
            self._closed = True
            workers = [*(worker for _, worker in self._busy), *self._idle]
        for worker in workers:
            worker.stop()

    def model(self, request: ExploreRequest, page: str, number: int, *, base: bool = False) -> dict[str, Any]:
        """Return the page model for a request, with a basemap if asked for; slow measures are in `details`."""
        self.begin(page, number)
        releases = [self._release(part, page, number) for part in request.parts]
        for release in releases:
            if release.refusal:
                raise RefusedError(f"Nothing can be published: {release.refusal}.")
        model = build_model(self._as_saved(request, releases), fast=True)
        if base:
            places = model["shapes"][: model["extent"]]
            model |= {"base": build_basemap(places), "names": build_labels(places)}
        return model | {"number": number}

    def details(self, request: ExploreRequest, page: str, number: int) -> dict[str, Any]:
        """Return the accuracy of each release, the lower bound of its G, and the model with the flows of its page."""
        self.check_current(page, number)
        for part in request.parts:
            if part not in self._details:
                self._details[part] = self._run_in_worker(
                    page, number, bounds_and_accuracy, self._release(part, page, number)
                )
        saved = self._as_saved(request, [self._release(part, page, number) for part in request.parts])
        model = self._run_in_worker(page, number, build_model, saved)
        return {"number": number, "more": [self._details[part] for part in request.parts], "model": model}

    def _as_saved(self, request: ExploreRequest, releases: Sequence[Release]) -> list[SavedRelease]:
        return [
            SavedRelease(
                request.name_of(part, self.data.name),
                full_manifest(release, with_limit=False),
                with_leaf_counts(zones_geojson(release)["features"], leaf_counts(release)),
                classes_table(release),
            )
            for part, release in zip(request.parts, releases, strict=True)
        ]

    def curve(self, request: ExploreRequest, page: str, number: int) -> dict[str, Any]:
        """Return G for several k, with the method that is fast enough for a slider."""
        several = sorted({*(k for k in CURVE if k <= self.controls.max_k), self.controls.max_k})
        requests = [
            replace(part, k=k, method=CURVE_METHOD, by=())
            for part in (request.parts if request.split else request.parts[:1])
            for k in several
        ]
        points = [self._point(each, page, number) for each in requests]
        return {"number": number, "curve": points, "method": CURVE_METHOD}

    def save(self, request: ExploreRequest, name: Any) -> dict[str, Any]:
        """Write the releases of a request to folders where the explorer was started."""
        targets = [self.target(name, request.name_of(part, "")) for part in request.parts]
        releases = [self._release(part, NO_PAGE, 0) for part in request.parts]
        for release, target in zip(releases, targets, strict=True):
            release.save(target)
        return {"saved": [target.name for target in targets]}

    def target(self, name: Any, part: str = "") -> Path:
        """Return the folder for a plain name; anything like a path is refused."""
        if not isinstance(name, str) or not _PLAIN.fullmatch(name) or name != name.strip() or _RESERVED.fullmatch(name):
            allowed = "1 to 64 letters, digits, spaces, _ and -, starting with a letter or digit"
            raise InvalidValueError.expected("the name", allowed, name)
        target = self.folder / (f"{name}-{part}" if part else name)
        if target.exists() or target.is_symlink():
            raise TargetExistsError.at(target.name)
        return target

    def _release(self, request: ExploreRequest, page: str, number: int) -> Release:
        with self._lock:
            if request in self._releases:
                self._releases.move_to_end(request)
                return self._releases[request]
        od, rule = self.data.matrix(*request.input), self.data.rule(request)
        if request.is_slow:
            release = self._run_in_worker(page, number, anonymize, od, rule, method=request.method, **request.options)
        else:
            with self._work:
                self.check_current(page, number)
                release = anonymize(od, rule, method=request.method, **request.options)
        if request.segment != EVERYONE:  # an audit needs it to find the trips of the release
            by, _, value = request.segment.partition(": ")
            release = replace(release, spec=release.spec.with_parameters(segment={by: value}))
        with self._lock:
            self._releases[request] = release
            while len(self._releases) > CACHED:
                self._releases.popitem(last=False)
        return release

    def _run_in_worker(self, page: str, number: int, task: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """Run a task in a worker process, unless the page sends a newer request."""
        with self._lock:
            if self._closed:
                raise StoppedError("the explorer was stopped")
            worker = self._idle.pop() if self._idle else WorkerProcess()
            self._busy.append((page, worker))
        try:
            self.check_current(page, number)
            return worker.run(task, *args, **options)
        finally:
            with self._lock:
                self._busy.remove((page, worker))
                if worker.usable:
                    self._idle.append(worker)

    def _point(self, request: ExploreRequest, page: str, number: int) -> dict[str, Any]:
        if request not in self._curves:
            od, rule = self.data.matrix(*request.input), self.data.rule(request)
            with self._work:
                self.check_current(page, number)
                release = anonymize(od, rule, method=CURVE_METHOD, **request.options)
            g = None if release.refusal else utility(od, release, measure="trips").g
            self._curves[request] = {"k": request.k, "g": g, "protects": request.targets[0]}
        return self._curves[request]
