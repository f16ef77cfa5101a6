"""The report of an audit: findings, which break a promise or expose someone, and notes for the steward to weigh."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Severity = Literal["finding", "note"]


@dataclass(frozen=True)
class Finding:
    """One result of an audit."""

    check: str
    """The check: files, totals, rule, zones, recount, persons, difference, ..."""
    releases: tuple[str, ...]
    """The releases concerned."""
    message: str
    """One line; for a difference, what an attacker would compute."""
    severity: Severity = "finding"
    """Notes do not make an audit fail."""
    details: tuple[dict[str, Any], ...] = ()
    """All flows concerned, where the message names only the first."""


@dataclass(frozen=True)
class ReleaseComparison:
    """How two releases were compared."""

    releases: tuple[str, str]
    relation: str  # disjoint (no common trips), same (all), part (all of the first), overlap (some) or unknown
    how: str  # the source of that knowledge
    compared: str  # the method of comparison


@dataclass(frozen=True)
class Report:
    """The outcome of an audit."""

    releases: tuple[str, ...]
    """The releases audited."""
    trips: str | None
    """The trips with which they were compared."""
    checks: tuple[str, ...]
    """The checks that were run."""
    findings: tuple[Finding, ...] = field(default=())
    """Findings, followed by notes."""
    compared: tuple[ReleaseComparison, ...] = field(default=())
    """For each pair of releases, whether and how they were compared."""
    reading: str | None = None
    """Who read the trips, if not the audit itself: its counts then depend on the reader of the program."""

    @property
    def clean(self) -> bool:
        """Whether there are no findings; there may be notes."""
        return not any(each.severity == "finding" for each in self.findings)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as written to ``audit.json``."""
        return {"clean": self.clean, **asdict(self)}
