"""Folders that are ours for a while, and outputs that take their place whole."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from odkanon.core import atomic_write as folders
from odkanon.core.atomic_write import Claim, move_into_place, partial_folder, restore


def abandon(claim: Claim) -> Path:
    """Let go of a folder as a process does that is killed."""
    assert claim._lock is not None
    os.close(claim._lock)
    return claim.path


def test_only_abandoned_folders_of_the_same_name_are_removed(tmp_path: Path) -> None:
    held, left = Claim(tmp_path, "a-"), abandon(Claim(tmp_path, "a-"))
    others = [tmp_path / name for name in ("a-mine", "a-12345678.bak", "b-12345678")]
    for other in others:
        other.mkdir()
    new = Claim(tmp_path, "a-")
    assert not left.exists()
    assert all(path.exists() for path in (held.path, new.path, *others))
    new.release()
    assert held.path.exists()
    assert not new.path.exists()


def prepared(partial: Path, text: str) -> Path:
    (partial / "file").write_text(text)
    return partial


@pytest.mark.parametrize("swaps", [True, False])
def test_a_folder_takes_the_place_of_another(tmp_path: Path, swaps: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not swaps:
        monkeypatch.setattr(folders, "_exchange", lambda first, second: False)
    target = tmp_path / "deep" / "out"
    for text in ("first", "second"):
        with partial_folder(target) as partial:
            move_into_place(prepared(partial, text), target)
        assert (target / "file").read_text() == text
        assert [path.name for path in target.parent.iterdir()] == ["out"]


def test_a_link_is_replaced_and_what_it_points_to_stays(tmp_path: Path) -> None:
    (real := tmp_path / "real").mkdir()
    (target := tmp_path / "out").symlink_to(prepared(real, "earlier"))
    with partial_folder(target) as partial:
        move_into_place(prepared(partial, "new"), target)
    assert not target.is_symlink()
    assert ((real / "file").read_text(), (target / "file").read_text()) == ("earlier", "new")
    assert {path.name for path in tmp_path.iterdir()} == {"real", "out"}


def test_what_fails_leaves_the_earlier_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "_exchange", lambda first, second: False)
    prepared_target = tmp_path / "out"
    prepared_target.mkdir()
    prepared(prepared_target, "earlier")
    with pytest.raises(FileNotFoundError), partial_folder(prepared_target) as partial:
        folders._replace(partial / "nothing", prepared_target)
    assert (prepared_target / "file").read_text() == "earlier"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_an_earlier_folder_is_put_back_only_where_it_is_missing(tmp_path: Path) -> None:
    target = tmp_path / "out"
    for expected in ("first", "first"):
        away = abandon(Claim(tmp_path, ".out.odkanon-", ".old")) / "out"
        away.mkdir()
        prepared(away, "first" if not target.exists() else "second")
        restore(target)
        assert (target / "file").read_text() == expected
        assert [path.name for path in tmp_path.iterdir()] == ["out"]
