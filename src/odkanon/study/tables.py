"""The paper's tables 2 to 19 from the outcomes of an experiment, as Markdown, LaTeX and CSV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, product
from typing import Any

import numpy as np
import pyarrow as pa

from odkanon.quality.utility import extra_metrics
from odkanon.read.area import Area
from odkanon.read.trips import Trips
from odkanon.study.experiment import TARGETS, WHOLE, Experiment, Outcome

PARTICIPANTS_TABLE, PRIVACY_TABLE = 2, 3
FIRST_TABLE = {WHOLE: 4, "sex": 8, "age": 12, "category": 16}
"""The numbers of the paper's tables: two targets x two perspectives for each segmentation."""
_MEASURES = {"trips": "participants", "weight": "population"}
_HEADINGS = ("C_DM", "C_AVG", "G", "E", "G at best", "CPC 2 km", "CPC 4 km", "Suppressed", "Time (s)")
_LATEX_HEADINGS = {
    "C_DM": "$C_{DM}$",
    "C_AVG": "$C_{AVG}$",
    "G": r"$\bar{G}$",
    "E": "$E$",
    "k_dataset": "$k_{dataset}$",
    "k_population": "$k_{population}$",
}
_LATEX_CHARACTERS = {special: "\\" + special for special in "%_&#${}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    ">": r"\textgreater{}",
    "<": r"\textless{}",
}
_PAPER_WORDS = {"category": "socio-professional category"}
_ROWS_OF_SMALL = 30
"""Rows up to which a table in LaTeX fits on a page in the size small."""
_REFUSED = "refused: "
_LABEL_WORDS = {"category": "cat", "participants": "dataset"}


@dataclass(frozen=True)
class PaperTable:
    """One table: its number in the paper, caption, label, headings, and rows of text."""

    number: int | None
    caption: str
    label: str
    headings: tuple[str, ...]
    paper_headings: tuple[str, ...]
    """The columns of the paper's own table after those that name a row; LaTeX has no others."""
    rows: tuple[tuple[str, ...], ...]

    @property
    def title(self) -> str:
        """The caption with the number of the paper's table."""
        return self.caption if self.number is None else f"Table {self.number}. {self.caption}"

    @property
    def _row_names(self) -> list[int]:
        """Positions of the columns that name a row: the method, and the segment unless all are of the whole."""
        return [at for at, heading in enumerate(self.headings[:2]) if heading != WHOLE.capitalize()]

    def to_markdown(self) -> str:
        """Return the table as Markdown."""
        columns = [*self._row_names, *range(2, len(self.headings))]
        rows = [self.headings, ["---"] * len(self.headings), *self.rows]
        lines = [f"| {' | '.join(row[at].replace('|', '/') for at in columns)} |" for row in rows]
        return "\n".join([f"**{self.title}**", "", *lines, ""])

    def to_latex(self) -> str:
        """Return the table as LaTeX, with the columns, caption and label of the paper's."""
        named = self._row_names
        columns = named + [self.headings.index(heading) for heading in self.paper_headings]
        titles = [
            _LATEX_HEADINGS.get(heading, _latex(heading)) if at else "" for at, heading in enumerate(self.headings)
        ]
        caption = _latex(self.caption)
        if any("Mondrian" in row[0] for row in self.rows) and "E" in self.paper_headings:
            caption += r" $\bar{G}$ and $E$ are not defined for Mondrian."
        lines = [
            r"\begin{table}[ht]",
            r"\centering" + (r"\footnotesize" if len(self.rows) > _ROWS_OF_SMALL else r"\small"),
            rf"\caption{{{caption}}}",
            rf"\begin{{tabular}}{{{'l' * len(named)}{'r' * len(self.paper_headings)}}}",
            r"\hline",
            " & ".join(rf"\multicolumn{{1}}{{c}}{{{titles[at]}}}" if at > 1 else titles[at] for at in columns) + r" \\",
            r"\hline",
        ]
        groups = [list(rows) for _, rows in groupby(self.rows, key=lambda row: row[0])]
        for number, rows in enumerate(groups):
            # A method is named once, above its segments, as in the paper.
            lines += [r"\hline"] * (number > 0 and len(groups) < len(self.rows))
            lines += [
                _latex_row((row[0] if first else "", *row[1:]), columns, len(named))
                for row, first in zip(rows, [True] + [False] * (len(rows) - 1), strict=True)
            ]
        return "\n".join([*lines, r"\hline", r"\end{tabular}", rf"\label{{tab:{self.label}}}", r"\end{table}", ""])


