"""The table of attacks by method in docs/attacks.md.

``python benchmarks/evidence_table.py`` runs on the sample survey; give a file of trips (and a filter) for another. Rows
are printed as they are ready.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import pyarrow.parquet

from odkanon import METHODS, InputSpec, Rule, make_survey
from odkanon.evidence.attack import AttackRun
from odkanon.evidence.attack_context import open_context
from odkanon.evidence.gather import run_attacks
from odkanon.methods.method_registry import anonymize
from odkanon.read.od_table import spec_to_matrix

NAMES = ("complement", "intervals", "replay", "borders", "membership", "homogeneity", "dominance")
HEADINGS = (
    "method",
    "rows",
    "rows below the rule",
    "groups shown to exist",
    "replay: another world found",
    "borders that name places",
    "outsider AUC",
    "trips to one zone",
    "largest share of a person",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trips", nargs="?", type=Path)
    parser.add_argument("--where")
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--methods", default=",".join(METHODS))
    said = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trips = said.trips or Path(folder) / "survey.parquet"
        if said.trips is None:
            pyarrow.parquet.write_table(make_survey(), trips)
        reading = InputSpec(trips, where=said.where)
        print(f"| {' | '.join(HEADINGS)} |", f"|---{'|---:' * (len(HEADINGS) - 1)}|", sep="\n", flush=True)
        od = spec_to_matrix(reading)
        for method in said.methods.split(","):
            saved = anonymize(od, Rule(trips=said.k), method=method).save(Path(folder) / method)
            made = run_attacks(open_context(saved, reading), NAMES, seconds=said.seconds)
            print(
                f"| {METHODS[method].title} | {' | '.join(row({each.attack.name: each for each in made}))} |",
                flush=True,
            )


def row(made: dict[str, AttackRun]) -> list[str]:
    numbers = {name: each.result.numbers for name, each in made.items()}
    below = [line for line in made["complement"].result.examples if "below" in line]
    intervals, replay = made["intervals"].result, made["replay"].result
    unfinished = "" if intervals.tried == intervals.of else f" ({intervals.tried / intervals.of:.0%} tried)"
    return [
        f"{numbers['complement']['rows']:,}",
        f"{len(below):,}",
        f"{intervals.found:,}{unfinished}",
        replay.skipped
        or f"{replay.numbers['not shown']:,} of {replay.of:,}"
        + (f", {replay.unsettled:,} open" if replay.unsettled else ""),
        "-" if made["borders"].result.skipped else f"{made['borders'].result.found:,}",
        f"{numbers['membership'].get('outsider AUC', float('nan')):.2f}",
        f"{numbers['homogeneity']['share of trips']:.1%}",
        f"{numbers['dominance'].get('largest share', float('nan')):.0%}",
    ]


if __name__ == "__main__":
    main()
