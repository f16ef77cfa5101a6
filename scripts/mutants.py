"""Changes one thing at a time in the modules that promises rest on, and looks whether a test notices.

A *mutant* is a module with one comparison, boundary, sign, ``and``/``or``, ``not``, constant or ``raise`` changed. It
runs against the tests that are about its module; one that fails none of them *survives*. Survivors that change nothing
that anybody could see are listed in ``mutants-equivalent.txt`` with the reason; there should be no others.

    python scripts/mutants.py                       # all of them
    python scripts/mutants.py rule release          # some modules
    python scripts/mutants.py --list protect        # what would be changed

Every mutant is a fork of this process, which has loaded the heavy libraries once, and imports the changed module
instead of the file. Hypothesis tries fewer examples here, and does not make them smaller.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import os
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
EQUIVALENT = Path(__file__).with_name("mutants-equivalent.txt")
EXAMPLES, SECONDS, PATIENCE = 20, 120, 1200
"""Examples of a property; seconds of the processor that a mutant gets, and seconds on the clock."""

CASCADE = ("methods/test_cascade_trees.py", "methods/test_cascade.py")
MODULES: dict[str, tuple[str, tuple[str, ...]]] = {
    "rule": ("model/rule.py", ("model/test_rule_besides.py", "model/test_checks.py", "model/test_rule.py")),
    "release": (
        "model/release.py",
        ("model/test_checks.py", "attacks/test_suppressed_total.py", "methods/test_order.py", "model/test_release.py"),
    ),
    "classes": ("model/classes.py", ("model/test_checks.py", "publish/test_save.py", "model/test_release.py")),
    "assemble": (
        "model/assemble.py",
        ("attacks/test_suppressed_total.py", "methods/test_order.py", "model/test_release.py"),
    ),
    "companion": (
        "model/companion.py",
        ("model/test_checks.py", "attacks/test_suppressed_total.py", "together/test_protect.py"),
    ),
    "budget": ("model/budget.py", ("model/test_checks.py", "model/test_rule.py")),
    "odkanon": ("methods/odkanon.py", ("methods/test_order.py", "methods/test_odkanon.py")),
    "oigh": ("methods/oigh.py", ("methods/test_oigh.py",)),
    "grid": ("methods/mondrian/grid.py", ("methods/test_mondrian.py", "attacks/test_borders.py")),
    "cuts": ("methods/mondrian/cuts.py", ("methods/test_mondrian.py",)),
    "protect": ("together/protect.py", ("together/test_protect.py",)),
    "joining": ("together/joining.py", ("together/test_joining.py", "together/test_release.py")),
    "caps": ("methods/cascade/caps.py", (*CASCADE, "attacks/test_cascade.py")),
    "fall": ("methods/cascade/fall.py", (*CASCADE, "attacks/test_cascade.py")),
    "ladder": ("methods/cascade/ladder.py", CASCADE),
    "kinds": ("methods/cascade/kinds.py", ("methods/test_kinds.py", *CASCADE, "attacks/test_spare.py")),
    "cascade": (
        "methods/cascade/method.py",
        (*CASCADE, "methods/test_again.py", "attacks/test_cube.py"),
    ),
    "rest": ("engine/rest.py", ("methods/test_heads.py", *CASCADE)),
    "workspace": (
        "engine/sql/workspace.py",
        (
            "engine/test_workspace.py",
            "engine/test_duckdb.py::test_random_worlds",
            "engine/test_duckdb.py::test_cascades_under_every_rule",
        ),
    ),
    "sql-rest": (
        "engine/sql/rest.py",
        (
            "engine/test_rest.py",
            "engine/test_duckdb.py::test_cascades_under_every_rule",
            "engine/test_duckdb.py::test_cubes",
            "engine/test_duckdb.py::test_random_worlds",
        ),
    ),
    "nested": ("audit/nested.py", ("audit/test_nested.py", "audit/test_cascade.py")),
    "checks": ("audit/checks.py", ("audit/test_own_rule.py", "audit/test_tampering.py")),
    "recount": (
        "audit/recount.py",
        (
            "audit/test_recount.py",
            "audit/test_cubes.py",
            "audit/test_own_rule.py",
            "audit/test_cascade.py",
            "audit/test_tampering.py",
            "audit/test_counting.py",
        ),
    ),
    "differences": ("audit/differences.py", ("audit/test_differences.py",)),
    "columns": ("audit/columns.py", ("audit/test_differences.py",)),
    "relations": ("audit/relations.py", ("audit/test_relations.py",)),
    "shown": ("audit/shown.py", ("audit/test_shown.py",)),
    "systems": ("audit/systems.py", ("audit/test_relations.py", "attacks/test_audit_complete.py")),
}
"""What is changed, and the tests (below ``tests``) that should notice; the quick ones first."""

COMPARED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq, ast.Gt, ast.Lt),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
OPERATED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
CALLED = {"min": "max", "max": "min", "any": "all", "all": "any", "argmin": "argmax", "ceil": "floor", "floor": "ceil"}
SILENT = {"strict", "dtype", "copy", "kind", "frozen", "eq", "match", "side"}
"""Arguments whose change is not worth a test: types, and belts beside braces."""


@dataclass(frozen=True)
class Mutant:
    """One change.

    Attributes
    ----------
    module : str
        A key of `MODULES`.
    name : str
        Where it is and what is changed, without line numbers: ``Rule.met: a >= b -> a > b``.
    line : int
        Where it is in the file as it is now.
    source : str
        The changed module.
    """

    module: str
    name: str
    line: int
    source: str


def mutants_of(module: str) -> list[Mutant]:
    """Return every change of a module."""
    path = ROOT / "src" / "odkanon" / MODULES[module][0]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found, seen = [], Counter[str]()
    for where, node, changed in _changes(tree):
        name = f"{where}: {_text(node)} -> {_text(changed)}"
        seen[name] += 1
        label = name if seen[name] == 1 else f"{name} ({seen[name]})"
        found.append(Mutant(module, label, getattr(node, "lineno", 0), _replaced(tree, node, changed)))
    return found


def _changes(tree: ast.Module) -> Iterator[tuple[str, ast.AST, ast.AST]]:
    """Yield the place, the node and the changed node of everything that can be changed."""

    def walk(node: ast.AST, where: str) -> Iterator[tuple[str, ast.AST, ast.AST]]:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            where = f"{where}.{node.name}".lstrip(".")
            if node.name == "__repr__":
                return
        for changed in _versions(node):
            yield where or "module", node, changed
        for child in _children(node):
            yield from walk(child, where)

    return walk(tree, "")


def _children(node: ast.AST) -> list[ast.AST]:
    """Return the parts of a node that run: no annotations, decorators, documentation or texts of errors."""
    if isinstance(node, ast.Raise | ast.ImportFrom | ast.Import | ast.JoinedStr):
        return []
    if isinstance(node, ast.FunctionDef):
        return [*node.args.defaults, *(each for each in node.args.kw_defaults if each), *_body(node.body)]
    if isinstance(node, ast.ClassDef | ast.Module):
        return list(_body(node.body))
    if isinstance(node, ast.AnnAssign):
        return [node.value] if node.value else []
    if isinstance(node, ast.keyword) and node.arg in SILENT:
        return []
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
        return []
    if isinstance(node, ast.Assert):
        return []
    return list(ast.iter_child_nodes(node))


def _body(statements: list[ast.stmt]) -> list[ast.stmt]:
    return [each for each in statements if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))]


def _versions(node: ast.AST) -> list[ast.AST]:
    """Return what a node is changed to."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        if isinstance(node.ops[0], ast.NotEq) and isinstance(getattr(node.comparators[0], "value", None), str):
            return [ast.Compare(node.left, [ast.Eq()], node.comparators)]  # texts have no order that matters
        return [ast.Compare(node.left, [other()], node.comparators) for other in COMPARED[type(node.ops[0])]]
    if isinstance(node, ast.BoolOp):
        return [ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)]
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATED and not _is_text(node):
        return [ast.BinOp(node.left, OPERATED[type(node.op)](), node.right)]
    if isinstance(node, ast.AugAssign) and type(node.op) in OPERATED:
        return [ast.AugAssign(node.target, OPERATED[type(node.op)](), node.value)]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.Invert):
        return [node.operand]
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return [ast.Constant(not node.value)]
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return [ast.Constant(node.value + 1 if isinstance(node.value, int) or not node.value else node.value * 1.5)]
    if isinstance(node, ast.Raise):
        return [ast.Pass()]
    return _other_call(node)


