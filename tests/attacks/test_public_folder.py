"""An attacker who knows the method, enumerates every input of a small world and reads every file of the folder.

Whatever two inputs with the same rows have different files tells them apart, and with enough of that a group too small
to be published. The attacker wins against what the steward keeps, and learns nothing from the folder that the rows and
the outlines of their zones do not tell.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import h3
import numpy as np
import pyarrow as pa
import pytest

import odkanon
from odkanon import ODMatrix, Release, Rule, read_hierarchy, read_matrix
from odkanon.linked.fixed_zoning import Zoning, release_on_zones, zoning_of
from odkanon.methods.method_registry import anonymize
from odkanon.publish.manifests import full_manifest, public_manifest
from odkanon.release_format.contents import classes_table, leaf_counts, zones_geojson
from odkanon.release_format.recipe import read_recipe
from odkanon.zoning.cells import str_to_cell
from worlds.matrices import golden_od, od_of_cells

MOST = 2
"""Trips of a pair, at most."""

WAYS: dict[str, dict[str, Any]] = {
    "odkanon": {"budget": 0.3},
    "odkanon, none suppressed": {"budget": 0.0},
    "odkanon before": {"suppress": "before", "budget": 0.4, "max_levels": 1},
    "oigh": {"method": "oigh", "budget": 0.3},
    "treecut": {"method": "treecut", "budget": 0.3, "iterations": 2},
}


class Known(NamedTuple):
    """What there is to read of one input: rows with their outlines, all public files, and all that the steward has."""

    rows: Hashable
    public: Hashable
    full: Hashable


@cache
def places() -> tuple[list[str], list[str]]:
    """Two origins side by side and a third one, and two destinations side by side."""
    first, second = sorted(h3.cell_to_children(h3.latlng_to_cell(48.8566, 2.3522, 8), 9))[:2]
    here, there = sorted(h3.cell_to_children(first, 10)), sorted(h3.cell_to_children(second, 10))
    return [here[0], here[1], there[0]], here[2:4]


PAIRS = [pair for pair in product(range(3), range(2)) if pair != (2, 1)]
INPUTS = np.array([counts for counts in product(range(MOST + 1), repeat=len(PAIRS)) if any(counts)])


def matrix(counts: Sequence[int]) -> ODMatrix:
    rows = [(pair, count) for pair, count in zip(PAIRS, counts, strict=True) if count]
    origins, destinations = (str_to_cell(pa.array(side, pa.string())) for side in places())
    return od_of_cells(
        origins[[pair[0] for pair, _ in rows]],
        destinations[[pair[1] for pair, _ in rows]],
        trips=np.array([count for _, count in rows], dtype=np.int64),
    )


def read(release: Release) -> Known:
    """Return what the files of a release say, as the functions that write them make it."""
    if release.refusal:
        return Known(None, None, None)
    zones = zones_geojson(release)["features"]
    table = json.dumps(classes_table(release).to_pydict())
    outlines = json.dumps([(zone["properties"]["axis"], zone["properties"]["id"], zone["geometry"]) for zone in zones])
    public = json.dumps([public_manifest(release), zones])
    about = {**full_manifest(release, with_limit=False), "seconds": 0}
    return Known((table, outlines), (table, public), (table, public, json.dumps([about, leaf_counts(release)])))


@cache
def world(way: str, k: int) -> list[Known]:
    return [read(anonymize(matrix(counts), Rule(trips=k), **WAYS[way])) for counts in INPUTS.tolist()]


def boxes() -> np.ndarray:
    """Return the pairs of every box of the two trees: leaves, parents and everything, on both axes."""
    sides = [[{0}, {1}, {2}, {0, 1}, {0, 1, 2}], [{0}, {1}, {0, 1}]]
    return np.array([[pair[0] in o and pair[1] in d for pair in PAIRS] for o in sides[0] for d in sides[1]])


def shown(known: list[Known], what: Callable[[Known], Hashable], k: int) -> set[tuple[int, int]]:
    """Return the groups of 1 to k - 1 trips that are certain: as (number of the input, number of the box)."""
    told: defaultdict[Hashable, list[int]] = defaultdict(list)
    for number, one in enumerate(known):
        told[what(one)].append(number)
    counts = INPUTS @ boxes().T
    found = set()
    for same in told.values():
        least, most = counts[same].min(axis=0), counts[same].max(axis=0)
        certain = np.flatnonzero((least >= 1) & (most < k))
        found |= {(number, int(box)) for number in same for box in certain}
    return found


@pytest.mark.parametrize(("way", "k"), [*((way, 3) for way in WAYS), ("odkanon", 2), ("oigh", 2)])
def test_the_folder_shows_what_the_rows_show_and_nothing_else(way: str, k: int) -> None:
    known = world(way, k)
    assert len({one.rows for one in known}) > 10, "hardly anything is published, so nothing is tested"
    assert len({one.public for one in known}) == len({one.rows for one in known})
    assert shown(known, lambda one: one.public, k) == shown(known, lambda one: one.rows, k)


@pytest.mark.parametrize("way", ["odkanon", "odkanon before", "oigh"])
def test_what_the_steward_keeps_would_show_more(way: str) -> None:
    k = 3
    known = world(way, k)
    assert len({one.full for one in known}) > len({one.public for one in known})
    assert shown(known, lambda one: one.full, k) > shown(known, lambda one: one.public, k)


def test_two_inputs_with_the_same_rows_have_the_same_folder_to_the_last_byte(tmp_path: Path) -> None:
    known = world("odkanon", 3)
    first, second = next(
        (one, two)
        for one in range(len(known))
        for two in range(one)
        if known[one].rows is not None and known[one].rows == known[two].rows and INPUTS[one].sum() != INPUTS[two].sum()
    )
    folders = [
        anonymize(matrix(INPUTS[number].tolist()), Rule(trips=3), **WAYS["odkanon"]).save(tmp_path / str(number) / "r")
        for number in (first, second)
    ]
    names = {path.name for path in folders[0].iterdir()}
    assert names == {path.name for path in folders[1].iterdir()}
    for name in names:
        assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes(), name
    assert read_recipe(folders[0]) != read_recipe(folders[1])


HEAVY = [weights for weights in product((0, 1, 7), repeat=len(PAIRS)) if any(weights)]
"""Of some pairs no trip, or one of such a weight; the first pair has it twice."""


def weighed(weights: Sequence[int]) -> ODMatrix:
    two = (PAIRS[0], *PAIRS)
    rows = [(pair, weight) for pair, weight in zip(two, (weights[0], *weights), strict=True) if weight]
    origins, destinations = (str_to_cell(pa.array(side, pa.string())) for side in places())
    ends = origins[[pair[0] for pair, _ in rows]], destinations[[pair[1] for pair, _ in rows]]
    return od_of_cells(*ends, weight=np.array([weight for _, weight in rows], dtype=np.int64))


@pytest.mark.parametrize(
    "how", [{"method": "cascade"}, *(WAYS[way] for way in ("odkanon", "oigh", "treecut"))], ids=str
)
def test_k_mean_weights_are_told_as_the_rows_tell_of_them(how: dict[str, Any]) -> None:
    """Two trips of weight 8 and a promise of two mean weights of 3: somewhere there is a light trip more."""
    told: defaultdict[Hashable, set[Hashable]] = defaultdict(set)
    true: defaultdict[Hashable, set[Hashable]] = defaultdict(set)
    for weights in [each for each in HEAVY if not each[1]]:
        od = weighed(weights)
        release = anonymize(od, Rule.protect("population", k=2, of=od), **how)
        known = read(release)
        told[known.rows].add(known.public)
        true[known.rows].add(release.rule.weight)
        if release.refusal is None:
            assert release.classes.weight_units is not None
            assert public_manifest(release)["rule"]["weight"] <= release.classes.weight_units.min()
    assert len(told) > 8
    assert all(len(each) == 1 for each in told.values())
    assert any(len(each) > 1 for rows, each in true.items() if rows is not None), "the rows tell the mean weight"


def test_segments_tell_k_mean_weights_as_their_rows_tell_of_them(tmp_path: Path) -> None:
    told = []
    for light in (1.0, 1.2):
        ends = {"start_lat": 48.85, "start_lon": 2.35, "end_lat": 48.86, "end_lon": 2.30}
        trips = [{**ends, "sex": sex, "weight": 2.0} for sex in "fm" for _ in range(30)]
        elsewhere = [(lat, sex) for sex in "fm" for lat in (48.95, 48.65, 48.45) for _ in range(2)]
        trips += [{**ends, "start_lat": lat, "sex": sex, "weight": light} for lat, sex in elsewhere]
        release = odkanon.anonymize(
            pa.Table.from_pylist(trips), k=3, protect=["population"], segment="sex", budget=0.5, segment_budget=0.5
        )
        assert release.whole.suppressed.trips == 12
        folder = release.save(tmp_path / str(light))
        told.append({path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*.*"))})
    assert told[0] == told[1]


def test_a_cascade_lists_no_row_that_needs_light_trips_which_are_not_listed() -> None:
    """Rows of weight 6 and 8 and k = 2: were there no others, two mean weights were 7, and the first not listed."""
    weights = np.array([1, 2, 4, 4, 4], dtype=np.int64)
    origins, destinations = (str_to_cell(pa.array(side, pa.string())) for side in places())
    od = od_of_cells(origins[[0, 1, 1, 2, 2]], destinations[[0] * 5], weight=weights)
    release = anonymize(od, Rule.protect("population", k=2, of=od), method="cascade")
    assert release.classes.weight_units is not None
    assert release.classes.weight_units.tolist() == [7, 8]
    for some in [each for each in HEAVY if not each[1]]:
        od = weighed(some)
        release = anonymize(od, Rule.protect("population", k=2, of=od), method="cascade")
        if release.refusal is None:
            trips, weight = release.classes.trips, release.classes.weight_units
            assert weight is not None
            assert weight.min() * trips.sum() >= 2 * weight.sum()


def test_the_mean_weight_of_a_larger_data_set_is_told() -> None:
    od = weighed((7, 7, 1, 7, 7))
    rule = Rule(weight=Fraction(10), k=2, mean_weight=Fraction(5))
    release = anonymize(od, rule, method="cascade")
    assert release.refusal is None
    assert public_manifest(release)["rule"] == {"k": 2, "weight": 10.0}
    correction = replace(release, spec=release.spec.with_parameters(adds_to="first"))
    assert public_manifest(correction)["rule"]["weight"] == 14.0, "two listed trips of weight 7, whatever came before"


def large(
    listed: int, missing: int, k: int = 10, *, rule: Rule | None = None, heavy: int | None = None, **how: Any
) -> tuple[Hashable, Any]:
    """Return the rows, and what else is public, of flows of k trips each and one of a few trips, heavy or not."""
    cells = np.array(
        [h3.str_to_int(cell) for cell in sorted(h3.cell_to_children(h3.latlng_to_cell(48.8, 2.3, 5), 9))], np.uint64
    )
    far = np.array([h3.str_to_int(h3.latlng_to_cell(*place, 9)) for place in ((44.0, 7.0), (43.0, -1.0))], np.uint64)
    flows = listed // k
    trips = np.append(np.full(flows, k), missing)
    trips[0] += listed % k
    origins, destinations = np.append(cells[:flows], far[0]), np.append(np.roll(cells[:flows], 7), far[1])
    weight = None if heavy is None else np.append(trips[:-1], heavy)
    release = anonymize(od_of_cells(origins, destinations, trips=trips, weight=weight), rule or Rule(trips=k), **how)
    assert release.suppressed.trips == missing
    return json.dumps(classes_table(release).to_pydict()), public_manifest(release)


@pytest.mark.parametrize("listed", [9_990, 9_997, 10_000, 12_340])
def test_quality_does_not_count_what_is_not_listed(listed: int) -> None:
    """Two digits of a small number are exact: C_DM and E told five trips from six, and so did their absence."""
    rows, public = zip(*(large(listed, missing, method="cascade") for missing in (3, 5, 6, 9)), strict=True)
    assert len(set(rows)) == 1
    assert all(each == public[0] for each in public)
    assert (public[0]["quality"] is None) == (listed < 10_000)


def test_quality_does_not_count_large_groups_that_are_not_listed_either() -> None:
    """With k = 1,000, hundredths of 12,000 trips count what is below the rule."""
    rows, public = zip(*(large(12_000, missing, 1000, method="cascade") for missing in (30, 500, 900)), strict=True)
    assert len(set(rows)) == 1
    assert all(each == public[0] for each in public)
    assert public[0]["quality"]["trips"]["c_avg"] == 1


@pytest.mark.parametrize("k", [10, 100])
def test_no_number_of_a_cascade_compares_with_the_data(k: int) -> None:
    """Hundredths of E turned over with 51 unlisted trips at k = 100, and with six pairs of nine at k = 10."""
    public = large(12_000, k - 1, k, method="cascade")[1]
    assert public["quality"]["trips"]["e"] is None
    assert all("cpc" not in numbers for numbers in public["quality"].values())


@pytest.mark.parametrize(
    "rule", [Rule(trips=10), Rule(trips=10, mean_weight=Fraction(1)), Rule(trips=10, weight=9)], ids=str
)
def test_quality_does_not_tell_how_heavy_few_trips_are_that_are_not_listed(rule: Rule) -> None:
    """Three trips with a third of all weight: C_AVG told the mean weight of the data, E and CPC their part of it."""
    rows, public = zip(
        *(large(12_000, 3, rule=rule, heavy=heavy, method="cascade") for heavy in (3, 6000)), strict=True
    )
    assert rows[0] == rows[1]
    assert public[0] == public[1]
    assert public[0]["quality"]["weight"]["c_avg"] == public[0]["quality"]["trips"]["c_avg"] == 1


TREE = read_hierarchy(pa.table({"zone": list("abcdef"), "town": list("TTTUUU"), "land": ["L"] * 6}))
CODES = [("a", "d"), ("a", "e"), ("b", "d"), ("f", "a"), ("c", "d")]


@cache
def between_codes(counts: tuple[int, ...]) -> ODMatrix:
    rows = [(*pair, count) for pair, count in zip(CODES, counts, strict=True) if count]
    return read_matrix(
        pa.table(dict(zip(("origin", "destination", "trips"), zip(*rows, strict=True), strict=True))),
        hierarchy=TREE,
        engine="memory",
    )


def by_people(counts: Sequence[int]) -> ODMatrix:
    """Two trips for each count, of the persons of that number and of the first one."""
    rows = [(pair, who) for pair, count in zip(PAIRS, counts, strict=True) if count for who in (0, count)]
    origins, destinations = (str_to_cell(pa.array(side, pa.string())) for side in places())
    ends = origins[[pair[0] for pair, _ in rows]], destinations[[pair[1] for pair, _ in rows]]
    return od_of_cells(*ends, person=np.array([who for _, who in rows], dtype=np.int32))


@pytest.mark.parametrize("leaf", ["a", "b"])
def test_quality_on_earlier_zones_does_not_tell_in_how_many_places_trips_begin(leaf: str) -> None:
    """Where all trips of a town begin in one of its places, the tree over them is too low to have the town."""
    earlier = anonymize(between_codes((9, 9, 9, 9, 9)), Rule(trips=2), method="oigh", at_level="town", budget=0.0)
    od = read_matrix(
        pa.table({"origin": ["a", leaf], "destination": ["d", "e"], "trips": [9_999, 1]}),
        hierarchy=TREE,
        engine="memory",
    )
    release = release_on_zones(od, Rule(trips=2), zoning_of(earlier), full=TREE)
    assert release.to_arrow().to_pydict() == {"origin": ["T"], "destination": ["U"], "trips": [10_000]}
    assert public_manifest(release)["quality"]["trips"]["g"] == 6


@cache
def towns() -> Zoning:
    return zoning_of(anonymize(between_codes((9, 0, 9, 9, 0)), Rule(trips=2), budget=0.0))


OTHERS: dict[str, tuple[Callable[[tuple[int, ...]], ODMatrix], Callable[[ODMatrix], Release]]] = {
    "atg-soft": (matrix, lambda od: anonymize(od, Rule(trips=3), method="atg-soft", budget=0.3)),
    "mondrian": (matrix, lambda od: anonymize(od, Rule(trips=2), method="mondrian")),
    "freezones": (matrix, lambda od: anonymize(od, Rule(trips=3), method="freezones", budget=0.3, iterations=2)),
    "fine steps": (matrix, lambda od: anonymize(od, Rule(trips=2), budget=0.3, substeps=True)),
    "symmetric": (matrix, lambda od: anonymize(od, Rule(trips=3), budget=0.3, symmetric=True)),
    "persons": (by_people, lambda od: anonymize(od, Rule(persons=3), budget=0.4)),
    "persons, by trips": (by_people, lambda od: anonymize(od, Rule(trips=4), budget=0.4)),
    "persons, cascade": (by_people, lambda od: anonymize(od, Rule(persons=2), method="cascade")),
    "codes": (between_codes, lambda od: anonymize(od, Rule(trips=2), budget=0.4)),
    "codes, atg-soft": (between_codes, lambda od: anonymize(od, Rule(trips=2), method="atg-soft", budget=0.4)),
    "codes, cascade": (between_codes, lambda od: anonymize(od, Rule(trips=2), method="cascade")),
    "earlier zones": (between_codes, lambda od: release_on_zones(od, Rule(trips=2), towns(), full=TREE)),
}


@pytest.mark.parametrize("way", OTHERS)
def test_all_that_is_public_follows_from_the_rows(way: str) -> None:
    make, release = OTHERS[way]
    told: defaultdict[Hashable, set[Hashable]] = defaultdict(set)
    inputs: defaultdict[Hashable, set[tuple[int, ...]]] = defaultdict(set)
    for counts in map(tuple, INPUTS[::6].tolist()):
        known = read(release(make(counts)))
        told[known.rows].add(known.public)
        inputs[known.rows].add(counts)
    assert any(len(same) > 1 for rows, same in inputs.items() if rows is not None), "no two inputs have the same rows"
    assert all(len(each) == 1 for each in told.values())


def test_free_zones_do_not_tell_whether_they_are_those_of_the_cuts() -> None:
    """A zone that is one cell is told in the same way however it was found."""
    od = golden_od("turin-3k")
    found = [anonymize(od, Rule(trips=10), method="freezones", iterations=turns) for turns in (0, 20)]
    told = [[zone["properties"] for zone in zones_geojson(each)["features"]] for each in found]
    assert [any(len(zone["cells"]) > 1 for zone in each) for each in told] == [False, True]
    assert len({(zone["kind"], *zone) for each in told for zone in each}) == 1
