"""Every number of the paper's tables, computed again from the trips by the definitions, one pair at a time.

Only which pair went into which zones is taken from the releases; counting, metrics, limits, rounding and the order of
the rows are done again here, with fractions.
"""

from __future__ import annotations

import csv
import io
from collections import Counter, defaultdict
from dataclasses import astuple
from fractions import Fraction
from functools import cache
from itertools import product
from math import cos, floor, radians, sin
from typing import Any, NamedTuple

import h3
import pyarrow as pa
import pyarrow.csv
import pytest

from odkanon import Release, Rule, read_trips
from odkanon.methods.method_registry import anonymize
from odkanon.model.od import ODMatrix
from odkanon.read.od_matrix import build_od
from odkanon.study.experiment import PAPER_ROWS, Experiment, Outcome, find_row
from odkanon.study.tables import PaperTable, long_table, paper_tables

K, BUDGET = 4, Fraction(1, 10)
EARTH = 6_371_008.8
MEASURES = {"trips": "participants", "weight": "population"}
RULE = {"participants": "trips", "population": "weight"}


class Row(NamedTuple):
    origin: str
    destination: str
    weight: Fraction
    person: str
    sex: str


def survey() -> list[Row]:
    """Some hundred trips between a dozen cells; the weights of the two sexes differ, so their means do too."""
    centre = h3.latlng_to_cell(48.8566, 2.3522, 8)
    cells = (
        sorted(h3.cell_to_children(centre, 10))[:8]
        + sorted(h3.cell_to_children(sorted(h3.grid_ring(centre, 1))[0], 10))[:5]
    )
    rows = []
    for number in range(260):
        sex = "Woman" if number % 3 else "Man"
        ends = cells[number * 7 % 13 * (number % 5) % 13], cells[number * 3 % 11 * (number % 4) % 13]
        weight = Fraction(number % 9 + (1 if sex == "Woman" else 12), 2)
        rows.append(Row(*ends, weight, f"p{number % 90}", sex))
    return rows


ROWS = survey()
MEAN = sum((row.weight for row in ROWS), Fraction(0)) / len(ROWS)
THRESHOLD = {"trips": Fraction(K), "weight": K * MEAN, "persons": Fraction(K)}


@pytest.fixture(scope="module")
def experiment() -> Experiment:
    ends = [[h3.cell_to_latlng(getattr(row, end)) for row in ROWS] for end in ("origin", "destination")]
    table = pa.table(
        {
            "person": [row.person for row in ROWS],
            "start_time": [f"2024-01-01 08:{number // 60:02}:{number % 60:02}" for number in range(len(ROWS))],
            **{
                f"{name}_{axis}": [place[at] for place in ends[number]]
                for number, name in enumerate(("start", "end"))
                for at, axis in enumerate(("lat", "lon"))
            },
            "weight": [float(row.weight) for row in ROWS],
            "sex": [row.sex for row in ROWS],
        }
    )
    trips = read_trips(table, attributes=["sex"])
    return Experiment(trips, k=K, budget=float(BUDGET), dimensions=("sex",))


@pytest.fixture(scope="module")
def outcomes(experiment: Experiment) -> list[Outcome]:
    return [run() for _, run in experiment.run({})]


def of_segment(segment: str) -> list[Row]:
    return [row for row in ROWS if segment in ("whole", row.sex)]


class Published(NamedTuple):
    """A release by hand: which pairs are in which class, and how many leaves its zones have."""

    classes: dict[tuple[int, int], list[tuple[str, str]]]
    sizes: dict[tuple[int, int], tuple[int, int]] | None
    area: dict[tuple[str, str], tuple[int, int]]


