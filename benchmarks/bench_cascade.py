"""What the cascade is worth: G and the share of trips that it publishes, its time, and what attackers find out.

python benchmarks/bench_cascade.py [--attack] [OD_FILE ...]
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

TESTS = Path(__file__).parent.parent / "tests"
sys.path.insert(0, str(TESTS))

from attacks.cascades import Mode, World, attack  # noqa: E402
from attacks.views import SUBTRACTED, leaks  # noqa: E402
from odkanon import read_matrix  # noqa: E402
from odkanon.methods import anonymize  # noqa: E402
from odkanon.model.od import ODMatrix  # noqa: E402
from odkanon.model.release import Release  # noqa: E402
from odkanon.model.rule import Rule  # noqa: E402
from odkanon.quality.lower_bound import lower_bound  # noqa: E402
from odkanon.quality.utility import utility  # noqa: E402

K, BUDGET = 10, 0.10
RUNS: list[tuple[str, dict[str, object]]] = [
    ("odkanon", {"budget": BUDGET}),
    ("atg-soft", {"budget": BUDGET}),
    ("cascade", {}),
    ("cascade", {"budget": BUDGET}),
    ("cascade", {"budget": BUDGET, "allow_inference": True}),
]
TWO, THREE = (0, 0), (0, 0, 0)
WORLDS: list[tuple[World, int]] = [
    (World(((THREE, THREE, THREE),)), 2),
    (World(((THREE, THREE, (0, 0)),)), 3),
    (World((((0, 0, 0, 0), (0, 0, 0, 0)),)), 4),
    (World((THREE, THREE)), 2),
    (World(((TWO, TWO), THREE)), 2),
    (World((THREE, (TWO, TWO))), 2),
    (World((TWO, (TWO, TWO))), 3),
    (World((TWO, (THREE, (0,)))), 3),
    (World((TWO, TWO, THREE)), 2),
]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--attack", action="store_true", help="try every input of some small worlds")
    arguments.add_argument("files", nargs="*")
    given = arguments.parse_args()
    ods = {"paris-28k": read_matrix(TESTS / "golden" / "paris-28k" / "od.csv", engine="memory")}
    for name, od in (ods | {Path(file).stem: read_matrix(file, engine="memory") for file in given.files}).items():
        report(name, od)
    if given.attack:
        attack_rows()
        attack_views()


def report(name: str, od: ODMatrix) -> None:
    """Print a line for each method, with plain and with finer steps."""
    for substeps in (False, True):
        bound = None
        for method, options in RUNS:
            release, seconds = timed(od, method, {**options, "substeps": substeps})
            bound = lower_bound(release.od, Rule(trips=K), budget=BUDGET).g if bound is None else bound
            published = release.classes.trips.sum() / od.trips
            g = utility(release.od, release).g or 0.0
            kind = "fine" if substeps else "plain"
            told = f"{name:12} {kind:5} {method:9} {options!s:50} G {g:7.1f} (at best {bound:.1f})"
            print(f"{told}  rows {len(release.classes):5}  published {published:.4f}  {seconds:.3f} s", flush=True)


def timed(od: ODMatrix, method: str, options: dict[str, object]) -> tuple[Release, float]:
    """Return a release and the least processor time of three runs."""
    spent = []
    for _ in range(3):
        start = time.process_time()
        release = anonymize(od, Rule(trips=K), method=method, **options)
        spent.append(time.process_time() - start)
    return release, min(spent)


def attack_rows() -> None:
    """Try every input of some worlds against every variant, and print how many groups are shown to exist."""
    modes: tuple[Mode, ...] = ("plain", "falling", "capped", "kept")
    for mode in modes:
        tried, on, off = attack(WORLDS, mode)
        print(f"{mode:8} {tried:,} inputs: {on:,} groups shown on the ladder, {off:,} off it", flush=True)


def attack_views(runs: int = 2_000) -> None:
    """Print how often sums and differences of rows, views and totals of random cubes single out fewer than k trips."""
    found = [leaks(SUBTRACTED[seed % len(SUBTRACTED)], 1_000 + seed) for seed in range(runs)]
    published = [one for one in found if one is not None]
    print(f"views: {len(found):,} small cubes, {len(published):,} published, {sum(published):,} groups below k")


if __name__ == "__main__":
    main()
