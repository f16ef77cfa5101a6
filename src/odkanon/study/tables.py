"""The paper's tables 2 to 19 from the outcomes of its experiment, as Markdown, LaTeX and CSV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import pyarrow as pa

from odkanon.study.experiment import METHOD_ROWS, TARGETS, WHOLE, Outcome
from odkanon.study.participants import People
from odkanon.study.ranking import cpc

PEOPLE_TABLE, PRIVACY_TABLE = 2, 3
FIRST_TABLE = {WHOLE: 4, "sex": 8, "age": 12, "category": 16}
"""The numbers that the paper's tables have: two targets x two perspectives for each way to split the trips."""
_MEASURES = {"trips": "participants", "weight": "population"}
_HEADINGS = ("C_DM", "C_AVG", "G", "E", "G at best", "CPC 2 km", "CPC 4 km", "Suppressed", "Time (s)")
_LATEX_HEADINGS = (
    *("$C_{DM}$", "$C_{AVG}$", r"$\bar{G}$", "$E$", r"$\bar{G}$ at best", "CPC 2 km", "CPC 4 km"),
    *("Suppressed", "Time (s)"),
)


@dataclass(frozen=True)
class PaperTable:
    """One table: a caption, headings, and rows of text; a row with a ``note`` has that instead of numbers."""

    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def to_markdown(self) -> str:
        """Return the table as Markdown."""
        lines = [f"**{self.caption}**", "", _line(self.headings), _line(["---"] * len(self.headings))]
        return "\n".join([*lines, *(_line(row) for row in self.rows), ""])

    def to_latex(self) -> str:
        """Return the table as LaTeX."""
        columns = "ll" + "r" * (len(self.headings) - 2)
        headings = [_latex(dict(zip(_HEADINGS, _LATEX_HEADINGS, strict=True)).get(h, h)) for h in self.headings]
        body = "\n".join(" & ".join(map(_latex, row)) + r" \\" for row in self.rows)
        return "\n".join(
            [
                r"\begin{table}[ht]",
                r"\centering",
                rf"\caption{{{_latex(self.caption)}}}",
                rf"\begin{{tabular}}{{{columns}}}",
                r"\hline",
                " & ".join(headings) + r" \\",
                r"\hline",
                body,
                r"\hline",
                r"\end{tabular}",
                r"\end{table}",
                "",
            ]
        )


def paper_tables(outcomes: Sequence[Outcome], people: Sequence[People] = ()) -> list[PaperTable]:
    """Return the tables that these outcomes fill, in the order of the paper; ``people`` fill the one of the data.

    Examples
    --------
    >>> from odkanon import Experiment, make_survey, read_trips
    >>> grid = Experiment(read_trips(make_survey()), k=10, budget=0.1, dimensions=(), rows=("oigh",), resolution=7)
    >>> outcomes = [run() for _, run in grid.run({})]
    >>> [table.caption for table in paper_tables(outcomes)][:1]
    ['Table 3. Smallest class from each perspective, and classes below k.']
    """
    dimensions = list(dict.fromkeys(outcome.cell.dimension for outcome in outcomes))
    tables = [_people_table(people)] if people else []
    tables.append(_privacy_table(outcomes))
    for dimension, target in product(dimensions, targets_of(outcomes)):
        first = FIRST_TABLE.get(dimension) if target in TARGETS else None
        for at, measure in enumerate(_MEASURES):
            of_table = [o for o in outcomes if (o.cell.dimension, o.cell.target) == (dimension, target)]
            number = None if first is None else first + 2 * TARGETS.index(target) + at
            if any(measure in outcome.utility for outcome in of_table):
                tables.append(_utility_table(of_table, dimension, target, measure, number))
    return tables


def targets_of(outcomes: Sequence[Outcome]) -> list[str]:
    """Return whom these outcomes protect."""
    return list(dict.fromkeys(outcome.cell.target for outcome in outcomes))


def spelled(target: str) -> str:
    """Return a target in words."""
    return target.replace("+", " and ")


def _people_table(people: Sequence[People]) -> PaperTable:
    rows = [
        (
            "-" if part.dimension == WHOLE else part.dimension,
            part.segment,
            *("-" if value is None else f"{value:,.0f}" for value in (part.persons, part.represented)),
            f"{part.trips:,}",
            f"{part.cells:,}",
        )
        for part in people
    ]
    caption = f"Table {PEOPLE_TABLE}. Participants, and the people that they represent."
    return PaperTable(caption, ("By", "Segment", "Participants", "People represented", "Trips", "Cells"), tuple(rows))


