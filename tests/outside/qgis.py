"""The plugin in a real QGIS without a window: `make qgis-test`, which installs Debian's QGIS where there is none.

The toolbox is driven by ``qgis_process``, as in a script; stopping and missing programs by QGIS's own Python.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import geopandas
import pytest
import shapely

ROOT = Path(__file__).parents[2]
QGIS = shutil.which("qgis_process.bin") or shutil.which("qgis_process") or "qgis_process"
CODE = """
import sys, threading
from pathlib import Path
from qgis.core import QgsApplication, QgsProcessingContext, QgsProcessingException, QgsProcessingFeedback
application = QgsApplication([], False)
application.initQgis()
sys.path += [str(Path(application.pkgDataPath()) / "python" / "plugins"), {plugins!r}]
from processing.core.Processing import Processing
Processing.initialize()
from odkanon_qgis.provider import OdkanonProvider
provider = OdkanonProvider()
application.processingRegistry().addProvider(provider)
feedback = QgsProcessingFeedback()
{before}
parameters = {{"FILE": {file!r}, "K": 10, "METHOD": 5, "OUTPUT": {output!r}}}
algorithm = application.processingRegistry().algorithmById("odkanon:anonymize")
found, done = algorithm.run(parameters, QgsProcessingContext(), feedback)
print("DONE", done, feedback.progress() > 0, feedback.textLog().replace("\\n", " "))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a survey, and the plugin as it is unpacked from its archive."""
    folder = tmp_path_factory.mktemp("qgis")
    subprocess.run([sys.executable, ROOT / "scripts/package_qgis.py", folder / "plugin.zip"], check=True)
    with zipfile.ZipFile(folder / "plugin.zip") as archive:
        archive.extractall(folder / "plugins")
    program = folder / "odkanon"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT / "src"} exec {sys.executable} -m odkanon "$@"\n')
    program.chmod(0o755)
    subprocess.run([program, "sample", "-o", folder / "survey.csv"], check=True, capture_output=True)
    return folder


@pytest.fixture
def environment(folder: Path) -> dict[str, str]:
    """Return the variables of a QGIS with a profile of its own, in which the plugin is enabled."""
    settings = folder / "profile" / "profiles" / "default" / "QGIS" / "QGIS3.ini"
    for path in (settings, folder / "profile" / "QGIS" / "QGIS3.ini"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("[PythonPlugins]\nodkanon_qgis=true\n")
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "QT_QPA_PLATFORM": "offscreen",
        "QGIS_CUSTOM_CONFIG_PATH": str(folder / "profile"),
        "QGIS_PLUGINPATH": str(folder / "plugins"),
        "ODKANON_COMMAND": str(folder / "odkanon"),
    }


def run(environment: dict[str, str], algorithm: str, **parameters: object) -> dict[str, object]:
    """Run an algorithm and return its results."""
    given = [f"--{name}={value}" for name, value in parameters.items()]
    command = [QGIS, "--json", "run", f"odkanon:{algorithm}", *given]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    document: dict[str, object] = json.loads(done.stdout[done.stdout.index("{") :])["results"]
    return document


def test_the_toolbox_has_three_algorithms(environment: dict[str, str]) -> None:
    subprocess.run([QGIS, "plugins", "enable", "odkanon_qgis"], env=environment, capture_output=True, check=False)
    listed = subprocess.run([QGIS, "list"], env=environment, capture_output=True, text=True, check=True).stdout
    assert {line.split()[0] for line in listed.splitlines() if "odkanon:" in line} == {
        "odkanon:anonymize",
        "odkanon:onto",
        "odkanon:audit",
    }


def test_a_file_becomes_layers_that_are_read_onto_districts_and_audited(
    folder: Path, environment: dict[str, str]
) -> None:
    survey, release = folder / "survey.csv", folder / "release"
    made = run(environment, "anonymize", FILE=survey, K=10, METHOD=1, PROTECT=2, OUTPUT=release)
    assert (release / "release.json").is_file()
    assert Path(str(made["REPORT"])).is_file()
    flows = geopandas.read_file(folder / "release.gpkg", layer="flows")
    assert len(flows) == made["CLASSES"]
    assert flows["trips"].min() >= 10
    grid = [shapely.box(640000 + 8000 * x, 6850000, 648000 + 8000 * x, 6870000) for x in range(4)]
    districts = geopandas.GeoDataFrame({"CODE": list("abcd")}, geometry=grid, crs=2154)
    districts.to_file(folder / "districts.gpkg")
    outputs = {name: folder / f"{name.lower()}.gpkg" for name in ("DISTRICTS", "FLOWS")}
    run(environment, "onto", RELEASE=release, ZONES=folder / "districts.gpkg", CODE="CODE", **outputs)
    onto, lines = (geopandas.read_file(path) for path in outputs.values())
    assert set(onto["zone"]) == set("abcd")
    assert onto.crs.to_epsg() == 2154
    assert len(lines) == 12
    assert (lines.geometry.length > 4000).all()
    findings = run(environment, "audit", RELEASE=release, TRIPS=survey)
    assert findings["CLEAN"] is True
    assert findings["FINDINGS"] == 0


def test_a_layer_of_lines_is_a_layer_of_trips(folder: Path, environment: dict[str, str]) -> None:
    lines = [shapely.LineString([(2.30 + 0.001 * (n % 7), 48.85), (2.36, 48.86)]) for n in range(60)]
    geopandas.GeoDataFrame({"person": range(60)}, geometry=lines, crs=4326).to_file(folder / "lines.gpkg")
    made = run(environment, "anonymize", LAYER=folder / "lines.gpkg", K=10, OUTPUT=folder / "from-lines")
    assert int(str(made["CLASSES"])) >= 1


def in_python(folder: Path, environment: dict[str, str], output: str, before: str) -> str:
    """Run an algorithm in QGIS's own Python and return what it printed."""
    code = CODE.format(
        plugins=str(folder / "plugins"), before=before, file=str(folder / "survey.csv"), output=str(folder / output)
    )
    done = subprocess.run(
        ["/usr/bin/python3", "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert "DONE" in done.stdout, done.stdout + done.stderr
    return done.stdout.partition("DONE")[2]


def test_a_run_shows_progress_and_can_be_cancelled(folder: Path, environment: dict[str, str]) -> None:
    printed = in_python(folder, environment, "stopped", "threading.Timer(4, feedback.cancel).start()")
    assert "False" in printed
    assert "Cancelled; nothing was written." in printed
    assert not (folder / "stopped").exists()
    assert not list(folder.glob("stopped*"))
    assert in_python(folder, environment, "whole", "").split()[:2] == ["True", "True"]


def test_a_missing_program_ends_with_how_to_install_it(folder: Path, environment: dict[str, str]) -> None:
    printed = in_python(folder, environment | {"ODKANON_COMMAND": "", "PATH": "/usr/bin:/bin"}, "none", "")
    assert "pipx install 'odkanon[geo]'" in printed
