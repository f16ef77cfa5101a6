"""Changes one thing at a time in the modules that promises rest on, and looks whether a test notices.

A *mutant* is a module with one comparison, boundary, sign, ``and``/``or``, ``not``, constant or ``raise`` changed. It
runs against the tests that are about its module; one that fails none of them *survives*. Survivors that change nothing
that anybody could see are listed in ``mutants-equivalent.txt`` with the reason; there should be no others.

    python scripts/mutants.py                       # all of them
    python scripts/mutants.py rule release          # some modules
    python scripts/mutants.py --list protect        # what would be changed
    python scripts/mutants.py --known               # those of the list: whether they still go unnoticed

Every mutant is a fork of this process, which has loaded the heavy libraries once, and imports the changed module
instead of the file. Hypothesis tries fewer examples here, and does not make them smaller.
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
"""Examples of a property; how many times the processor's seconds of the tests without a change a mutant gets, how many
seconds these get, and how many on the clock."""

CASCADE = ("methods/test_cascade_trees.py", "methods/test_cascade.py")
COMPARING = (
    "audit/test_told.py",
    "audit/test_differences.py",
    "audit/test_relations.py",
    "audit/test_audit_command.py",
    "attacks/test_audit_complete.py",
)
MODULES: dict[str, tuple[str, tuple[str, ...]]] = {
    "rule": ("model/rule.py", ("model/test_rule_besides.py", "model/test_checks.py", "model/test_rule.py")),
    "release": (
        "model/release.py",
        (
            "model/test_checks.py",
            "attacks/test_suppressed_total.py",
            "methods/test_order.py",
            "model/test_release.py",
            "methods/test_besides.py",
            "methods/test_besides_refused.py",
            "engine/test_workspace.py::test_pairs_that_were_never_in_memory_are_not_there",
            "publish/test_save.py",
        ),
    ),
    "classes": ("model/published_flows.py", ("model/test_checks.py", "publish/test_save.py", "model/test_release.py")),
    "assemble": (
        "model/assemble.py",
        (
            "model/test_assemble.py",
            "attacks/test_suppressed_total.py",
            "methods/test_order.py",
            "model/test_release.py",
            "methods/test_besides_refused.py",
            "methods/test_besides.py",
        ),
    ),
    "companion": (
        "model/residual_suppression.py",
        ("model/test_checks.py", "attacks/test_suppressed_total.py", "together/test_protect.py"),
    ),
    "budget": ("model/budget.py", ("model/test_checks.py", "model/test_rule.py")),
    "odkanon": ("methods/odkanon.py", ("methods/test_order.py", "methods/test_odkanon.py")),
    "merging": (
        "methods/merging.py",
        (
            "methods/test_merging_by_hand.py",
            "methods/test_order.py",
            "methods/test_odkanon.py",
            "methods/test_symmetric.py",
        ),
    ),
    "oigh": ("methods/oigh.py", ("methods/test_oigh.py", "methods/test_symmetric.py")),
    "grid": (
        "methods/mondrian/grid.py",
        ("methods/test_mondrian_cuts.py", "methods/test_mondrian.py", "attacks/test_borders.py"),
    ),
    "cuts": ("methods/mondrian/median_cuts.py", ("methods/test_mondrian_cuts.py", "methods/test_mondrian.py")),
    "protect": (
        "linked/complementary_suppression.py",
        ("together/test_protect_by_hand.py", "together/test_protect.py", "together/test_intervals.py"),
    ),
    "joining": ("linked/rare_segments.py", ("together/test_joining_by_hand.py", "together/test_joining.py")),
    "caps": ("methods/cascade/caps.py", (*CASCADE, "attacks/test_cascade.py")),
    "fall": ("methods/cascade/roll_up.py", (*CASCADE, "attacks/test_cascade.py")),
    "ladder": ("methods/cascade/ladder.py", CASCADE),
    "kinds": ("methods/cascade/subtree_types.py", ("methods/test_kinds.py", *CASCADE, "attacks/test_spare.py")),
    "cascade": (
        "methods/cascade/method.py",
        ("methods/test_cascade_by_hand.py", *CASCADE, "methods/test_again.py", "attacks/test_cube.py"),
    ),
    "rest": ("engine/memory/residual.py", ("methods/test_heads.py", *CASCADE)),
    "workspace": (
        "engine/sql/workspace.py",
        (
            "engine/test_workspace.py",
            "engine/test_duckdb.py::test_random_worlds",
            "engine/test_duckdb.py::test_cascades_under_every_rule",
        ),
    ),
    "sql-rest": (
        "engine/sql/residual.py",
        (
            "engine/test_residual.py",
            "engine/test_duckdb.py::test_cascades_under_every_rule",
            "engine/test_duckdb.py::test_cubes",
            "engine/test_duckdb.py::test_random_worlds",
        ),
    ),
    "finest": ("engine/sql/deviations.py", ("engine/test_deviations.py",)),
    "nested": ("audit/nested_flows.py", ("audit/test_nested.py", "audit/test_cascade.py")),
    "checks": (
        "audit/release_checks.py",
        ("audit/test_checks.py", "audit/test_own_rule.py", "audit/test_tampering.py"),
    ),
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
    "differences": ("audit/differences.py", ("audit/test_subtracting.py", *COMPARING)),
    "columns": ("audit/segment_totals.py", ("audit/test_columns.py", *COMPARING)),
    "relations": ("audit/relations.py", COMPARING),
    "shown": ("audit/differencing/equations.py", ("audit/test_system.py", "audit/test_shown.py", *COMPARING)),
    "groups": ("audit/differencing/groups.py", ("audit/test_shown.py", *COMPARING)),
    "combinations": ("audit/differencing/enumeration.py", ("audit/test_shown.py", *COMPARING)),
    "minimum-cuts": ("audit/differencing/min_cut.py", ("audit/test_shown.py", *COMPARING)),
    "comparing": ("audit/pairwise_checks.py", ("audit/test_comparing.py", *COMPARING)),
    "systems": ("audit/equation_systems.py", ("audit/test_systems.py", *COMPARING)),
    "numbers": ("audit/published_counts.py", ("audit/test_numbers_compared.py", "audit/test_numbers.py")),
    "solving": ("audit/differencing/feasible_solution.py", ("audit/test_numbers.py",)),
    "files": ("audit/file_checks.py", ("audit/test_files.py", "audit/test_tampering.py")),
    "scope": ("audit/study_area.py", ("audit/test_scope.py", "audit/test_told.py")),
    "conditions": ("audit/conditions.py", ("audit/test_scope.py",)),
    "persons": ("audit/counting/persons.py", ("audit/test_persons.py", "read/test_identity.py")),
    "filters": ("audit/counting/own_filters.py", ("audit/test_filters.py", "audit/test_counting.py")),
}
"""What is changed, and the tests (below ``tests``) that should notice; the quick ones first."""


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
    return [Mutant(module, *change) for change in changes_of(path.read_text(encoding="utf-8"))]


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


def run(mutant: Mutant | None, tests: str, seconds: int = SECONDS) -> int:
    """Run some tests in a fork of this process, on a mutant or on the program as it is; return its process."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        # Not by the clock: on a busy machine every mutant would seem not to end.
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
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

        quiet = ["-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]  # loaded before, as meant
        code = int(pytest.main(["-x", "-q", *quiet, str(ROOT / "tests" / tests)], [_Quick()]))
    finally:
        os._exit(code)


def seconds_of(tests: Iterable[str]) -> dict[str, int]:
    """Return how many seconds of the processor a mutant gets for each of these tests; end if one fails as it is."""
    found = {}
    for each in tests:
        _, status, used = os.wait4(run(None, each), 0)
        if status:
            raise SystemExit(f"{each} fails without any change; mend it first")
        found[each] = TIMES * ceil(used.ru_utime + used.ru_stime)
    return found


def survivors_of(mutants: list[Mutant], seconds: dict[str, int], jobs: int) -> list[Mutant]:
    """Run all mutants, some at a time, and return those that no test notices; one that does not end is noticed."""
    waiting = [(mutant, MODULES[mutant.module][1]) for mutant in reversed(mutants)]
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
                unnoticed = os.waitstatus_to_exitcode(status) == 0
                if unnoticed and tests:
                    waiting.append((mutant, tests))
                    continue
                print(f"\r{len(waiting) + len(running)} left ", end="", file=sys.stderr, flush=True)
                if unnoticed:
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
    parser.add_argument("--known", action="store_true", help="only those that are listed to change nothing")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only every N-th, for a first look")
    asked = parser.parse_args()
    known = equivalent()
    mutants = [each for module in asked.modules or MODULES for each in mutants_of(module) if asked.only in each.name]
    mutants = mutants[:: asked.every]
    chosen = [each for each in mutants if ((each.module, each.name) in known) == asked.known]
    if asked.list:
        print(*(f"{each.module}:{each.line} {each.name}" for each in mutants), sep="\n")
        return 0
    import duckdb  # noqa: F401 - loaded once, for all forks
    import h3ronpy  # noqa: F401
    import hypothesis  # noqa: F401
    import pyarrow.parquet  # noqa: F401
    import pytest  # noqa: F401

    seconds = seconds_of(dict.fromkeys(tests for each in chosen for tests in MODULES[each.module][1]))
    alive = survivors_of(chosen, seconds, asked.jobs)
    if asked.known:
        noticed = [each for each in chosen if each not in alive]
        gone = known - {(each.module, each.name) for module in MODULES for each in mutants_of(module)}
        print(*(f"noticed after all: {each.module} | {each.name}" for each in noticed), sep="\n")
        print(*(f"no such mutant: {module} | {name}" for module, name in sorted(gone)), sep="\n")
        return int(bool(noticed or gone))
    print(f"{len(chosen)} mutants, {len(alive)} survive; {len(mutants) - len(chosen)} more are known to change nothing")
    return int(bool(alive))


if __name__ == "__main__":
    sys.exit(main())
