"""Attack two releases of the sample survey with linear programmes, and hold the audit against what comes out.

Everyone and women are released on zones of their own, so that they overlap in every way. For a sample of groups (trips
of women, or of others, between two places that the zones tell apart) the least and the most that they can have are
computed from the published rows alone. A group whose number is certain and below k must be named by the audit; and each
difference that the audit names must be a group, not a number that no people stand behind.
"""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path

import h3
import numpy as np
import pyarrow.parquet
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_matrix

from odkanon import Rule, audit_releases, read_area, read_trips
from odkanon.audit import TripsSource
from odkanon.methods.method_registry import anonymize
from odkanon.read.od_matrix import build_od
from odkanon.sample.survey import CENTRAL_CELLS, make_survey

K, SAMPLE = 10, 80
FILTERS = {"everyone": None, "women": 'sex == "Woman"'}
PEOPLE = {"women": ("everyone", "women"), "others": ("everyone",)}
"""Who is in which table."""


def chain(cell: str) -> list[str]:
    """Return a cell and all above it."""
    return [cell, *(h3.cell_to_parent(cell, at) for at in range(h3.get_resolution(cell) - 1, -1, -1))]


def parts(zones: set[str]) -> list[str]:
    """Return the zones that have places in no finer zone."""
    finest = max(map(h3.get_resolution, zones))
    covered = dict.fromkeys(zones, 0)
    for zone in zones:
        above = next((cell for cell in chain(zone)[1:] if cell in zones), None)
        if above is not None:
            covered[above] += h3.cell_to_children_size(zone, finest)
    return sorted(zone for zone in zones if covered[zone] < h3.cell_to_children_size(zone, finest))


class Attacker:
    """Who has the tables ``{release: {(origin, destination): trips}}`` and nothing else."""

    def __init__(self, tables: dict[str, dict[tuple[str, str], int]]) -> None:
        flows = [flow for table in tables.values() for flow in table]
        ends = [parts({flow[at] for flow in flows}) for at in (0, 1)]
        self.cells = list(product(ends[0], ends[1], PEOPLE))
        self.rows = [(name, *flow) for name, table in tables.items() for flow in table]
        self.counts = [trips for table in tables.values() for trips in table.values()]
        number = {row: at for at, row in enumerate(self.rows)}
        above = {cell: chain(cell) for end in ends for cell in end}
        entries = [
            (number[name, o, d], at)
            for at, (origin, destination, who) in enumerate(self.cells)
            for name in PEOPLE[who]
            for o, d in product(above[origin], above[destination])
            if (name, o, d) in number
        ]
        rows, columns = zip(*entries, strict=True)
        shape = (len(self.rows), len(self.cells))
        self.equations = csr_matrix((np.ones(len(entries)), (rows, columns)), shape=shape)
        self.number = number
        # A cell in no row can hold any number of trips.
        self.free = np.asarray(self.equations.sum(axis=0)).ravel() == 0

    def bounds(self, cells: list[int]) -> tuple[float, float]:
        """Return the least and the most that some cells can have in all."""
        group = np.zeros(len(self.cells))
        group[cells] = 1
        low, high = (
            linprog(sign * group, A_eq=self.equations, b_eq=self.counts, bounds=(0, None), method="highs")
            for sign in (1, -1)
        )
        return float(low.fun), float("inf") if high.status == 3 else -float(high.fun)

    def spurious(self, plus: list[tuple[str, str, str]], minus: list[tuple[str, str, str]]) -> bool:
        """Tell whether a combination of rows counts some cells twice or less than nothing, which may have trips."""
        weights = np.zeros(len(self.rows))
        for sign, listed in ((1, plus), (-1, minus)):
            weights[[self.number[row] for row in listed]] += sign
        values = self.equations.T @ weights
        wrong = np.flatnonzero((values != 0) & (values != 1))
        return any(self.bounds([at])[1] > 1e-6 for at in wrong[:20].tolist())


@pytest.mark.slow
def test_the_audit_names_what_linear_programmes_find_in_a_survey(tmp_path: Path) -> None:
    area, tables = read_area(",".join(CENTRAL_CELLS)), {}
    path = tmp_path / "survey.parquet"
    pyarrow.parquet.write_table(make_survey(), path)
    for title, where in FILTERS.items():
        release = anonymize(build_od(read_trips(path, where=where), within=area), Rule(trips=K))
        release.save(tmp_path / title)
        rows = release.to_arrow().to_pylist()
        tables[title] = {(row["origin"], row["destination"]): row["trips"] for row in rows}
    report = audit_releases([tmp_path / title for title in FILTERS], trips=TripsSource(path, within=area))
    named = [each.details[0] for each in report.findings if each.check == "difference"]
    attacker, chance = Attacker(tables), random.Random(1)
    missed, shown = [], 0
    for at in chance.sample(np.flatnonzero(~attacker.free).tolist(), SAMPLE):
        low, high = attacker.bounds([at])
        if 0.5 < low < K - 0.5 and high - low < 1e-6:
            shown += 1
            missed += [attacker.cells[at]] if round(low) not in {each["rest"] for each in named} else []
    assert shown
    assert not missed
    assert not [each for each in chance.sample(named, 8) if attacker.spurious(each["plus"], each["minus"])]
