"""The ledger of noise: what the noisy releases of the same people add up to, in a file beside the data.

Differential privacy composes: whoever combines releases with (epsilon, delta) each, of whatever months, segments or
corrections, learns no more than their sum allows, and no more than the composition of their noises, which is less.
Every release that a ledger lists counts as one of the same people. A release is entered before its noise is drawn, and
never taken out: even that a draw failed may depend on its noisy counts.
"""

from __future__ import annotations

import glob
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import takewhile
from math import inf, isclose, isfinite
from pathlib import Path
from typing import Any, get_args

from odkanon.core.atomic_write import exclusive_lock, write_whole
from odkanon.core.parsing import check_positive, is_number, parse_json
from odkanon.core.system import remote
from odkanon.errors import DamagedReleaseError, InputError, InvalidValueError, RefusedError
from odkanon.methods.noise.mechanism import NoisePromise, PrivacyUnit, composed_epsilon, noise_scales

LEDGER = "odkanon-ledger.json"
"""The name of the ledger in the folder of the data, if no other is given."""
_FORMAT = 1
_TOLERANCE = 0.01
"""By how much the epsilon of an entry may differ, relatively, from what its noise comes to."""


@dataclass(frozen=True)
class LedgerEntry:
    """A noisy release.

    Attributes
    ----------
    drawn : str
        When.
    epsilon, delta, unit, trips_per_person
        Its promise; see `odkanon.methods.noise.mechanism.NoisePromise`.
    standard_deviations : tuple of float
        The noise of its queries.
    """

    drawn: str
    epsilon: float
    delta: float
    unit: PrivacyUnit
    trips_per_person: int
    standard_deviations: tuple[float, ...]

    def scales_for(self, unit: PrivacyUnit) -> list[float]:
        """Return its noise relative to what one person, or one trip, changes.

        One trip more may let another trip of the same person count or not: two such choices differ by up to 2 m.
        """
        most = 1 if self.unit == "trip" else self.trips_per_person * (1 if unit == "person" else 2)
        return [deviation / most for deviation in self.standard_deviations]

    def check(self) -> None:
        """Raise if it is no release: if its noise is not that of its promise."""
        NoisePromise(self.epsilon, self.delta, self.unit, self.trips_per_person)
        if not self.standard_deviations or not all(is_number(each) and each > 0 for each in self.standard_deviations):
            raise ValueError("a standard deviation is not positive")
        epsilon = composed_epsilon(self.scales_for(self.unit), self.delta)
        if not isclose(epsilon, self.epsilon, rel_tol=_TOLERANCE):
            raise ValueError(f"the noise of an entry comes to epsilon = {epsilon:.3g}, not {self.epsilon:g}")


