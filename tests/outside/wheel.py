"""The wheel and the source archive, as strangers get them: `make wheel-test`, which takes minutes.

Each is built, looked into, and installed into an empty environment where there is no Node and no compiler to be found:
on every Python that this machine has, with the lowest versions that `pyproject.toml` allows, and with each extra.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ABOUT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
USES = {
    "geo": ("export", "release", "--to", "geoparquet", "-o", "geo"),
    "omx": ("export", "release", "--to", "omx", "-o", "od.omx"),
    "plot": ("report", "release", "--picture", "zones.png"),
}
"""What each extra is for; Spark is left to the tests of its engine."""


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the source archive, and the wheel from it."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)], check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="session")
def published(built: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the digest of the flows that this environment publishes."""
    return _release(tmp_path_factory.mktemp("here"), sys.executable, "-m", "odkanon")


def _release(folder: Path, *command: str) -> str:
    """Run what the README shows first, and return the digest of the flows."""
    environment = {"PATH": "", "HOME": str(folder), "PYTHONUTF8": "1"}
    if command[0] == sys.executable:
        environment["PYTHONPATH"] = str(ROOT / "src")
    for arguments in (
        ("sample", "-o", "survey.csv"),
        ("anonymize", "survey.csv", "-o", "release", "--protect", "participants", "--protect", "persons"),
        ("audit", "release", "--trips", "survey.csv"),
        ("report", "release"),
        ("anonymize", "survey.csv", "-o", "segments", "--segment", "sex", "--resolution", "8"),
    ):
        done = subprocess.run(
            [*command, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (arguments, done.stdout[-2000:], done.stderr[-2000:])
    return hashlib.sha256((folder / "release" / "classes.csv").read_bytes()).hexdigest()


def _find(version: str) -> str | None:
    """Return a Python of this version that starts; those of pyenv need not be on the PATH."""
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [shutil.which(f"python{version}"), *sorted(map(str, kept.glob(f"{version}.*/bin/python{version}")))]
    starts = (
        one for one in found if one and not subprocess.run([one, "-V"], capture_output=True, check=False).returncode
    )
    return next(starts, None)


def _install(folder: Path, python: str, *wanted: str) -> Path:
    """Make an environment with a wheel in it, and return its folder of programs."""
    home = folder / "environment"
    subprocess.run([python, "-m", "venv", str(home)], check=True, capture_output=True)
    programs = home / ("Scripts" if sys.platform == "win32" else "bin")
    command = [str(programs / "python"), "-m", "pip", "install", "--quiet", "--only-binary", ":all:", *wanted]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return programs


def test_the_wheel_is_whole_and_small(built: Path) -> None:
    names = set(zipfile.ZipFile(built).namelist())
    for name in ("__init__.pyi", "py.typed", "publish/report/page.html", "publish/report/world.bin.gz"):
        assert f"odkanon/{name}" in names
    assert not [name for name in names if name.startswith(("tests", "web", "docs"))]
    assert built.stat().st_size < 3_000_000


def test_a_wheel_from_the_sources_is_the_same(built: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    assert (tmp_path / built.name).read_bytes() == built.read_bytes()


@pytest.mark.parametrize("version", PYTHONS)
def test_it_runs_in_an_empty_environment(built: Path, published: str, version: str, tmp_path: Path) -> None:
    python = _find(version)
    if python is None:
        pytest.skip(f"no Python {version} on this machine")
    programs = _install(tmp_path, python, str(built))
    assert _release(tmp_path, str(programs / "odkanon")) == published
    code = "import odkanon; [getattr(odkanon, name) for name in odkanon.__all__]"
    subprocess.run([str(programs / "python"), "-c", code], check=True)


def test_it_runs_with_the_lowest_versions_that_are_allowed(built: Path, published: str, tmp_path: Path) -> None:
    lowest = [re.sub(r">=(\S+)", r"==\1.*", wanted) for wanted in ABOUT["dependencies"]]
    programs = _install(tmp_path, sys.executable, str(built), *lowest)
    assert _release(tmp_path, str(programs / "odkanon")) == published


@pytest.mark.parametrize("extra", sorted(USES))
def test_each_extra_brings_what_it_is_for(built: Path, extra: str, tmp_path: Path) -> None:
    programs = _install(tmp_path, sys.executable, f"{built}[{extra}]")
    _release(tmp_path, str(programs / "odkanon"))
    subprocess.run([str(programs / "odkanon"), *USES[extra]], cwd=tmp_path, check=True, capture_output=True)
