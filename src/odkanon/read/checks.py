"""Row checks that trips and OD tables share: every row is either kept or counted under one reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from odkanon.core.arrays import Bools, Codes, Ints
from odkanon.core.weights import to_units, weight_scale
from odkanon.model.od import Rejected, Source
from odkanon.read.tables.open import Check, Table, quote_name

__all__ = [
    "BAD_WEIGHT",
    "DUPLICATE",
    "NO_WEIGHT",
    "UNREADABLE",
    "ZERO_WEIGHT",
    "Check",
    "Checked",
    "checked_rows",
    "drop_rows",
    "finite",
    "person_text",
    "weight_number",
]

NO_WEIGHT = "without a weight"
BAD_WEIGHT = "with a weight that is not a finite number"
ZERO_WEIGHT = "with a weight of zero or less"
UNREADABLE = "lines with a wrong number of columns or not in UTF-8"
DUPLICATE = "that are exact copies of another row of the same person"


def finite(number: str) -> str:
    """Return the SQL condition under which a number is finite, in words that every database knows."""
    return f"(abs({number}) <= 1.7976931348623157e308)"


def weight_number(column: str) -> str:
    """Return the SQL expression of a weight; NaN where it cannot be read."""
    return f"coalesce(TRY_CAST({quote_name(column)} AS DOUBLE), CAST('nan' AS DOUBLE))"


def person_text(column: str) -> str:
    """Return the SQL expression of the name of a person; NULL where there is none."""
    return f"nullif(trim(CAST({quote_name(column)} AS VARCHAR)), '')"


@dataclass(frozen=True, eq=False)
class Checked:
    """The rows that passed, with weights and persons as numbers, and the account of those that did not."""

    table: pa.Table
    count: Ints | None
    weight: Ints | None
    scale: int
    person: Codes | None
    source: Source


def checked_rows(
    table: Table,
    found: Mapping[str, str],
    values: Mapping[str, str],
    checks: Sequence[Check],
    *,
    where: Check | None,
    identity: Sequence[str] | None,
) -> Checked:
    """Fetch a table once, and keep the rows that pass every check.

    Parameters
    ----------
    found : mapping of str to str
        Which column stands for which of our names; ``weight``, ``person`` and ``trips`` are dealt with here.
    values : mapping of str to str
        What to fetch: SQL expressions by name.
    checks : sequence of Check
        In order, after those of the table itself; the first that applies to a row is its reason.
    where : Check, optional
        The filter, which goes before everything else.
    identity : sequence of str, optional
        SQL expressions that, with person and weight, make two rows of a person the same; None not to look.
    """
    checks = [*table.checks, *checks]
    if where is not None:
        checks = [where, *checks]
    cases = " ".join(f"WHEN {check.condition} THEN {number}" for number, check in enumerate(checks, 1))
    fetched = table.fetch(
        [
            *(f"{expression} AS {quote_name(name)}" for name, expression in values.items()),
            f"CASE {cases} ELSE 0 END::UTINYINT AS reason" if checks else "0::UTINYINT AS reason",
            *_extra_columns(found, identity),
        ]
    )
    reasons = [check.reason for check in checks]
    reason = fetched.column("reason").to_numpy().astype(np.int64)
    weight = _column(fetched, "weight")
    weight_missing = None if weight is None else fetched.column("weight_missing").to_numpy()
    if weight is not None and weight_missing is not None and not weight_missing.all():
        _reject_bad_weights(weight, weight_missing, reason, reasons)
    else:
        weight = None
    _reject_copies(fetched, reason, reasons)
    count = _column(fetched, "count")
    keep = reason == 0
    units, scale = _units(weight)
    counts = None if count is None else np.where(np.isfinite(count) & (count > 0), count, 0).astype(np.int64)
    rejected = _account(reason, reasons, counts, units)
    lines = table.unreadable_lines()
    if lines:
        rejected[UNREADABLE] = Rejected(lines, lines if counts is None else 0)
    source = Source(len(reason) + lines, table.sha256, rejected)
    return Checked(
        fetched.select(list(values)).filter(pa.array(keep)),
        None if counts is None else counts[keep],
        None if units is None else units[keep],
        scale,
        _persons(fetched, keep),
        source,
    )


def drop_rows(rows: Checked, good: Bools, reason: str) -> Checked:
    """Return the good rows only; the others count as turned away for the reason."""
    if good.all():
        return rows
    trips = int(np.count_nonzero(~good) if rows.count is None else rows.count[~good].sum())
    weight = 0 if rows.weight is None else int(rows.weight[~good].sum())
    account = {**rows.source.rejected, reason: Rejected(int(np.count_nonzero(~good)), trips, weight)}
    return Checked(
        rows.table.filter(pa.array(good)),
        None if rows.count is None else rows.count[good],
        None if rows.weight is None else rows.weight[good],
        rows.scale,
        None if rows.person is None else rows.person[good],
        replace(rows.source, rejected=account),
    )


def _extra_columns(found: Mapping[str, str], identity: Sequence[str] | None) -> list[str]:
    extra = []
    if "weight" in found:
        column = quote_name(found["weight"])
        extra += [f"{weight_number(found['weight'])} AS weight", f"{column} IS NULL AS weight_missing"]
    if "trips" in found:
        extra.append(f"{weight_number(found['trips'])} AS count")
    if "person" in found:
        person = person_text(found["person"])
        extra.append(f"{person} AS person")
        if identity:
            weight = [quote_name(found["weight"])] if "weight" in found else []
            known = f"{person} IS NOT NULL AND {quote_name(found['start_time'])} IS NOT NULL"
            same = ", ".join([person, *weight, *identity])
            extra.append(f"CASE WHEN {known} THEN hash({same}) END AS fingerprint")
    return extra


def _column(fetched: pa.Table, name: str) -> npt.NDArray[np.float64] | None:
    return fetched.column(name).to_numpy() if name in fetched.column_names else None


def _reject(which: Bools, text: str, reason: Ints, reasons: list[str]) -> None:
    reasons.append(text)
    reason[which & (reason == 0)] = len(reasons)


def _reject_bad_weights(weight: npt.NDArray[np.float64], missing: Bools, reason: Ints, reasons: list[str]) -> None:
    _reject(missing, NO_WEIGHT, reason, reasons)
    _reject(~np.isfinite(weight), BAD_WEIGHT, reason, reasons)
    _reject(weight <= 0, ZERO_WEIGHT, reason, reasons)


def _reject_copies(fetched: pa.Table, reason: Ints, reasons: list[str]) -> None:
    """Turn away exact copies; the fingerprint only narrows down where to compare in full."""
    if "fingerprint" not in fetched.column_names:
        return
    column = fetched.column("fingerprint")
    rows = np.flatnonzero(np.asarray(column.is_valid()) & (reason == 0))
    prints = np.asarray(pc.fill_null(column, 0))[rows]
    _, number, counts = np.unique(prints, return_inverse=True, return_counts=True)
    suspects = rows[counts[number] > 1]
    if len(suspects) == 0:
        return
    compared = fetched.take(pa.array(suspects))
    keys = compared.column_names
    first = compared.append_column("row", pa.array(suspects)).group_by(keys).aggregate([("row", "min")])
    copies = np.zeros(len(reason), dtype=bool)
    copies[suspects] = True
    copies[first.column("row_min").to_numpy()] = False
    _reject(copies, DUPLICATE, reason, reasons)


def _units(weight: npt.NDArray[np.float64] | None) -> tuple[Ints | None, int]:
    if weight is None:
        return None, 1
    usable = np.where(np.isfinite(weight) & (weight > 0), weight, 0.0)
    scale = weight_scale(max(len(usable), 1), float(usable.max(initial=0.0)))
    return to_units(usable, scale), scale


def _account(reason: Ints, reasons: Sequence[str], count: Ints | None, units: Ints | None) -> dict[str, Rejected]:
    account = {}
    for number, text in enumerate(reasons, 1):
        which = reason == number
        rows = int(np.count_nonzero(which))
        if rows:
            trips = rows if count is None else int(count[which].sum())
            account[text] = Rejected(rows, trips, 0 if units is None else int(units[which].sum()))
    return account


def _persons(fetched: pa.Table, keep: Bools) -> Codes | None:
    """Return a number for each distinct person, -1 where there is none; None where nobody is named."""
    if "person" not in fetched.column_names:
        return None
    column = fetched.column("person").combine_chunks()
    if column.null_count == len(column):
        return None
    encoded = pc.dictionary_encode(column)
    return np.asarray(pc.fill_null(encoded.indices, -1), dtype=np.int32)[keep]
