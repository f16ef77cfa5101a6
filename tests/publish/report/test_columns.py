"""Long columns of a page are packed, and come back as they were."""

from __future__ import annotations

import base64

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odkanon.publish.report.packing import LONG, pack_numbers
from worlds.columns import unpacked

WHOLE = st.integers(-(2**40), 2**40)


@given(st.lists(WHOLE, max_size=60), st.integers(0, 4), st.booleans())
def test_numbers_survive_packing(some: list[int], decimals: int, many: bool) -> None:
    values = np.round(np.array(some * (LONG if many else 1), dtype=np.float64) / 10**decimals, decimals)
    if not some:
        assert pack_numbers(values) == []
    elif many:
        assert unpacked(pack_numbers(values)) == values.tolist()
    else:
        assert unpacked(pack_numbers(values)) == pytest.approx(values.tolist(), rel=1e-6)


def test_numbers_with_many_digits_keep_seven_of_them() -> None:
    values = np.random.default_rng(1).gamma(2.0, 30.0, LONG)
    assert unpacked(pack_numbers(values)) == pytest.approx(values.tolist(), rel=1e-6)


def test_packed_bytes_tell_neither_time_nor_system() -> None:
    packed = pack_numbers(np.arange(LONG))
    assert isinstance(packed, dict)
    assert base64.b64decode(packed["steps"])[:10] == b"\x1f\x8b\x08\0\0\0\0\0\x02\xff"