def by_hand(release: Release) -> Published:
    od = release.od
    names = [
        [h3.int_to_str(int(cell)) for cell in tree.leaves[leaf]]
        for tree, leaf in ((od.origins, od.flows.origin), (od.destinations, od.flows.destination))
    ]
    pairs = list(zip(*names, strict=True))
    classes: dict[tuple[int, int], list[tuple[str, str]]] = defaultdict(list)
    area = {}
    for pair, number, out in zip(pairs, release.area_of_pair.tolist(), release.published.tolist(), strict=True):
        if number >= 0:
            key = int(release.classes.origin[number]), int(release.classes.destination[number])
            area[pair] = key
            if out:
                classes[key].append(pair)
    sizes = None
    if release.method != "mondrian":
        leaves = [sorted(set(axis)) for axis in names]

        def inside(zone: str, axis: int) -> int:
            level = h3.get_resolution(zone) if zone != "world" else -1
            return sum(level < 0 or h3.cell_to_parent(leaf, level) == zone for leaf in leaves[axis])

        ids = release.origins.ids.tolist(), release.destinations.ids.tolist()
        sizes = {key: (inside(ids[0][key[0]], 0), inside(ids[1][key[1]], 1)) for key in classes}
    return Published(classes, sizes, area)


def masses(rows: list[Row], measure: str) -> dict[tuple[str, str], Fraction]:
    found: dict[tuple[str, str], Fraction] = defaultdict(Fraction)
    for row in rows:
        found[row.origin, row.destination] += row.weight if measure == "weight" else 1
    return found


def naive_utility(rows: list[Row], made: Published, measure: str) -> dict[str, Fraction | None]:
    mass = masses(rows, measure)
    total = sum(mass.values(), Fraction(0))
    of_class = {key: sum((mass[pair] for pair in pairs), Fraction(0)) for key, pairs in made.classes.items()}
    published = sum(of_class.values(), Fraction(0))
    found: dict[str, Fraction | None] = {
        "c_dm": sum((value**2 for value in of_class.values()), Fraction(0)) + total * (total - published),
        "c_avg": published / len(of_class) / THRESHOLD[measure],
        "g": None,
        "e": None,
    }
    if made.sizes is not None:
        found["g"] = sum((sum(made.sizes[key]) * value for key, value in of_class.items()), Fraction(0)) / published
        loss = Fraction(0)
        for key, value in of_class.items():
            leaf_pairs = made.sizes[key][0] * made.sizes[key][1]
            share = value / leaf_pairs
            here = [pair for pair, klass in made.area.items() if klass == key]
            loss += sum((abs(share - mass[pair]) for pair in here), Fraction(0)) + share * (leaf_pairs - len(here))
        loss += sum((mass[pair] for pair in mass if pair not in made.area), Fraction(0))
        found["e"] = loss / total
    return found


def naive_privacy(rows: list[Row], made: Published) -> dict[str, tuple[Fraction, int]]:
    found = {}
    for measure in ("trips", "weight", "persons"):
        values = []
        for pairs in made.classes.values():
            mine = [row for row in rows if (row.origin, row.destination) in pairs]
            if measure == "persons":
                values.append(Fraction(len({row.person for row in mine})))
            else:
                values.append(sum((row.weight if measure == "weight" else Fraction(1) for row in mine), Fraction(0)))
        found[measure] = min(values), sum(value < THRESHOLD[measure] for value in values)
    return found


def on_map(place: tuple[float, float], centre: tuple[float, float]) -> tuple[int, int]:
    """The cylindrical equal-area map around the middle of the data, to the metre."""
    (lat, lon), shrink = place, cos(radians(centre[0]))
    x = EARTH * shrink * radians(lon - centre[1])
    return round(x), round(EARTH * (sin(radians(lat)) - sin(radians(centre[0]))) / shrink)


def middle(rows: list[Row]) -> tuple[float, float]:
    ends = [h3.cell_to_latlng(cell) for row in rows for cell in (row.origin, row.destination)]
    lat, lon = ((min(side) + max(side)) / 2 for side in zip(*ends, strict=True))
    return round(lat, 1), round(lon, 1)


@cache
def of_cell(cell: str, centre: tuple[float, float], km: float) -> dict[tuple[int, int], float]:
    """The share of the area of a cell in each square, counted in the cells four levels below it, or in leaves."""
    parts = h3.cell_to_children(cell, min(h3.get_resolution(cell) + 4, 10))
    places = [on_map(h3.cell_to_latlng(part), centre) for part in parts]
    squares = Counter((floor(x / km / 1000), floor(y / km / 1000)) for x, y in places)
    return {square: count / len(parts) for square, count in squares.items()}


