"""Registries: what is built in, what is registered, and what the entry points of other packages declare."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from odkanon.core.registry import Registry
from odkanon.errors import InvalidValueError, UnknownNameError


@dataclass(frozen=True)
class Colour:
    name: str
    code: int = 0


def fresh() -> Registry[Colour]:
    return Registry("colour", [Colour("red", 1), Colour("blue", 2)])


def declare(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Install a package that declares a colour, without installing anything."""
    info = folder / "paint-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: paint\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[odkanon.colours]\n{name} = paint:COLOUR\n", encoding="utf-8")
    code = f"from core.test_registry import Colour\nCOLOUR = Colour({name!r}, 7)\n"
    (folder / "paint.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(__import__("sys").modules, "paint", raising=False)


def test_the_builtin_ones_are_found_in_their_order() -> None:
    colours = fresh()
    assert list(colours) == ["red", "blue"]
    assert len(colours) == 2
    assert colours["blue"].code == 2
    assert "red" in colours
    assert "green" not in colours
    assert colours.get("red") == Colour("red", 1)
    assert colours.get("green") is None
    assert colours.get("green", Colour("grey")).name == "grey"


def test_an_unknown_name_is_an_error_with_the_nearest() -> None:
    with pytest.raises(
        UnknownNameError, match=r"unknown colour 'blu' \(did you mean 'blue'\?\); choose from red, blue"
    ):
        fresh()["blu"]


def test_a_name_can_be_taken_once() -> None:
    colours, green = fresh(), Colour("green")
    assert colours.register(green) is green
    assert colours.register(green) is green
    for taken in (Colour("green", 5), Colour("red", 5)):
        with pytest.raises(InvalidValueError, match="already; give yours another name"):
            colours.register(taken)
    colours.unregister("green")
    colours.unregister("red")
    assert list(colours) == ["red", "blue"]


def test_a_check_comes_first() -> None:
    def check(colour: Colour) -> None:
        raise InvalidValueError(f"{colour.name} is refused")

    colours = Registry("colour", [Colour("red")], check=check)
    with pytest.raises(InvalidValueError, match="green is refused"):
        colours.register(Colour("green"))


def test_entry_points_of_other_packages_are_found_without_an_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(tmp_path, monkeypatch, "teal")
    assert fresh()["teal"].code == 7
    assert list(fresh()) == ["red", "blue", "teal"]
    assert "teal" in fresh()


def test_an_entry_point_cannot_replace_a_builtin_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(tmp_path, monkeypatch, "red")
    assert fresh()["red"].code == 1
    with pytest.raises(InvalidValueError, match="there is a colour 'red' already"):
        list(fresh())
