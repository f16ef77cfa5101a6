"""Opening a release folder loads little more than the format itself: no methods, no quality, no readers of trips."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from odkanon import Rule, anonymize
from worlds.matrices import golden_od

FORBIDDEN = {"read", "engine", "quality", "methods", "linked", "publish", "audit", "cli"}
CODE = """
import sys
from odkanon.release_format.folder import open_release

release = open_release(sys.argv[1])
assert len(release.flows) and len(release.zones)
print(*(module for module in sys.modules if module.split(".")[0] == "odkanon"))
"""


def test_opening_a_release_loads_few_modules(tmp_path: Path) -> None:
    folder = anonymize(golden_od("tiny"), Rule(trips=5)).save(tmp_path / "release")
    done = subprocess.run([sys.executable, "-c", CODE, folder], capture_output=True, text=True, check=True)
    modules = done.stdout.split()
    assert len(modules) <= 30, sorted(modules)
    assert not FORBIDDEN & {module.split(".")[1] for module in modules if "." in module}
