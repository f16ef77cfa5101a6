"""Long columns of a page are packed, and come back as they were."""

from __future__ import annotations

import base64
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odkanon.publish.report.packing import LONG, pack_names, pack_numbers
from odkanon.publish.report.page_model import build_model
from odkanon.release_format.folder import open_release
from web import made
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


def test_names_that_only_count_are_not_listed() -> None:
    counting = [f"d{number:05d}" for number in range(LONG)]
    assert pack_names(counting) == {"prefix": "d", "digits": 5, "count": LONG}
    assert pack_names(counting[1:]) == counting[1:]
    assert pack_names([*counting[:-1], "d99999"]) == [*counting[:-1], "d99999"]


def test_many_boxes_are_four_numbers_each(tmp_path: Path) -> None:
    saved = open_release(made.boxes(tmp_path / "boxes", LONG))
    model = build_model([saved])
    packed = model["releases"][0]["origin"]
    assert set(packed) == {"h3", "id", "boxes"}
    boxes = {name: unpacked(column) for name, column in packed["boxes"].items()}
    corners = [
        [boxes[lines][int(number)] / 1e6 for lines, number in zip(("lon", "lat", "lon", "lat"), numbers, strict=True)]
        for numbers in zip(*(boxes[side] for side in ("west", "south", "east", "north")), strict=True)
    ]
    zones = sorted(saved.axis_features("origin"), key=lambda zone: str(zone["properties"]["id"]))
    rings = [zone["geometry"]["coordinates"][0] for zone in zones]
    assert np.allclose(corners, [[*ring[0], *ring[2]] for ring in rings], atol=1e-6)
    # One shape says for each axis what the page has to cover.
    assert len(model["shapes"]) == 2
