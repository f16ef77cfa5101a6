"""The ledger of noise: what the noisy releases of the same people add up to, in a file beside the data.

Differential privacy composes: whoever combines releases with (epsilon, delta) each, of whatever months, segments or
corrections, learns no more than their sum allows, and no more than the composition of their noises, which is less.
Every release that a ledger lists counts as one of the same people. A release is entered before its noise is drawn,
and taken out again only if it was never made.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

from odkanon.core.atomic_write import exclusive_lock, write_whole
from odkanon.core.parsing import check_positive, is_number, parse_json
from odkanon.core.system import remote
from odkanon.errors import DamagedReleaseError, RefusedError
from odkanon.methods.noise.mechanism import NoisePromise, PrivacyUnit, composed_epsilon, noise_scales

LEDGER = "odkanon-ledger.json"
"""The name of the ledger in the folder of the data, if no other is given."""
_FORMAT = 1


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

        Releases that protect single trips bound nothing for a person and are left out there.
        """
        counted = [entry for entry in self.releases if unit == "trip" or entry.unit == "person"]
        if not counted:
            return 0.0, 0.0
        delta = sum(entry.delta for entry in counted)
        composed = composed_epsilon([scale for entry in counted for scale in entry.scales_for(unit)], delta)
        same = all(entry.unit == unit for entry in counted)
        return min(composed, sum(entry.epsilon for entry in counted)) if same else composed, delta

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the file."""
        spent = {unit: dict(zip(("epsilon", "delta"), self.spent(unit), strict=True)) for unit in get_args(PrivacyUnit)}
        units = {entry.unit for entry in self.releases} | {*(self.limits or {})}
        return {
            "format": _FORMAT,
            "about": "Noisy releases of the same people. Private: keep it beside the data, and never publish it.",
            "limits": dict(self.limits or {}),
            "spent": {unit: total for unit, total in spent.items() if unit in units},
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
        releases = tuple(
            LedgerEntry(**{**entry, "standard_deviations": tuple(map(float, entry["standard_deviations"]))})
            for entry in content["releases"]
        )
        for entry in releases:
            NoisePromise(entry.epsilon, entry.delta, entry.unit, entry.trips_per_person)
        if not all(is_number(each) and each > 0 for entry in releases for each in entry.standard_deviations):
            raise ValueError("a standard deviation is not positive")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedReleaseError.because(
            path, f"is not a ledger of noise ({error})", advice="restore it: without it nobody knows what was spent"
        ) from None
    return NoiseLedger(releases, limits)


@contextmanager
def charging(
    path: Path, promise: NoisePromise, shares: Mapping[str, int], *, limit: float | None = None
) -> Iterator[NoiseLedger]:
    """Enter a release into a ledger while it is drawn; it stays there unless that fails.

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
            limits[promise.unit] = min(float(limit), limits.get(promise.unit, float("inf")))
        after = NoiseLedger((*before.releases, entry), limits)
        _check_limits(path, before, after, promise)
        _write(path, after)
    try:
        yield after
    except BaseException:
        with exclusive_lock(path):
            now = read_ledger(path)
            _write(path, NoiseLedger(tuple(each for each in now.releases if each != entry), now.limits))
        raise


def _check_limits(path: Path, before: NoiseLedger, after: NoiseLedger, promise: NoisePromise) -> None:
    """Raise if a release would take the total beyond a limit, or evade one."""
    limits = after.limits or {}
    if promise.unit == "trip" and "person" in limits and "trip" not in limits:
        raise RefusedError(
            f"{path} limits what is learnt about persons, and a release that protects single trips bounds nothing "
            "about them; protect persons"
        )
    for unit in get_args(PrivacyUnit):
        total, spent = after.spent(unit)[0], before.spent(unit)[0]
        if unit in limits and total > limits[unit] and total > spent:
            raise RefusedError(
                f"this release would raise what was spent on the same {unit}s from epsilon {spent:.3g} to {total:.3g}, "
                f"and {path} allows {limits[unit]:g}; nothing was drawn"
            )


def _write(path: Path, ledger: NoiseLedger) -> None:
    write_whole(path, json.dumps(ledger.to_dict(), indent=2) + "\n")


def ledger_beside(paths: Sequence[str | Path]) -> Path | None:
    """Return the ledger in the folder of the first of some files; None for tables in memory and remote files."""
    first = next(iter(paths), None)
    if first is None or str(first) == "-" or remote(first) is not None:
        return None
    return Path(first).absolute().parent / LEDGER
