"""Pack the QGIS plugin into an archive that QGIS installs: ``package_qgis.py [FILE]``."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLUGIN = ROOT / "qgis" / "odkanon_qgis"
SUFFIXES = {".py", ".svg", ".txt"}
STAMP = (1980, 1, 1, 0, 0, 0)
"""The same files are the same archive."""


def main() -> None:
    """Write the archive, with the version of the package."""
    target = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "odkanon_qgis.zip")
    target.parent.mkdir(parents=True, exist_ok=True)
    version = (ROOT / "src/odkanon/_version.py").read_text(encoding="utf-8").split('"')[-2]
    files = {
        f"odkanon_qgis/{path.name}": path.read_text(encoding="utf-8") for path in PLUGIN.iterdir() if path.is_file()
    }
    files = {name: text for name, text in files.items() if Path(name).suffix in SUFFIXES}
    about = "odkanon_qgis/metadata.txt"
    files[about] = "\n".join(
        f"version={version}" if line.startswith("version=") else line for line in files[about].splitlines()
    )
    files["odkanon_qgis/LICENSE"] = (ROOT / "LICENSE").read_text(encoding="utf-8")
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name, STAMP), text)
    print(target)


if __name__ == "__main__":
    main()
