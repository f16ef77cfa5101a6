"""Whoever kills a run finds either a whole release or none."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path

from cli.runner import odkanon
from odkanon.report import is_built

GOLDEN = Path(__file__).parent.parent / "golden"
FILES = {"classes.csv", "classes.parquet", "zones.geojson", "release.json"} | ({"report.html"} if is_built() else set())
SAVE_FOREVER = """
import sys
from itertools import count
from odkanon import Rule, anonymize, read_od
release = anonymize(read_od(sys.argv[1]), Rule(trips=4))
print("ready", flush=True)
for number in count():
    release.save(f"{sys.argv[2]}/{number % 3}", force=True)
"""


def test_killed_twenty_times_while_saving(tmp_path: Path) -> None:
    chance = random.Random(1)
    for batch in range(5):
        folders = [tmp_path / f"{batch}-{number}" for number in range(4)]
        command = [sys.executable, "-c", SAVE_FOREVER, str(GOLDEN / "tiny/od.csv")]
        runs = [subprocess.Popen([*command, str(folder)], stdout=subprocess.PIPE) for folder in folders]
        for run in runs:
            assert run.stdout is not None
            assert run.stdout.readline() == b"ready\n"
        for run in runs:
            time.sleep(chance.random() / 10)
            run.kill()
            run.communicate()
        for folder in folders:
            for release in folder.glob("[0-9]*"):
                assert {file.name for file in release.iterdir()} == FILES
                assert json.loads((release / "release.json").read_text())["published"]["classes"] > 0


def test_a_rerun_after_a_kill_works(tmp_path: Path) -> None:
    arguments = ["anonymize", GOLDEN / "tiny/od.csv", "-o", tmp_path / "out", "--k", "4", "--engine", "duckdb"]
    run = subprocess.Popen([sys.executable, "-m", "odkanon", *map(str, arguments)])
    time.sleep(0.5)
    run.kill()
    run.wait()
    assert not (tmp_path / "out").exists() or {file.name for file in (tmp_path / "out").iterdir()} == FILES
    assert odkanon(*arguments, "--force").returncode == 0
    assert {file.name for file in (tmp_path / "out").iterdir()} == FILES
