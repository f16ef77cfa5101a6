"""The description of an attack, its result, and the timer that limits it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from odkanon.evidence.attack_context import AttackContext

Verdict = Literal["clean", "found", "to weigh", "not settled", "not made", "does not apply"]
Question = Literal["singling out", "linkability", "inference"]
"""The three risks of the Article 29 Working Party's Opinion 05/2014 on anonymisation techniques."""
Need = Literal["persons", "several persons", "other releases", "boxes"]  # what an attack may require of its context

UNLIMITED = 1e9
MAX_EXAMPLES = 5


@dataclass(frozen=True)
class AttackResult:
    """The outcome of one attack."""

    message: str
    """One or two sentences for the sheet."""
    found: int = 0
    """Number of groups, rows or persons disclosed."""
    tried: int = 0
    of: int = 0
    """Progress: how many of how many candidates were tried."""
    unsettled: int = 0
    """Candidates tried that are neither disclosed nor ruled out."""
    numbers: Mapping[str, float | int | None] = field(default_factory=dict)
    """Further measures, by name."""
    examples: tuple[str, ...] = ()
    """The first findings. They name flows: not for publication."""
    skipped: str | None = None
    """The reason, if the attack was not run."""
    applies: bool = True
    """False if there was nothing to attack."""

    def as_dict(self) -> dict[str, Any]:
        """Return all fields, for JSON."""
        return {**asdict(self), "numbers": dict(self.numbers)}


@dataclass(frozen=True)
class Attack:
    """The description of an attack; `odkanon.register_attack` adds one to the evidence sheet."""

    name: str
    """The name used in policies and in ``evidence.json``."""
    title: str
    """The heading on the sheet."""
    asks: str
    """What the attacker tries to find out, as a question."""
    question: Question
    """The Working Party's question that the attack helps to answer."""
    number: str
    """The entry of `AttackResult.numbers` that answers this question best."""
    breaks: bool
    """True if a finding breaks the promise of the release; False if the steward has to weigh it."""
    run: Callable[[AttackContext], AttackResult]
    """The attack itself, ``(AttackContext) -> AttackResult``."""
    needs: Mapping[Need, str] = field(default_factory=dict)
    """Requirements, each with the sentence for the sheet if it is not met: ``persons``, ``several persons``, ``other
    releases`` or ``boxes``."""
    decision: str | None = "is what came out acceptable?"
    """What the person who signs decides if there is a result to weigh; None for an attack that is for comparison."""


def not_run(reason: str) -> AttackResult:
    """Return the result of an attack that could not be made."""
    return AttackResult(reason, skipped=reason)


def does_not_apply(reason: str) -> AttackResult:
    """Return the result of an attack that has nothing to attack."""
    return AttackResult(reason, skipped=reason, applies=False)


def verdict(result: AttackResult, *, breaks: bool) -> Verdict:
    """Return the verdict on a result.

    ``found``: the promise of the release is broken, or a group below its rule is disclosed. ``to weigh``: a risk that
    the promise never covered. ``not settled``: time ran out, or candidates are neither disclosed nor ruled out. ``not
    made``: nothing was tried, which shows nothing.
    """
    if result.skipped is not None:
        return "not made" if result.applies else "does not apply"
    if result.found:
        return "found" if breaks else "to weigh"
    if result.tried < result.of or result.unsettled:
        return "not settled"
    return "clean" if result.tried else "not made"


@dataclass(frozen=True)
class AttackRun:
    """An attack that was run."""

    attack: Attack  # its description
    result: AttackResult  # its outcome
    seconds: float  # the running time

    @property
    def verdict(self) -> Verdict:
        """The verdict on the result."""
        return verdict(self.result, breaks=self.attack.breaks)

    def as_dict(self) -> dict[str, Any]:
        """Return all fields, for JSON."""
        return {
            "attack": self.attack.name,
            "title": self.attack.title,
            "asks": self.attack.asks,
            "question": self.attack.question,
            "verdict": self.verdict,
            **self.result.as_dict(),
            "seconds": round(self.seconds, 2),
        }


class AttackTimer:
    """The time limit of an attack, from the creation of the timer, and its progress so far.

    * ``notify``: called with the progress as a text, at most five times a second.
    """

    def __init__(self, seconds: float = UNLIMITED, notify: Callable[[str], None] | None = None) -> None:
        self._end, self._notify, self._notified = monotonic() + seconds, notify, 0.0
        self.tried, self.of, self.found = 0, 0, 0

    @property
    def remaining(self) -> float:
        """Seconds left; never negative."""
        return max(self._end - monotonic(), 0.0)

    def keep_going(self, tried: int, of: int, found: int = 0) -> bool:
        """Record the progress; return True while time remains."""
        self.tried, self.of, self.found = tried, of, found
        now = monotonic()
        if self._notify is not None and now - self._notified > 0.2:
            self._notified = now
            self._notify(f"{tried:,} of {of:,}")
        return now < self._end
