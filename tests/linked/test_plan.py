"""Whole, sex, and sex by age at once: an attacker with every published number, by linear algebra."""

from __future__ import annotations

from itertools import chain, combinations

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from odkanon import Rule
from odkanon.attributes.dimensions import Dimension
from odkanon.linked.suppression_pattern import Plan, find_rare, jointly_rare, make_plan
from odkanon.model.flows import Flows, record_contributions
from worlds.tries import tries

CLASSES, AGES = 3, 2
Atom = tuple[int, int, int]


@st.composite
def counts(draw: st.DrawFn) -> dict[Atom, int]:
    sizes = st.sampled_from([0, 0, 1, 2, 4, 5, 7])
    table = {(c, s, a): draw(sizes) for c in range(CLASSES) for s in range(2) for a in range(AGES)}
    return {atom: size for atom, size in table.items() if size}


def plan_of(table: dict[Atom, int], rule: Rule) -> tuple[Plan, list[Dimension], Flows]:
    atoms = np.array([atom for atom, size in table.items() for _ in range(size)])
    persons = np.arange(len(atoms), dtype=np.int32) // 2
    zeros, ones = np.zeros(len(atoms), dtype=np.int32), np.ones(len(atoms), dtype=np.int64)
    trips = Flows(zeros, zeros, ones, ones, contributions=record_contributions({"persons": persons}))
    sex = Dimension("sex", ("sex",), (("W",), ("M",)), atoms[:, 1].astype(np.int32))
    labels = tuple((s, a) for s in "WM" for a in "yo")
    both = Dimension("sex*age", ("sex", "age"), labels, (atoms[:, 1] * AGES + atoms[:, 2]).astype(np.int32))
    return make_plan(trips, atoms[:, 0], CLASSES, [sex, both], [None, 0], rule), [sex, both], trips


def known_sums(atoms: list[Atom], plan: Plan) -> list[list[bool]]:
    """All that is published, as sets of atoms: flows of the three tables, and the totals of those that exist."""
    by_sex, by_both = plan.cells
    sums = [[atom[0] == c for atom in atoms] for c in range(CLASSES) if plan.whole[c]]
    sums.append([True] * len(atoms))
    for s in range(2):
        sums += [[atom[:2] == (c, s) for atom in atoms] for c in range(CLASSES) if by_sex[c, s]]
        if by_sex[:, s].any():
            sums.append([atom[1] == s for atom in atoms])
        for a in range(AGES):
            value = s * AGES + a
            sums += [[atom == (c, s, a) for atom in atoms] for c in range(CLASSES) if by_both[c, value]]
            if by_both[:, value].any():
                sums.append([atom[1:] == (s, a) for atom in atoms])
    return sums


@tries(60)
@given(counts(), st.sampled_from([Rule(trips=3), Rule(trips=5), Rule(trips=4, persons=3)]))
def test_nothing_small_follows_from_the_three_tables(table: dict[Atom, int], rule: Rule) -> None:
    assume(table)
    plan, (sex, both), trips = plan_of(table, rule)
    # Rare values have left before a plan is made.
    assume(not jointly_rare(trips, sex, None, rule).any() and not jointly_rare(trips, both, sex, rule).any())
    assume(plan.whole.any())
    atoms = list(table)
    hidden = [at for at, (c, s, a) in enumerate(atoms) if not plan.cells[1][c, s * AGES + a]]
    assume(len(hidden) <= 10)
    known = np.array(known_sums(atoms, plan), dtype=float)
    rank = np.linalg.matrix_rank(known)
    for group in chain.from_iterable(combinations(hidden, size) for size in range(1, len(hidden) + 1)):
        indicator = np.isin(np.arange(len(atoms)), group).astype(float)
        if np.linalg.matrix_rank(np.vstack([known, indicator])) == rank:
            assert met([atoms[at] for at in group], table, rule), (group, plan)


def met(group: list[Atom], table: dict[Atom, int], rule: Rule) -> bool:
    ends = np.cumsum(list(table.values()))
    rows = [
        row for atom, end in zip(table, ends, strict=True) for row in range(end - table[atom], end) if atom in group
    ]
    return len(rows) >= (rule.trips or 0) and len({row // 2 for row in rows}) >= (rule.persons or 0)


def test_rare_values_have_no_table() -> None:
    _, (sex, _), trips = plan_of({(0, 0, 0): 7, (0, 1, 0): 2}, Rule(trips=3))
    assert find_rare(trips, sex, Rule(trips=3)).tolist() == [False, True]
    assert jointly_rare(trips, sex, None, Rule(trips=3)).sum() == 2
