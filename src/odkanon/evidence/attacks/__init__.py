"""The attacks of the evidence sheet: the built-in ones, and those registered by other packages."""

from __future__ import annotations

from typing import get_args

from odkanon.core.registry import Registry
from odkanon.errors import InvalidValueError
from odkanon.evidence.attack import Attack, Question
from odkanon.evidence.attacks.borders import BORDERS
from odkanon.evidence.attacks.group_intervals import INTERVALS
from odkanon.evidence.attacks.person_attacks import DOMINANCE, HOMOGENEITY, MEMBERSHIP, UNIQUENESS
from odkanon.evidence.attacks.replay import REPLAY
from odkanon.evidence.attacks.sums_and_differences import COMPLEMENT, DIFFERENCING


def check_attack(attack: Attack) -> None:
    """Raise unless an attack can be registered."""
    if not isinstance(attack, Attack):
        raise InvalidValueError.expected("an attack", "an odkanon.evidence.attack.Attack", attack)
    if attack.question not in get_args(Question):
        raise InvalidValueError.expected("the question of an attack", f"one of {get_args(Question)}", attack.question)


ATTACKS: Registry[Attack] = Registry(
    "attack",
    (COMPLEMENT, DIFFERENCING, INTERVALS, REPLAY, BORDERS, MEMBERSHIP, HOMOGENEITY, DOMINANCE, UNIQUENESS),
    check=check_attack,
)


def register_attack(attack: Attack) -> Attack:
    """Add an attack to the evidence sheet, and return it.

    A package that declares its attack as an entry point of the group ``odkanon.attacks`` need not call this.

    Examples
    --------
    >>> from odkanon.evidence.attack import Attack, AttackResult
    >>> from odkanon.evidence.attack_context import AttackContext
    >>> def small_rows(context: AttackContext) -> AttackResult:
    ...     rows = context.trips.rows
    ...     return AttackResult(f"{rows} rows were looked at.", tried=rows, of=rows, numbers={"rows": rows})
    >>> attack = Attack("small-rows", "Small rows", "Are rows small?", "singling out", "rows", True, small_rows)
    >>> register_attack(attack).name in ATTACKS
    True
    >>> ATTACKS.unregister("small-rows")
    """
    return ATTACKS.register(attack)