def of_box(bounds: list[float], centre: tuple[float, float], km: float) -> dict[tuple[int, int], float]:
    west, south, east, north = bounds
    shrink, sides = cos(radians(centre[0])), []
    for low, high in (
        [EARTH * shrink * radians(lon - centre[1]) for lon in (west, east)],
        [EARTH * (sin(radians(lat)) - sin(radians(centre[0]))) / shrink for lat in (south, north)],
    ):
        side = 1000 * km
        cuts = range(floor(low / side), floor(high / side) + 1)
        sides.append({at: (min(high, (at + 1) * side) - max(low, at * side)) / (high - low) for at in cuts})
    return {(x, y): sides[0][x] * sides[1][y] for x in sides[0] for y in sides[1]}


def naive_cpc(rows: list[Row], release: Release, made: Published, measure: str, km: float) -> float:
    """Input and release on squares: leaves by their centres, zones by their area."""
    centre, mass = middle(rows), masses(rows, measure)
    truth: dict[Any, float] = defaultdict(float)
    for pair, value in mass.items():
        ((start,), (end,)) = (of_cell(cell, centre, km) for cell in pair)
        truth[start, end] += float(value)
    spread: dict[Any, float] = defaultdict(float)
    for key, pairs in made.classes.items():
        published = float(sum(mass[pair] for pair in pairs))
        zones = zip((release.origins, release.destinations), key, strict=True)
        starts, ends = (
            of_cell(str(axis.ids[zone]), centre, km)
            if axis.bounds is None
            else of_box(axis.bounds[zone].tolist(), centre, km)
            for axis, zone in zones
        )
        for (start, left), (end, right) in product(starts.items(), ends.items()):
            spread[start, end] += published * left * right
    common = sum(min(there, spread[pair]) for pair, there in truth.items())
    return 2 * common / (sum(truth.values()) + sum(spread.values()))


def naive_limit(rows: list[Row], target: str, row: str, measure: str) -> Fraction | None:
    """The least G with the budget of this very row: pairs one by one, the dearest dropped, the last one in part."""
    leaves = [sorted({getattr(each, end) for each in rows}) for end in ("origin", "destination")]

    def above(cell: str) -> list[str]:
        return [h3.cell_to_parent(cell, level) for level in range(10, -1, -1)]

    count = masses(rows, RULE[target])
    size = [
        {node: sum(node in above(leaf) for leaf in axis) for leaf in axis for node in above(leaf)} for axis in leaves
    ]
    mass_of: dict[tuple[str, str], Fraction] = defaultdict(Fraction)
    for (o, d), value in count.items():
        for u in set(above(o)):
            for w in set(above(d)):
                mass_of[u, w] += value
    price = {
        (o, d): min(
            size[0][u] + size[1][w] for u in above(o) for w in above(d) if mass_of[u, w] >= THRESHOLD[RULE[target]]
        )
        for o, d in count
    }
    of_rows = row == "odkanon-published"
    trips, mass = masses(rows, "trips"), masses(rows, measure)
    allowance = Fraction(0 if row == "oigh-no-budget" else floor(BUDGET * (len(count) if of_rows else len(rows))))
    cost = {pair: Fraction(1) if of_rows else trips[pair] for pair in count}
    # The least ratio over shares x in [0, 1]: for a guess r, dropping a pair gains mass * (price - r) for its cost.
    ratio = Fraction(10**9)
    while True:
        left, spread, total = allowance, Fraction(0), Fraction(0)
        for pair in sorted(count, key=lambda p: mass[p] * (ratio - price[p]) / cost[p]):
            drop = min(Fraction(1), left / cost[pair]) if price[pair] > ratio else Fraction(0)
            left -= drop * cost[pair]
            spread += (1 - drop) * mass[pair] * price[pair]
            total += (1 - drop) * mass[pair]
        better = spread / total
        if better >= ratio:
            return ratio
        ratio = better


