"""What the totals of segments give away: a segment's suppressed trips, less those that the flows already tell."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import numpy as np
import numpy.typing as npt

from odkanon.audit.differences import Family
from odkanon.audit.findings import Finding
from odkanon.audit.release_reader import Published, rows

Ints = npt.NDArray[np.int64]


def find_column_leaks(connection: duckdb.DuckDBPyConnection, families: Sequence[Family]) -> list[Finding]:
    """Return what can be had from totals, for complete sets of parts on the zones of their whole.

    The suppressed trips of a part are known in total. Those in flows of which it is the only part not published are
    known, too. What is left of the total lies in the other flows of which the part is not published.
    """
    return [
        finding
        for family in families
        if family.complete
        and not family.same
        # Only totals that stand in the folders can be subtracted by others.
        and all("suppressed" in each.manifest for each in (family.whole, *family.parts))
        for finding in _leaks(connection, family)
    ]


def _leaks(connection: duckdb.DuckDBPyConnection, family: Family) -> list[Finding]:
    whole, parts = family.whole, family.parts
    published = _matrix(connection, whole, parts)
    if published is None:
        return []
    totals, trips = published
    residual = totals - trips.sum(axis=1)
    hidden = (trips == 0) & (residual > 0)[:, None]
    outside = int(whole.manifest["suppressed"]["trips"])
    least = family.few
    alone = hidden & (hidden.sum(axis=1) == 1)[:, None]
    suppressed = np.array([part.manifest["suppressed"]["trips"] for part in parts], dtype=np.int64)
    own = suppressed - (alone * residual[:, None]).sum(axis=0)
    shared = (hidden & ~alone).sum(axis=0)
    others = ((hidden & ~alone) * residual[:, None]).sum(axis=0) + outside - own
    findings = []
    for at, part in enumerate(parts):
        for group, who in ((own[at], part.name), (others[at], f"all but {part.name}")):
            if 0 < group < least and shared[at]:
                text = (
                    f"the suppressed trips of {part.name}, less the flows where nothing else is missing, leave "
                    f"{group:,} trips of {who} in {shared[at]:,} flows"
                )
                findings.append(Finding("difference", (whole.name, part.name), text))
    return findings


def _matrix(
    connection: duckdb.DuckDBPyConnection, whole: Published, parts: Sequence[Published]
) -> tuple[Ints, Ints] | None:
    """Return the trips of each flow of the whole, and of each part in it; None where the zones are not the same."""
    columns = ", ".join(
        f"coalesce(sum(trips) FILTER (release = {part.number}), 0)::BIGINT AS p{at}" for at, part in enumerate(parts)
    )
    numbers = ", ".join(str(each.number) for each in (whole, *parts))
    table = rows(
        connection,
        f"SELECT coalesce(sum(trips) FILTER (release = {whole.number}), 0)::BIGINT AS whole, {columns} FROM classes "
        f"WHERE release IN ({numbers}) GROUP BY origin, destination",
    )
    if not table or any(row["whole"] == 0 for row in table):
        return None
    cells = np.array([[row[f"p{at}"] for at in range(len(parts))] for row in table], dtype=np.int64)
    return np.array([row["whole"] for row in table], dtype=np.int64), cells
