"""Words that are retired: names.md and docs/glossary.md have the field's own for each of them.

Identifiers are read part by part (``told_rule`` is ``told`` and ``rule``), and prose wherever it is: docstrings,
comments, messages and documentation.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "odkanon"

IN_IDENTIFIERS = frozenset(
    [
        "again",
        "alone",
        "besides",
        "dealt",
        "fallen",
        "falling",
        "head",
        "heads",
        "kinds",
        "outlook",
        "rest",
        "said",
        "say",
        "says",
        "shown",
        "tell",
        "tells",
        "together",
        "told",
        "visit",
        "visits",
    ]
)
IN_PROSE = frozenset(["besides", "heads", "said", "say", "saying", "says", "tell", "telling", "tells", "told"])

FOREIGN = frozenset({"head"})
"""Names that other libraries gave to their own methods, which are called here."""


def identifiers(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Names that a module defines: of functions, classes, arguments, variables, attributes and modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and node.attr not in FOREIGN:
            yield node.lineno, node.attr
        elif isinstance(node, ast.keyword) and node.arg:
            yield node.value.lineno, node.arg


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Texts of a module that people read: docstrings and messages (what has a space in it), and comments."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            for offset, line in enumerate(node.value.splitlines()):
                yield node.lineno + offset, line


def parts_of(name: str) -> set[str]:
    """The words of an identifier, in snake case or in capitals."""
    return {part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def found_in(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    where = path.relative_to(ROOT)
    wrong = [
        f"{where}:{line}: {name}" for line, name in identifiers(ast.parse(text)) if parts_of(name) & IN_IDENTIFIERS
    ]
    return wrong + [f"{where}:{line}: {each.strip()}" for line, each in prose(text) if words_of(each) & IN_PROSE]


def words_of(text: str) -> set[str]:
    return set(re.findall(r"[a-z]+", text.lower()))


def folder_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).parts
    return "methods/cascade" if parts[:2] == ("methods", "cascade") else parts[0].removesuffix(".py")


@pytest.mark.parametrize("folder", sorted({folder_of(path) for path in SOURCE.rglob("*.py")}))
def test_no_retired_words_in_the_package(folder: str) -> None:
    wrong = [each for path in sorted(SOURCE.rglob("*.py")) if folder_of(path) == folder for each in found_in(path)]
    assert not wrong, "\n".join(wrong)


PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "ROADMAP.md", "SECURITY.md"]
PAGES += sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))


@pytest.mark.parametrize("page", PAGES)
def test_no_retired_words_in_the_docs(page: str) -> None:
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    wrong = [f"{page}:{number}: {line}" for number, line in enumerate(lines, 1) if words_of(line) & IN_PROSE]
    assert not wrong, "\n".join(wrong)


def test_retired_words_are_found() -> None:
    assert parts_of("told_rule") == {"told", "rule"}
    assert parts_of("_KINDS") & IN_IDENTIFIERS
    assert not parts_of("header") & IN_IDENTIFIERS
    assert {name for _, name in identifiers(ast.parse("def f(rest): x.heads = rest"))} == {"f", "rest", "heads"}
    assert any("told" in words_of(each) for _, each in prose('x = f"a number is told {1}"  # and why'))
