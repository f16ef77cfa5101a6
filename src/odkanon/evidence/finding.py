"""What an attack says, and the watch by which it knows when to stop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from time import monotonic
from typing import Any, Literal

Verdict = Literal["clean", "found", "to weigh", "not settled", "not made", "does not apply"]
Question = Literal["singling out", "linkability", "inference"]
"""What the Article 29 working party asks of an anonymised table (Opinion 05/2014)."""

EXAMPLES = 5


@dataclass(frozen=True)
class Finding:
    """What came out of one attack.

    Attributes
    ----------
    message : str
        One or two sentences for the sheet.
    found : int
        How many groups, rows or persons it got hold of.
    tried, of : int
        How far it came: so many of so many things were tried.
    unsettled : int
        Of what was tried, what is neither found nor ruled out.
    numbers : mapping of str to number
        What else was measured.
    examples : tuple of str
        The first of what was found. They name flows: not for publication.
    skipped : str or None
        Why it was not run, where it was not.
    applies : bool
        Whether there was anything to attack.
    """

    message: str
    found: int = 0
    tried: int = 0
    of: int = 0
    unsettled: int = 0
    numbers: Mapping[str, float | int | None] = field(default_factory=dict)
    examples: tuple[str, ...] = ()
    skipped: str | None = None
    applies: bool = True

    def as_dict(self) -> dict[str, Any]:
        """Return everything, for files."""
        return {**asdict(self), "numbers": dict(self.numbers)}


def not_run(reason: str) -> Finding:
    """Return that an attack could not be made, and why."""
    return Finding(reason, skipped=reason)


def does_not_apply(reason: str) -> Finding:
    """Return that there is nothing for an attack to look at, and why."""
    return Finding(reason, skipped=reason, applies=False)


def verdict(finding: Finding, *, breaks: bool) -> Verdict:
    """Return what a finding means.

    ``found`` breaks the promise of the release or shows a group below its rule; ``to weigh`` is something that the
    promise never ruled out; ``not settled`` means that time was over, or that something is neither found nor ruled out.
    """
    if finding.skipped is not None:
        return "not made" if finding.applies else "does not apply"
    if finding.found:
        return "found" if breaks else "to weigh"
    return "not settled" if finding.tried < finding.of or finding.unsettled else "clean"


Say = Callable[[str], None]


class Watch:
    """How much time an attack has, and how far it has come, for whoever waits and for whoever stops it.

    Parameters
    ----------
    seconds : float
        From its making on.
    say : callable, optional
        Called with a few words on how far it is.
    """

    def __init__(self, seconds: float, say: Say | None = None) -> None:
        self._end, self._say, self._said = monotonic() + seconds, say, 0.0
        self.tried, self.of, self.found = 0, 0, 0

    @property
    def left(self) -> float:
        """Seconds left; never negative."""
        return max(self._end - monotonic(), 0.0)

    def goes_on(self, tried: int, of: int, found: int = 0) -> bool:
        """Take note of how far the attack is, and tell whether there is time for more."""
        self.tried, self.of, self.found = tried, of, found
        now = monotonic()
        if self._say is not None and now - self._said > 0.2:
            self._said = now
            self._say(f"{tried:,} of {of:,}")
        return now < self._end