def count_participants(
    trips: Trips, resolution: int, within: Area | None = None
) -> tuple[int | None, float | None, int, int]:
    """Count participants, the people they represent, trips, and cells in which trips begin or end.

    Each person counts once, with the mean weight of their trips; the first two are None if the input does not identify
    persons, the second also without weights.

    Examples
    --------
    >>> from odkanon import make_survey, read_trips
    >>> persons, represented, trips, _ = count_participants(read_trips(make_survey()), 10)
    >>> persons, round(represented), trips
    (3320, 9001164, 81291)
    """
    inside = np.ones(len(trips), dtype=bool)
    if trips.zoning is not None:
        inside = trips.inside(resolution, None)
    elif within is not None:
        inside = np.logical_and(*map(within.contains, trips.cells(resolution)))
    places = trips.cells(resolution) if trips.zoning is None else trips.zones(trips.zoning)
    cells = len(np.unique(np.concatenate([end[inside] for end in places])))
    person = trips.contributors.get("persons")
    if person is None:
        return None, None, int(inside.sum()), cells
    known = inside & (person >= 0)
    persons, number = np.unique(person[known], return_inverse=True)
    represented = None
    if trips.weight is not None:
        sums = np.bincount(number, trips.weight[known].astype(np.float64), len(persons))
        represented = float((sums / np.bincount(number, minlength=len(persons))).sum()) / trips.scale
    return len(persons), represented, int(inside.sum()), cells


def paper_tables(outcomes: Sequence[Outcome], experiment: Experiment | None = None) -> list[PaperTable]:
    """Return the tables that these outcomes fill, in the order of the paper.

    Parameters
    ----------
    outcomes : sequence of Outcome
        The outcomes of runs.
    experiment : Experiment, optional
        The experiment, whose trips fill the table of participants.

    Examples
    --------
    >>> from odkanon import make_survey, read_trips
    >>> from odkanon.study.experiment import Experiment
    >>> grid = Experiment(read_trips(make_survey()), k=10, budget=0.1, dimensions=(), rows=("oigh",), resolution=7)
    >>> outcomes = [run() for _, run in grid.run({})]
    >>> [table.title for table in paper_tables(outcomes)][:1]
    ['Table 3. k-anonymity property computed in different scenarios.']
    """
    dimensions = list(dict.fromkeys(outcome.cell.dimension for outcome in outcomes))
    tables = []
    if experiment is not None and isinstance(experiment.trips, Trips):
        tables.append(_participants_table(experiment))
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
    """Return the protection targets of some outcomes."""
    return list(dict.fromkeys(outcome.cell.target for outcome in outcomes))


def format_target(target: str) -> str:
    """Return a target as text."""
    return target.replace("+", " and ")


def _participants_table(experiment: Experiment) -> PaperTable:
    rows = []
    for dimension, label, trips in experiment.parts():
        counts = count_participants(trips, experiment.resolution, experiment.within)
        cells = ["-" if count is None else f"{count:,.0f}" for count in counts]
        rows.append(("-" if dimension == WHOLE else dimension, label, *cells))
    headings = ("By", "Segment", "Participants", "People represented", "Trips", "Cells")
    caption = "Participants, and the people that they represent."
    return PaperTable(PARTICIPANTS_TABLE, caption, "1", headings, headings[2:], tuple(rows))


def _privacy_table(outcomes: Sequence[Outcome]) -> PaperTable:
    rows = []
    for outcome in outcomes:
        if outcome.cell.dimension != WHOLE:
            continue
        cells = []
        for measure in ("trips", "weight", "persons"):
            report = outcome.privacy.get(measure)
            cells.append("-" if report is None or report["min"] is None else f"{report['min']:,.0f}")
            cells.append("-" if report is None else f"{report['below']:,} of {outcome.classes:,}")
        protected = outcome.promise or format_target(outcome.cell.target)
        rows.append((outcome.title, protected, *_or_refusal(outcome, cells)))
    measured = (heading for who in ("dataset", "population", "persons") for heading in (f"k_{who}", "below k"))
    headings = ("Method", "Protected", *measured)
    caption = "k-anonymity property computed in different scenarios."
    kept = ("k_dataset", "k_population")
    return PaperTable(PRIVACY_TABLE, caption, "whole-dataset-anonymity", headings, kept, tuple(rows))


