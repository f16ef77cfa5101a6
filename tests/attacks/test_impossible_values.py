"""Values that a reader may know to be empty, such as a missing answer: two readers, and two ways of being wrong."""

from __future__ import annotations

from attacks.cascades import PAIR, SINGLE, THREE, Counts, Replay, every_input, shown
from worlds.cubes import Cube

WORLDS = [
    # Two sexes, and those who did not say.
    (Cube((PAIR, SINGLE, THREE), (2, 0, 1), spare=1), 3),
    (Cube((THREE, SINGLE, THREE), (2, 0, 1), spare=1), 2),
    (Cube((THREE, SINGLE, THREE), (0, 2, 1), spare=1), 2),
    # Two modes in a group, and others, which are a group of their own.
    (Cube((THREE, SINGLE, (PAIR, SINGLE)), (2, 0, 1, 2), spare=1), 2),
    # One named value, other and missing.
    (Cube((THREE, SINGLE, THREE), (0, 1, 2), spare=2), 2),
    (Cube((PAIR, PAIR, THREE), (2, 0, 1), spare=1), 2),
]


def groups_shown(counted_on: str, *, knows: bool) -> int:
    """Return how many groups are shown to a reader, who may know that nothing is missing where that is so."""
    found, tried = 0, 0
    for world, k in WORLDS:
        inputs = every_input(world, k)
        missing = inputs.reshape(-1, *world.shape)[..., world.shape[-1] - world.spare :]
        occurs: Counts = missing.reshape(len(inputs), -1).max(axis=1).clip(0, 1)
        if knows:
            inputs, occurs = inputs[occurs == 0], occurs[occurs == 0]
        trust: dict[str, Counts] = {"never": occurs * 0, "always": occurs * 0 + 1, "where it occurs": occurs}
        replay = Replay(world, inputs, k, trust=trust[counted_on]).run()
        found, tried = found + sum(shown(replay, replay.signature())), tried + len(inputs)
    assert tried > (8_000 if knows else 600_000)
    return found


def test_spare_values_are_never_counted_on_and_show_nothing() -> None:
    assert groups_shown("never", knows=False) == 0
    assert groups_shown("never", knows=True) == 0


def test_counting_on_a_value_that_is_known_to_be_empty_shows_groups() -> None:
    """Of 18 trips of any sex, nine are a woman's if everybody is known to have said."""
    assert groups_shown("always", knows=False) == 0
    assert groups_shown("always", knows=True) > 1_000


def test_counting_on_a_value_where_it_occurs_shows_that_it_does() -> None:
    """A row that two sexes could not fill tells that somebody did not say."""
    assert groups_shown("where it occurs", knows=True) == 0
    assert groups_shown("where it occurs", knows=False) > 1_000
