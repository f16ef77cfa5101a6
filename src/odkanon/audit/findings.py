"""What an audit says: findings, which break a promise or expose someone, and notes, which a steward should weigh."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Severity = Literal["finding", "note"]


@dataclass(frozen=True)
class Finding:
    """One thing that an audit found.

    Attributes
    ----------
    check : str
        What was looked at: files, totals, rule, zones, recount, persons, difference, ...
    releases : tuple of str
        Which releases it is about.
    message : str
        One line; for a difference, what an attacker would compute.
    severity : {"finding", "note"}
        Notes do not make an audit fail.
    details : tuple of dict
        All flows concerned, where the message names only the first.
    """

    check: str
    releases: tuple[str, ...]
    message: str
    severity: Severity = "finding"
    details: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class Comparison:
    """Two releases, and how far they were compared.

    Attributes
    ----------
    releases : tuple of str
        The two.
    relation : str
        Whether they share no trips (``disjoint``), all (``same``), all of the first (``part``) or some (``overlap``);
        or ``unknown``.
    how : str
        From where that is known.
    compared : str
        What was done.
    """

    releases: tuple[str, str]
    relation: str
    how: str
    compared: str


@dataclass(frozen=True)
class Report:
    """The outcome of an audit.

    Attributes
    ----------
    releases : tuple of str
        What was audited.
    trips : str or None
        The trips it was compared with.
    checks : tuple of str
        What was looked at.
    findings : tuple of Finding
        What came out, findings before notes.
    compared : tuple of Comparison
        For each two releases, whether and how they were compared.
    """

    releases: tuple[str, ...]
    trips: str | None
    checks: tuple[str, ...]
    findings: tuple[Finding, ...] = field(default=())
    compared: tuple[Comparison, ...] = field(default=())

    @property
    def clean(self) -> bool:
        """Whether there are no findings; notes may be there."""
        return not any(each.severity == "finding" for each in self.findings)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as it stands in ``audit.json``."""
        return {"clean": self.clean, **asdict(self)}
