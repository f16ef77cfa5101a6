"""What a rule may ask besides thresholds, and what is refused: releases that break it, methods that cannot keep it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from odkanon import InputError, Rule, UnsafeReleaseError, read_matrix, read_trips
from odkanon.linked.fixed_zoning import release_on_zones, zoning_of
from odkanon.linked.linked_release import release_linked
from odkanon.methods.method_registry import anonymize
from odkanon.model.release_spec import ReleaseSpec
from odkanon.read.od_matrix import make_dimensions
from worlds.people import Trip, crowd, write
from worlds.towns import BUSY, four_zones, people, town


@pytest.mark.parametrize("ends", [("a1", "a1"), ("a2", "a1"), ("b2", "b2")], ids="-".join)
def test_a_release_cannot_exist_that_breaks_what_it_asks(ends: tuple[str, str]) -> None:
    """Whether it is the first of its flows that breaks it, or another."""
    world = town(
        (*ends, BUSY),
        ("a1", "b1", people(60)),
        ("a2", "b1", people(60)),
        ("b1", "b2", people(60)),
        ("b1", "a1", people(60)),
    )
    release = anonymize(world.od, Rule(trips=10))
    assert release.refusal is None
    for rule in (release.rule.with_constraints(max_share=0.5), release.rule.with_constraints(min_destinations=2)):
        with pytest.raises(UnsafeReleaseError, match="break"):
            replace(release, spec=ReleaseSpec(rule))
    fine = replace(release, spec=ReleaseSpec(release.rule.with_constraints(max_share=0.8)))
    with pytest.raises(UnsafeReleaseError, match="only be checked"):
        replace(fine, assignment=None)


def test_the_suppressed_of_a_release_cannot_be_of_one_person() -> None:
    world = town(("a2", "a1", BUSY), ("a1", "b1", people(60)), ("a2", "b1", people(60)))
    everything = release_on_zones(world.od, Rule(trips=10), zoning_of(anonymize(world.od, Rule(trips=1))))
    published = world.od.flows.trips != len(BUSY)
    rows = np.flatnonzero(everything.classes.trips != len(BUSY))
    some = {
        name: getattr(everything.classes, name)[rows] for name in ("origin", "destination", "trips", "weight_units")
    }
    classes = replace(everything.classes, **some, contributors={"persons": everything.classes.persons[rows]})
    number = np.full(len(everything.classes), -1, dtype=np.int32)
    number[rows] = np.arange(len(rows))
    placed = replace(everything.assignment_in_memory, published=published, area_of_pair=number[everything.area_of_pair])
    gone = world.od.flows.totals(~published)
    good = replace(everything, classes=classes, assignment=placed, suppressed=gone)
    assert good.suppressed.trips == len(BUSY)
    with pytest.raises(UnsafeReleaseError, match="residual is below"):
        replace(good, spec=ReleaseSpec(Rule(trips=10, max_share=0.5)))


@pytest.mark.parametrize("method", ["mondrian", "cascade"])
@pytest.mark.parametrize("constraints", [{"max_share": 0.5}, {"min_destinations": 2}], ids=str)
def test_methods_that_cannot_keep_it_say_so(method: str, constraints: dict[str, Any]) -> None:
    od = town(("a1", "b1", people(30))).od
    with pytest.raises(InputError, match=r"keeps thresholds.*choose odkanon"):
        anonymize(od, Rule(trips=10, **constraints), method=method)


def test_tables_released_together_keep_thresholds_alone(tmp_path: Path) -> None:
    trips = read_trips(write([Trip(who, 0, 4) for who in crowd(20)], tmp_path / "trips.parquet"))
    with pytest.raises(InputError, match="linked tables support thresholds only"):
        release_linked(trips, Rule(trips=10, max_share=0.5), make_dimensions(trips, ["sex"]))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"max_share": 0.0}, "between 0 and 1"),
        ({"max_share": 1.0}, "between 0 and 1"),
        ({"min_destinations": 0}, "whole number"),
        ({"min_destinations": 1.5}, "whole number"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Rule(trips=10, **wrong)


def test_a_share_needs_contributors() -> None:
    od = read_matrix(
        pa.table({"origin": ["a1"], "destination": ["b1"], "trips": [30]}), hierarchy=four_zones(), engine="memory"
    )
    with pytest.raises(InputError, match="column of persons or households, and the input has neither"):
        anonymize(od, Rule(trips=10, max_share=0.5))
