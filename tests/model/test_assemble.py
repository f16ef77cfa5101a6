"""From zones to a release: where each pair of the input lies, what goes with the suppressed, what a budget would do."""

from __future__ import annotations

import numpy as np
import pytest

from odkanon import Release, Rule
from odkanon.core.arrays import Bools
from odkanon.methods.method_registry import anonymize
from odkanon.model.assemble import assemble, over_budget
from odkanon.model.release_spec import Budget, ReleaseSpec
from worlds.records import World
from worlds.towns import BUSY, people, town


def made(world: World, rule: Rule, candidate: Bools | None = None, outside: int | None = None) -> Release:
    """Return the release on the finest zones; one pair may lie between no zones, as far as its destination goes."""
    fine = anonymize(world.od, Rule(trips=1))
    origin, destination = (ends[fine.area_of_pair].copy() for ends in (fine.classes.origin, fine.classes.destination))
    if outside is not None:
        destination[outside] = -1
    return assemble(
        world.od,
        ReleaseSpec(rule),
        origins=fine.origins,
        destinations=fine.destinations,
        origin_zone=origin,
        destination_zone=destination,
        candidate=candidate,
    )


def four_flows() -> World:
    return town(*((start, end, people(20)) for start, end in (("a1", "a1"), ("a1", "b2"), ("a2", "b2"), ("b1", "b2"))))


@pytest.mark.parametrize("last", [0, 1, 2, 3])
def test_a_pair_that_no_class_lies_around_is_in_none(last: int) -> None:
    """Also behind the last class, and before the first."""
    world = four_flows()
    candidate = np.arange(4) != last
    release = made(world, Rule(trips=10), candidate)
    assert release.area_of_pair.tolist() == [[-1, 0, 1, 2], [0, -1, 1, 2], [0, 1, -1, 2], [0, 1, 2, -1]][last]
    assert release.suppressed.trips == 20


def test_a_pair_outside_of_every_zone_is_in_no_class() -> None:
    """Without care its number would be that of the class before: the last destination of the origin before."""
    world = four_flows()
    at = int(np.flatnonzero(world.od.flows.origin == 1)[0])
    release = made(world, Rule(trips=10), np.arange(4) != at, outside=at)
    assert release.area_of_pair.tolist() == [0, 1, -1, 2]


def test_where_nothing_is_published_no_pair_is_in_a_class() -> None:
    release = made(four_flows(), Rule(trips=10), np.zeros(4, dtype=bool))
    assert release.area_of_pair.tolist() == [-1] * 4


def test_all_that_goes_with_the_suppressed_is_told() -> None:
    """The boss has 30 of 40 trips. With ten more that is still too much, with twelve more on top it is not."""
    world = town(("a2", "a1", BUSY), ("a1", "b1", people(10)), ("a2", "b1", people(12, "q")), ("b1", "b2", people(60)))
    release = made(world, Rule(trips=10, max_share=0.5))
    assert release.companion is not None
    assert (release.companion.trips, release.companion.pairs) == (22, 2)
    assert release.suppressed.trips == len(BUSY) + 22
    assert sorted(release.area_of_pair.tolist()) == [-1, -1, -1, 0]


@pytest.mark.parametrize(
    ("spent", "said"),
    [
        (334, "suppresses 334 trips, and no more than 100 may be suppressed; it takes a budget of about 0.334, or"),
        (3335, "it takes a budget of about 0.334"),
        (9990, "it takes a budget of about 0.999"),
        (9991, "no budget would do"),
        (10000, "no budget would do"),
    ],
)
def test_the_budget_that_would_do_is_never_said_too_small(spent: int, said: str) -> None:
    whole = town(("a1", "b1", people(1000 if spent < 1000 else 10000))).od.flows
    assert said in over_budget(Rule(trips=10, max_share=0.5), Budget(0.1, "trips"), whole, spent)
