"""Attacks made one after the other, each with its own time; each can be stopped, and says what it had done."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

from odkanon.evidence.attack_context import Case
from odkanon.evidence.attacks.attack_registry import ATTACKS, Attack
from odkanon.evidence.finding import Finding, Verdict, Watch, verdict

SECONDS = 30.0
"""How long an attack may take."""

Stage = Callable[[str], None]


@dataclass(frozen=True)
class Attempt:
    """An attack that was made.

    Attributes
    ----------
    attack : Attack
        Which.
    finding : Finding
        What came out.
    seconds : float
        How long it took.
    stopped : bool
        Whether somebody stopped it.
    """

    attack: Attack
    finding: Finding
    seconds: float
    stopped: bool = False

    @property
    def verdict(self) -> Verdict:
        """What it means."""
        return verdict(self.finding, breaks=self.attack.breaks)

    def as_dict(self) -> dict[str, Any]:
        """Return everything, for files."""
        return {
            "attack": self.attack.name,
            "title": self.attack.title,
            "asks": self.attack.asks,
            "question": self.attack.question,
            "verdict": self.verdict,
            **self.finding.as_dict(),
            "seconds": round(self.seconds, 2),
            "stopped": self.stopped,
        }


def attempt(case: Case, attack: Attack, *, seconds: float = SECONDS, stage: Stage | None = None) -> Attempt:
    """Make one attack; whoever interrupts it gets what it had done."""
    watch = Watch(seconds, None if stage is None else lambda text: stage(f"{attack.title.lower()}: {text}"))
    start = monotonic()
    try:
        finding, stopped = attack.run(replace(case, watch=watch)), False
    except KeyboardInterrupt:
        finding, stopped = _stopped(watch), True
    return Attempt(attack, finding, monotonic() - start, stopped)


def _stopped(watch: Watch) -> Finding:
    return Finding(
        f"Stopped by hand after {watch.tried:,} of {watch.of or 1:,}; {watch.found:,} found until then.",
        found=watch.found,
        tried=watch.tried,
        of=max(watch.of, watch.tried + 1),
    )


def attempt_all(
    case: Case, names: Iterable[str] = tuple(ATTACKS), *, seconds: float = SECONDS, stage: Stage | None = None
) -> tuple[Attempt, ...]:
    """Make several attacks; after one was stopped by hand, the others are not begun."""
    made: list[Attempt] = []
    for name in names:
        if stage is not None:
            stage(ATTACKS[name].title.lower())
        made.append(attempt(case, ATTACKS[name], seconds=seconds, stage=stage))
        if made[-1].stopped:
            break
    return tuple(made)
