"""What a reader of segments concludes who knows the method: the promise states that it does not cover this."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path


def rows(table: Path) -> dict[tuple[str, str], int]:
    text = (table / "classes.csv").read_text(encoding="utf-8") if table.exists() else "origin,destination,trips"
    return {(row["origin"], row["destination"]): int(row["trips"]) for row in csv.DictReader(text.splitlines())}


def test_a_flow_of_exactly_k_without_a_row_by_sex_has_both_and_the_promise_says_so(tmp_path: Path) -> None:
    flows = [("a", "b", "f", 5), ("a", "b", "m", 5), ("c", "d", "f", 40), ("c", "d", "m", 40), ("e", "d", "f", 7)]
    flows += [("e", "d", "m", 33), ("e", "b", "f", 20), ("e", "b", "m", 20)]
    lines = [f"{origin},{end},{sex}" for origin, end, sex, trips in flows for _ in range(trips)]
    (tmp_path / "trips.csv").write_text("\n".join(["origin,destination,sex", *lines]) + "\n", encoding="utf-8")
    places = [f"{place},{'x' if place < 'd' else 'y'}" for place in "abcde"]
    (tmp_path / "places.csv").write_text("\n".join(["place,town", *places]) + "\n", encoding="utf-8")
    out = tmp_path / "releases"
    command = ["anonymize", str(tmp_path / "trips.csv"), "-o", str(out), "--segment", "sex", "--protect-intervals"]
    command += ["--hierarchy", str(tmp_path / "places.csv")]
    command += ["--method", "odkanon", "--protect", "participants", "--segment-budget", "0.9", "--budget", "0.5"]
    done = subprocess.run([sys.executable, "-m", "odkanon", *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    whole, women, men = (rows(out / name) for name in ("whole", "sex=f", "sex=m"))
    both = [flow for flow, trips in whole.items() if trips == 10 and flow not in women and flow not in men]
    assert both == [("a", "b")]
    statement = json.loads((out / "index.json").read_text(encoding="utf-8"))["statement"]
    assert "A reader who knows the method may conclude more" in statement
    assert "no flow below that is known to exist" not in statement
