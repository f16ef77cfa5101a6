"""Names of folders for segments."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from odkanon.publish.segments import _shown


def names(*titles: str) -> list[str]:
    parts = [SimpleNamespace(title=title, release=True) for title in titles]
    return list(_shown(cast(Any, SimpleNamespace(parts=parts))))


def test_long_names_are_cut_by_bytes_and_stay_apart() -> None:
    made = names("区=" + "東" * 200, "区=" + "東" * 201, "mode=" + "x" * 300)
    assert len(set(made)) == 3
    assert all(len(name.encode()) <= 255 - len("classes.parquet.partial-0123456789abcdef") for name in made)
    assert all(name.startswith(("区=東", "mode=xxx")) for name in made)
    assert "\ufffd" not in "".join(made)