def _privacy_table(outcomes: Sequence[Outcome]) -> PaperTable:
    rows = []
    for outcome in outcomes:
        if outcome.cell.dimension != WHOLE:
            continue
        told = outcome.privacy
        cells = [_smallest(told.get(measure)) for measure in ("trips", "weight", "persons")]
        below = [_below(told.get(measure), outcome.classes) for measure in ("trips", "weight", "persons")]
        shown = [cell for pair in zip(cells, below, strict=True) for cell in pair]
        rows.append((METHOD_ROWS[outcome.cell.row].title, spelled(outcome.cell.target), *_or_note(outcome, shown)))
    headings = ("Method", "Protected", "k_dataset", "below", "k_population", "below", "k_persons", "below")
    caption = f"Table {PRIVACY_TABLE}. Smallest class from each perspective, and classes below k."
    return PaperTable(caption, headings, tuple(rows))


def _utility_table(
    outcomes: Sequence[Outcome], dimension: str, target: str, measure: str, number: int | None
) -> PaperTable:
    where = "on the whole dataset" if dimension == WHOLE else f"segmenting on {dimension}"
    label = "" if number is None else f"Table {number}. "
    caption = f"{label}Results {where}, protecting the {spelled(target)}, metrics on the {_MEASURES[measure]}."
    rows = []
    order = list(dict.fromkeys(outcome.cell.row for outcome in outcomes))
    for outcome in sorted(outcomes, key=lambda o: order.index(o.cell.row)):
        score = outcome.utility.get(measure, {})
        zones = f"{outcome.origins} x {outcome.destinations}"
        cells = [_c_dm(score.get("c_dm")), *(_decimal(score.get(name)) for name in ("c_avg", "g", "e"))]
        cells += [_decimal(outcome.limit_g.get(measure)), *(_decimal(cpc(outcome, measure, km)) for km in (2, 4))]
        cells += [f"{outcome.suppressed:.1%}", f"{outcome.seconds:.3f}"]
        names = (METHOD_ROWS[outcome.cell.row].title, "-" if dimension == WHOLE else outcome.cell.segment)
        rows.append((*names, zones, *_or_note(outcome, cells)))
    return PaperTable(caption, ("Method", dimension.capitalize(), "Zones", *_HEADINGS), tuple(rows))


def _or_note(outcome: Outcome, cells: Sequence[str]) -> tuple[str, ...]:
    if outcome.refusal is None:
        return tuple(cells)
    return (f"refused: {outcome.refusal}", *[""] * (len(cells) - 1))


def long_table(outcomes: Sequence[Outcome]) -> pa.Table:
    """Return every outcome and evaluation as one row of plain numbers."""
    records: list[dict[str, Any]] = []
    for outcome in outcomes:
        cell = outcome.cell
        for measure in outcome.utility or {"trips": {}}:
            told = outcome.privacy.get(measure, {})
            records.append(
                {
                    "dimension": cell.dimension,
                    "segment": cell.segment,
                    "protected": cell.target,
                    "measured_on": _MEASURES[measure],
                    "method": cell.row,
                    "trips": outcome.trips,
                    "pairs": outcome.pairs,
                    "origins": outcome.origins,
                    "destinations": outcome.destinations,
                    "classes": outcome.classes,
                    **{name: outcome.utility.get(measure, {}).get(name) for name in ("c_dm", "c_avg", "g", "e")},
                    **{f"cpc_{km}km": cpc(outcome, measure, km) for km in (1, 2, 4, 8)},
                    "limit_g": outcome.limit_g.get(measure),
                    "suppressed_share": outcome.suppressed,
                    "seconds": outcome.seconds,
                    "smallest_class": told.get("min"),
                    "classes_below": told.get("below"),
                    "refusal": outcome.refusal,
                }
            )
    return pa.Table.from_pylist(records)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |"


def _latex(text: str) -> str:
    if "$" in text:
        return text
    mantissa, times, exponent = text.partition(" x 10^")
    if times:
        return rf"${mantissa}\times10^{{{exponent}}}$"
    for special in "%_&#":
        text = text.replace(special, "\\" + special)
    return text.replace(">=", r"$\ge$").replace(" x ", r" $\times$ ")


def _c_dm(value: float | None) -> str:
    if value is None:
        return "-"
    mantissa, _, exponent = f"{value:.1e}".partition("e")
    return f"{mantissa} x 10^{int(exponent)}"


def _decimal(value: float | None) -> str:
    return "-" if value is None else f"{value:,.2f}" if value < 10 else f"{value:,.1f}"


def _smallest(told: dict[str, Any] | None) -> str:
    return "-" if told is None or told["min"] is None else f"{told['min']:,.0f}"


def _below(told: dict[str, Any] | None, classes: int) -> str:
    return "-" if told is None else f"{told['below']:,} of {classes:,}"
