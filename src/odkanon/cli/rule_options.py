"""The options that say whom to protect: one for each measure, as the list of measures has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import wraps
from inspect import Parameter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from odkanon.cli.input_options import with_parameters
from odkanon.model.measures import MEASURES, TARGETS

if TYPE_CHECKING:
    from odkanon.model.od import Matrix
    from odkanon.model.rule import Rule
    from odkanon.pipeline.request import RuleRequest

_PANEL = "Thresholds one by one"
_CONSTRAINTS = "What to ask for besides (not with mondrian, cascade, --segment or --by)"

Protect = StrEnum("Protect", {target: target for target in TARGETS})  # type: ignore[misc]
"""Who can be protected."""

THRESHOLDS = {f"min_{name}": name for name in MEASURES}
"""The options with a threshold of their own, and what each counts."""


def _option(name: str, text: str) -> Any:
    return typer.Option(name, rich_help_panel=_PANEL, help=text)


_NUMBER: dict[str, Any] = dict.fromkeys(MEASURES, int | None) | {"weight": float | None}

OPTIONS: dict[str, tuple[Any, Any]] = (
    {
        "k": (Annotated[int, typer.Option("--k", help="How many must share every published flow.")], 10),
        "protect": (
            Annotated[
                list[Protect],
                typer.Option(
                    "--protect",
                    show_default=False,
                    help="Who: "
                    + ", ".join(f"{measure.target} ({measure.meaning})" for measure in MEASURES.values())
                    + ". Repeatable: all must hold. [default: participants]",
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
                    f"Instead of --k: at least {'this sum of weights' if name == 'weight' else f'so many {name}'}.",
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
                    help="No person or household has more than this share of the trips of a flow, such as 0.5; nor of "
                    "its weight, where that is counted. Needs a column of persons or households; trips in memory.",
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
                    help="From every origin zone flows to at least so many places are published, or none: with 2, "
                    "nobody who is known to have left a zone is known to have gone to its only destination.",
                ),
            ],
            None,
        ),
    }
)
"""By name of the parameter: how typer is to take it, and the default."""


@dataclass(frozen=True)
class RuleOptions:
    """Whom the options protect; call it with a matrix for the rule."""

    said: Mapping[str, Any]

    @property
    def request(self) -> RuleRequest:
        """The thresholds, for a rule once the input is read."""
        from odkanon.pipeline.request import RuleRequest

        given = self.said
        thresholds = {name: given[option] for option, name in THRESHOLDS.items() if given[option] is not None}
        targets = tuple(target.value for target in given["protect"])
        return RuleRequest(given["k"], targets, thresholds, given["max_share"], given["min_destinations"])

    def __call__(self, od: Matrix) -> Rule:
        """Return the rule; the mean weight of a trip is that of the whole data set."""
        return self.request.rule_for(od)


def protects(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command all options of protecting, in place of its parameter ``wanted``."""

    @wraps(command)
    def wrapped(**given: Any) -> None:
        said = {name: given.pop(name) for name in OPTIONS}
        command(**given, wanted=RuleOptions(said))

    options = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in OPTIONS.items()
    ]
    return with_parameters(wrapped, command, add=options, drop="wanted", first=True)
