"""Ids that can be spelled in one way only are looked at no further, and that changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pyarrow as pa
import pytest

from odkanon.read import identity
from odkanon.read.tables.open import connect

SIGNS = ["", "0", "1", "5", "a", "f", "g", "n", "x", "U", "Z", "-", "_", ".", " ", "\u200b", "{", "}", "+", "e", "E"]


@pytest.mark.parametrize("expression", [identity.head_text, identity.value_text])
def test_the_short_way_gives_the_same(expression: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    words = {"".join(signs) for signs in product(SIGNS, repeat=3)}
    words |= {spelled for word in identity.NOBODY for spelled in (word, word.upper(), word.title(), f"{word}1")}
    short = expression("id")
    monkeypatch.setattr(identity, "_SINGLE", "^nothing is like this$")
    connection = connect()
    connection.register("ids", pa.table({"id": sorted(words)}))
    differing = connection.sql(f"SELECT id FROM ids WHERE ({short}) IS DISTINCT FROM ({expression('id')})").fetchall()
    assert differing == []
