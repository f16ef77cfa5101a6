"""Inputs for all engines, and what must be the same of their releases."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from odkanon import InputError, Rule, read_recipe
from odkanon.methods.method_registry import anonymize
from odkanon.model.od import Matrix
from odkanon.sample.survey import make_survey

WAYS: list[dict[str, Any]] = [
    {"suppress": "after"},
    {"suppress": "after", "budget_of": "rows", "budget": 0.2},
    {"suppress": "before"},
    {"suppress": "before", "budget_of": "trips", "budget": 0.03, "max_levels": 1},
    {"method": "oigh"},
    {"method": "cascade"},
    {"method": "cascade", "allow_inference": True, "budget": 0.2, "budget_of": "rows"},
]
FINE: list[dict[str, Any]] = [{"method": method, "substeps": True} for method in ("odkanon", "oigh", "cascade")]
CASCADES: list[dict[str, Any]] = [{"method": "cascade", "coarsest": 5}, {**FINE[2], "coarsest": 6}]
EVERY_RULE = [
    Rule(trips=5),
    Rule(weight=9_000.5, k=3),
    Rule(persons=4),
    Rule(households=4),
    Rule(trips=5, weight=9_000, persons=4, households=3),
]
CUBES: list[tuple[list[str], list[Rule]]] = [
    (["mode", "hour:0-7,7-9,9-17,17-24"], [Rule(trips=6), Rule(weight=9_000.5, k=3)]),
    (["sex", "age", "weekday"], [Rule(persons=4), Rule(trips=5, weight=9_000, persons=3)]),
]
"""What to publish by, and rules to do it under."""
CUBE_WAYS: list[dict[str, Any]] = [{"method": "cascade"}]
FINE += [{"symmetric": True}, {"suppress": "before", "symmetric": True}, {"method": "oigh", "symmetric": True}]
FINE += [{"method": "oigh", "at_level": resolution, "budget": 0.3} for resolution in (2, 6)]
RULES = [Rule(trips=10), Rule(weight=20_000.5, k=7), Rule(persons=5), Rule(trips=8, weight=9_000, persons=3)]


def said(od: Matrix, rule: Rule, way: dict[str, Any]) -> Any:
    """Return every byte of a release but the time it took; the error or the refusal where there is none."""
    try:
        release = anonymize(od, rule, **way)
    except InputError as error:
        return str(error)
    if release.refusal:
        return release.refusal
    with tempfile.TemporaryDirectory() as folder:
        saved = release.save(Path(folder) / "release")
        files = {file.name: file.read_bytes() for file in saved.iterdir()}
        recipe = read_recipe(saved)
    assert recipe is not None
    recipe["about"].pop("seconds")
    recipe["about"]["input"].pop("sha256")
    # Here one engine is given a table and another a description of it.
    recipe.pop("input")
    return json.dumps(recipe), files


def check_same(reference: Matrix, other: Matrix, rules: list[Rule] = RULES, ways: list[dict[str, Any]] = WAYS) -> None:
    """Check the releases of two matrices: each way under the first rule, and the first way under each rule."""
    assert plain(other) == plain(reference)
    for rule, way in [*((rule, ways[0]) for rule in rules), *((rule, way) for rule in rules[:1] for way in ways[1:])]:
        assert said(other, rule, way) == said(reference, rule, way), (rule, way)


def plain(od: Matrix) -> Any:
    whole = od.summary
    totals = (whole.pairs, whole.trips, whole.weight_units, whole.persons, whole.scale)
    return totals, whole.source.rows, dict(whole.source.rejected), list(whole.source.rejected)


def survey(rows: int = 2_000) -> pa.Table:
    """The first persons of the sample, in a random order."""
    table = make_survey().slice(0, rows)
    return table.take(pa.array(np.random.default_rng(5).permutation(rows)))


def homes(rows: int = 500) -> pa.Table:
    """A survey that names households."""
    table = survey(rows)
    return table.append_column(
        "household", pa.array([f"h{hash_of(each) % 90}" for each in table["person"].to_pylist()])
    )


def hash_of(text: str) -> int:
    """Return a number for a text, the same in every run."""
    return int.from_bytes(text.encode(), "little") % 1_000_003


def messy(rows: int = 1_500) -> pa.Table:
    """A survey with something wrong in every way that is checked."""
    table = survey(rows)
    columns = {name: table.column(name).to_pylist() for name in table.column_names}

    def put(name: str, first: int, values: list[Any]) -> None:
        columns[name][first : first + len(values)] = values

    put("start_lat", 0, [None, float("nan"), float("inf"), 95.0, 120.0, 0.0])
    put("start_lon", 3, [48.0, 200.0, 0.0])
    put("weight", 10, [None, 0.0, -3.5, float("nan"), 0.1234567895, 1e-9, 2.5])
    put("person", 30, [None, "", "  ", " 10_1000 "])
    put("start_time", 40, [None, None])
    table = pa.table({name: pa.array(values, table.schema.field(name).type) for name, values in columns.items()})
    # Copies of good rows, of a bad one, of one without a person and of one without a time.
    return pa.concat_tables([table, table.slice(100, 40), table.slice(100, 10), table.slice(0, 45)])


def outcome(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except InputError as error:
        return str(error)
