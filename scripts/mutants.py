"""Mutation tests: change one thing in the modules that carry the promise, and check that a test fails.

A *mutant* is a module with one comparison, boundary, sign, ``and``/``or``, ``not``, constant or ``raise`` changed. It
runs against the tests of its module and is *killed* if one fails; otherwise it *survives*. Equivalent mutants, which no
test can kill, are listed in ``mutants-equivalent.txt`` with the reason; no others should survive.

    python scripts/mutants.py                          # all modules
    python scripts/mutants.py model.rule audit         # a module, and all modules of a package
    python scripts/mutants.py --list linked            # only list the mutants
    python scripts/mutants.py --known                  # check that the listed ones still survive

Modules, functions and tests are named by their dotted names, so that a script that renames them updates this file.
Every mutant is a fork of this process, which has loaded the heavy libraries once, and imports the changed module
instead of the file. Hypothesis runs fewer examples here, and does not shrink them.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import signal
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from math import ceil
from pathlib import Path
from types import ModuleType
from typing import Any

from changing import changes_of

ROOT = Path(__file__).resolve().parents[1]
EQUIVALENT = Path(__file__).with_name("mutants-equivalent.txt")
EXAMPLES, TIMES, SECONDS, PATIENCE = 20, 3, 600, 1200
"""Examples of a property; a mutant gets `TIMES` the processor seconds of the unchanged tests, which get `SECONDS`, and
`PATIENCE` seconds by the clock."""

CASCADE = ("methods.test_cascade_trees", "methods.test_cascade")
COMPARING = (
    "audit.test_stated_relations",
    "audit.test_differences",
    "audit.test_relations",
    "audit.test_audit_command",
    "attacks.test_audit_complete",
)
MODULES: dict[str, tuple[str, ...]] = {
    "odkanon.model.rule": ("model.test_rule_besides", "model.test_checks", "model.test_rule"),
    "odkanon.model.release": (
        "model.test_checks",
        "attacks.test_suppressed_total",
        "methods.test_order",
        "model.test_release",
        "methods.test_besides",
        "methods.test_besides_refused",
        "engine.test_workspace.test_pairs_that_were_never_in_memory_are_not_there",
        "publish.test_save",
    ),
    "odkanon.model.published_flows": ("model.test_checks", "publish.test_save", "model.test_release"),
    "odkanon.model.assemble": (
        "model.test_assemble",
        "attacks.test_suppressed_total",
        "methods.test_order",
        "model.test_release",
        "methods.test_besides_refused",
        "methods.test_besides",
    ),
    "odkanon.model.release_spec": (
        "model.test_checks",
        "model.test_rule",
        "model.test_checks",
        "attacks.test_suppressed_total",
        "linked.test_protect",
    ),
    "odkanon.linked.complementary_suppression": (
        "linked.test_protect_by_hand",
        "linked.test_protect",
        "linked.test_intervals",
    ),
    "odkanon.linked.zoning_search": ("linked.test_joining_by_hand", "linked.test_joining"),
    "odkanon.methods.cascade.caps": (*CASCADE, "attacks.test_cascade"),
    "odkanon.methods.cascade.roll_up": (*CASCADE, "attacks.test_cascade"),
    "odkanon.methods.cascade.ladder": CASCADE,
    "odkanon.methods.cascade.subtree_types": ("methods.test_kinds", *CASCADE, "attacks.test_impossible_values"),
    "odkanon.methods.cascade.method": (
        "methods.test_cascade_by_hand",
        *CASCADE,
        "methods.test_again",
        "attacks.test_cube",
    ),
    "odkanon.audit.row_nesting": ("audit.test_nested_rows", "audit.test_cascade"),
    "odkanon.audit.release_checks": ("audit.test_release_checks", "audit.test_auditor_rule", "audit.test_tampering"),
    "odkanon.audit.recount": (
        "audit.test_recount",
        "audit.test_cubes",
        "audit.test_auditor_rule",
        "audit.test_cascade",
        "audit.test_tampering",
        "audit.test_counting",
    ),
    "odkanon.audit.differences": ("audit.test_subtractions", "audit.test_total_leaks", *COMPARING),
    "odkanon.audit.relations": ("audit.test_release_trips", *COMPARING),
    "odkanon.audit.differencing.equations": ("audit.test_equations", "audit.test_small_groups", *COMPARING),
    "odkanon.audit.differencing.min_cut": ("audit.test_small_groups", *COMPARING),
    "odkanon.audit.pairwise_checks": ("audit.test_pairwise_checks", "audit.test_small_groups", *COMPARING),
    "odkanon.audit.equation_systems": ("audit.test_equation_systems", *COMPARING),
    "odkanon.audit.absence_bounds": ("attacks.test_audit_absence",),
    "odkanon.audit.published_counts": ("audit.test_published_counts", "audit.test_feasible_masses"),
    "odkanon.audit.file_checks": ("audit.test_file_checks", "audit.test_tampering"),
    "odkanon.audit.counting.release_trips": ("audit.test_release_trips", "audit.test_stated_relations"),
    "odkanon.audit.counting.conditions": ("audit.test_release_trips", "audit.test_filters", "audit.test_counting"),
    "odkanon.audit.counting.counted_measures": ("audit.test_person_ids", "read.test_identity"),
}
"""The modules to change, and the test modules or functions (below ``tests``) that should fail; the quick ones first."""


@dataclass(frozen=True)
class Mutant:
    """A module with one change.

    Attributes
    ----------
    module : str
        A key of `MODULES`.
    name : str
        The dotted name of the function and the change: ``odkanon.model.rule.Rule.satisfied | a >= b -> a > b``.
    line : int
        The line in the file.
    source : str
        The source of the changed module.
    """

    module: str
    name: str
    line: int
    source: str


def source_path(module: str) -> Path:
    """Return the file of a module."""
    return ROOT.joinpath("src", *module.split(".")).with_suffix(".py")


def pytest_target(name: str) -> str:
    """Return what pytest calls a test module or function: ``tests/model/test_rule.py::test_k``."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        path = ROOT.joinpath("tests", *parts[:end]).with_suffix(".py")
        if path.is_file():
            return "::".join((str(path), *parts[end:]))
    raise SystemExit(f"no test module {name} below tests: renamed? Bring scripts/mutants.py up to date")


