"""Suppressed flows of segments that are nearly known: against an attacker who solves linear programmes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from cli.runner import odkanon, output
from linked.test_protect import cells_of, groups_given_away, met
from odkanon import InputError, Release, Rule, read_trips
from odkanon.core.arrays import Bools, Ints
from odkanon.linked.complementary_suppression import protect_partition, protect_whole
from odkanon.linked.feasibility_intervals import Table, exact_slack, least_slack, rectangle
from odkanon.linked.fixed_zoning import release_on_zones, zoning_of
from odkanon.linked.linked_release import LinkedReleases, release_linked
from odkanon.methods.method_registry import anonymize
from odkanon.model.flows import Flows
from odkanon.model.measures import exact_masses
from odkanon.read.od_matrix import make_dimensions
from worlds.people import Trip, crowd, matrix, write
from worlds.tries import tries

K = 6


def interval(table: Table, row: int, column: int) -> tuple[float, float]:
    """What the attacker finds: the least and the most of a cell in all tables with the same sums."""
    cells = np.argwhere(table.open)
    hidden = table.hidden
    sums = [cells[:, 0] == at for at in range(hidden.shape[0])] + [cells[:, 1] == at for at in range(hidden.shape[1])]
    known = [*hidden.sum(axis=1), *hidden.sum(axis=0)]
    goal = ((cells == (row, column)).all(axis=1)).astype(float)
    equations = {"A_eq": np.array(sums, dtype=float), "b_eq": known, "bounds": (0, None), "method": "highs"}
    return float(linprog(goal, **equations).fun), -float(linprog(-goal, **equations).fun)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    shape = draw(st.integers(2, 5)), draw(st.integers(2, 4))
    numbers = st.lists(
        st.sampled_from([0, 0, 1, 2, 3, 7, 12]), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]
    )
    hidden = st.lists(st.booleans(), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1])
    mass: Ints = np.array(draw(numbers), dtype=np.int64).reshape(shape)
    is_open: Bools = np.array(draw(hidden), dtype=bool).reshape(shape)
    return Table(mass, is_open | (mass == 0))


@tries(30)
@given(tables())
def test_flows_give_what_linear_programmes_give(table: Table) -> None:
    less, more = least_slack(table)
    for row, column in np.argwhere(table.open).tolist():
        slack, mass = exact_slack(table, row, column), int(table.mass[row, column])
        assert (mass - slack.less, mass + slack.more) == pytest.approx(interval(table, row, column), abs=1e-6)
        assert less[row, column] <= slack.less
        assert more[row, column] <= slack.more


def test_large_numbers_are_rounded_to_the_safe_side() -> None:
    mass = np.array([[3, 9], [9, 9]], dtype=np.int64) * 10**15 + 7
    slack = exact_slack(Table(mass, np.ones((2, 2), dtype=bool)), 0, 0)
    assert 3 * 10**15 * (1 - 1e-6) <= slack.less <= mass[0, 0]
    assert 9 * 10**15 * (1 - 1e-6) <= slack.more <= mass[0, 1]


@tries(30)
@given(tables(), st.data())
def test_a_rectangle_makes_an_interval_wide_enough(table: Table, data: st.DataObject) -> None:
    row, column = data.draw(st.sampled_from([tuple(each) for each in np.argwhere(np.ones(table.open.shape)).tolist()]))
    is_open = table.open.copy()
    is_open[row, column] = True
    corners = rectangle(Table(table.mass, is_open), row, column, K)
    for corner in corners or []:
        assert not is_open[corner]
        is_open[corner] = True
    if corners is not None:
        assert corners
        least, most = interval(Table(table.mass, is_open), row, column)
        assert least == pytest.approx(0)
        assert most >= K - 1e-6


def protected(cells: Flows, rule: Rule, widths: dict[str, int]) -> tuple[Flows, Bools, Bools]:
    """Protect a table and its whole; return its cells, what is suppressed, and which values have no table."""
    whole, _ = cells.merge(cells.origin, np.zeros(len(cells), dtype=np.int32))
    hidden = protect_whole(whole, np.zeros(len(whole), dtype=bool), rule)
    gone = np.isin(cells.origin, whole.origin[hidden])
    merged, _ = cells.merge(np.where(gone, 99, cells.origin).astype(np.int32), cells.destination)
    values = int(merged.destination.max()) + 1
    nothing = np.zeros(values, dtype=np.int64)
    result = protect_partition(merged, merged.origin == 99, nothing > 0, nothing, rule, widths=widths)
    return merged, result.suppressed, result.withheld


def nearly_known(
    cells: Flows, suppressed: Bools, withheld: Bools, measure: str, width: int
) -> list[tuple[float, float]]:
    """The intervals of suppressed cells below k that are too narrow, or begin above nothing."""
    rows, row = np.unique(cells.origin, return_inverse=True)
    columns, column = np.unique(np.where(withheld[cells.destination], 99, cells.destination), return_inverse=True)
    mass = np.zeros((len(rows), len(columns)), dtype=np.int64)
    np.add.at(mass, (row, column), exact_masses(cells, measure))
    is_open = np.ones(mass.shape, dtype=bool)
    is_open[row[~suppressed], column[~suppressed]] = False
    table = Table(mass, is_open)
    small = np.argwhere(is_open & (mass > 0) & (mass < width)).tolist()
    found = [interval(table, *cell) for cell in small]
    return [(least, most) for least, most in found if least > 1e-6 or most - least < width - 1e-6]


def wide_table(random: np.random.Generator) -> Flows:
    """More rows than columns, few cells that are too small: what a segment looks like."""
    shape = int(random.integers(4, 8)), int(random.integers(2, 4))
    trips = {key: int(random.choice([1, 3, 4, 8, 9, 12, 15])) for key in np.ndindex(shape)}
    return cells_of({key: {0} for key in trips}, trips)


def test_nothing_below_k_is_nearly_known() -> None:
    rule, widths = Rule(trips=K), {"trips": K, "weight": 3 * K}
    naive, published = 0, 0
    for seed in range(30):
        table = wide_table(np.random.default_rng([5, seed]))
        cells, suppressed, withheld = protected(table, rule, {})
        naive += 0 if withheld.all() else len(nearly_known(cells, suppressed, withheld, "trips", K))
        cells, suppressed, withheld = protected(table, rule, widths)
        if withheld.all():
            continue
        published += int(np.count_nonzero(~suppressed))
        for measure, width in widths.items():
            assert not nearly_known(cells, suppressed, withheld, measure, width)
        hidden = np.flatnonzero(suppressed).tolist()
        if len(hidden) <= 9:  # what holds without it still does
            column = np.where(withheld[cells.destination], 99, cells.destination).tolist()
            assert all(met(cells, group, rule) for group in groups_given_away(cells, hidden, column))
    assert naive > 2
    assert published > 30


@pytest.mark.parametrize(
    ("table", "withheld"),
    [
        ([[15, 5, 1], [7, 8, 12], [8, 8, 15]], [False, True, True]),
        ([[15, 8, 6], [8, 7, 6], [6, 15, 1]], [True, False, True]),
    ],
)
def test_where_no_rectangle_is_wide_enough_tables_are_given_up(table: list[list[int]], withheld: list[bool]) -> None:
    """No cell has thirty trips. The table that is too narrow goes, and with it the smallest of the others."""
    trips = {(row, column): count for row, counts in enumerate(table) for column, count in enumerate(counts)}
    cells = cells_of({key: {0} for key in trips}, trips)
    assert not protected(cells, Rule(trips=K), {})[2].any()
    _, suppressed, gone = protected(cells, Rule(trips=K), {"trips": 30})
    assert gone.tolist() == withheld
    assert suppressed.tolist() == withheld * 3


# The whole way, from a file to an attacker who reads the folders.


MEN_AND_WOMEN = {(0, 9): (4, 8), (9, 0): (9, 2), (4, 9): (9, 9), (9, 4): (9, 15), (4, 0): (12, 15)}
"""Thirteen men are hidden in two flows, of which one has eleven trips: at least two are in the other."""


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    trips = [
        Trip(who, *ends)
        for ends, counts in MEN_AND_WOMEN.items()
        for sex, count in zip(("Man", "Woman"), counts, strict=True)
        for who in crowd(count, sex, prefix=str(ends))
    ]
    return write(trips, tmp_path_factory.mktemp("town") / "trips.parquet")


def made(town: Path, *, protect_intervals: bool) -> LinkedReleases:
    trips, zones = read_trips(town), zoning_of(anonymize(matrix(town), Rule(trips=1)))
    segments = make_dimensions(trips, ["sex"])
    return release_linked(trips, Rule(trips=K), segments, zoning=zones, protect_intervals=protect_intervals)


def told(together: LinkedReleases) -> list[tuple[float, float]]:
    """What the tables and the totals of the segments tell of flows below k, for somebody who has nothing else."""
    listed = _rows(together.whole)
    columns = [_rows(part.release) for part in together.parts if part.release is not None]
    truth = [_true_rows(together.whole, part.release) for part in together.parts if part.release is not None]
    rows = [*listed, None]  # what the whole does not list is one row
    mass = np.array([[each.get(row, 0) for each in truth] for row in rows], dtype=np.int64)
    is_open = np.array([[row not in each for each in columns] for row in rows])
    table = Table(mass, is_open)
    small = np.argwhere(is_open & (mass > 0) & (mass < K)).tolist()
    found = [interval(table, *cell) for cell in small]
    assert found
    return [(least, most) for least, most in found if least > 1e-6 or most - least < K - 1e-6]


def _rows(release: Release) -> dict[Any, int]:
    table = release.to_arrow().to_pydict()
    return {ends[:2]: ends[2] for ends in zip(table["origin"], table["destination"], table["trips"], strict=True)}


def _true_rows(whole: Release, part: Release) -> dict[Any, int]:
    """The trips of a segment in each row of the whole, listed or not; those in none under None."""
    everywhere = release_on_zones(part.od, Rule(trips=1), zoning_of(whole))
    found = {ends: trips for ends, trips in _rows(everywhere).items() if ends in _rows(whole)}
    return {**found, None: part.od.trips - sum(found.values())}


def test_tables_and_totals_tell_nothing_nearly(town: Path) -> None:
    assert told(made(town, protect_intervals=False)) == [(2, 12)]
    assert told(made(town, protect_intervals=True)) == []


def test_splits_that_refine_each_other_are_refused(town: Path) -> None:
    trips = read_trips(town)
    with pytest.raises(InputError, match="refines another"):
        release_linked(
            trips, Rule(trips=10), make_dimensions(trips, ["sex", "sex*hour"]), resolution=7, protect_intervals=True
        )


def test_the_command_takes_it_with_segments_alone(town: Path) -> None:
    wrong = odkanon("anonymize", town, "-o", town.parent / "no", "--protect-intervals")
    assert wrong.returncode == 2
    assert "--protect-intervals does not apply without --segment" in output(wrong)
    options = ("--k", K, "--segment", "sex", "--segment-budget", 0.9, "--protect-intervals")
    done = odkanon("anonymize", town, "-o", town.parent / "cli", *options)
    assert done.returncode == 0, done.stderr
    assert "A reader who knows the method may conclude more" in output(done)
    assert '"protect_intervals": true' in (town.parent / "cli" / "whole" / "release.json").read_text()
