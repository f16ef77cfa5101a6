"""Ids in canonical form are looked at no further, and that changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pyarrow as pa
import pytest

from odkanon.audit.counting.counted_measures import person_sql
from odkanon.core.sql import connect
from odkanon.read import person_ids

SIGNS = [
    "",
    "\n",
    "0",
    "1",
    "5",
    "a",
    "f",
    "g",
    "n",
    "x",
    "U",
    "Z",
    "\u03a3",
    "\u03c2",
    "-",
    "_",
    ".",
    " ",
    "\u200b",
    "{",
    "}",
    "+",
    "e",
    "E",
    "\u00e9",
    "\u00df",
    "\u0301",
    "\uff11",
    "\u2013",
    "\x00",
]


def some_words() -> set[str]:
    """Return many ids, and words for nobody."""
    words = {"".join(signs) for signs in product(SIGNS, repeat=3)}
    return words | {spelled for word in person_ids.NO_ID for spelled in (word, word.upper(), word.title(), f"{word}1")}


@pytest.mark.parametrize("expression", [person_ids.contributor_text, person_ids.value_text])
def test_the_short_way_gives_the_same(expression: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    words = some_words()
    short = expression("id")
    monkeypatch.setattr(person_ids, "_CANONICAL", "^nothing is like this$")
    connection = connect()
    connection.register("ids", pa.table({"id": sorted(words)}))
    differing = connection.sql(f"SELECT id FROM ids WHERE ({short}) IS DISTINCT FROM ({expression('id')})").fetchall()
    assert differing == []


def test_a_line_end_after_an_id_makes_no_other_contributor() -> None:
    """The end of a pattern is the end of the text: in some languages it is the end of its last line, too."""
    connection = connect()
    for word in ("12", "ab", "q7", "12.5"):
        connection.register("ids", pa.table({"id": [word, f"{word}\n", f"\n{word}\r\n"]}))
        assert connection.sql(f"SELECT DISTINCT {person_ids.contributor_text('id')} FROM ids").fetchall() == [(word,)]


def test_ids_that_are_is_canonical_are_contributors_as_they_are() -> None:
    words = sorted(some_words() | {f"{word}\n" for word in some_words()})
    once = [word for word in words if person_ids.is_canonical(pa.array([word]))]
    assert 100 < len(once) < len(words)
    assert person_ids.is_canonical(pa.array(once))
    assert not person_ids.is_canonical(pa.array([*once, "007"]))
    connection = connect()
    connection.register("ids", pa.table({"id": once}))
    assert (
        connection.sql(f"SELECT id FROM ids WHERE ({person_ids.contributor_text('id')}) IS DISTINCT FROM id").fetchall()
        == []
    )


def test_the_audit_spells_ids_alike_by_words_of_its_own() -> None:
    """Where they differed, a good release would have findings, or a bad one none."""
    words = some_words()
    connection = connect()
    connection.register("ids", pa.table({"id": sorted(words)}))
    differing = f"({person_ids.contributor_text('id')}) IS DISTINCT FROM ({person_sql('id')})"
    assert connection.sql(f"SELECT id FROM ids WHERE {differing}").fetchall() == []
