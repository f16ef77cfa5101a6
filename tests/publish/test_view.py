"""Views of a cube: sums of its rows, which add up, and say what they cannot tell."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odkanon import (
    InputError,
    RefusedError,
    Release,
    Rule,
    open_release,
)
from odkanon.linked.fixed_zoning import zoning_of
from odkanon.methods.method_registry import anonymize
from odkanon.publish.attribute_view import save_view, view_release
from odkanon.publish.manifests import public_manifest
from odkanon.quality.utility import attribute_coverage
from worlds.cubes import Cube, cube_matrix, random_counts
from worlds.tries import tries

PAIR, THREE = (0, 0), (0, 0, 0)
WORLDS = [
    Cube((PAIR, THREE, THREE), (0, 2, 1)),
    Cube(((PAIR, PAIR), (PAIR, PAIR), PAIR, THREE), (0, 1, 3, 2, 0, 1)),
    Cube((THREE, PAIR, (PAIR, THREE)), (2, 0, 1, 2)),
]


def release_of(world: Cube, k: int, seed: int) -> Release:
    counts = random_counts(world, k, seed)
    weight = counts * np.random.default_rng(seed).integers(1, 9, len(counts))
    return anonymize(cube_matrix(world, counts, weight), Rule(trips=k), method="cascade", drop_order=world.drop_order())


def listed_values(release: Release, name: str) -> set[str]:
    """Return the values of an attribute that a release lists at its finest level."""
    axes = public_manifest(release)["axes"]
    return set(next(axis["levels"][0] for axis in axes if axis["name"] == name))


@tries(30)
@given(st.sampled_from(WORLDS), st.integers(2, 4), st.integers(0, 2**32 - 1))
def test_every_axis_adds_up(world: Cube, k: int, seed: int) -> None:
    release = release_of(world, k, seed)
    if release.refusal:
        return
    everyone = release.view()
    assert everyone.total("trips_possible") == 0
    rows = release.to_arrow()
    for measure in [name for name in ("trips", "weight") if name in rows.column_names]:
        masses = rows.column(measure).to_numpy()
        published = masses.sum()
        assert everyone.total(measure) == published
        for name, levels in zip(world.names, world.levels[2:], strict=True):
            listed = listed_values(release, name)
            values = [value for value in (f"0:{start}" for start, _ in levels[0]) if value in listed]
            certain = sum(release.view(f'{name} == "{value}"').total(measure) for value in values)
            leaf = np.isin(release.classes.attributes[name], values)
            coarser = masses[~leaf].sum()
            assert certain + coarser == published


@tries(30)
@given(st.sampled_from(WORLDS), st.integers(2, 4), st.integers(0, 2**32 - 1), st.data())
def test_a_view_holds_the_true_number_between_its_two(world: Cube, k: int, seed: int, data: st.DataObject) -> None:
    """Of all trips of a kind, at least ``trips`` and at most ``trips + trips_possible + unlisted`` are in the cube."""
    release = release_of(world, k, seed)
    if release.refusal:
        return
    counts = random_counts(world, k, seed).reshape(world.shape)
    axis = data.draw(st.sampled_from(range(2, len(world.trees))))
    values = [value for value in range(world.shape[axis]) if f"0:{value}" in listed_values(release, f"a{axis}")]
    value = data.draw(st.sampled_from(values)) if values else None
    if value is None:
        return
    view = release.view(f'a{axis} == "0:{value}"')
    true = int(np.take(counts, value, axis=axis).sum())
    unlisted = int(counts.sum()) - int(release.classes.trips.sum())
    assert view.total() <= true <= view.total() + view.total("trips_possible") + unlisted


def test_a_group_of_values_holds_its_values_and_its_own_rows() -> None:
    world = WORLDS[2]
    group = world.levels[2][1][1]
    for seed in range(12):
        release = release_of(world, 3, seed)
        if release.refusal:
            continue
        said = release.classes.attributes["a2"]
        inside = [f"1:{group[0]}", *(f"0:{leaf}" for leaf in range(*group))]
        view = release.view(f'a2 == "1:{group[0]}"')
        assert view.total() == release.classes.trips[np.isin(said, inside)].sum()
        assert view.total("trips_possible") == release.classes.trips[said == "any"].sum()


def test_a_view_is_written_with_the_release_that_it_is_of(tmp_path: Path) -> None:
    release = release_of(WORLDS[1], 3, 5)
    folder = release.save(tmp_path / "cube")
    where = 'a2 == "0:0" and a3 in ["0:1", "0:2"]'
    view = save_view(folder, tmp_path / "view", where)
    about = json.loads((tmp_path / "view" / "view.json").read_text())
    assert (about["release"], about["where"], about["sums"]["trips"]) == ("cube", where, view.total())
    assert pyarrow.parquet.read_table(tmp_path / "view" / "view.parquet").equals(view.table)
    written = pyarrow.csv.read_csv(tmp_path / "view" / "view.csv")
    assert written.column("trips").to_pylist() == view.table.column("trips").to_pylist()
    assert view.table.equals(release.view(where).table)
    with pytest.raises(InputError, match="exists"):
        save_view(folder, tmp_path / "view", where)
    before = (tmp_path / "view" / "view.csv").read_bytes()
    save_view(folder, tmp_path / "view", where, force=True)
    assert (tmp_path / "view" / "view.csv").read_bytes() == before
    with pytest.raises(InputError, match="not part of a view"):
        save_view(folder, folder, where, force=True)


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ('a2 == "0:0" or a3 == "0:1"', "joined by and"),
        ('a9 == "0:0"', "of the cube 'a9'"),
        ("__import__('os')", "not understood"),
        ("a2 ==", "not understood"),
        ("a2 in []", "not understood"),
        ("a2 > 3", "not understood"),
    ],
)
def test_what_is_not_understood_is_said(where: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        release_of(WORLDS[1], 3, 5).view(where)


def test_a_value_that_is_not_listed_is_an_error_with_those_that_are() -> None:
    release = release_of(WORLDS[1], 3, 5)
    for operator in ("==", "!="):
        with pytest.raises(InputError, match="unknown value of a2 'nobody knows'; choose from 0:0, 0:1, any"):
            release.view(f'a2 {operator} "nobody knows"')


def test_values_that_only_small_groups_have_are_not_named() -> None:
    counts = np.zeros(WORLDS[0].shape, dtype=np.int64)
    counts[0, 0, 0], counts[0, 0, 1] = 9, 1
    release = anonymize(cube_matrix(WORLDS[0], counts), Rule(trips=3), method="cascade")
    assert "0:1" not in public_manifest(release)["axes"][0]["levels"][0]


def test_nothing_published_has_no_views() -> None:
    counts = np.zeros(WORLDS[0].shape, dtype=np.int64)
    counts[0, 0, 0] = 1
    release = anonymize(cube_matrix(WORLDS[0], counts), Rule(trips=5), method="cascade")
    for ask in (release.view, lambda: attribute_coverage(release)):
        with pytest.raises(RefusedError, match="nothing can be published"):
            ask()


def test_a_release_of_places_has_no_views(tmp_path: Path) -> None:
    counts = random_counts(WORLDS[0], 2, 1)
    world = Cube((PAIR, THREE), (0, 1))
    release = anonymize(cube_matrix(world, counts[:6] + 3), Rule(trips=2), method="cascade")
    with pytest.raises(InputError, match="no attributes"):
        view_release(release.save(tmp_path / "places"))


def test_a_cube_is_read_back_with_its_axes(tmp_path: Path) -> None:
    release = release_of(WORLDS[1], 3, 5)
    saved = open_release(release.save(tmp_path / "cube"))
    assert saved.axes == ["a2", "a3"]
    assert saved.table.equals(release.to_arrow())
    (tmp_path / "cube" / "classes.parquet").unlink()
    assert open_release(tmp_path / "cube").table.equals(release.to_arrow())
    summed = saved.without_attributes().table
    assert summed.group_by(["origin", "destination"]).aggregate([]).num_rows == summed.num_rows
    assert sum(summed["trips"].to_pylist()) == int(release.classes.trips.sum())
    with pytest.raises(InputError, match="cube"):
        zoning_of(saved)
