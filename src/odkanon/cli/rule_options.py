"""The options of the rule: k, who is protected, thresholds by measure, and further constraints."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from odkanon.cli.common_options import OptionGroup, describe_options
from odkanon.model.measures import MEASURES, TARGETS

if TYPE_CHECKING:
    from odkanon.model.od import Matrix
    from odkanon.model.rule import Rule
    from odkanon.pipeline.request import RuleRequest

Protect = StrEnum("Protect", {target: target for target in TARGETS})  # type: ignore[misc]
"""The groups that can be protected."""

THRESHOLDS = {f"min_{name}": name for name in MEASURES}
"""The measure of each threshold, by the parameter of its option."""


_WHO = ", ".join(f"{measure.target} ({measure.meaning})" for measure in MEASURES.values())
_THRESHOLDS = "\n".join(
    f"--min-{name} NUMBER  The lowest {'sum of weights' if name == 'weight' else f'number of {name}'} of a flow."
    for name in MEASURES
)

OPTIONS = describe_options(
    f"""
--k NUMBER  The number that must share every published flow.
--protect WHO  Who is counted: {_WHO}. Repeatable: k applies to each.
    [default: participants, and persons where the input names them]
Rule: thresholds by measure, instead of --k:
{_THRESHOLDS}
Rule: further constraints (not with mondrian, cascade, --segment or --by):
--max-share SHARE  The largest share of a flow's trips (and weight, if counted) that one person or household may have,
    such as 0.5. Needs a column of persons or households, and trips in memory.
--min-destinations NUMBER  The fewest destinations of an origin zone with published flows. With 2, nobody who left a
    zone is known to have gone to its only destination.
""",
    {
        "k": (int, 10),
        "protect": (list[Protect], []),
        **{option: (float | None if name == "weight" else int | None, None) for option, name in THRESHOLDS.items()},
        "max_share": (float | None, None),
        "min_destinations": (int | None, None),
    },
)


@dataclass(frozen=True)
class RuleOptions(OptionGroup):
    """Who is protected; call it with a matrix to get the rule."""

    OPTIONS = OPTIONS
    LISTED_FIRST = True

    @property
    def request(self) -> RuleRequest:
        """The thresholds, for a rule once the input is read."""
        from odkanon.pipeline.request import RuleRequest

        given = self.values
        thresholds = {name: given[option] for option, name in THRESHOLDS.items() if given[option] is not None}
        targets = tuple(target.value for target in given["protect"])
        return RuleRequest(given["k"], targets, thresholds, given["max_share"], given["min_destinations"])

    def __call__(self, od: Matrix) -> Rule:
        """Return the rule; the mean weight of a trip is that of the whole data set."""
        return self.request.rule_for(od)