@dataclass(frozen=True)
class NoiseLedger:
    """The noisy releases of the same people.

    Attributes
    ----------
    releases : tuple of LedgerEntry
        In the order in which they were drawn.
    limits : mapping of str to float
        The most epsilon that the office allows, by unit of privacy.
    """

    releases: tuple[LedgerEntry, ...] = ()
    limits: Mapping[str, float] | None = None

    def spent(self, unit: PrivacyUnit) -> tuple[float, float]:
        """Return the epsilon and delta of all releases together.

        A release that protects single trips bounds nothing about a person, whose epsilon is then infinite.
        """
        if not self.releases:
            return 0.0, 0.0
        delta = sum(entry.delta for entry in self.releases)
        if unit == "person" and any(entry.unit == "trip" for entry in self.releases):
            return inf, delta
        composed = composed_epsilon([scale for entry in self.releases for scale in entry.scales_for(unit)], delta)
        same = all(entry.unit == unit for entry in self.releases)
        return min(composed, sum(entry.epsilon for entry in self.releases)) if same else composed, delta

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the file."""
        units = {entry.unit for entry in self.releases} | {*(self.limits or {})}
        totals = {unit: self.spent(unit) for unit in get_args(PrivacyUnit) if unit in units}
        return {
            "format": _FORMAT,
            "about": "Noisy releases of the same people. Private: keep it beside the data, and never publish it.",
            "limits": dict(self.limits or {}),
            "spent": {
                unit: {"epsilon": epsilon if isfinite(epsilon) else None, "delta": delta}
                for unit, (epsilon, delta) in totals.items()
            },
            "releases": [asdict(entry) for entry in self.releases],
        }


def read_ledger(path: Path) -> NoiseLedger:
    """Read a ledger; an empty one if there is no file.

    Raises
    ------
    InputError
        If the file is not a ledger.
    """
    if not path.exists():
        return NoiseLedger()
    try:
        content = parse_json(path.read_text(encoding="utf-8"))
        if content["format"] != _FORMAT:
            raise ValueError(f"it has format {content['format']!r}")
        limits = {unit: float(content["limits"][unit]) for unit in content["limits"]}
        if not limits.keys() <= {*get_args(PrivacyUnit)} or not all(each > 0 for each in limits.values()):
            raise ValueError(f"its limits are {limits}")
        releases = tuple(
            LedgerEntry(**{**entry, "standard_deviations": tuple(map(float, entry["standard_deviations"]))})
            for entry in content["releases"]
        )
        for entry in releases:
            entry.check()
    except (InvalidValueError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedReleaseError.because(
            path, f"is not a ledger of noise ({error})", advice="restore it: without it nobody knows what was spent"
        ) from None
    return NoiseLedger(releases, limits)


def charge(path: Path, promise: NoisePromise, shares: Mapping[str, int], *, limit: float | None = None) -> NoiseLedger:
    """Enter a release into a ledger, before it is drawn, and return the ledger.

    Parameters
    ----------
    shares : mapping of str to int
        The queries of the release, with their parts of the budget.
    limit : float, optional
        The most epsilon that the office allows for this unit; the least that was ever given holds.

    Raises
    ------
    RefusedError
        If the ledger would exceed a limit.
    """
    if limit is not None:
        check_positive("the limit of epsilon", limit, whole=False)
    entry = LedgerEntry(
        datetime.now(UTC).isoformat(timespec="microseconds"),
        promise.epsilon,
        promise.delta,
        promise.unit,
        promise.trips_per_person,
        tuple(noise_scales(promise, shares).values()),
    )
    with exclusive_lock(path):
        before = read_ledger(path)
        limits = dict(before.limits or {})
        if limit is not None:
            limits[promise.unit] = min(float(limit), limits.get(promise.unit, inf))
        after = NoiseLedger((*before.releases, entry), limits)
        _check_limits(path, before, after)
        write_whole(path, json.dumps(after.to_dict(), indent=2) + "\n")
    return after


def _check_limits(path: Path, before: NoiseLedger, after: NoiseLedger) -> None:
    """Raise if a release would take the total of a unit beyond its limit."""
    for unit in get_args(PrivacyUnit):
        limit = (after.limits or {}).get(unit, inf)
        total, spent = after.spent(unit)[0], before.spent(unit)[0]
        if limit < total == inf:
            raise RefusedError(
                f"{path} limits what is learnt about persons, and a release that protects single trips bounds nothing "
                "about them; protect persons in all releases"
            )
        if total > limit:
            raise RefusedError(
                f"this release would raise what was spent on the same {unit}s from epsilon {spent:.3g} to {total:.3g}, "
                f"and {path} allows {limit:g}; nothing was drawn"
            )


def ledger_beside(paths: Sequence[str | Path]) -> Path | None:
    """Return the ledger of some files: the nearest in their folder or above it, else a new one in their folder.

    Links are followed. There is none for tables in memory and remote files.

    Raises
    ------
    InputError
        If the files have different ledgers.
    """
    if not paths or any(str(path) == "-" or remote(path) is not None for path in paths):
        return None
    found = {_nearest_ledger(_folder_of(path)): path for path in paths}
    if len(found) > 1:
        one, other = list(found)[:2]
        raise InputError(
            f"{found[one]} and {found[other]} have different ledgers ({one} and {other}); name one for both",
            option="ledger FILE",
        )
    return next(iter(found))


def _folder_of(path: str | Path) -> Path:
    """Return the folder of a file, a folder of files, or a pattern."""
    if glob.has_magic(str(path)) and not Path(path).exists():
        path = Path(*takewhile(lambda part: not glob.has_magic(part), Path(path).parts))
    there = Path(path).resolve()
    return there if there.is_dir() else there.parent


def _nearest_ledger(folder: Path) -> Path:
    return next((each / LEDGER for each in (folder, *folder.parents) if (each / LEDGER).exists()), folder / LEDGER)
