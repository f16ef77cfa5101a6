"""A Chromium from the npm registry, unpacked without root, for machines that have no browser of their own."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

from web.once import load, one_at_a_time

HERE = Path(__file__).resolve().parent
FOLDER = HERE / "browser"
PACKED = FOLDER / "node_modules" / "@sparticuz" / "chromium" / "bin"
UNPACKED = FOLDER / "unpacked"
UNPACK = """
const fs = require("node:fs"), zlib = require("node:zlib"), [source, target] = process.argv.slice(1);
for (const name of ["chromium", "al2023.tar", "swiftshader.tar", "fonts.tar"])
  fs.writeFileSync(`${target}/${name}`, zlib.brotliDecompressSync(fs.readFileSync(`${source}/${name}.br`)));
"""
FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>{folder}/fonts</dir>
  <cachedir>{folder}/cache</cachedir>
</fontconfig>
"""


def install() -> tuple[str, dict[str, str]]:
    """Return the browser's path and environment, installing it on first use."""
    with one_at_a_time("browser"):
        if not (UNPACKED / "ready").exists():
            _unpack()
    environment = {
        "LD_LIBRARY_PATH": f"{UNPACKED / 'lib'}:{UNPACKED}",
        "FONTCONFIG_FILE": str(UNPACKED / "fonts.conf"),
        "VK_ICD_FILENAMES": str(UNPACKED / "vk_swiftshader_icd.json"),
    }
    return str(UNPACKED / "chromium"), environment


def _unpack() -> None:
    node, npm = load(HERE.parents[1] / "scripts" / "build_web.py").node_tools()
    subprocess.run([*npm, "ci", "--ignore-scripts", "--loglevel=error"], cwd=FOLDER, check=True, timeout=300)
    UNPACKED.mkdir(exist_ok=True)
    subprocess.run([*node, "-e", UNPACK, str(PACKED), str(UNPACKED)], check=True, timeout=120)
    for archive in UNPACKED.glob("*.tar"):
        with tarfile.open(archive) as tar:
            tar.extractall(UNPACKED, filter="data")
        archive.unlink()
    (UNPACKED / "chromium").chmod(0o755)
    (UNPACKED / "fonts.conf").write_text(FONTS.format(folder=UNPACKED))
    (UNPACKED / "ready").touch()
