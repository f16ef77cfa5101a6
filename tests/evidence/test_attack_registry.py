"""Attacks of other packages join the sheet: registered by a call, or declared as an entry point."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest

from evidence.towns import release, write_town
from odkanon import InputError, InputSpec, gather_evidence, register_attack
from odkanon.core import registry
from odkanon.evidence import gather, policy, sheet, sheet_page
from odkanon.evidence.attack import Attack, AttackResult
from odkanon.evidence.attack_context import AttackContext
from odkanon.evidence.attacks import ATTACKS, check_attack


def busiest(context: AttackContext) -> AttackResult:
    """Find the largest row."""
    trips = context.trips
    most = int(np.bincount(trips.row[trips.row >= 0], trips.trips[trips.row >= 0], trips.rows).max())
    return AttackResult(f"The largest row has {most} trips.", tried=trips.rows, of=trips.rows, numbers={"most": most})


BUSIEST = Attack("busiest", "Busiest row", "Which row is largest?", "inference", "most", False, busiest)


def run_on_town(folder: Path) -> dict[str, object]:
    town = write_town(folder / "trips.parquet")
    saved = release(town, folder / "release", resolution=8)
    spec = InputSpec(town, resolution=8)
    return gather_evidence(saved, spec, seconds=5).content


def check_sheet(content: dict[str, object], name: str) -> None:
    attacks = content["attacks"]
    assert isinstance(attacks, list)
    assert attacks[-1]["attack"] == name
    assert attacks[-1]["verdict"] == "clean"
    assert attacks[-1]["numbers"]["most"] >= 10
    assert "The largest row has" in sheet_page.page(content)
    questions = content["questions"]
    assert isinstance(questions, list)
    assert questions[-1]["attacks"][-1]["number"] == "most"


def test_a_registered_attack_is_on_the_sheet(tmp_path: Path) -> None:
    assert register_attack(BUSIEST) is BUSIEST
    try:
        check_sheet(run_on_town(tmp_path), "busiest")
        (tmp_path / "policy.toml").write_text('[attacks]\nclean = ["busiest"]\n[limits.busiest]\nmost = 5\n')
        assert policy.read_policy(tmp_path / "policy.toml").clean == ("busiest",)
    finally:
        ATTACKS.unregister("busiest")
    assert "busiest" not in ATTACKS


def test_a_declared_attack_is_on_the_sheet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def declared(*, group: str) -> list[EntryPoint]:
        return [EntryPoint("busiest", f"{__name__}:BUSIEST", group)] if group == "odkanon.attacks" else []

    monkeypatch.setattr(EntryPoint, "load", lambda point: BUSIEST)  # this module may not be importable by its name
    monkeypatch.setattr("importlib.metadata.entry_points", declared)
    builtin = tuple(attack for name, attack in ATTACKS.items() if name in ATTACKS._builtin)
    fresh = registry.Registry("attack", builtin, check=check_attack)
    for module in (gather, sheet, sheet_page):
        monkeypatch.setattr(module, "ATTACKS", fresh)
    check_sheet(run_on_town(tmp_path), "busiest")


@pytest.mark.parametrize(
    ("attack", "message"),
    [
        (lambda: busiest, "an attack must be"),
        (lambda: Attack("x", "X", "?", "motive", "n", True, busiest), "the question of an attack must be"),  # type: ignore[arg-type]
        (lambda: Attack("replay", "X", "?", "inference", "n", True, busiest), "there is a attack 'replay' already"),
    ],
)
def test_what_is_no_attack_is_refused(attack: Callable[[], Attack], message: str) -> None:
    with pytest.raises(InputError, match=message):
        register_attack(attack())