def _utility_table(
    outcomes: Sequence[Outcome], dimension: str, target: str, measure: str, number: int | None
) -> PaperTable:
    where = "on the whole dataset" if dimension == WHOLE else f"segmenting on {_PAPER_WORDS.get(dimension, dimension)}"
    caption = (
        f"Result comparison {where}, protecting the {format_target(target)}, "
        f"calculating metrics on the {_MEASURES[measure]}."
    )
    rows = []
    order, extra = list(dict.fromkeys(outcome.cell.row for outcome in outcomes)), extra_metrics()
    for outcome in sorted(outcomes, key=lambda o: order.index(o.cell.row)):
        score = outcome.utility.get(measure, {})
        zones = f"{outcome.origins} x {outcome.destinations}"
        cells = [_c_dm(score.get("c_dm")), *(_decimal(score.get(name)) for name in ("c_avg", "g", "e"))]
        cells += [_decimal(outcome.limit_g.get(measure)), *(_decimal(outcome.cpc(measure, km)) for km in (2, 4))]
        cells += ["-" if outcome.suppressed is None else f"{outcome.suppressed:.1%}", f"{outcome.seconds:.3f}"]
        cells += [_decimal(score.get(metric.name)) for metric in extra]
        names = (outcome.title, "-" if dimension == WHOLE else outcome.cell.segment)
        rows.append((*names, zones, *_or_refusal(outcome, cells)))
    headings = ("Method", dimension.capitalize(), "Zones", *_HEADINGS, *(metric.title for metric in extra))
    kept = _HEADINGS[:4] + (("Time (s)",) if dimension == WHOLE else ())
    label = "-".join(_LABEL_WORDS.get(word, word) for word in (dimension, *target.split("+"), _MEASURES[measure]))
    return PaperTable(number, caption, label, headings, kept, tuple(rows))


def _or_refusal(outcome: Outcome, cells: Sequence[str]) -> tuple[str, ...]:
    if outcome.refusal is None:
        return tuple(cells)
    return (f"{_REFUSED}{outcome.refusal}", *[""] * (len(cells) - 1))


def long_table(outcomes: Sequence[Outcome]) -> pa.Table:
    """Return a table with one row per outcome and measure, and a column per metric."""
    records: list[dict[str, Any]] = []
    for outcome in outcomes:
        cell = outcome.cell
        for measure in outcome.utility or {"trips": {}}:
            report = outcome.privacy.get(measure, {})
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
                    **{f"cpc_{km}km": outcome.cpc(measure, km) for km in (1, 2, 4, 8)},
                    "limit_g": outcome.limit_g.get(measure),
                    "suppressed_share": outcome.suppressed,
                    "seconds": outcome.seconds,
                    "smallest_class": report.get("min"),
                    "classes_below": report.get("below"),
                    "refusal": outcome.refusal,
                    **{metric.name: outcome.utility.get(measure, {}).get(metric.name) for metric in extra_metrics()},
                }
            )
    return pa.Table.from_pylist(records)


def _latex_row(row: Sequence[str], columns: Sequence[int], named: int) -> str:
    """Return a row of LaTeX; a refused run is N/A, as in the paper."""
    cells = [_latex(row[at]) for at in columns]
    if any(cell.startswith(_REFUSED) for cell in row):
        cells[named:] = [rf"\multicolumn{{{len(columns) - named}}}{{c}}{{N/A}}"]
    return " & ".join(cells) + r" \\"


def _latex(text: str) -> str:
    mantissa, times, exponent = text.partition(" x 10^")
    if times:
        return rf"${mantissa}\times10^{{{exponent}}}$"
    escaped = "".join(_LATEX_CHARACTERS.get(character, character) for character in text)
    return escaped.replace("k-anonymity", "$k$-anonymity")


def _c_dm(value: float | None) -> str:
    if value is None:
        return "-"
    mantissa, _, exponent = f"{value:.1e}".partition("e")
    return f"{mantissa} x 10^{int(exponent)}"


def _decimal(value: float | None) -> str:
    return "-" if value is None else f"{value:,.2f}" if value < 10 else f"{value:,.1f}"
