"""How much memory there is, as far as a container lets on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from odkanon.core.system import machine_memory


@pytest.mark.parametrize("name", ["memory.max", "memory/memory.limit_in_bytes"])
def test_a_container_has_what_its_limit_says(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("123456789\n")
    assert machine_memory(tmp_path) == 123456789


@pytest.mark.parametrize("text", ["max\n", "9223372036854771712\n", "", "-1\n"])
def test_no_limit_means_the_whole_machine(tmp_path: Path, text: str) -> None:
    whole = machine_memory(tmp_path)
    assert whole > 2**28
    (tmp_path / "memory.max").write_text(text)
    assert machine_memory(tmp_path) == whole


def test_a_system_that_does_not_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sysconf")
    assert machine_memory(tmp_path) >= 2**30