def rerun(experiment: Experiment, outcome: Outcome) -> Release:
    matrices: dict[tuple[str, str], Any] = experiment.segments()
    whole, od = matrices["whole", "whole"], matrices[outcome.cell.dimension, outcome.cell.segment]
    assert isinstance(whole, ODMatrix)
    row = find_row(outcome.cell.row)
    options = {"budget": float(BUDGET)} if row.takes_budget else {}
    rule = Rule.protect(outcome.cell.target, k=K, of=whole)
    return anonymize(od, rule, method=row.method, **row.options, **options)


def test_every_number_of_every_outcome(experiment: Experiment, outcomes: list[Outcome]) -> None:
    assert len(outcomes) == 3 * 2 * len(PAPER_ROWS)
    assert all(outcome.refusal is None for outcome in outcomes)
    for outcome in outcomes:
        rows, release = of_segment(outcome.cell.segment), rerun(experiment, outcome)
        made = by_hand(release)
        for measure in MEASURES:
            squares = {place["km"]: place["cpc"] for place in outcome.usefulness[measure]["squares"]}
            expected_cpc = {km: naive_cpc(rows, release, made, measure, km) for km in (1, 2, 4, 8)}
            assert squares == pytest.approx(expected_cpc, rel=1e-9), (outcome.cell, measure)
            expected = naive_utility(rows, made, measure)
            for name, value in expected.items():
                found = outcome.utility[measure][name]
                assert found == (None if value is None else pytest.approx(float(value), rel=1e-9)), (outcome, name)
            limit = None
            if outcome.cell.row != "mondrian":
                limit = naive_limit(rows, outcome.cell.target, outcome.cell.row, measure)
            found = outcome.limit_g.get(measure)
            assert found == (None if limit is None else pytest.approx(float(limit), rel=1e-9)), (outcome.cell, measure)
        for measure, (least, below) in naive_privacy(rows, made).items():
            assert outcome.privacy[measure]["min"] == pytest.approx(float(least))
            assert outcome.privacy[measure]["below"] == below, (outcome.cell, measure)
            assert outcome.privacy[measure]["threshold"] == pytest.approx(float(THRESHOLD[measure]))
        trips = masses(rows, "trips")
        shown = sum(trips[pair] for pairs in made.classes.values() for pair in pairs)
        assert outcome.suppressed == pytest.approx(1 - float(shown) / len(rows))
        assert (outcome.trips, outcome.pairs, outcome.classes) == (len(rows), len(trips), len(made.classes))


def written(value: float | None) -> str:
    return "-" if value is None else f"{value:,.2f}" if value < 10 else f"{value:,.1f}"


def test_every_cell_of_the_tables_is_the_number_of_its_outcome(outcomes: list[Outcome]) -> None:
    tables = {table.title.partition(". ")[0]: table for table in paper_tables(outcomes)}
    assert list(tables) == [f"Table {number}" for number in (3, 4, 5, 6, 7, 8, 9, 10, 11)]
    number = 4
    for dimension in ("whole", "sex"):
        for target in ("participants", "population"):
            for measure in MEASURES:
                _check_table(tables[f"Table {number}"], outcomes, dimension, target, measure)
                number += 1
    privacy = tables["Table 3"].rows
    whole = [outcome for outcome in outcomes if outcome.cell.dimension == "whole"]
    assert [row[:2] for row in privacy] == [(find_row(o.cell.row).title, o.cell.target) for o in whole]
    for row, outcome in zip(privacy, whole, strict=True):
        reports = [outcome.privacy[measure] for measure in ("trips", "weight", "persons")]
        assert list(row[2::2]) == [f"{each['min']:,.0f}" for each in reports]
        assert list(row[3::2]) == [f"{each['below']:,} of {outcome.classes:,}" for each in reports]


