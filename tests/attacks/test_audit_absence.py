"""Flows that a release does not list, bounded by those of others: an integer programme over single places decides.

The programme knows nothing of the audit. It has a variable for the trips between any two places in any set of releases,
and for every table the flow that may have been suppressed with the others.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from attacks.test_audit_complete import TREE, tree, zones
from odkanon import InputError, Rule, audit_releases, read_matrix
from odkanon.audit import TripsSource
from odkanon.evidence.attack_context import open_context
from odkanon.evidence.attacks import ATTACKS
from odkanon.evidence.gather import run_attack
from odkanon.linked.fixed_zoning import Zoning, release_on_zones
from odkanon.methods.method_registry import anonymize

PLACES = sorted(TREE)
CHAIN = {place: (place, district, "town") for place, district in TREE.items()}
NAMES = {name: frozenset(p for p in PLACES if name in CHAIN[p]) for names in CHAIN.values() for name in names}
Box = tuple[frozenset[str], frozenset[str]]
Flow = tuple[str, str, int, int]
"""Origin, destination, trips, month."""


@dataclass(frozen=True)
class Plan:
    """How a release is made."""

    method: str
    k: int
    month: int | None = None


@dataclass(frozen=True)
class Table:
    """What everybody can read of a release."""

    plan: Plan
    folder: Path
    rows: dict[Box, int]
    zones: tuple[list[frozenset[str]], list[frozenset[str]]]
    most: int | None

    def flow(self, origin: str, destination: str) -> tuple[Box, bool, bool]:
        """Return the box around two places that is surely below the rule if it is not listed.

        Also whether it is a flow of the method, and whether it is bounded at all.
        """
        level = {"leaves": 0, "districts": 1}.get(self.plan.method)
        ends, certain = [], []
        for at, place in enumerate((origin, destination)):
            own = [zone for zone in self.zones[at] if place in zone]
            depends = self.plan.method == "atg-soft" and at == 1
            if level is not None:
                own, depends = [NAMES[CHAIN[place][level]]], False
            certain.append(bool(own) and not depends)
            ends.append(own[0] if certain[-1] else frozenset({place}))
        return (ends[0], ends[1]), all(certain), all(certain) or "given" not in self.plan.method


def make(flows: Sequence[Flow], plans: Sequence[Plan], folder: Path) -> tuple[Path, list[Table]]:
    path = folder / "trips.parquet"
    columns = dict(zip(("origin", "destination", "trips", "month"), zip(*flows, strict=True), strict=True))
    pyarrow.parquet.write_table(pa.table({name: list(values) for name, values in columns.items()}), path)
    tables = []
    for number, plan in enumerate(plans):
        where = None if plan.month is None else f"month == {plan.month}"
        try:
            od = read_matrix(path, hierarchy=tree(), where=where, engine="memory")
        except InputError:
            continue
        rule = Rule(trips=plan.k)
        if plan.method in ("leaves", "districts"):
            level = plan.method.removesuffix("s").replace("leave", "leaf")
            made = anonymize(od, rule, method="oigh", at_level=level, budget=0.9)
        elif "given" in plan.method:
            level_number = int("districts" in plan.method)
            made = release_on_zones(od, rule, Zoning(zones(level_number), zones(level_number)), full=tree())
        else:
            made = anonymize(od, rule, method=plan.method, budget=0.4)
        if made.refusal is None:
            saved = folder / f"r{number}"
            made.save(saved)
            tables.append(read(plan, saved))
    return path, tables


def read(plan: Plan, folder: Path) -> Table:
    listed = json.loads((folder / "zones.geojson").read_text())["features"]
    own: tuple[list[frozenset[str]], list[frozenset[str]]] = ([], [])
    for each in (feature["properties"] for feature in listed):
        own[each["axis"] == "destination"].append(NAMES[each["id"]])
    rows = {
        (NAMES[row["origin"]], NAMES[row["destination"]]): row["trips"]
        for row in pyarrow.parquet.read_table(folder / "classes.parquet").to_pylist()
    }
    most = json.loads((folder / "release.json").read_text())["unlisted"]["at_most_trips"]
    return Table(plan, folder, rows, own, most)


class Programme:
    """All that can be true, given some tables."""

    def __init__(self, flows: Sequence[Flow], tables: Sequence[Table]) -> None:
        self.tables = tables
        months = [[at for at, t in enumerate(tables) if t.plan.month in (None, month)] for *_, month in flows]
        atoms = sorted({tuple(each) for each in months if each})
        # Who says that nothing is missing has a row for every trip.
        self.cells = [
            (o, d, atom)
            for o, d, atom in product(PLACES, PLACES, atoms)
            if all(tables[at].most != 0 or self.row(tables[at], o, d) for at in atom)
        ]
        self.limit = sum(trips for _, _, trips, _ in flows) + 50
        self.size = len(self.cells)
        self.lines: list[tuple[dict[int, float], float, float]] = []
        self.unlisted: dict[tuple[int, Box], set[int]] = {}
        for number, table in enumerate(tables):
            self.add(number, table)

    @staticmethod
    def row(table: Table, origin: str, destination: str) -> Box | None:
        return next((box for box in table.rows if origin in box[0] and destination in box[1]), None)

    def add(self, number: int, table: Table) -> None:
        k, smallest = table.plan.k, min(table.rows.values())
        listed: dict[Box, set[int]] = {box: set() for box in table.rows}
        groups: dict[Box, set[int]] = {}
        kinds: dict[Box, tuple[bool, bool]] = {}
        for at, (o, d, atom) in enumerate(self.cells):
            if number in atom:
                box = self.row(table, o, d)
                if box is not None:
                    listed[box].add(at)
                else:
                    flow, certain, bounded = table.flow(o, d)
                    groups.setdefault(flow, set()).add(at)
                    kinds[flow] = certain, bounded
        for box, inside in listed.items():
            self.line(inside, table.rows[box], table.rows[box])
        every = set().union(*groups.values()) if groups else set()
        self.line(every, 0, self.limit if table.most is None else table.most)
        flows = [box for box in groups if kinds[box][0]]
        vague = set().union(*(groups[box] for box in groups if not kinds[box][0])) if groups else set()
        # One choice for each flow that may go with the others, one for any flow among the rest, one for none at all.
        choice = {box: self.variable() for box in flows}
        some, nothing = self.variable(), self.variable()
        self.lines.append((dict.fromkeys((*choice.values(), some, nothing), 1.0), 0, 1))
        for box, (certain, bounded) in kinds.items():
            if bounded:
                extra = {choice[box]: k - 1.0 - smallest} if certain else {some: -float(smallest)}
                self.line(groups[box], -np.inf, k - 1, extra)
        for which, inside in [*((choice[box], groups[box]) for box in flows), (some, vague)]:
            self.line(inside, 0, np.inf, {which: -float(k)})
            self.line(every - inside, -np.inf, self.limit, {which: self.limit - (k - 1.0)})
            self.line(every, -np.inf, self.limit, {which: self.limit - (k - 1.0 + smallest)})
            self.line(every, 0, np.inf, {which: -(k + 1.0)})
        for box in flows:
            self.line(every - groups[box], 0, np.inf, {choice[box]: -1.0})
        # All that is suppressed is nothing, or meets the rule.
        self.line(every, -np.inf, self.limit, {nothing: float(self.limit)})
        self.line(every, 0, np.inf, {nothing: float(k), self.variable(fixed=True): -float(k)})
        self.unlisted |= {(number, box): groups[box] for box in groups if kinds[box][1]}

    def variable(self, *, fixed: bool = False) -> int:
        self.size += 1
        if fixed:
            self.lines.append(({self.size - 1: 1.0}, 1, 1))
        return self.size - 1

    def line(self, inside: set[int], low: float, high: float, extra: dict[int, float] | None = None) -> None:
        self.lines.append((dict.fromkeys(inside, 1.0) | (extra or {}), low, high))

    def least(self, inside: set[int]) -> int:
        matrix = np.zeros((len(self.lines), self.size))
        for at, (line, _, _) in enumerate(self.lines):
            matrix[at, list(line)] = list(line.values())
        upper = np.where(np.arange(self.size) < len(self.cells), self.limit, 1)
        bounds = LinearConstraint(matrix, [low for _, low, _ in self.lines], [high for _, _, high in self.lines])
        goal = np.isin(np.arange(self.size), sorted(inside)).astype(float)
        found = milp(goal, integrality=np.ones(self.size), bounds=Bounds(0, upper), constraints=bounds)
        assert found.status == 0, found.message
        return int(np.rint(found.fun))

    def shown(self) -> set[tuple[int, Box]]:
        """Return the smallest boxes that are not listed and surely have trips, fewer than the rule asks for."""
        rows = [
            {at for at, (o, d, atom) in enumerate(self.cells) if number in atom and o in box[0] and d in box[1]}
            for number, table in enumerate(self.tables)
            for box in table.rows
        ]
        known = {
            key: inside
            for key, inside in self.unlisted.items()
            if not any(row <= inside for row in rows) and 0 < self.least(inside) < self.tables[key[0]].plan.k
        }
        return {key for key, inside in known.items() if not any(other < inside for other in known.values())}


METHODS = ("leaves", "leaves", "districts", "districts", "given leaves", "given districts", "odkanon", "atg-soft")


def random_world(seed: int) -> tuple[list[Flow], list[Plan]]:
    """Flows of which many are just below a rule, so that what others leave open is often too much for one of them."""
    random = np.random.default_rng(seed)
    k, busy = int(random.integers(3, 7)), random.choice([0.3, 0.6, 1.0])
    flows = []
    for o, d, month in product(PLACES, PLACES, (1, 2)):
        if random.random() < busy:
            trips = random.choice([k - 1, k - 1, int(random.integers(1, k)), int(random.integers(k, 3 * k))])
            flows.append((o, d, int(trips), month))
    months = [None, None, 1, 2] if random.random() < 0.5 else [1]
    plans = {
        Plan(str(random.choice(METHODS)), k + int(random.integers(-1, 2) // 2), random.choice(np.array(months)))
        for _ in range(int(random.integers(2, 4)))
    }
    return flows or [("a1", "a1", 9, 1)], sorted(plans, key=str)


def named(tables: Sequence[Table], trips: Path | None) -> set[tuple[int, Box]]:
    source = None if trips is None else TripsSource(trips, hierarchy=tree())
    report = audit_releases([table.folder for table in tables], trips=source, hierarchy=tree())
    number = {table.folder.name: at for at, table in enumerate(tables)}
    absent = [each.details[0] for each in report.findings if each.check == "absence"]
    return {(number[each["release"]], (NAMES[each["origin"]], NAMES[each["destination"]])) for each in absent}


def compare(
    flows: Sequence[Flow], plans: Sequence[Plan], *, with_trips: bool = True
) -> tuple[set[object], set[object]]:
    with TemporaryDirectory() as name:
        path, tables = make(flows, plans, Path(name))
        if len(tables) < 2:
            return set(), set()
        return set(Programme(flows, tables).shown()), set(named(tables, path if with_trips else None))


@pytest.mark.parametrize("first", [0, 6, *(pytest.param(at, marks=pytest.mark.slow) for at in (12, 18))])
def test_no_bound_is_missed_and_none_is_a_false_alarm(first: int) -> None:
    for seed in range(first, first + 6):
        shown, found = compare(*random_world(seed))
        assert shown == found, seed


TWO_NINES: list[Flow] = [
    ("a1", "b1", 40, 1),
    ("a1", "b2", 30, 1),
    ("a2", "b1", 9, 1),
    ("a2", "b2", 9, 1),
    ("c1", "c1", 50, 1),
    ("c1", "a1", 4, 1),
    ("c1", "a2", 7, 2),
]
ZONES_AND_DISTRICTS = [Plan("leaves", 10), Plan("districts", 10)]


@pytest.mark.parametrize("with_trips", [True, False])
def test_zones_beside_districts_show_two_pairs_of_nine(with_trips: bool) -> None:
    shown, found = compare(TWO_NINES, ZONES_AND_DISTRICTS, with_trips=with_trips)
    pair = [(0, (frozenset({"a2"}), frozenset({place}))) for place in ("b1", "b2")]
    assert shown == found >= set(pair)


def test_evidence_finds_them_too(tmp_path: Path) -> None:
    path, tables = make(TWO_NINES, ZONES_AND_DISTRICTS, tmp_path)
    context = open_context(tables[0].folder, TripsSource(path, hierarchy=tree()), earlier=[tables[1].folder])
    run = run_attack(context, ATTACKS["differencing"])
    assert run.verdict == "found"
    assert "a2 -> b1" in " ".join(run.result.examples)
    assert run_attack(context, ATTACKS["intervals"]).verdict != "clean"