def _other_call(node: ast.AST) -> list[ast.AST]:
    if not isinstance(node, ast.Call):
        return []
    name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    if name not in CALLED:
        return []
    changed = copy.deepcopy(node)
    if isinstance(changed.func, ast.Name):
        changed.func.id = CALLED[name]
    elif isinstance(changed.func, ast.Attribute):
        changed.func.attr = CALLED[name]
    return [changed]


def _is_text(node: ast.BinOp) -> bool:
    """Tell whether a sum is one of texts or types, which other signs only break."""
    parts = [each for each in ast.walk(node) if isinstance(each, ast.JoinedStr | ast.Constant)]
    return any(isinstance(each, ast.JoinedStr) or isinstance(each.value, str | None) for each in parts)


def _text(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 90 else f"{text[:60]} ... {text[-25:]}"


def _replaced(tree: ast.Module, node: ast.AST, changed: ast.AST) -> str:
    class Replace(ast.NodeTransformer):
        def visit(self, each: ast.AST) -> Any:
            return ast.copy_location(copy.deepcopy(changed), each) if each is node else self.generic_visit(each)

    # Transformers work in place, so that the nodes of a copy are matched by their place in the walk.
    position = next(number for number, each in enumerate(ast.walk(tree)) if each is node)
    whole = copy.deepcopy(tree)
    node = next(each for number, each in enumerate(ast.walk(whole)) if number == position)
    return ast.unparse(ast.fix_missing_locations(Replace().visit(whole)))


class _Instead(MetaPathFinder, Loader):
    """Imports a changed module instead of its file."""

    def __init__(self, name: str, path: Path, source: str) -> None:
        self.name, self.path, self.source = name, path, source

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return spec_from_loader(fullname, self, origin=str(self.path)) if fullname == self.name else None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        module.__file__ = str(self.path)
        exec(compile(self.source, str(self.path), "exec"), module.__dict__)


class _Quick:
    """Fewer examples, and none made smaller: a failure is all that is asked for."""

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        from hypothesis import Phase, settings

        for item in items:
            function = getattr(item, "function", None)
            own = getattr(function, "_hypothesis_internal_use_settings", None)
            if own is not None and function is not None:
                function._hypothesis_internal_use_settings = settings(
                    own, phases=(Phase.explicit, Phase.generate), max_examples=min(own.max_examples, EXAMPLES)
                )


def run(mutant: Mutant | None, tests: tuple[str, ...]) -> int:
    """Run some tests in a fork of this process, on a mutant or on the program as it is; return its process."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        # Not by the clock: on a busy machine every mutant would seem not to end.
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        os.chdir(ROOT)
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]
        if mutant is not None:
            relative = Path(MODULES[mutant.module][0])
            name = ".".join(("odkanon", *relative.with_suffix("").parts))
            sys.meta_path.insert(0, _Instead(name, ROOT / "src" / "odkanon" / relative, mutant.source))
        import pytest

        paths = [str(ROOT / "tests" / each) for each in tests]
        quiet = ["-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]  # loaded before, as meant
        code = int(pytest.main(["-x", "-q", *quiet, *paths], [_Quick()]))
    finally:
        os._exit(code)


def survivors_of(mutants: list[Mutant], jobs: int) -> list[Mutant]:
    """Run all mutants, some at a time, and return those that no test notices; one that does not end is noticed."""
    waiting, running, alive = list(reversed(mutants)), dict[int, tuple[Mutant, float]](), []
    while waiting or running:
        while waiting and len(running) < jobs:
            mutant = waiting.pop()
            running[run(mutant, MODULES[mutant.module][1])] = mutant, time.monotonic() + PATIENCE
        for child, (mutant, deadline) in list(running.items()):
            done, status = os.waitpid(child, os.WNOHANG)
            if not done and time.monotonic() > deadline:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
                continue
            if done:
                del running[child]
                print(f"\r{len(waiting) + len(running)} left ", end="", file=sys.stderr, flush=True)
                if os.waitstatus_to_exitcode(status) == 0:
                    alive.append(mutant)
                    print(f"survives: {mutant.module}:{mutant.line} {mutant.name}", flush=True)
        time.sleep(0.05)
    return alive


def equivalent() -> set[tuple[str, str]]:
    """Return the mutants that are known to change nothing, as (module, name)."""
    known = set()
    for line in EQUIVALENT.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith(("#", " ")):
            module, _, name = line.partition(" | ")
            known.add((module.strip(), name.strip()))
    return known


def main() -> int:
    """Run the mutants of some modules; return 1 if some survive that are not known to be equivalent."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("modules", nargs="*", choices=[*MODULES, []], default=[], metavar="MODULE")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="only show what would be changed")
    parser.add_argument("--only", default="", metavar="TEXT", help="those whose name has this text")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only every N-th, for a first look")
    asked = parser.parse_args()
    known = equivalent()
    mutants = [each for module in asked.modules or MODULES for each in mutants_of(module) if asked.only in each.name]
    mutants = mutants[:: asked.every]
    fresh = [each for each in mutants if (each.module, each.name) not in known]
    if asked.list:
        print(*(f"{each.module}:{each.line} {each.name}" for each in mutants), sep="\n")
        return 0
    import duckdb  # noqa: F401 - loaded once, for all forks
    import h3ronpy  # noqa: F401
    import hypothesis  # noqa: F401
    import pyarrow.parquet  # noqa: F401
    import pytest  # noqa: F401

    for module in asked.modules or MODULES:
        _, status = os.waitpid(run(None, MODULES[module][1]), 0)
        if status:
            print(f"the tests of {module} fail without any change; mend them first")
            return 2
    alive = survivors_of(fresh, asked.jobs)
    print(f"{len(fresh)} mutants, {len(alive)} survive; {len(mutants) - len(fresh)} more are known to change nothing")
    return int(bool(alive))


if __name__ == "__main__":
    sys.exit(main())