def _check_table(table: PaperTable, outcomes: list[Outcome], dimension: str, target: str, measure: str) -> None:
    assert f"protecting the {target}, calculating metrics on the {MEASURES[measure]}." in table.title
    titles = {find_row(name).title: name for name in PAPER_ROWS}
    assert list(dict.fromkeys(titles[row[0]] for row in table.rows)) == list(PAPER_ROWS)
    for row in table.rows:
        segment = "whole" if dimension == "whole" else row[1]
        (outcome,) = [
            o
            for o in outcomes
            if (o.cell.segment, o.cell.target, o.cell.row, o.cell.dimension)
            == (segment, target, titles[row[0]], dimension)
        ]
        score = outcome.utility[measure]
        assert row[2] == f"{outcome.origins} x {outcome.destinations}"
        mantissa, exponent = row[3].split(" x 10^")
        assert score["c_dm"] is not None
        assert float(f"{mantissa}e{exponent}") == float(f"{score['c_dm']:.1e}")
        expected = [written(score[name]) for name in ("c_avg", "g", "e")] + [written(outcome.limit_g.get(measure))]
        squares = {place["km"]: rightness(place) for place in outcome.usefulness[measure]["squares"]}
        expected += [written(squares[km]) for km in (2, 4)]
        assert list(row[4:]) == [*expected, f"{outcome.suppressed:.1%}", f"{outcome.seconds:.3f}"]
        assert row[1] == ("-" if dimension == "whole" else segment)


def rightness(place: dict[str, Any]) -> float:
    """Return the CPC of the estimate, if there is one, else of even spreading."""
    value = place["cpc"] if place.get("estimated") is None else place["estimated"]
    return float(value)


def test_the_long_table_has_the_same_numbers(outcomes: list[Outcome]) -> None:
    text = io.BytesIO()
    pa.csv.write_csv(long_table(outcomes), text)
    rows = list(csv.DictReader(io.StringIO(text.getvalue().decode())))
    expected = [(outcome, measure) for outcome in outcomes for measure in outcome.utility]
    assert len(rows) == len(expected)
    for row, (outcome, measure) in zip(rows, expected, strict=True):
        assert row["measured_on"] == MEASURES[measure]
        for name in ("c_dm", "c_avg", "g", "e"):
            value = outcome.utility[measure][name]
            assert row[name] == "" if value is None else float(row[name]) == value
        limit = outcome.limit_g.get(measure)
        assert row["limit_g"] == "" if limit is None else float(row["limit_g"]) == limit
        squares = {place["km"]: rightness(place) for place in outcome.usefulness[measure]["squares"]}
        assert {km: float(row[f"cpc_{km}km"]) for km in (1, 2, 4, 8)} == squares
        told = outcome.privacy[measure]
        assert (int(row["classes_below"]), float(row["smallest_class"])) == (told["below"], told["min"])
        assert [row[name] for name in ("dimension", "segment", "protected", "method", "refusal")] == [
            *astuple(outcome.cell),
            "",
        ]
        counted = ("trips", "pairs", "origins", "destinations", "classes")
        assert [int(row[name]) for name in counted] == [getattr(outcome, name) for name in counted]
        assert (float(row["suppressed_share"]), float(row["seconds"])) == (outcome.suppressed, outcome.seconds)


def test_the_table_of_people_counts_every_person_once(experiment: Experiment, outcomes: list[Outcome]) -> None:
    table = paper_tables(outcomes, experiment)[0]
    assert table.title.startswith("Table 2. ")
    assert [row[1] for row in table.rows] == ["whole", "Man", "Woman"]
    for row in table.rows:
        rows = of_segment(row[1])
        weights = defaultdict(list)
        for each in rows:
            weights[each.person].append(each.weight)
        represented = sum((sum(own, Fraction(0)) / len(own) for own in weights.values()), Fraction(0))
        cells = {cell for each in rows for cell in (each.origin, each.destination)}
        assert row[2:] == (f"{len(weights):,}", f"{float(represented):,.0f}", f"{len(rows):,}", f"{len(cells):,}")


def test_the_matrix_of_the_whole_is_that_of_the_trips(experiment: Experiment) -> None:
    od = build_od(experiment.trips) if not isinstance(experiment.trips, ODMatrix) else experiment.trips
    assert od.mean_weight == MEAN
