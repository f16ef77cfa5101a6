"""The folder of segments released together: public inside, one recipe beside it, and a name for each part."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from odkanon import InputError, Rule, read_recipe
from odkanon.publish.report import is_built, write_full_report
from odkanon.publish.segments import _shown, save_together
from worlds.people import Trip, crowd, together, write

RULE = Rule(trips=10)


@pytest.fixture
def trips(tmp_path: Path) -> Path:
    few = [person for number in range(4) for person in crowd(4, f"unusual {number}")]
    rows = [Trip(who, 0, 5) for who in crowd(30, "Woman") + crowd(30, "Man") + few + crowd(3, "Other", age=80)]
    return write(rows, tmp_path / "trips.parquet")


def test_nothing_public_names_a_segment_without_a_table(trips: Path, tmp_path: Path) -> None:
    made = together(trips, tmp_path / "releases", RULE, ["sex"])
    assert any(part.release is None for part in made.parts)
    for path in (tmp_path / "releases").rglob("*"):
        assert not path.is_file() or b"unusual" not in path.read_bytes(), path
        assert "unusual" not in path.name
    index = json.loads((tmp_path / "releases" / "index.json").read_text())
    assert index.keys() == {"version", "statement", "whole", "segments", "files"}
    assert [part["folder"] for part in index["segments"]] == ["sex=Man", "sex=Woman"]
    assert {path.name for path in tmp_path.iterdir()} == {"trips.parquet", "releases", "releases.recipe.json"}


def test_the_recipe_has_the_account_of_each(trips: Path, tmp_path: Path) -> None:
    made = together(trips, tmp_path / "releases", RULE, ["sex"])
    recipe = read_recipe(tmp_path / "releases")
    assert recipe is not None
    assert recipe["releases"].keys() == {"whole", "sex=Man", "sex=Woman"}
    assert recipe["suppressed"] == made.suppressed
    assert {part["segment"]["sex"] for part in recipe["segments"]} >= {"unusual 0", "Woman"}
    part = read_recipe(tmp_path / "releases" / "sex=Woman")
    assert part is not None
    assert part["about"] == recipe["releases"]["sex=Woman"]["about"]
    assert part["about"]["parameters"]["segment"] == {"sex": "Woman"}


def test_force_leaves_foreign_files_alone(trips: Path, tmp_path: Path) -> None:
    made = together(trips, tmp_path / "releases", RULE, ["sex"])
    for place in ("mine.txt", "whole/mine.txt"):
        (tmp_path / "releases" / place).write_text("mine")
        with pytest.raises(InputError, match=r"mine\.txt"):
            save_together(made, tmp_path / "releases", force=True)
        (tmp_path / "releases" / place).unlink()
    save_together(made, tmp_path / "releases", force=True)


@pytest.mark.skipif(not is_built(), reason="the page is not built")
def test_the_full_page_of_a_part_does_not_land_in_the_public_folder(trips: Path, tmp_path: Path) -> None:
    together(trips, tmp_path / "releases", RULE, ["sex"])
    before = sorted((tmp_path / "releases").rglob("*"))
    assert write_full_report(tmp_path / "releases" / "sex=Man") == tmp_path / "releases.sex=Man.full.html"
    assert sorted((tmp_path / "releases").rglob("*")) == before


def names(*titles: str) -> list[str]:
    parts = [SimpleNamespace(title=title, release=True) for title in titles]
    return list(_shown(cast(Any, SimpleNamespace(parts=parts))))


def test_long_names_are_cut_by_bytes_and_stay_apart() -> None:
    made = names("区=" + "東" * 200, "区=" + "東" * 201, "mode=" + "x" * 300)
    assert len(set(made)) == 3
    assert all(len(name.encode()) <= 255 - len("classes.parquet.partial-0123456789abcdef") for name in made)
    assert all(name.startswith(("区=東", "mode=xxx")) for name in made)
    assert "\ufffd" not in "".join(made)
