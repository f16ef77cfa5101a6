"""The package as a house: one name for one place, few files, and few exceptions from the order of the layers."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

from test_layers import SHORTHANDS

SOURCE = Path(__file__).parent.parent / "src" / "odkanon"
FILES = sorted(SOURCE.rglob("*.py"))
MOST_FILES = 295
"""A new file needs a new idea, and should replace another."""
PER_METHOD = {"__init__.py", "method.py"}
MIRRORED = {"duckdb", "memory", "spark", "sql"}
"""Engines, whose folders have the same file names."""


def repeated(names: list[tuple[str, str]]) -> dict[str, list[str]]:
    """Names that occur in more than one place."""
    places = defaultdict(set)
    for name, place in names:
        places[name].add(place)
    return {name: sorted(found) for name, found in places.items() if len(found) > 1}


def test_no_file_name_occurs_twice() -> None:
    names = [
        (path.name, "engine" if path.parent.name in MIRRORED else path.relative_to(SOURCE).as_posix())
        for path in FILES
        if path.name not in PER_METHOD
    ]
    assert not repeated(names)


def test_no_class_name_occurs_twice() -> None:
    names = [
        (node.name, path.relative_to(SOURCE).as_posix())
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    ]
    assert not repeated(names)


def test_there_are_few_files_and_few_exceptions() -> None:
    assert len(FILES) <= MOST_FILES
    assert len(SHORTHANDS) <= 5


def test_a_repeated_name_is_found() -> None:
    assert repeated([("a", "x"), ("b", "x"), ("a", "y"), ("b", "x")]) == {"a": ["x", "y"]}
