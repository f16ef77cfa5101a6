"""The options of the rule: k, who is protected, thresholds by measure, and further constraints."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from odkanon.cli.common_options import OptionGroup, Options
from odkanon.model.measures import MEASURES, TARGETS

if TYPE_CHECKING:
    from odkanon.model.od import Matrix
    from odkanon.model.rule import Rule
    from odkanon.pipeline.request import RuleRequest

_PANEL = "Rule: thresholds by measure, instead of --k"
_CONSTRAINTS = "Rule: further constraints (not with mondrian, cascade, --segment or --by)"

Protect = StrEnum("Protect", {target: target for target in TARGETS})  # type: ignore[misc]
"""The groups that can be protected."""

THRESHOLDS = {f"min_{name}": name for name in MEASURES}
"""The measure of each threshold, by the parameter of its option."""


def _option(name: str, text: str) -> Any:
    return typer.Option(name, rich_help_panel=_PANEL, help=text)


_NUMBER: dict[str, Any] = dict.fromkeys(MEASURES, int | None) | {"weight": float | None}

OPTIONS: Options = (
    {
        "k": (
            Annotated[int, typer.Option("--k", help="The number that must share every published flow.")],
            10,
        ),
        "protect": (
            Annotated[
                list[Protect],
                typer.Option(
                    "--protect",
                    metavar="WHO",
                    show_default=False,
                    help="Who is counted: "
                    + ", ".join(f"{measure.target} ({measure.meaning})" for measure in MEASURES.values())
                    + ". Repeatable: k applies to each. [default: participants]",
                ),
            ],
            [],
        ),
    }
    | {
        option: (
            Annotated[
                _NUMBER[name],
                _option(
                    f"--min-{name}",
                    f"The lowest {'sum of weights' if name == 'weight' else f'number of {name}'} of a flow.",
                ),
            ],
            None,
        )
        for option, name in THRESHOLDS.items()
    }
    | {
        "max_share": (
            Annotated[
                float | None,
                typer.Option(
                    "--max-share",
                    metavar="SHARE",
                    rich_help_panel=_CONSTRAINTS,
                    help="The largest share of a flow's trips (and weight, if counted) that one person or household "
                    "may have, such as 0.5. Needs a column of persons or households, and trips in memory.",
                ),
            ],
            None,
        ),
        "min_destinations": (
            Annotated[
                int | None,
                typer.Option(
                    "--min-destinations",
                    metavar="NUMBER",
                    rich_help_panel=_CONSTRAINTS,
                    help="The fewest destinations of an origin zone with published flows. With 2, nobody who left a "
                    "zone is known to have gone to its only destination.",
                ),
            ],
            None,
        ),
    }
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
