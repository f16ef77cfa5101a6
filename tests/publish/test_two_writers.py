"""Two runs that write to one place: one of them is the first, and what it has finished stays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from odkanon import InputError, Release, Rule, make_survey, read_trips
from odkanon.core import atomic_write
from odkanon.core.atomic_write import exclusive_lock
from odkanon.linked.linked_release import release_linked
from odkanon.methods.method_registry import anonymize
from odkanon.publish import save
from odkanon.publish.save import save_linked, save_release
from odkanon.read.od_matrix import make_dimensions
from odkanon.release_format.names import MANIFEST, sha256
from odkanon.release_format.recipe import read_recipe
from odkanon.release_format.targets import ReleaseTarget
from worlds.matrices import golden_od


@pytest.fixture
def first() -> Release:
    return anonymize(golden_od("tiny"), Rule(trips=5))


@pytest.fixture
def second() -> Release:
    return anonymize(golden_od("tiny"), Rule(trips=7))


def meanwhile(monkeypatch: pytest.MonkeyPatch, module: Any, done: Callable[[], object]) -> None:
    """Have another run finish while this one still writes its files."""
    write = module.write_public

    def slow(*args: Any) -> None:
        write(*args)
        monkeypatch.setattr(module, "write_public", write)
        done()

    monkeypatch.setattr(module, "write_public", slow)


def in_place(folder: Path) -> bool:
    """Tell whether folder and recipe belong together, and nothing else is left."""
    recipe = read_recipe(folder)
    left = {path.name for path in folder.parent.iterdir()} - {folder.name, f"{folder.name}.recipe.json"}
    return recipe is not None and recipe["public_sha256"] == sha256(folder / MANIFEST) and not left


def test_what_another_run_has_finished_stays(
    tmp_path: Path, first: Release, second: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out"
    meanwhile(monkeypatch, save, lambda: save_release(first, target))
    with pytest.raises(InputError, match="exists already"):
        save_release(second, target)
    assert in_place(target)
    assert '"trips": 5' in (target / MANIFEST).read_text()


def test_what_was_put_into_the_folder_meanwhile_stays(
    tmp_path: Path, first: Release, second: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = save_release(first, tmp_path / "out")
    meanwhile(monkeypatch, save, lambda: (target / "notes.txt").write_text("mine"))
    with pytest.raises(InputError, match=r"notes\.txt"):
        save_release(second, target, force=True)
    assert (target / "notes.txt").read_text() == "mine"


def test_segments_that_another_run_has_finished_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trips = read_trips(make_survey())
    together = release_linked(trips, Rule(trips=10), make_dimensions(trips, ["sex"]), resolution=6)
    target = tmp_path / "out"
    meanwhile(monkeypatch, save, lambda: save_linked(together, target))
    with pytest.raises(InputError, match="exists already"):
        save_linked(together, target)


def test_a_run_that_begins_waits_until_another_is_in_place(
    tmp_path: Path, first: Release, second: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = save_release(first, tmp_path / "out")
    put, looked = atomic_write._put, Event()

    def begin() -> None:
        ReleaseTarget(target, force=True).check()
        looked.set()

    begins = Thread(target=begin)

    def slow(partial: Path, folder: Path) -> None:
        begins.start()
        assert not looked.wait(0.3)  # it would take the waiting recipe for one that a killed run has left
        put(partial, folder)

    monkeypatch.setattr(atomic_write, "_put", slow)
    save_release(second, target, force=True)
    begins.join()
    assert looked.is_set()
    assert in_place(target)


def test_the_second_is_alone_when_the_first_has_gone(tmp_path: Path) -> None:
    target, order = tmp_path / "out", list[str]()
    came = Event()

    def other() -> None:
        came.set()
        with exclusive_lock(target):
            order.append("second")

    waiting = Thread(target=other)
    with exclusive_lock(target):
        waiting.start()
        came.wait()
        waiting.join(0.2)
        order.append("first")
    waiting.join()
    assert order == ["first", "second"]
    assert list(tmp_path.iterdir()) == []


def test_where_there_is_no_folder_nobody_waits(tmp_path: Path) -> None:
    with exclusive_lock(tmp_path / "no" / "out"), exclusive_lock(tmp_path / "no" / "out"):
        pass
