"""Names of towns for a page: GeoNames (CC BY 4.0), cut down to what the page shows, so that it works offline.

The world's towns are packed beside this module by the web build (`web/names.mjs`). Which of them go into a page
depends on the outlines of the zones alone, never on trips.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any
from unicodedata import combining, normalize

import numpy as np
import numpy.typing as npt

from odkanon.publish.report.basemap import UNIT, corners_of
from odkanon.publish.report.page_model import Shape

TOWNS = Path(__file__).with_name("names.bin.gz")
MOST = 300
"""A page carries at most this many towns: those with most people."""


def build_names(shapes: Iterable[Shape]) -> dict[str, Any] | None:
    """Return the towns inside the box of some shapes.

    Returns
    -------
    dict or None
        ``unit`` (steps per degree), ``name``, ``place`` (longitude and latitude of each, one after the other) and
        ``people``, most people first. None where no shape is to be drawn or the towns were not built.
    """
    corners = np.array(list(corners_of(shapes)), dtype=np.int64).reshape(-1, 2)
    if not len(corners) or not TOWNS.exists():
        return None
    places, people, names = _towns()
    inside = ((places >= corners.min(axis=0)) & (places <= corners.max(axis=0))).all(axis=1)
    found = np.flatnonzero(inside)[:MOST]
    return {
        "unit": UNIT,
        # Some names go on with the district and the country: the page needs what people say.
        "name": [names[town].decode("utf-8").split(",")[0] for town in found],
        "place": places[found].ravel().tolist(),
        "people": people[found].tolist(),
    }


def find_town(name: str, shapes: Iterable[Shape]) -> tuple[float, float] | None:
    """Return longitude and latitude of the largest town of this name inside the box of some shapes, accents aside."""
    known = build_names(shapes)
    if known is None:
        return None
    titles = [_plain(title) for title in known["name"]]
    if _plain(name) not in titles:
        return None
    at = titles.index(_plain(name))
    return known["place"][2 * at] / known["unit"], known["place"][2 * at + 1] / known["unit"]


def _plain(name: str) -> str:
    return "".join(letter for letter in normalize("NFD", name.strip()) if not combining(letter)).casefold()


@cache
def _towns() -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], list[bytes]]:
    content = gzip.decompress(TOWNS.read_bytes())
    many = int(np.frombuffer(content[:4], dtype="<i4")[0])
    numbers = np.frombuffer(content[4 : 4 + 12 * many], dtype="<i4").astype(np.int64).reshape(3, many)
    names = content[4 + 12 * many :].split(b"\n")
    return numbers[:2].T, numbers[2], names
