"""What differs between two releases that were made in the same way, as their recipes and folders tell it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from odkanon.release_format.names import PACKAGE, PAGE, sha256

_OF_A_RELEASE = ("method", "rule", "parameters", "input", "published", "suppressed")
_EACH_TIME = ("seconds",)


@dataclass(frozen=True)
class Difference:
    """Something that two recipes say differently; None where one of them says nothing."""

    what: str
    before: Any
    after: Any


def what_differs(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Difference]:
    """Return what two recipes say differently: versions, options, other files, and the counts of each release."""
    first, second = dict(_said(before)), dict(_said(after))
    return [
        Difference(name, first.get(name), second.get(name))
        for name in dict.fromkeys([*first, *second])
        if first.get(name) != second.get(name)
    ]


def _said(recipe: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield from _flat("version of", recipe.get("versions", {}))
    command = recipe.get("command") or {}
    yield from _flat("option", command.get("options", {}))
    yield from _flat("content of", command.get("files", {}))
    releases = recipe.get("releases") or {"": recipe}
    for name, own in releases.items():
        about = own.get("about", {})
        yield from _flat(name, {part: about.get(part) for part in _OF_A_RELEASE})


def _flat(prefix: str, value: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, Mapping):
        yield prefix, value
        return
    for name, part in value.items():
        if name not in _EACH_TIME:
            yield from _flat(f"{prefix} {name}".strip(), part)


def unlike_files(first: Path, second: Path) -> list[str]:
    """Return the files that differ between two release folders, or are in one of them only.

    The page and the data package say the name of their folder, and are compared only where both have the same.
    """
    digests = [
        {path.relative_to(folder).as_posix(): sha256(path) for path in folder.rglob("*") if path.is_file()}
        for folder in (first, second)
    ]
    names = sorted({*digests[0], *digests[1]})
    same_name = first.name == second.name
    return [
        name
        for name in names
        if digests[0].get(name) != digests[1].get(name) and (same_name or not name.endswith((PAGE, PACKAGE)))
    ]
