"""Row checks that every engine shares: each row is either kept or counted under one reason.

`rows_of` says in SQL how the rows of a table are checked and counted. Tables that fit in memory are fetched with it
once (`checked_rows`); a database works with the same expressions where the rows are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import groupby
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from odkanon.core.arrays import Bools, Codes, Ints
from odkanon.core.weights import largest_weight, to_units, weight_scale, whole_total
from odkanon.errors import InputError
from odkanon.model.measures import DISTINCT
from odkanon.model.provenance import Rejected, Source
from odkanon.read.fetching import fetch_rows
from odkanon.read.person_ids import contributor_text
from odkanon.read.tables.open_table import Check, Table, Typed, quote_name

NO_WEIGHT = "without a weight"
BAD_WEIGHT = "with a weight that is not a finite number"
ZERO_WEIGHT = "with a weight of zero or less"
UNREADABLE = "lines with a wrong number of columns or not in UTF-8"
DUPLICATE = "that are exact copies of another row of the same person"

MOST_TRIPS = 9_000_000_000_000_000
"""Of one row; more would not be told from the next number by a float."""
_MOST_IN_ALL = 2**62

_LONG = ("VARCHAR", "DECIMAL", "BIGINT", "UBIGINT", "HUGEINT", "UHUGEINT")
"""Types that tell more digits than a float."""
_NINE = r"^\s*[+]?0*([0-9]*[.][0-9]{0,9})[0-9]*\s*$"
_WHOLE = r"^\s*[+]?([0-9]+)([.]0*)?\s*$"


def finite(number: str) -> str:
    """Return the SQL condition under which a number is finite, in words that every database knows."""
    return f"(abs({number}) <= 1.7976931348623157e308)"


def number_or_nan(column: str) -> str:
    """Return the SQL expression of a number; NaN where it cannot be read."""
    return f"coalesce(TRY_CAST({quote_name(column)} AS DOUBLE), CAST('nan' AS DOUBLE))"


def too_long(table: Typed, column: str) -> str:
    """Return the SQL condition under which a number has more digits than a float tells."""
    kind, number = table.types()[column].upper(), number_or_nan(column)
    if not kind.startswith(_LONG):
        return "false"
    large = f"{number} > {2**53}"
    return large if kind.endswith("INT") else f"length(CAST({quote_name(column)} AS VARCHAR)) > 15 OR {large}"


def at_most(table: Typed, column: str) -> str:
    """Return the SQL expression of a number as a float that is never more than it; NaN where it cannot be read.

    A float has some fifteen digits. What is written with more may be nearest to one above it, 9.9999999999999999 to 10.
    """
    number, text = number_or_nan(column), f"CAST({quote_name(column)} AS VARCHAR)"
    cut = f"regexp_extract({text}, '{_NINE}', 1)"
    whole = f"TRY_CAST(regexp_extract({text}, '{_WHOLE}', 1) AS HUGEINT)"
    return (
        f"CASE WHEN NOT ({too_long(table, column)}) OR NOT {finite(number)} THEN {number} "
        f"WHEN length({cut}) BETWEEN 1 AND 16 THEN coalesce(TRY_CAST({cut} AS DOUBLE), {number}) "
        f"WHEN TRY_CAST({number} AS HUGEINT) <= {whole} THEN {number} ELSE nextafter({number}, CAST(0 AS DOUBLE)) END"
    )


class Checkable(Typed, Protocol):
    """A table with reasons of its own to turn rows away."""

    @property
    def checks(self) -> tuple[Check, ...]: ...  # noqa: D102
    def is_whole(self, column: str) -> bool: ...  # noqa: D102


@dataclass(frozen=True)
class Rows:
    """How the rows of a table are checked and counted: SQL expressions.

    Attributes
    ----------
    reasons : tuple of str
        Why rows are turned away; the number 1 stands for the first.
    reason : str
        The number of the first reason that applies, weights left aside; 0 for none.
    weight, weight_reason : str or None
        The weight, and the number of the reason to turn it away; None where the table has no such column.
    trips : str or None
        How many trips a row stands for; None where it is one each.
    contributors : dict of str to str
        By measure, the id of the head of a row; NULL for nobody.
    same : dict of str to str
        What makes two rows the same; empty not to look for copies.
    known : str
        Under which condition two rows that are the same are copies; where it never holds, they can only be counted.
    """

    reasons: tuple[str, ...]
    reason: str
    weight: str | None
    weight_reason: str | None
    trips: str | None
    contributors: Mapping[str, str]
    same: Mapping[str, str]
    known: str

    @property
    def no_weight(self) -> int:
        """The number of the reason that there is no weight."""
        return self.reasons.index(NO_WEIGHT) + 1

    @property
    def usable_weight(self) -> str:
        """The condition under which a weight is a positive number, whatever else is wrong with its row."""
        return f"{finite(self.weight or '')} AND {self.weight} > 0"

    @property
    def detects_duplicates(self) -> bool:
        """Whether rows that are the same are copies, since a person is not in two places at one time."""
        return self.known != "true"


def rows_of(
    table: Checkable,
    found: Mapping[str, str],
    checks: Sequence[Check],
    *,
    where: Check | None,
    identity: Mapping[str, str] | None,
    long_weights: bool = True,
) -> Rows:
    """Say how the rows of a table are checked and counted.

    Parameters
    ----------
    found : mapping of str to str
        Which column stands for which of our names; ``weight``, ``trips`` and heads are dealt with here.
    checks : sequence of Check
        In order, after those of the table itself; the first that applies to a row is its reason.
    where : Check, optional
        The filter, which goes before everything else.
    identity : mapping of str to str, optional
        SQL expressions that, with person and weight, make two rows the same; None not to look.
    long_weights : bool
        Whether weights may have more digits than a float tells; False is quicker.
    """
    checks = [*([] if where is None else [where]), *table.checks, *checks]
    weighed = found.get("weight")
    careful = weighed is not None and long_weights and too_long(table, weighed) != "false"
    weight = None if weighed is None else at_most(table, weighed) if careful else number_or_nan(weighed)
    count = number_or_nan(found["trips"]) if "trips" in found else None
    contributors = {
        name: quote_name(found[column]) if table.is_whole(found[column]) else contributor_text(found[column])
        for name, column in ((name, measure.column or "") for name, measure in DISTINCT.items())
        if column in found
    }
    same: dict[str, str] = {}
    known = "true"
    if identity is not None:
        same = {**({} if weight is None else {"weight": weight}), **contributors, **identity}
        if "persons" in contributors and "start_time" in identity:
            known = f"{contributors['persons']} IS NOT NULL AND {quote_name(found['start_time'])} IS NOT NULL"
    on_weight = [] if weight is None else _weight_checks(quote_name(found["weight"]), weight)
    return Rows(
        tuple(check.reason for check in [*checks, *on_weight]),
        _numbered(checks, 1),
        weight,
        _numbered(on_weight, len(checks) + 1) if on_weight else None,
        None
        if count is None
        else f"CAST(CASE WHEN {count} > 0 AND {count} <= {MOST_TRIPS} THEN {count} ELSE 0 END AS BIGINT)",
        contributors,
        same,
        known,
    )


def _weight_checks(column: str, number: str) -> list[Check]:
    return [
        Check(NO_WEIGHT, f"{column} IS NULL"),
        Check(BAD_WEIGHT, f"NOT {finite(number)}"),
        Check(ZERO_WEIGHT, f"{number} <= 0"),
    ]


def _numbered(checks: Sequence[Check], first: int) -> str:
    """Return the SQL expression of the number of the first reason that applies, 0 if none does."""
    groups = []
    for unless, some in groupby(enumerate(checks, first), key=lambda numbered: numbered[1].unless):
        cases = [] if unless is None else [f"WHEN {unless} THEN NULL"]
        cases += [f"WHEN {check.condition} THEN {number}" for number, check in some]
        groups.append(f"CASE {' '.join(cases)} END")
    return f"CAST(coalesce({', '.join([*groups, '0'])}) AS INTEGER)" if groups else "0"


@dataclass(frozen=True, eq=False)
class Checked:
    """The rows that passed, with weights and heads as numbers, and the account of those that did not."""

    table: pa.Table
    count: Ints | None
    weight: Ints | None
    scale: int
    contributors: Mapping[str, Codes]
    source: Source

    def with_mean_weight(self) -> Source:
        """Return the account with the mean weight of the trips that are left."""
        return self.source if self.weight is None else whole_mean(self.source, self.count, self.weight, self.scale)


def whole_mean(source: Source, count: Ints | None, weight: Ints, scale: int) -> Source:
    """Return an account that remembers the mean weight of a trip, unless it does already."""
    trips = len(weight) if count is None else int(count.sum())
    if source.mean_weight is not None or not trips:
        return source
    return replace(source, mean_weight=Fraction(int(weight.sum()), trips * scale))


def checked_rows(
    table: Table,
    found: Mapping[str, str],
    values: Mapping[str, str],
    checks: Sequence[Check],
    *,
    where: Check | None,
    identity: Mapping[str, str] | None,
) -> Checked:
    """Fetch a table once, and keep the rows that pass every check; see `rows_of`.

    Parameters
    ----------
    values : mapping of str to str
        What to fetch: SQL expressions by name.
    """
    rows = rows_of(table, found, checks, where=where, identity=identity)
    whole = fetch_rows(table, rows, values)
    fetched = whole.data
    reasons, reason = list(rows.reasons), fetched.column(" reason").to_numpy().astype(np.int64)
    weight = _weights(fetched, rows, reason)
    units, scale = _units(weight, reason == 0)
    copies = whole.copies(reason == 0)
    lookalikes = 0 if rows.detects_duplicates else int(np.count_nonzero(copies))
    if rows.detects_duplicates and copies.any():
        reasons.append(DUPLICATE)
        reason[copies] = len(reasons)
    keep = reason == 0
    counts = None if rows.trips is None else fetched.column(" trips").to_numpy().astype(np.int64)
    check_total(table.name, 0.0 if counts is None else float(counts.sum(dtype=np.float64)))
    rejected = _account(reason, reasons, counts, units)
    lines = table.unreadable_lines()
    if lines:
        rejected[UNREADABLE] = Rejected(lines, lines if counts is None else 0)
    kept = fetched.select(list(values))
    return Checked(
        kept if keep.all() else kept.filter(pa.array(keep)),
        None if counts is None else counts[keep],
        None if units is None else units[keep],
        scale,
        {name: contributor[keep] for name, contributor in whole.contributors.items() if (contributor >= 0).any()},
        Source(len(reason) + lines, table.sha256, rejected, lookalikes=lookalikes),
    )


def check_total(name: str, trips: float) -> None:
    """Raise if a table has more trips in all than can be added up in 64 bits."""
    if trips > _MOST_IN_ALL:
        raise InputError(f"{name} has {trips:g} trips in all, more than can be added up; check the column of trips")


def _weights(fetched: pa.Table, rows: Rows, reason: Ints) -> npt.NDArray[np.float64] | None:
    """Return the weights, and turn rows away that have none; a column that is empty throughout counts as absent."""
    if rows.weight is None:
        return None
    of_weight = fetched.column(" weight reason").to_numpy()
    if (of_weight == rows.no_weight).all():
        return None
    np.copyto(reason, of_weight, where=reason == 0)
    weight: npt.NDArray[np.float64] = fetched.column(" weight").to_numpy()
    return weight


def drop_rows(rows: Checked, good: Bools, reason: str) -> Checked:
    """Return the good rows only; the others count as turned away for the reason."""
    if good.all():
        return rows
    lost = int(np.count_nonzero(~good))
    trips = lost if rows.count is None else int(rows.count[~good].sum())
    weight = 0 if rows.weight is None else int(rows.weight[~good].sum())
    return Checked(
        rows.table.filter(pa.array(good)),
        None if rows.count is None else rows.count[good],
        None if rows.weight is None else rows.weight[good],
        rows.scale,
        {name: contributor[good] for name, contributor in rows.contributors.items()},
        rows.source.reject(reason, Rejected(lost, trips, weight)),
    )


def _units(weight: npt.NDArray[np.float64] | None, good: Bools) -> tuple[Ints | None, int]:
    """Return weights in units that suit the good rows, copies included; of the others, as much as can be added up."""
    if weight is None:
        return None, 1
    usable = np.where(np.isfinite(weight) & (weight > 0), weight, 0.0)
    scale = weight_scale(whole_total(usable[good]))
    most = np.where(good, np.inf, largest_weight(len(usable), scale))
    return to_units(np.minimum(usable, most), scale), scale


def _account(reason: Ints, reasons: Sequence[str], count: Ints | None, units: Ints | None) -> dict[str, Rejected]:
    account = {}
    often = np.bincount(reason, minlength=len(reasons) + 1)
    for number, text in enumerate(reasons, 1):
        rows = int(often[number])
        if rows:
            which = reason == number
            trips = rows if count is None else int(count[which].sum())
            account[text] = Rejected(rows, trips, 0 if units is None else int(units[which].sum()))
    return account
