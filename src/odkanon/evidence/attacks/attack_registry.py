"""The attacks, each described once: the sheet, the policy and the docs look here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from odkanon.evidence.attack_context import Case
from odkanon.evidence.attacks.borders import borders
from odkanon.evidence.attacks.complement import complement
from odkanon.evidence.attacks.differencing import differencing
from odkanon.evidence.attacks.dominance import dominance
from odkanon.evidence.attacks.group_intervals import intervals
from odkanon.evidence.attacks.homogeneity import homogeneity
from odkanon.evidence.attacks.membership import membership
from odkanon.evidence.attacks.replay import replay
from odkanon.evidence.attacks.uniqueness import uniqueness
from odkanon.evidence.finding import Finding, Question


@dataclass(frozen=True)
class Attack:
    """What is known of an attack without running it.

    Attributes
    ----------
    name, title : str
        As a policy names it, and as people call it.
    asks : str
        What the attacker tries, as a question.
    question : {"singling out", "linkability", "inference"}
        Which of the working party's questions it helps to answer.
    number : str
        Which of the numbers that it finds answers that question best.
    breaks : bool
        Whether what it finds breaks the promise of a release; else it is for the steward to weigh.
    run : callable
        The attack.
    """

    name: str
    title: str
    asks: str
    question: Question
    number: str
    breaks: bool
    run: Callable[[Case], Finding]


ATTACKS: dict[str, Attack] = {
    attack.name: attack
    for attack in (
        Attack(
            "complement",
            "Complement",
            "Do rows, margins or totals show a group below the rule?",
            "singling out",
            "rows",
            True,
            complement,
        ),
        Attack(
            "differencing",
            "Differencing",
            "Do differences with other releases show a group below the rule?",
            "linkability",
            "groups",
            True,
            differencing,
        ),
        Attack(
            "intervals",
            "Intervals",
            "Can a group that is not listed be shown to exist?",
            "inference",
            "shown to exist",
            True,
            intervals,
        ),
        Attack(
            "replay",
            "Replay",
            "Do the method's own decisions show that a finer group exists?",
            "inference",
            "no other world found",
            True,
            replay,
        ),
        Attack(
            "borders",
            "Borders",
            "Do the sides of boxes name places that have trips?",
            "singling out",
            "half-way",
            True,
            borders,
        ),
        Attack(
            "membership",
            "Membership",
            "Can somebody tell whether a person is in the data?",
            "inference",
            "outsider AUC",
            False,
            membership,
        ),
        Attack(
            "homogeneity",
            "Homogeneity",
            "Is where somebody starts also where they go?",
            "inference",
            "share of trips",
            False,
            homogeneity,
        ),
        Attack(
            "dominance",
            "Dominance",
            "Did one person make most of the trips of a row?",
            "inference",
            "largest share",
            False,
            dominance,
        ),
        Attack(
            "uniqueness",
            "Uniqueness before",
            "How few trips tell a person from all others in the input?",
            "linkability",
            "unique by 4 trips, before",
            False,
            uniqueness,
        ),
    )
}
