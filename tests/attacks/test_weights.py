"""What published weights tell a reader who knows which weights trips have: nothing that the trips of rows do not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from pyarrow import parquet

from attacks.cascades import PAIR, SINGLE, THREE, shown, within
from attacks.judged import every_state
from attacks.views import rows_of
from attacks.weighing import Told, weigh
from odkanon import Rule, read_hierarchy
from odkanon.audit import TripsSource
from odkanon.evidence.attack_context import open_context
from odkanon.evidence.attacks import ATTACKS
from odkanon.evidence.gather import run_attack
from odkanon.methods.method_registry import anonymize
from odkanon.publish.manifests import public_manifest
from worlds.cubes import Cube, cube_matrix

WEIGHTS = [(1, 2), (1, 3), (0.5, 1.25)]
SMALL = [Cube((THREE, SINGLE), (0, 1)), Cube((PAIR, PAIR), (0, 1)), Cube((PAIR, PAIR), (1, 0))]
LARGE = [
    Cube((THREE, PAIR), (0, 1)),
    Cube(((PAIR, THREE), SINGLE), (0, 0, 1)),
    Cube((THREE, SINGLE, PAIR), (2, 0, 1)),
]
SPARE = [Cube((PAIR, SINGLE, (0, 0, 0, 0)), (2, 0, 1), spare=1), Cube((PAIR, SINGLE, (0, 0, 0, 0)), (0, 2, 1), spare=1)]
"""The last of four values is known to be empty."""
JUDGED = [False, True]
"""Whether the rule counts weight: then rows at their cap keep what is above it."""


def groups_shown(
    world: Cube, weights: tuple[float, float], most: int, told: Told, *, judged: bool = False
) -> tuple[int, int]:
    """Return how many inputs were tried, and how many groups were shown."""
    rule = Rule(trips=2, weight=sum(weights)) if judged else Rule(trips=2)
    found = weigh(world, weights, most, rule, 2)
    assert found.rows.at_cap.any()
    return len(found.replay.counts), sum(shown(found.replay, found.signature(told)))


@pytest.mark.parametrize("judged", JUDGED)
@pytest.mark.parametrize("weights", WEIGHTS, ids=str)
def test_no_group_can_be_shown_by_the_weights_of_rows(weights: tuple[float, float], *, judged: bool) -> None:
    found = [
        groups_shown(world, weights, 3 if world in SMALL else 1, "published", judged=judged)
        for world in SMALL + LARGE + SPARE
    ]
    assert sum(tried for tried, _ in found) > 24_000
    assert sum(groups for _, groups in found) == 0


@pytest.mark.parametrize(
    "light_and_heavy", [(1, 3), *(pytest.param(each, marks=pytest.mark.slow) for each in ((1, 2), (2, 5)))]
)
def test_no_group_can_be_shown_where_k_mean_weights_count(light_and_heavy: tuple[int, int]) -> None:
    """The mean weight is that of all trips, also of those in no row: neither rows nor the promised weight show any."""
    light, heavy = light_and_heavy
    world = Cube((PAIR, PAIR), (0, 1))
    states = [(0, 0), (1, light), (1, heavy), (2, 2 * light), (2, light + heavy), (2, 2 * heavy)]
    least: dict[str, npt.NDArray[np.int64]] = {}
    for counts, weight in zip(*(table[1:].astype(np.int64) for table in every_state(world, states)), strict=True):
        od = cube_matrix(world, counts, weight)
        release = anonymize(od, Rule.protect("participants", "population", k=2, of=od), method="cascade")
        if release.refusal is None:
            rows, trips = rows_of(world, release), counts.reshape(world.shape)
            residual = np.array(
                [
                    trips[tuple(slice(*part) for part in box)].sum()
                    - sum(listed for row, listed in rows.items() if within(row, box))
                    for box in world.boxes
                ]
            )
            public = json.dumps([release.to_arrow().to_pylist(), public_manifest(release)])
            least[public] = np.minimum(residual, least.get(public, residual))
    assert len(least) > 40
    assert not any(shown.any() for shown in least.values())


@pytest.mark.slow
@pytest.mark.parametrize("judged", JUDGED)
@pytest.mark.parametrize("weights", WEIGHTS, ids=str)
def test_no_group_can_be_shown_by_the_weights_of_rows_in_larger_worlds(
    weights: tuple[float, float], *, judged: bool
) -> None:
    found = [groups_shown(world, weights, 2, "published", judged=judged) for world in [*LARGE[:2], SPARE[0]]]
    assert [tried for tried, _ in found] == [6**6, 6**5, 6**6]
    assert sum(groups for _, groups in found) == 0


@pytest.mark.parametrize("told", ["share", "pool"])
@pytest.mark.parametrize("weights", WEIGHTS, ids=str)
def test_shares_in_nine_decimals_show_groups(weights: tuple[float, float], told: Told) -> None:
    """Of 9 trips of weight 2, 9 of weight 3 and one more, 18 have 43.578947369 = 46 * 18 / 19: there are 19."""
    assert sum(groups_shown(world, weights, 3, told)[1] for world in SMALL) > 100


def survey(folder: Path) -> tuple[Path, Path]:
    """Write trips: 9 of weight 2, 9 of weight 3 and one more from a town's three places, and some that are rows."""
    trips = [("a1", "c1", "2")] * 9 + [("a2", "c1", "3")] * 9 + [("a3", "c1", "1")]
    trips += [
        (f"b{at}", "c1", weight) for at, weight in ((1, "2.125"), (2, "3.5"), (3, "1.75")) for _ in range(12 + at)
    ]
    lines = ["origin,destination,weight", *(",".join(trip) for trip in trips)]
    (folder / "trips.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    places = [(f"{town}{at}", town) for town in "abc" for at in (1, 2, 3)]
    (folder / "places.csv").write_text(
        "\n".join(["place,town", *(",".join(place) for place in places)]) + "\n", encoding="utf-8"
    )
    return folder / "trips.csv", folder / "places.csv"


def made(folder: Path, *options: str) -> tuple[Path, Path, Path]:
    trips, places = survey(folder)
    release = folder / "release"
    command = ["anonymize", str(trips), "--hierarchy", str(places), "--method", "cascade", "-o", str(release), *options]
    subprocess.run([sys.executable, "-m", "odkanon", *command], check=True, capture_output=True)
    return release, trips, places


@pytest.mark.parametrize(
    "options", [(), ("--protect", "participants", "--protect", "population")], ids=["trips", "both"]
)
def test_no_public_weight_has_more_than_four_digits(tmp_path: Path, options: tuple[str, ...]) -> None:
    release, _, _ = made(tmp_path, *options)
    table = parquet.read_table(release / "classes.parquet").to_pylist()
    zones = json.loads((release / "zones.geojson").read_text(encoding="utf-8"))["features"]
    account = json.loads((release / "release.json").read_text(encoding="utf-8"))
    weights = [row["weight"] for row in table] + [zone["properties"]["weight"] for zone in zones]
    weights.append(account["published"]["weight"])
    assert all(weight == float(f"{weight:.4g}") for weight in weights)
    recipe = json.loads((tmp_path / "release.recipe.json").read_text(encoding="utf-8"))
    assert recipe["about"]["published"]["weight"] > 0


def test_the_weight_of_a_row_at_its_cap_follows_from_the_other_rows(tmp_path: Path) -> None:
    release, _, _ = made(tmp_path)
    rows = parquet.read_table(release / "classes.parquet").to_pylist()
    (capped,) = [row for row in rows if row["at_cap"]]
    assert (capped["origin"], capped["trips"]) == ("a", 18)
    others = [row for row in rows if not row["at_cap"] and row["origin"].startswith("b")]
    mean = sum(row["weight"] for row in others) / sum(row["trips"] for row in others)
    assert capped["weight"] == float(f"{18 * float(f'{mean:.3g}'):.4g}")


@pytest.mark.parametrize("weight", [None, 18 * 46 / 19, 45.0])
def test_evidence_finds_rows_at_their_cap_with_a_weight_of_their_own(tmp_path: Path, weight: float | None) -> None:
    release, trips, places = made(tmp_path)
    if weight is not None:
        table = parquet.read_table(release / "classes.parquet")
        told = [weight if row["at_cap"] else row["weight"] for row in table.to_pylist()]
        at = table.column_names.index("weight")
        parquet.write_table(table.set_column(at, "weight", pa.array(told)), release / "classes.parquet")
    context = open_context(release, TripsSource(trips, hierarchy=read_hierarchy(places)))
    run = run_attack(context, ATTACKS["intervals"])
    assert run.verdict == ("clean" if weight is None else "found")
