"""Folders are layers: an import points to the same layer or to one below it, never up.

Imports inside functions and for type checkers only do not run when a module loads. They may point up where a method of
a lower layer is a shorthand for a function of a higher one (`Release.save`), and each such line is listed here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parent.parent / "src" / "odkanon"

LAYERS = (
    "errors",
    "core",
    "zoning",
    "attributes",
    "model",
    "release_format",
    "read",
    "estimate",
    "engine",
    "quality",
    "methods",
    "linked",
    "publish",
    "pipeline",
    "audit",
    "evidence",
    "study",
    "sample",
    "spark",
    "explore",
    "cli",
)
"""From the bottom up, as CONTRIBUTING.md draws them."""

ANYWHERE = ("_version",)

SHORTHANDS = {
    ("linked/linked_release", "pipeline/shorthands"),
    ("model/od", "pipeline/shorthands"),
    ("model/release", "pipeline/shorthands"),
    ("release_format/folder", "estimate/flow_estimates"),
    ("release_format/folder", "estimate/questions"),
}
"""Lazy and typing imports that point up."""


class Import(NamedTuple):
    """A line that imports: from where, what, and whether it runs when the module loads."""

    line: str
    source: str
    target: str
    lazy: bool


def imports_of(path: Path, root: Path = SOURCE) -> Iterator[Import]:
    source = path.relative_to(root).with_suffix("").as_posix()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    lazy = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            # ``from odkanon.read import trips`` may name a module.
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "odkanon" and len(parts) > 1:
                yield Import(f"{path.name}:{node.lineno}", source, _module(parts[1:], root), id(node) in lazy)


def _module(parts: list[str], root: Path) -> str:
    """Return the module that holds a dotted name."""
    while len(parts) > 1 and not ((root / "/".join(parts)).is_dir() or (root / ("/".join(parts) + ".py")).is_file()):
        parts = parts[:-1]
    return "/".join(parts)


def layer(module: str) -> int:
    return LAYERS.index(module.split("/")[0])


def offending(root: Path = SOURCE) -> list[str]:
    """Return every line that points up and is no listed shorthand."""
    found = []
    for path in sorted(root.rglob("*.py")):
        for each in imports_of(path, root):
            if each.source.split("/")[0] in ("__init__", "__main__") or each.target in ANYWHERE:
                continue
            up = layer(each.target) > layer(each.source)
            if up and not (each.lazy and (each.source, each.target) in SHORTHANDS):
                found.append(f"{each.source} ({each.line}) imports {each.target}, which lies above it")
    return found


def test_imports_point_down() -> None:
    assert not offending(), "\n".join(offending())


def test_every_listed_shorthand_is_there() -> None:
    lazy = {(each.source, each.target) for path in SOURCE.rglob("*.py") for each in imports_of(path) if each.lazy}
    assert lazy >= SHORTHANDS


def test_a_reversed_line_is_found(tmp_path: Path) -> None:
    for folder in ("core", "publish"):
        (tmp_path / folder).mkdir()
    (tmp_path / "publish/save.py").write_text("from odkanon.core.arrays import Ints\n", encoding="utf-8")
    (tmp_path / "core/arrays.py").write_text("Ints = int\n", encoding="utf-8")
    assert offending(tmp_path) == []
    (tmp_path / "core/arrays.py").write_text("\nfrom odkanon.publish.save import anything\n", encoding="utf-8")
    assert offending(tmp_path) == ["core/arrays (arrays.py:2) imports publish/save, which lies above it"]
    (tmp_path / "core/arrays.py").write_text("def f():\n    import odkanon.publish.save\n", encoding="utf-8")
    assert len(offending(tmp_path)) == 1


def test_few_modules_lie_flat() -> None:
    flat = {path.stem for path in SOURCE.glob("*.py")} - {"__init__"}
    assert len(flat) <= 6, sorted(flat)
    assert {path.name for path in SOURCE.iterdir() if path.is_dir()} - {"__pycache__"} == set(LAYERS) - flat


def test_the_picture_for_contributors_shows_the_same_layers() -> None:
    text = (SOURCE.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    drawn = re.findall(r"^    (\w+) +\S", text.partition("## How the code is laid out")[2], re.MULTILINE)
    assert drawn == list(reversed(LAYERS))
