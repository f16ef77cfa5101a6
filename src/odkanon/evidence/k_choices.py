"""What another k would have meant: the same request with other thresholds, how right it is, and how attacks fare."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from odkanon.evidence.attack import AttackTimer
from odkanon.evidence.attack_context import AttackContext, open_context
from odkanon.evidence.attacks.person_attacks import membership
from odkanon.evidence.attacks.row_composition import dominance
from odkanon.methods.method_registry import METHODS, anonymize
from odkanon.model.release import Release
from odkanon.model.rule import Rule

CHOICES = (5, 10, 20)
MAX_TRIPS = 1_000_000
"""Above this, the same release is not made several times."""
SQUARES = ("2 km", "4 km")


def k_choices(context: AttackContext, seconds: float) -> dict[str, Any]:
    """Return what k = 5, 10 and 20 would mean for this input, beside the k of the release, or why that is not known.

    * ``seconds``: the time limit of each attack.
    """
    reason = _obstacle(context)
    if reason is not None:
        return {"choices": [], "reason": reason}
    own = context.release.k
    choices = []
    for k in sorted({*CHOICES, own}):
        made = anonymize(context.od, _rule_for(context.rule, own, k), method=context.method, **context.options)
        choices.append({"k": k, "own": k == own, **_describe(made, context, seconds)})
    return {"choices": choices, "reason": None}


def _obstacle(context: AttackContext) -> str | None:
    if context.method not in METHODS or context.release.parameters.get("rows") == "given":
        return "the zones are those of an earlier release, so another k would not change them"
    if not context.matrix_matches:
        return "the release covers part of the trips that were given"
    if context.od.trips > MAX_TRIPS:
        return f"there are more than {MAX_TRIPS:,} trips; `odkanon compare --k 5,10,20` takes its time"
    return None


def _rule_for(rule: Rule, own: int, k: int) -> Rule:
    """Return a rule with all thresholds scaled from one k to another."""
    share = Fraction(k, own)
    scaled: dict[str, Any] = {
        name: value * share if name == "weight" else ceil(value * share) for name, value in rule.thresholds.items()
    }
    return Rule(mean_weight=rule.mean_weight, **({} if rule.k_from_data else {"k": k}), **scaled, **rule.constraints)


def _describe(made: Release, context: AttackContext, seconds: float) -> dict[str, Any]:
    if made.refusal:
        return {"refusal": made.refusal}
    accuracy = made.accuracy.get("trips")
    right = {} if accuracy is None else {each.name: each.right for each in accuracy.squares if each.name in SQUARES}
    with TemporaryDirectory() as folder:
        opened = open_context(made.save(Path(folder) / "release"), context.spec, seed=context.seed)
        numbers: dict[str, Any] = {}
        for attack, needed in ((membership, "several persons"), (dominance, "persons")):
            if opened.has(needed):  # type: ignore[arg-type]
                timed = AttackContext(opened.inputs, AttackTimer(seconds), context.seed)
                numbers |= attack(timed).numbers
    return {
        "flows": len(made.classes),
        "share": int(made.classes.trips.sum()) / made.input.trips,
        "right": right,
        "outsider": numbers.get("outsider AUC"),
        "largest": numbers.get("largest share"),
    }
