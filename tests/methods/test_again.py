"""Rows of an earlier cascade for other trips."""

from __future__ import annotations

from itertools import product

import h3
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odkanon import InputError, Rule
from odkanon.methods.cascade.reuse import EarlierRows, lasting
from odkanon.methods.method_registry import anonymize
from odkanon.model.release import Release
from odkanon.zoning.zone_nodes import cell_nodes
from worlds.matrices import random_world
from worlds.tries import tries

ROOT = "851fb467fffffff"
FINEST = 7
LADDER = [(7, 7), (6, 7), (6, 6), (5, 6), (5, 5)]
"""Resolutions of origins and destinations."""


def cells(resolution: int) -> list[str]:
    return sorted(h3.cell_to_children(ROOT, resolution)) if resolution > 5 else [ROOT]


def inside(one: str, other: str) -> bool:
    return bool(h3.cell_to_parent(one, h3.get_resolution(other)) == other)


def own_places(row: tuple[str, str], finer: list[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return the pairs of finest cells in a row and in no finer one."""
    ends = [h3.cell_to_children(cell, FINEST) for cell in row]
    found = set(product(*ends))
    for other in finer:
        if inside(other[0], row[0]) and inside(other[1], row[1]):
            found -= set(product(*(h3.cell_to_children(cell, FINEST) for cell in other)))
    return found


def by_definition(rows: list[tuple[str, str]]) -> list[bool]:
    """Keep a row if its own places lie in no single part of it; rows from fine to coarse."""
    kept: list[tuple[str, str]] = []
    result = []
    for row in rows:
        own = own_places(row, kept)
        good = bool(own)
        for end in (0, 1):
            resolution = h3.get_resolution(row[end])
            if resolution < FINEST:
                good &= len({h3.cell_to_parent(pair[end], resolution + 1) for pair in own}) > 1
        kept += [row] if good else []
        result.append(good)
    return result


@tries(8)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.02, 0.5, 0.97]), st.sampled_from([0.1, 0.9]))
def test_rows_that_last_are_those_of_the_definition(seed: int, busy: float, above: float) -> None:
    random = np.random.default_rng(seed)
    rows = []
    for finer, coarser in LADDER:
        pairs = list(product(cells(finer), cells(coarser)))
        share = busy * 0.2 if (finer, coarser) == (7, 7) else busy if finer == 6 else above
        rows += [pair for pair, takes in zip(pairs, random.random(len(pairs)) < share, strict=True) if takes]
    if not rows:
        return
    ends = [cell_nodes([row[end] for row in rows]) for end in (0, 1)]
    assert ends[0] is not None
    assert ends[1] is not None
    assert lasting(ends[0], ends[1]).tolist() == by_definition(rows)


def test_a_row_whose_own_places_lie_in_one_part_does_not_last() -> None:
    """Six of seven origins have rows of their own: what the large row lists begins in the seventh."""
    parts, to = cells(6), cells(7)[0]
    for many, lasts in ((5, True), (6, False)):
        rows = [(part, to) for part in parts[:many]] + [(ROOT, to)]
        ends = [cell_nodes([row[end] for row in rows]) for end in (0, 1)]
        assert ends[0] is not None
        assert ends[1] is not None
        assert lasting(ends[0], ends[1]).tolist() == [True] * many + [lasts]


def rows_of(release: Release) -> EarlierRows:
    table = release.to_arrow()
    ends = [np.array(table.column(axis).to_pylist()) for axis in ("origin", "destination")]
    return EarlierRows("the earlier release", ends[0], ends[1])


@pytest.mark.parametrize("rule", [Rule(trips=6), Rule(trips=6, persons=4)], ids=str)
def test_other_trips_are_listed_in_rows_of_the_earlier_release(rule: Rule) -> None:
    january, february = (random_world(seed, records=500, fan=5, levels=3, people=300) for seed in (1, 2))
    earlier = rows_of(anonymize(january, rule, method="cascade"))
    release = anonymize(february, rule, method="cascade", rows=earlier)
    assert release.parameters["rows"] == "given"
    now = rows_of(release)
    given_rows = set(zip(earlier.origin.tolist(), earlier.destination.tolist(), strict=True))
    listed = list(zip(now.origin.tolist(), now.destination.tolist(), strict=True))
    assert len(listed) > 0
    assert set(listed) <= given_rows
    assert int(release.classes.trips.min()) >= 6
    assert int(release.classes.trips.sum()) + release.suppressed.trips == february.trips
    same = anonymize(january, rule, method="cascade", rows=earlier)
    assert same.classes.trips.sum() >= 0.9 * january.trips


def test_what_cannot_be_used_again_is_said() -> None:
    od = random_world(1, records=300, fan=5, levels=3)
    earlier = rows_of(anonymize(od, Rule(trips=5), method="cascade"))
    with pytest.raises(InputError, match="plain H3"):
        anonymize(od, Rule(trips=5), method="cascade", rows=earlier, substeps=True)
    with pytest.raises(InputError, match="takes no further options"):
        anonymize(od, Rule(trips=5), method="cascade", rows=earlier, budget=0.1)
    finer = EarlierRows("finer", *(np.array([h3.cell_to_center_child(str(cell), 15)]) for cell in earlier.origin[:2]))
    with pytest.raises(InputError, match="another resolution"):
        anonymize(od, Rule(trips=5), method="cascade", rows=finer)
    odd = EarlierRows("odd", np.array(["a"]), np.array(["b"]))
    with pytest.raises(InputError, match="between H3 cells"):
        anonymize(od, Rule(trips=5), method="cascade", rows=odd)
