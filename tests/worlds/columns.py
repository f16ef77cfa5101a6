"""Columns as a page has them, read back."""

from __future__ import annotations

import base64
import gzip
from typing import Any

import numpy as np


def unpacked(column: Any) -> list[float]:
    """Read a column one byte after the other, as the page does."""
    if isinstance(column, list):
        return [*column]
    content = gzip.decompress(base64.b64decode(column["steps"]))
    if column["of"] == "single":
        return [float(value) for value in np.frombuffer(content, "<f4")]
    found, value, step, place = [], 0, 0, 0
    for byte in content:
        step |= (byte & 127) << place
        place += 7
        if byte < 128:
            value += -(step + 1) // 2 if step % 2 else step // 2
            found.append(value / column["per"])
            step = place = 0
    assert len(found) == column["count"]
    return found
