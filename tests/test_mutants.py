"""The mutation tests name modules, functions and tests that exist."""

from __future__ import annotations

import ast
from difflib import get_close_matches
from pathlib import Path

import mutants
import pytest
from mutants import MODULES, equivalent, mutants_of, pytest_target, source_path

PACKAGES = ("odkanon.model.", "odkanon.linked.", "odkanon.methods.cascade.", "odkanon.audit.")


@pytest.mark.parametrize("module", MODULES)
def test_modules_and_their_tests_exist(module: str) -> None:
    assert module.startswith(PACKAGES)
    assert source_path(module).is_file(), f"{module} has moved: bring MODULES in scripts/mutants.py up to date"
    for name in MODULES[module]:
        file, *functions = pytest_target(name).split("::")
        assert set(functions) <= functions_in(Path(file)), f"no test {name}: bring scripts/mutants.py up to date"


def test_listed_mutants_are_in_functions_that_exist() -> None:
    names = {module: functions_in(source_path(module)) for module in MODULES if source_path(module).is_file()}
    exist = {f"{module}.{name}" for module in names for name in names[module]} | set(names)
    listed = [line.partition(" | ")[0] for line in equivalent()]
    gone = {name: get_close_matches(name, exist, 1) for name in listed if name not in exist}
    lines = [f"{name} (perhaps {', '.join(close) or 'gone'})" for name, close in gone.items()]
    assert not gone, "renamed or moved; bring scripts/mutants-equivalent.txt up to date:\n" + "\n".join(lines)
    assert len(equivalent()) == len(set(equivalent()))


def test_mutants_are_named_by_function_and_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "rule.py"
    source.write_text(
        "MOST_TRIES = 7\n\n\nclass Rule:\n    def met(self, k):\n        return k > 1\n", encoding="utf-8"
    )
    monkeypatch.setattr(mutants, "source_path", lambda module: source)
    names = [each.name for each in mutants_of("odkanon.model.rule")]
    assert names == [
        f"odkanon.model.rule.Rule.met | {change}" for change in ("k > 1 -> k >= 1", "k > 1 -> k <= 1", "1 -> 2")
    ]


def functions_in(path: Path) -> set[str]:
    """Return the dotted names of the functions and classes of a module."""

    def walk(node: ast.AST, prefix: str) -> set[str]:
        found = set()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                name = f"{prefix}{child.name}"
                found |= {name} | walk(child, f"{name}.")
            else:
                found |= walk(child, prefix)
        return found

    return walk(ast.parse(path.read_text(encoding="utf-8")), "")
