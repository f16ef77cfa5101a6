"""A reader who also knows the total of the input: which releases withstand that, and leaving out a secret share."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from attacks.cascades import PAIR, SINGLE, THREE, Box, Replay, World, every_input
from evidence.test_cascade_reader import reader_of
from odkanon import Rule
from odkanon.engine.memory.residual import leave_out
from odkanon.methods.method_registry import anonymize
from odkanon.model.od import od_matrix
from odkanon.model.provenance import Source
from worlds.cubes import Cube, cube_matrix, tree_of
from worlds.matrices import golden_od

WORLDS: list[tuple[World, int]] = [
    (World((THREE, THREE)), 2),
    (World((PAIR, THREE)), 4),
    (World((PAIR, (PAIR, PAIR))), 2),
    (World((PAIR, PAIR, PAIR)), 2),
    (Cube((PAIR, PAIR, PAIR), (2, 0, 1)), 2),
    (Cube((THREE, SINGLE, PAIR), (2, 0, 1)), 4),
]
LARGER: list[tuple[World, int]] = [
    (World((PAIR, PAIR, PAIR)), 3),
    (World(((PAIR, PAIR), THREE)), 2),
    (World(((PAIR, THREE),)), 4),
]
ALL = [*WORLDS, *(pytest.param(*each, marks=pytest.mark.slow) for each in LARGER)]


class KnownRows:
    """All inputs of a world by the rows that they publish, and what may be unlisted of each."""

    def __init__(self, world: World, k: int) -> None:
        # No more than k - 1 trips lie in a place without a row; more than k in one with a row are in the row.
        self.replay = Replay(world, every_input(world, k), k).run()
        _, self.rows = np.unique(self.replay.signature(), return_inverse=True)
        self.listed = sum(self.replay.listed.values(), np.zeros(len(self.rows), dtype=np.int16)).astype(np.int64)
        self.total = self.replay.counts.sum(axis=1).astype(np.int64)
        self.whole: Box = tuple((0, size) for size in world.shape)
        self.proper = [box for box in world.boxes if box != self.whole]

    def shown(self, knows: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return in which inputs a proper box is known to have unlisted trips, given a number for what is known."""
        _, number = np.unique(knows, return_inverse=True)
        found = np.zeros(len(number), dtype=bool)
        for box in self.proper:
            least = np.full(number.max() + 1, np.iinfo(np.int16).max, dtype=np.int16)
            np.minimum.at(least, number, self.replay.residual(box))
            found |= least[number] > 0
        return found

    def withstands(self) -> npt.NDArray[np.int64]:
        """Return the most unlisted trips with which a known total shows no proper box."""
        root = self.replay.world.nodes(len(self.replay.world.rungs) - 1)[0]
        caps = np.stack([self.replay.cap(root, box) for box in self.proper])
        least: npt.NDArray[np.int64] = caps.min(axis=0).astype(np.int64)
        return least


@pytest.mark.parametrize(("world", "k"), ALL)
def test_the_exact_test_names_the_releases_that_withstand_a_known_total(world: World, k: int) -> None:
    known = KnownRows(world, k)
    assert not known.shown(known.rows).any()
    unlisted = known.total - known.listed
    shown = known.shown(known.rows * 1000 + known.total)
    assert np.array_equal(shown, unlisted > known.withstands())
    assert shown.any()


@pytest.mark.parametrize(("world", "k"), WORLDS[:5])
def test_the_release_has_the_number_of_the_exact_test(world: World, k: int) -> None:
    known = KnownRows(world, k)
    random, expected = np.random.default_rng(3), known.withstands()
    drop_order = world.drop_order() if isinstance(world, Cube) else None
    if len(world.shape) > 2 and drop_order is None:
        return
    for at in random.choice(np.flatnonzero(known.listed > 0), 25, replace=False).tolist():
        od = cube_matrix(world, known.replay.counts[at].astype(np.int64))
        release = anonymize(od, Rule(trips=k), method="cascade", drop_order=drop_order)
        assert release.parameters["withstands"] == expected[at]


@pytest.mark.parametrize(("world", "k"), [each for each in WORLDS[:3] if len(each[0].shape) == 2])
def test_the_evidence_computes_the_same_number(world: World, k: int) -> None:
    known = KnownRows(world, k)
    expected = known.withstands()
    for at in np.random.default_rng(5).choice(np.flatnonzero(known.listed > 0), 40, replace=False).tolist():
        assert reader_of(known.replay, at, "capped").withstands() == expected[at]


