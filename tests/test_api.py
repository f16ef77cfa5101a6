"""The public API: every name of the docs is there, says what it does, and loads by itself."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import inspect
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import odkanon
from odkanon.errors import ReleaseWarning

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "odkanon"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
DOTTED = re.compile(r"(?<![\w./-])odkanon(?:\.\w+)+")
FILES = ("odkanon.py", "odkanon.toml")
"""Names of files that look like names of things."""


def resolve(name: str) -> Any:
    """Return what a dotted name stands for, with nothing imported but the package."""
    found: Any = importlib.import_module("odkanon")
    for part in name.split(".")[1:]:
        try:
            found = getattr(found, part)
        except AttributeError:
            found = importlib.import_module(f"{found.__name__}.{part}")
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_name_of_the_docs_resolves(page: Path) -> None:
    for name in sorted(set(DOTTED.findall(page.read_text(encoding="utf-8"))) - set(FILES)):
        assert resolve(name) is not None, name


def test_a_name_that_is_not_there_is_found_out() -> None:
    with pytest.raises(ImportError):
        resolve("odkanon.model.nothing")


@pytest.mark.parametrize("name", odkanon.__all__)
def test_every_public_name_says_what_it_is(name: str) -> None:
    value = getattr(odkanon, name)
    if inspect.isroutine(value) or inspect.isclass(value) or inspect.ismodule(value):
        assert (inspect.getdoc(value) or "").strip(), name


@pytest.mark.parametrize("name", [name for name in odkanon.__all__ if inspect.isfunction(getattr(odkanon, name))])
def test_every_public_function_has_an_example(name: str) -> None:
    assert ">>> " in (inspect.getdoc(getattr(odkanon, name)) or "")


@pytest.mark.parametrize("name", odkanon.__all__)
def test_every_public_name_is_its_own(name: str) -> None:
    """A name that is a folder too would change its meaning with the first import from there."""
    value = getattr(odkanon, name)
    assert inspect.ismodule(value) or importlib.util.find_spec(f"odkanon.{name}") is None


def test_the_list_of_names_exists_once() -> None:
    listed = re.findall(r" as (\w+)$", (SOURCE / "__init__.pyi").read_text(encoding="utf-8"), re.M)
    assert sorted(listed) == odkanon.__all__
    assert len(set(listed)) == len(listed) <= 45
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = odkanon.nothing  # type: ignore[attr-defined]


def test_the_reference_has_every_public_name() -> None:
    pages = "\n".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("api-*.md"))
    shown = re.findall(r"^::: (\S+)$", pages, re.MULTILINE)
    homes = re.findall(
        r"^from (odkanon\.\S+) import (\w+) as", (SOURCE / "__init__.pyi").read_text(encoding="utf-8"), re.M
    )
    assert {f"{home}.{name}" for home, name in homes if name != "__version__"} <= set(shown)


@pytest.mark.parametrize(
    "code",
    [
        "import odkanon; odkanon.spark.read",
        "import odkanon; odkanon.audit_releases",
        "import odkanon.methods.odkanon as m; assert type(m).__name__ == 'module'",
        "import odkanon; odkanon.anonymize; import odkanon.methods.odkanon as m; assert type(m).__name__ == 'module'",
        "import sys, odkanon; assert not {'numpy', 'duckdb', 'pyarrow'} & set(sys.modules)",
    ],
)
def test_in_a_fresh_process(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def with_examples() -> list[str]:
    files = [path for path in sorted(SOURCE.rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")]
    return [".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__") for path in files]


@pytest.mark.parametrize("name", with_examples())
def test_examples_run(
    name: str, example_names: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Examples run in an empty folder, with the names of their module and those that all examples may use."""
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    names = example_names | vars(module)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReleaseWarning)  # a short example may leave persons unprotected
        outcome = doctest.testmod(module, globs=names, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert outcome.attempted
    assert not outcome.failed
