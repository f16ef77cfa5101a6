"""What the totals of segments give away, by hand-made tables: flows of a whole and of its two parts."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from odkanon.audit.differences import Breakdown, find_total_leaks
from odkanon.audit.release_reader import PublishedRelease

Flows = list[int]
"""Trips of the flows of a table, one after another; 0 where a flow is not published."""


def published(number: int, name: str, suppressed: int | None, k: int = 5) -> PublishedRelease:
    manifest = {"rule": {"trips": k}, **({} if suppressed is None else {"suppressed": {"trips": suppressed}})}
    return PublishedRelease(number, name, Path(name), manifest, None, {}, {}, ("trips",))


def said(
    whole: Flows, women: Flows, men: Flows, suppressed: tuple[int | None, ...], *, complete: bool = True, k: int = 5
) -> list[str]:
    """Return what is found, in short."""
    return found_in({"everyone": whole, "women": women, "men": men}, suppressed, complete=complete, k=k)


def found_in(
    tables: dict[str, Flows], suppressed: tuple[int | None, ...], *, complete: bool = True, k: int = 5
) -> list[str]:
    """Return what is found in the table of everyone and those of the parts, in short."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE classes (release INTEGER, origin VARCHAR, destination VARCHAR, trips BIGINT)")
    for release, flows in enumerate(tables.values()):
        for at, trips in enumerate(flows):
            if trips:
                connection.execute("INSERT INTO classes VALUES (?, ?, 'x', ?)", [release, str(at), trips])
    everyone, *parts = (published(at, name, suppressed[at], k) for at, name in enumerate(tables))
    found = find_total_leaks(connection, [Breakdown(everyone, tuple(parts), complete)])
    assert all(each.check == "difference" and each.releases[0] == "everyone" for each in found)
    return [each.message.partition(" leave ")[2] for each in found]


THREE_WOMEN = ["3 trips of women in 1 flows", "3 trips of all but men in 1 flows"]


@pytest.mark.parametrize(
    ("whole", "women", "men", "suppressed", "expected"),
    [
        # Three women and seventeen men are hidden in the second flow.
        ([20, 20], [12, 0], [8, 0], (0, 3, 17), THREE_WOMEN),
        # As many as the rule asks for, and none at all.
        ([20, 20], [12, 0], [8, 0], (0, 5, 15), []),
        ([20, 20], [12, 0], [8, 0], (0, 0, 20), []),
        ([20, 20], [12, 0], [8, 0], (0, 1, 19), ["1 trips of women in 1 flows", "1 trips of all but men in 1 flows"]),
        # Six more are known from the third flow, where only the women are missing.
        ([20, 20, 26], [12, 0, 0], [8, 0, 20], (0, 9, 17), THREE_WOMEN),
        # And one more, who is alone in hers.
        ([20, 20, 21], [12, 0, 0], [8, 0, 20], (0, 4, 17), THREE_WOMEN),
        # The women that are missing are known from there, and there is nothing else.
        ([20, 26], [12, 0], [8, 20], (0, 6, 0), []),
        # What the whole suppresses may be of either: here four of the seven who are not men.
        ([20, 20], [12, 0], [8, 0], (4, 7, 17), []),
        ([20, 20], [12, 0], [8, 0], (4, 20, 4), ["4 trips of all but women in 1 flows", "4 trips of men in 1 flows"]),
        # Two flows in which both are missing.
        ([20, 20, 9], [12, 0, 0], [8, 0, 0], (0, 3, 26), [each.replace("1 flows", "2 flows") for each in THREE_WOMEN]),
        # Three women outside of all flows of the whole: nobody knows of which of these.
        ([20], [12], [8], (3, 3, 0), []),
        # A flow of the women lies in no flow of the whole, so that the zones are not the same.
        ([20, 20, 0], [12, 0, 9], [8, 0, 0], (0, 3, 17), []),
        ([0], [0], [0], (0, 3, 17), []),
    ],
)
def test_totals_less_what_flows_tell(
    whole: Flows, women: Flows, men: Flows, suppressed: tuple[int, ...], expected: list[str]
) -> None:
    assert said(whole, women, men, suppressed) == expected


def test_only_complete_sets_whose_totals_are_told_can_be_subtracted() -> None:
    flows = [20, 20], [12, 0], [8, 0]
    assert said(*flows, (0, 3, 17)) == THREE_WOMEN
    assert said(*flows, (0, 3, 17), complete=False) == []
    for missing in range(3):
        assert said(*flows, tuple(None if at == missing else total for at, total in enumerate((0, 3, 17)))) == []
    assert said(*flows, (0, 3, 17), k=3) == []
    assert len(said(*flows, (0, 3, 17), k=4)) == 2


def test_where_nothing_is_missing_nobody_is_hidden() -> None:
    """All of the second flow are women, so that neither men nor children are missing there."""
    tables = {"everyone": [30, 20], "women": [10, 20], "men": [10, 0], "children": [10, 0]}
    assert found_in(tables, (3, 0, 3, 0)) == []
