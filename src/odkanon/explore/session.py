"""Making releases for the page: newest question first, nothing twice, nothing below the rule."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any, ParamSpec, TypeVar

from odkanon.errors import InputError, RefusedError
from odkanon.explore.data import EVERYONE, Data
from odkanon.explore.request import Request
from odkanon.explore.worker import Job, StoppedError
from odkanon.methods import anonymize
from odkanon.model.measures import MEASURES
from odkanon.model.release import Release
from odkanon.publish.report.basemap import build_base
from odkanon.publish.report.page_model import build_model
from odkanon.publish.report.place_labels import build_names
from odkanon.quality.utility import utility
from odkanon.release_format.folder import SavedRelease
from odkanon.release_format.manifest import how_good, manifest
from odkanon.release_format.names import classes_table, zones_geojson
from odkanon.release_format.recipe import with_leaves, zone_account

KEPT = 24
"""Releases kept at hand, so that going back, saving and asking for more need no second run."""
NO_PAGE = ""
"""Whoever saves waits for it: nothing that a page asks later stops it."""
CURVE = (2, 3, 5, 7, 10, 14, 20, 30, 40, 55, 75, 100)
CURVE_METHOD = "odkanon"
NAMES = {name: measure.target for name, measure in MEASURES.items()}
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _-]{0,63}")
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)", re.IGNORECASE)

P = ParamSpec("P")
T = TypeVar("T")


class Session:
    """One input, explored.

    Parameters
    ----------
    data : Data
        The input.
    folder : Path
        Where saved releases go.
    """

    def __init__(self, data: Data, folder: Path) -> None:
        self.data, self.folder = data, folder
        self.offer = data.offer()
        self._releases: OrderedDict[Request, Release] = OrderedDict()
        self._newest: OrderedDict[str, int] = OrderedDict()
        # Releases one at a time; what takes longer in processes beside them, so that a slider never waits for it.
        self._jobs: list[tuple[str, Job]] = []
        self._idle: list[Job] = []
        self._lock, self._work, self._closed = Lock(), Lock(), False
        self._curves: dict[Request, dict[str, Any]] = {}
        self._good: dict[Request, dict[str, Any]] = {}

    # -- who asks what, and what is still wanted

    def begin(self, page: str, number: int) -> None:
        """Take note of the newest question of a page, and stop what it no longer waits for."""
        with self._lock:
            if number < self._newest.get(page, 0):
                raise StoppedError("a newer question was asked")
            self._newest[page] = number
            self._newest.move_to_end(page)
            while len(self._newest) > KEPT:
                self._newest.popitem(last=False)
        self.stop(page)

    def check_wanted(self, page: str, number: int) -> None:
        """Raise if the page has asked something else since."""
        if self._newest.get(page, number) != number:
            raise StoppedError("a newer question was asked")

    def stop(self, page: str) -> None:
        """Stop what runs beside for a page, if something does."""
        with self._lock:
            jobs = [job for whose, job in self._jobs if whose == page]
        for job in jobs:
            job.stop()

    def close(self) -> None:
        """Stop everything."""
        with self._lock:
            self._closed = True
            jobs = [*(job for _, job in self._jobs), *self._idle]
        for job in jobs:
            job.stop()

    # -- answers

    def model(self, request: Request, page: str, number: int, *, base: bool = False) -> dict[str, Any]:
        """Return what the page draws for a request, with coastlines if it has none yet; the rest is in `more`."""
        self.begin(page, number)
        releases = [self._release(part, page, number) for part in request.parts]
        for release in releases:
            if release.refusal:
                raise RefusedError(f"Nothing can be published: {release.refusal}.")
        saved = [
            _as_saved(release, NAMES[part.targets[0]] if request.split else self.data.name)
            for part, release in zip(request.parts, releases, strict=True)
        ]
        model = build_model(saved)
        if base:
            model["base"] = build_base(model["shapes"])
            model["names"] = build_names(model["shapes"])
        return model | {"number": number}

    def more(self, request: Request, page: str, number: int) -> dict[str, Any]:
        """Return how useful each shown release is, and how good it could be at best."""
        self.check_wanted(page, number)
        for part in request.parts:
            if part not in self._good:
                self._good[part] = self._beside(page, number, how_good, self._release(part, page, number))
        return {"number": number, "more": [self._good[part] for part in request.parts]}

    def curve(self, request: Request, page: str, number: int) -> dict[str, Any]:
        """Return G for several k, with the method that follows a slider; everything else as asked."""
        several = sorted({*(k for k in CURVE if k <= self.offer.most_k), self.offer.most_k})
        asked = [replace(part, k=k, method=CURVE_METHOD) for part in request.parts for k in several]
        points = [self._point(each, page, number) for each in asked]
        return {"number": number, "curve": points, "method": CURVE_METHOD}

    def save(self, request: Request, name: Any) -> dict[str, Any]:
        """Write what is shown as a folder beside where the explorer was started."""
        targets = [self.target(name, part if request.split else None) for part in request.parts]
        releases = [self._release(part, NO_PAGE, 0) for part in request.parts]
        by, _, value = request.segment.partition(": ")
        # Without it, an audit could not tell which trips the release is about.
        segment = {"segment": {by: value}} if value else {}
        for release, target in zip(releases, targets, strict=True):
            replace(release, spec=release.spec.with_parameters(**segment)).save(target)
        return {"saved": [target.name for target in targets]}

    def target(self, name: Any, part: Request | None = None) -> Path:
        """Return the folder that a plain name stands for; anything like a path is refused."""
        if not isinstance(name, str) or not _PLAIN.fullmatch(name) or name != name.strip() or _RESERVED.fullmatch(name):
            raise InputError(
                "a name has letters, digits, spaces, _ and - only, at most 64, and starts with a letter or digit"
            )
        target = self.folder / (name if part is None else f"{name}-{NAMES[part.targets[0]]}")
        if target.exists() or target.is_symlink():
            raise InputError(f"{target.name} exists already; choose another name")
        return target

    # -- releases

    def _release(self, request: Request, page: str, number: int) -> Release:
        found = self._kept(request)
        if found is not None:
            return found
        od, rule = self.data.matrix(request.resolution, request.segment), self.data.rule(request)
        if request.is_slow:
            release = self._beside(page, number, anonymize, od, rule, method=request.method, **request.options)
        else:
            with self._work:
                self.check_wanted(page, number)
                release = anonymize(od, rule, method=request.method, **request.options)
        if request.segment != EVERYONE:
            by, _, value = request.segment.partition(": ")
            release = replace(release, spec=release.spec.with_parameters(segment={by: value}))
        return self._keep(request, release)

    def _beside(self, page: str, number: int, task: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """Do something in a process of its own, unless the page asks for something else."""
        with self._lock:
            if self._closed:
                raise StoppedError("the explorer was stopped")
            job = self._idle.pop() if self._idle else Job()
            self._jobs.append((page, job))
        try:
            self.check_wanted(page, number)
            return job.run(task, *args, **options)
        finally:
            with self._lock:
                self._jobs.remove((page, job))
                if job.usable:
                    self._idle.append(job)

    def _kept(self, request: Request) -> Release | None:
        with self._lock:
            if request in self._releases:
                self._releases.move_to_end(request)
            return self._releases.get(request)

    def _keep(self, request: Request, release: Release) -> Release:
        with self._lock:
            self._releases[request] = release
            while len(self._releases) > KEPT:
                self._releases.popitem(last=False)
        return release

    def _point(self, request: Request, page: str, number: int) -> dict[str, Any]:
        if request not in self._curves:
            od, rule = self.data.matrix(request.resolution, request.segment), self.data.rule(request)
            with self._work:
                self.check_wanted(page, number)
                release = anonymize(od, rule, method=CURVE_METHOD, **request.options)
            g = None if release.refusal else utility(od, release, measure="trips").g
            self._curves[request] = {"k": request.k, "g": g, "protects": request.targets[0]}
        return self._curves[request]


def _as_saved(release: Release, name: str) -> SavedRelease:
    zones = with_leaves(zones_geojson(release)["features"], zone_account(release))
    return SavedRelease(name, manifest(release, with_limit=False), zones, classes_table(release))