def mutants_of(module: str) -> list[Mutant]:
    """Return every mutant of a module."""
    found = []
    for name, line, source in changes_of(source_path(module).read_text(encoding="utf-8")):
        function, _, change = name.partition(": ")
        dotted = module if function == "module" else f"{module}.{function}"
        found.append(Mutant(module, f"{dotted} | {change}", line, source))
    return found


class _MutantLoader(MetaPathFinder, Loader):
    """Imports the mutant instead of the module's file."""

    def __init__(self, name: str, path: Path, source: str) -> None:
        self.name, self.path, self.source = name, path, source

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return spec_from_loader(fullname, self, origin=str(self.path)) if fullname == self.name else None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        module.__file__ = str(self.path)
        exec(compile(self.source, str(self.path), "exec"), module.__dict__)


class _FewExamples:
    """Runs fewer examples of a property and shrinks none: one failure is enough."""

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        from hypothesis import Phase, settings

        for item in items:
            function = getattr(item, "function", None)
            own = getattr(function, "_hypothesis_internal_use_settings", None)
            if own is not None and function is not None:
                function._hypothesis_internal_use_settings = settings(
                    own, phases=(Phase.explicit, Phase.generate), max_examples=min(own.max_examples, EXAMPLES)
                )


def run(mutant: Mutant | None, tests: str, seconds: int = SECONDS) -> int:
    """Run a test module in a fork of this process, on a mutant or on the unchanged program; return the process id."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        # Processor time: by the clock, no mutant would seem to end on a busy machine.
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        os.chdir(ROOT)
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]
        if mutant is not None:
            loader = _MutantLoader(mutant.module, source_path(mutant.module), mutant.source)
            sys.meta_path.insert(0, loader)
        import pytest

        quiet = [
            "-p",
            "no:cacheprovider",
            "-W",
            "ignore::pytest.PytestAssertRewriteWarning",
        ]  # it is loaded before
        code = int(pytest.main(["-x", "-q", *quiet, pytest_target(tests)], [_FewExamples()]))
    finally:
        os._exit(code)


def seconds_of(tests: Iterable[str]) -> dict[str, int]:
    """Return the processor seconds that a mutant gets for each test module; exit if one fails unchanged."""
    found = {}
    for each in tests:
        _, status, used = os.wait4(run(None, each), 0)
        if status:
            raise SystemExit(f"{each} fails without any change; fix it first")
        found[each] = TIMES * ceil(used.ru_utime + used.ru_stime)
    return found


def survivors_of(mutants: list[Mutant], seconds: dict[str, int], jobs: int) -> list[Mutant]:
    """Run all mutants, some at a time, and return those that survive; one that does not end counts as killed."""
    waiting = [(mutant, MODULES[mutant.module]) for mutant in reversed(mutants)]
    running, alive = dict[int, tuple[Mutant, tuple[str, ...], float]](), []
    while waiting or running:
        while waiting and len(running) < jobs:
            mutant, tests = waiting.pop()
            child = run(mutant, tests[0], seconds[tests[0]])
            running[child] = mutant, tests[1:], time.monotonic() + PATIENCE
        for child, (mutant, tests, deadline) in list(running.items()):
            done, status = os.waitpid(child, os.WNOHANG)
            if not done and time.monotonic() > deadline:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
                continue
            if done:
                del running[child]
                survives = os.waitstatus_to_exitcode(status) == 0
                if survives and tests:
                    waiting.append((mutant, tests))
                    continue
                print(f"\r{len(waiting) + len(running)} left ", end="", file=sys.stderr, flush=True)
                if survives:
                    alive.append(mutant)
                    print(f"survives: {mutant.name} (line {mutant.line})", flush=True)
        time.sleep(0.05)
    return alive


def equivalent() -> list[str]:
    """Return the names of the listed equivalent mutants."""
    lines = EQUIVALENT.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.strip() and not line.startswith(("#", " "))]


def modules_among(names: list[str]) -> list[str]:
    """Return the modules with these names, or in these packages; all of them if none are named."""
    asked = [name if name.startswith("odkanon.") else f"odkanon.{name}" for name in names]
    for name in asked:
        if not any(f"{module}.".startswith(f"{name}.") for module in MODULES):
            raise SystemExit(f"{name} is none of the modules that are changed: {', '.join(MODULES)}")
    return [each for each in MODULES if not asked or any(f"{each}.".startswith(f"{name}.") for name in asked)]


def main() -> int:
    """Run the mutants of some modules; return 1 if one survives that is not listed as equivalent."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="dotted names of modules or packages")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="only list the mutants")
    parser.add_argument("--only", default="", metavar="TEXT", help="mutants whose name contains this text")
    parser.add_argument("--known", action="store_true", help="only those that are listed as equivalent")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only every N-th, for a first look")
    asked = parser.parse_args()
    known = set(equivalent())
    modules = modules_among(asked.modules)
    mutants = [each for module in modules for each in mutants_of(module) if asked.only in each.name]
    mutants = mutants[:: asked.every]
    chosen = [each for each in mutants if (each.name in known) == asked.known]
    if asked.list:
        print(*(f"{each.line}: {each.name}" for each in mutants), sep="\n")
        return 0
    import duckdb  # noqa: F401 - loaded once, for all forks
    import h3ronpy  # noqa: F401
    import hypothesis  # noqa: F401
    import pyarrow.parquet  # noqa: F401
    import pytest  # noqa: F401

    seconds = seconds_of(dict.fromkeys(tests for each in chosen for tests in MODULES[each.module]))
    alive = survivors_of(chosen, seconds, asked.jobs)
    if asked.known:
        killed = [each.name for each in chosen if each not in alive]
        gone = known - {each.name for module in MODULES for each in mutants_of(module)}
        print(*(f"killed after all: {each}" for each in killed), sep="\n")
        print(*(f"no such mutant: {each}" for each in sorted(gone)), sep="\n")
        return int(bool(killed or gone))
    print(f"{len(chosen)} mutants, {len(alive)} survive; {len(mutants) - len(chosen)} more are listed as equivalent")
    return int(bool(alive))


if __name__ == "__main__":
    sys.exit(main())
