"""The folder of segments released together: public inside, one recipe beside it, and a name for each part."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from odkanon import InputError, Rule, read_recipe
from odkanon.publish.report import is_built, write_full_report
from odkanon.publish.save import _published_segments, save_linked
from worlds.people import Trip, crowd, together, write

RULE = Rule(trips=10)


def survey(path: Path, unusual: int) -> Path:
    """Write a survey of two sexes with a table each, and so many values of a few persons."""
    few = [person for number in range(unusual) for person in crowd(4, f"unusual {number}")]
    return write([Trip(who, 0, 5) for who in crowd(30, "Woman") + crowd(30, "Man") + few], path)


@pytest.fixture
def trips(tmp_path: Path) -> Path:
    return survey(tmp_path / "trips.parquet", 1)


@pytest.mark.parametrize("unusual", [1, 4], ids=["too few even linked", "enough linked"])
def test_nothing_public_names_a_segment_without_a_table(tmp_path: Path, unusual: int) -> None:
    together(survey(tmp_path / "trips.parquet", unusual), tmp_path / "releases", RULE, ["sex"])
    for path in (tmp_path / "releases").rglob("*"):
        assert not path.is_file() or b"unusual" not in path.read_bytes(), path
        assert "unusual" not in path.name
    index = json.loads((tmp_path / "releases" / "index.json").read_text())
    assert index.keys() == {"version", "statement", "whole", "segments", "files"}
    assert {"sex=Man", "sex=Woman"} <= {part["folder"] for part in index["segments"]}
    assert {path.name for path in tmp_path.iterdir()} == {"trips.parquet", "releases", "releases.recipe.json"}
    assert "unusual" in (tmp_path / "releases.recipe.json").read_text(encoding="utf-8")


def test_the_recipe_has_the_account_of_each(trips: Path, tmp_path: Path) -> None:
    made = together(trips, tmp_path / "releases", RULE, ["sex"])
    recipe = read_recipe(tmp_path / "releases")
    assert recipe is not None
    assert recipe["releases"].keys() == {"whole", "sex=Man", "sex=Woman"}
    assert recipe["suppressed"] == made.suppressed
    part = read_recipe(tmp_path / "releases" / "sex=Woman")
    assert part is not None
    assert part["about"] == recipe["releases"]["sex=Woman"]["about"]
    assert part["about"]["parameters"]["segment"] == {"sex": "Woman"}


def test_force_leaves_foreign_files_alone(trips: Path, tmp_path: Path) -> None:
    made = together(trips, tmp_path / "releases", RULE, ["sex"])
    for place in ("mine.txt", "whole/mine.txt"):
        (tmp_path / "releases" / place).write_text("mine")
        with pytest.raises(InputError, match=r"mine\.txt"):
            save_linked(made, tmp_path / "releases", force=True)
        (tmp_path / "releases" / place).unlink()
    save_linked(made, tmp_path / "releases", force=True)


@pytest.mark.skipif(not is_built(), reason="the page is not built")
def test_the_full_page_of_a_part_does_not_land_in_the_public_folder(trips: Path, tmp_path: Path) -> None:
    together(trips, tmp_path / "releases", RULE, ["sex"])
    before = sorted((tmp_path / "releases").rglob("*"))
    assert write_full_report(tmp_path / "releases" / "sex=Man") == tmp_path / "releases.sex=Man.full.html"
    assert sorted((tmp_path / "releases").rglob("*")) == before


def names(*titles: str) -> list[str]:
    parts = [SimpleNamespace(title=title, release=True) for title in titles]
    return list(_published_segments(cast(Any, SimpleNamespace(parts=parts))))


def test_long_names_are_cut_by_bytes_and_stay_apart() -> None:
    made = names("区=" + "東" * 200, "区=" + "東" * 201, "mode=" + "x" * 300)
    assert len(set(made)) == 3
    assert all(len(name.encode()) <= 255 - len("classes.parquet.partial-0123456789abcdef") for name in made)
    assert all(name.startswith(("区=東", "mode=xxx")) for name in made)
    assert "\ufffd" not in "".join(made)
