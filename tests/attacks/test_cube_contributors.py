"""What the rows of a cube imply where persons or households count: every input through the method itself.

A reader knows the method, the ladder and the rows, and tries who may have made which trips: persons with several trips,
households with two persons, trips of which nobody knows who made them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from attacks.cascades import PAIR, SINGLE, THREE, every_input, shown
from attacks.crowds import Crowd, acquainted, crowd_matrix, families, published, strangers
from attacks.views import rows_of
from odkanon import Release, Rule
from odkanon.methods.cascade.roll_up import PublicationRule
from odkanon.methods.method_registry import anonymize
from worlds.cubes import Cube

RULES = [Rule(persons=2), Rule(households=2), Rule(persons=2, households=2)]
MORE_RULES = [
    Rule(trips=3, households=2),
    Rule(persons=3),
    Rule(households=3),
    Rule(persons=3, households=2),
    Rule(persons=2, households=3),
]

SEXES_FIRST = Cube((THREE, SINGLE, PAIR), (2, 0, 1))
PLACES_FIRST = Cube((THREE, SINGLE, PAIR), (0, 1, 2))
MODES = Cube((THREE, SINGLE, THREE), (0, 2, 1))
BOTH_ENDS = Cube((PAIR, PAIR, PAIR), (2, 0, 1))

COUPLE = [(), (0,), (2,), (0, 1), (0, 2)]
"""Nobody, or trips of one or two persons out of three; the first two live together."""
COUPLE_TWICE = [*COUPLE, (0, 0)]
EVERYBODY = [(), *((a,) for a in range(4)), *((a, b) for a in range(4) for b in range(a, 4))]


def groups_shown(
    world: Cube, crowd: Crowd, rule: Rule, terms: type[PublicationRule] = PublicationRule, *, capped: bool = True
) -> int:
    replay = published(world, crowd, rule, terms, capped=capped)
    signature = replay.signature()
    assert len(np.unique(signature)) > 3, "hardly anything is published, so nothing is tested"
    return sum(shown(replay, signature))


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize(
    ("world", "states", "household"),
    [
        (SEXES_FIRST, COUPLE, (0, 0, 1)),
        (MODES, [(), (0,), (1,)], (0, 1)),
        (BOTH_ENDS, [(), (0,), (2,)], (0, 0, 1)),
        pytest.param(SEXES_FIRST, COUPLE_TWICE, (0, 0, 1), marks=pytest.mark.slow),
        pytest.param(PLACES_FIRST, COUPLE_TWICE, (0, 0, 1), marks=pytest.mark.slow),
        pytest.param(Cube((PAIR, SINGLE, PAIR), (2, 0, 1)), EVERYBODY, (0, 0, 1, 1), marks=pytest.mark.slow),
        pytest.param(BOTH_ENDS, [(), (0,), (1,), (2,)], (0, 0, 1), marks=pytest.mark.slow),
        pytest.param(
            Cube((PAIR, SINGLE, (PAIR, SINGLE)), (2, 0, 1, 2)), COUPLE_TWICE, (0, 0, 1), marks=pytest.mark.slow
        ),
    ],
)
def test_no_group_can_be_shown_in_all_that_few_people_may_do(
    world: Cube, states: list[tuple[int, ...]], household: tuple[int, ...], rule: Rule
) -> None:
    assert groups_shown(world, families(world, states, household), rule) == 0


@pytest.mark.parametrize(
    ("world", "most", "seeds"),
    [
        (SEXES_FIRST, 3, 1),
        *(
            pytest.param(world, most, 4, marks=pytest.mark.slow)
            for world, most in [
                (SEXES_FIRST, 4),
                (PLACES_FIRST, 4),
                (MODES, 2),
                (Cube((PAIR, SINGLE, THREE), (2, 0, 1)), 4),
                (BOTH_ENDS, 2),
                (Cube((PAIR, SINGLE, PAIR, PAIR), (3, 0, 1, 2)), 2),
            ]
        ),
    ],
)
def test_no_group_can_be_shown_whoever_made_the_trips(world: Cube, most: int, seeds: int) -> None:
    """Any number of trips in each box, each of a person of its own; and the same trips made by few, at random."""
    counts = every_input(world, most)
    crowd = strangers(counts)
    for seed in range(seeds):
        crowd = crowd + acquainted(counts, seed)
    for rule in RULES + MORE_RULES:
        assert groups_shown(world, crowd, rule) == 0, rule


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_without_caps_groups_are_shown(rule: Rule) -> None:
    crowd = families(MODES, [(), (0,), (1,)], (0, 1))
    assert groups_shown(MODES, crowd, rule, capped=False) > 50_000


class Carrying(PublicationRule):
    """Terms that count on what a row passes on, as if all its heads went on with it."""

    @property
    def carries(self) -> bool:
        """Whether what a row passes on could make up a row above it."""
        return True


def test_counting_on_contributors_that_do_not_go_on_shows_groups() -> None:
    """Of persons and households one is dealt out: a row above shows that it has heads of its own."""
    crowd = families(MODES, [(), (0,), (1,)], (0, 1))
    assert groups_shown(MODES, crowd, Rule(persons=2, households=2), Carrying) > 100


@pytest.mark.parametrize("world", [SEXES_FIRST, PLACES_FIRST, BOTH_ENDS], ids=["sexes", "places", "ends"])
def test_releases_have_the_rows_that_the_reader_is_given(world: Cube) -> None:
    """A release of one input, whose trees have only what occurs in it, lists what it lists among all others."""
    counts = np.random.default_rng(7).integers(0, 3, (40, int(np.prod(world.shape)))).astype(np.int16)
    crowd = acquainted(counts, 3)
    for number, rule in enumerate([*RULES, MORE_RULES[3]]):
        replay = published(world, crowd, rule)
        assert any(listed.any() for (rung, _), listed in replay.listed.items() if rung)
        for chosen in range(number, crowd.inputs, 4):
            expected = {box: int(listed[chosen]) for (_, box), listed in replay.listed.items() if listed[chosen]}
            release = released(world, crowd.take(chosen), rule)
            assert ({} if release.refusal else rows_of(world, release)) == expected


@pytest.mark.parametrize("rule", RULES[1:], ids=str)
def test_whoever_made_the_trips_the_folder_of_the_same_rows_is_the_same(rule: Rule, tmp_path: Path) -> None:
    world, counts = SEXES_FIRST, every_input(SEXES_FIRST, 2)
    crowd = strangers(counts) + acquainted(counts, 0)
    replay = published(world, crowd, rule)
    signature = replay.signature()
    coarse = np.any([listed > 0 for (rung, _), listed in replay.listed.items() if rung], axis=0)
    both = np.intersect1d(signature[: len(counts)], signature[len(counts) :][coarse[len(counts) :]])
    for told in np.random.default_rng(1).choice(both, 2, replace=False).tolist():
        same = np.flatnonzero(signature == told)
        first, *others = (
            folder_of(world, crowd.take(chosen), rule, tmp_path / f"{told}-{chosen}") for chosen in same[[0, -2, -1]]
        )
        assert len(first) >= 4
        assert others == [first, first]


def released(world: Cube, crowd: Crowd, rule: Rule) -> Release:
    od = crowd_matrix(world, crowd, numbered=False)
    return anonymize(od, rule, method="cascade", drop_order=world.drop_order())


def folder_of(world: Cube, crowd: Crowd, rule: Rule, path: Path) -> dict[str, bytes]:
    saved = released(world, crowd, rule).save(path / "release")
    return {file.name: file.read_bytes() for file in saved.iterdir()}