@pytest.mark.parametrize(("world", "k"), ALL)
def test_no_proper_box_is_shown_where_any_trips_may_have_been_left_out(world: World, k: int) -> None:
    """The rows are those of what is left; the total is that of everything, the trips left out included.

    A reader who holds a total N possible for the rows finds, for each box, an input with the rows that has nothing
    unlisted there and at most N trips: the others may have been left out elsewhere.
    """
    known = KnownRows(world, k)
    number = known.rows.max() + 1
    for box in known.proper:
        least = np.full(number, np.iinfo(np.int64).max)
        empty = known.replay.residual(box) == 0
        np.minimum.at(least, known.rows[empty], known.total[empty])
        listed = np.zeros(number, dtype=np.int64)
        listed[known.rows] = known.listed
        # Possible totals begin with the listed trips; all of them are explained if that one is.
        assert np.array_equal(least, listed)


def test_leaving_out_only_where_it_is_needed_would_show_groups() -> None:
    """Where nothing is left out if a release withstands its total, whoever sees the total knows which it is."""
    found = 0
    for world, k in WORLDS[:4]:
        known = KnownRows(world, k)
        plain = known.total - known.listed <= known.withstands()
        found += int(known.shown(np.where(plain, known.rows * 1000 + known.total, -1 - known.rows))[~plain].sum())
    assert found > 100


def test_a_secret_share_is_left_out_always_and_nothing_exact_is_stated(tmp_path: Path) -> None:
    od = golden_od("paris-28k")
    plain = anonymize(od, Rule(trips=10), method="cascade")
    made = [anonymize(od, Rule(trips=10), method="cascade", total_known=True) for _ in range(3)]
    assert len({each.to_arrow().to_pandas().to_csv() for each in made}) == 3, "it is not drawn from the data"
    for release in made:
        assert 0 < release.suppressed.trips <= 0.02 * od.trips
        assert release.unlisted is None
        assert release.classes.at_cap is not None
        assert release.classes.at_cap.all()
        assert len(release.classes) > 0.97 * len(plain.classes)
    folder = made[0].save(tmp_path / "release")
    public = json.loads((folder / "release.json").read_text(encoding="utf-8"))
    assert public["unlisted"]["at_most_trips"] is None
    assert "the total of the input" in public["statement"]
    assert "but not the total" not in public["statement"]
    assert public["parameters"] == {"allow_inference": False, "total_known": True}


def test_persons_are_left_out_with_all_their_trips() -> None:
    random = np.random.default_rng(4)
    origin, destination, person = (random.integers(0, most, 4_000).astype(np.int32) for most in (8, 8, 500))
    weight = random.integers(1, 9, 4_000)
    tree = tree_of(World((tuple([0] * 8),)).levels[0])
    persons, source = {"persons": person}, Source(rows=4_000)
    od = od_matrix(tree, tree, origin, destination, weight=weight, contributors=persons, source=source)
    flows, gone = leave_out(od.flows, "persons", 0.2, random)
    left, before = flows.contributions["persons"], od.flows.contributions["persons"]
    stays = np.unique(left.contributor)
    assert 0 < len(stays) < 500
    kept = np.isin(before.contributor, stays)
    assert left.masses["trips"].sum() == before.masses["trips"][kept].sum() == flows.trips.sum()
    assert gone.trips == od.trips - flows.trips.sum() > 0
    assert flows.weight_units is not None
    assert gone.weight_units == weight.sum() - flows.weight_units.sum() == before.masses["weight"][~kept].sum()


def test_the_audit_names_the_total_that_must_not_be_published(tmp_path: Path) -> None:
    """Seven trips are in no row, of the only pair of places without one: the total shows them."""
    flows = [(f"a{one}", f"a{other}", 7 if one == other == 3 else 20) for one in (1, 2, 3) for other in (1, 2, 3)]
    lines = [f"{origin},{end},{origin}{end}{at}" for origin, end, trips in flows for at in range(trips)]
    (tmp_path / "trips.csv").write_text("\n".join(["origin,destination,person", *lines]) + "\n", encoding="utf-8")
    places = [f"a{at},a" for at in (1, 2, 3)]
    (tmp_path / "places.csv").write_text("\n".join(["place,town", *places]) + "\n", encoding="utf-8")
    given = ["--hierarchy", str(tmp_path / "places.csv")]
    trips, release = str(tmp_path / "trips.csv"), str(tmp_path / "release")
    command("anonymize", trips, "-o", release, "--protect", "participants", "--method", "cascade", *given)
    audited = command("audit", release, "--trips", trips, *given)
    assert "7 trips are in no row" in audited
    assert "do not publish that total" in audited
    manifest = json.loads((tmp_path / "release" / "release.json").read_text(encoding="utf-8"))
    assert "withstands" not in manifest["parameters"]


def command(*words: str) -> str:
    done = subprocess.run([sys.executable, "-m", "odkanon", *words], capture_output=True, text=True, check=False)
    return " ".join((done.stdout + done.stderr).split())
