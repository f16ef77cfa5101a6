"""Matrices as transport models read them: `make transport-test`, which installs ActivitySim and AequilibraE (minutes).

Both run in an environment of their own; what they read has to be what the release lists.
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet
import pytest

from cli.runner import odkanon
from outside.packages import run

ACTIVITYSIM = """
import json, sys
from pathlib import Path
import numpy as np, openmatrix
from activitysim.core import los, workflow
file, folder = Path(sys.argv[1]), Path(sys.argv[2])
for name in ("configs", "data", "output"):
    (folder / name).mkdir()
periods = "{time_window: 1440, period_minutes: 60, periods: [0, 24], labels: [DAY]}"
(folder / "configs" / "settings.yaml").write_text("{}")
(folder / "configs" / "network_los.yaml").write_text(
    f"zone_system: 1\\ntaz_skims: {file}\\nskim_time_periods: {periods}\\n"
)
network = los.Network_LOS(workflow.State.make_default(folder))
network.load_data()
skims = network.get_default_skim_dict()
zones = np.asarray(skims.skim_info.offset_map)
origin, destination = (each.ravel() for each in np.meshgrid(zones, zones, indexing="ij"))
found = np.asarray(skims.lookup(origin, destination, "trips"))
some = np.flatnonzero(found)
print(json.dumps([[int(origin[at]), int(destination[at]), float(found[at])] for at in some]))
"""
AEQUILIBRAE = """
import json, sys
import numpy as np
from aequilibrae.matrix import AequilibraeMatrix
matrix = AequilibraeMatrix()
matrix.load(sys.argv[1])
matrix.computational_view(["trips"])
zones, values = matrix.index, np.asarray(matrix.matrix_view)
print(json.dumps([[int(zones[a]), int(zones[b]), float(values[a, b])] for a, b in zip(*np.nonzero(values))]))
"""


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return a release on H3 cells, a cube and one between numbered zones, as OMX."""
    folder = tmp_path_factory.mktemp("transport")
    zones = folder / "zones.csv"
    zones.write_text("taz,district\n" + "".join(f"{100 + n},{n // 5}\n" for n in range(30)))
    flows = [(a, b, 7 * (a + 3 * b) % 41) for a in range(100, 130) for b in range(100, 130)]
    pairs = folder / "pairs.csv"
    pairs.write_text("origin,destination,trips\n" + "".join(f"{a},{b},{n}\n" for a, b, n in flows))
    odkanon("sample", "-o", "survey.parquet", cwd=folder)
    runs = {
        "cells": ("survey.parquet", "--resolution", "8"),
        "cube": ("survey.parquet", "--resolution", "7", "--by", "mode"),
        "codes": (pairs, "--hierarchy", zones),
    }
    for name, arguments in runs.items():
        assert odkanon("anonymize", *arguments, "-o", name, cwd=folder).returncode == 0
        assert odkanon("export", name, "--to", "omx", "-o", f"{name}.omx", cwd=folder).returncode == 0
    return {name: folder / name for name in runs}


def listed(release: Path) -> list[list[float]]:
    """Return the flows that a release lists, with zones as numbers."""
    table = pyarrow.parquet.read_table(release / "classes.parquet")

    def number(zone: str) -> int:
        if release.name == "codes":
            return -1 if zone == "world" else int(zone)  # there is a district 0
        return 0 if zone == "world" else int(zone, 16)

    flows: dict[tuple[int, int], float] = {}
    for row in table.select(["origin", "destination", "trips"]).to_pylist():
        ends = number(row["origin"]), number(row["destination"])
        flows[ends] = flows.get(ends, 0) + row["trips"]
    return sorted([*ends, trips] for ends, trips in flows.items())


@pytest.mark.parametrize("name", ["cells", "cube", "codes"])
def test_activitysim_reads_the_flows_that_the_release_lists(
    exports: dict[str, Path], tmp_path: Path, name: str
) -> None:
    release = exports[name]
    assert sorted(json.loads(run(ACTIVITYSIM, f"{release}.omx", tmp_path).splitlines()[-1])) == listed(release)


@pytest.mark.parametrize("name", ["cells", "cube", "codes"])
def test_aequilibrae_reads_the_flows_that_the_release_lists(exports: dict[str, Path], name: str) -> None:
    release = exports[name]
    assert sorted(json.loads(run(AEQUILIBRAE, f"{release}.omx").splitlines()[-1])) == listed(release)
