"""Kills itself at every step of saving, and looks at what is left each time; run as a program.

Processes are forked, so that the program is loaded and the release is made only once.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
from pathlib import Path
from unittest.mock import patch

from odkanon import Release, Rule, read_matrix, read_recipe
from odkanon.core import atomic_write as folders
from odkanon.estimate import flat_matrix
from odkanon.estimate.flow_estimates import read_flows
from odkanon.methods.method_registry import anonymize
from odkanon.publish import report, save
from odkanon.publish.report import is_built

FILES = {"classes.csv", "classes.parquet", "zones.geojson", "matrix.csv", "matrix.parquet"}


def check_whole(folder: Path) -> None:
    """Make sure that a release has every file, and that each is as its manifest says."""
    about = json.loads((folder / "release.json").read_text(encoding="utf-8"))
    recipe = read_recipe(folder)
    assert recipe is not None
    assert recipe["public_sha256"] == hashlib.sha256((folder / "release.json").read_bytes()).hexdigest()
    digests = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in FILES}
    assert about["files"] == digests
    page = {"report.html"} if is_built() else set()
    assert {file.name for file in folder.iterdir()} == FILES | {"release.json", "datapackage.json"} | page
    if page:
        # The licences of what the page is made of stand behind its end.
        end = (Path(report.__file__).parent / "page.html").read_text(encoding="utf-8")[-200:]
        assert (folder / "report.html").read_text(encoding="utf-8").endswith(end)


def save_until_killed(release: Release, folder: Path, step: int) -> bool:
    """Save in a process that is killed just before a step on the disk; tell whether it came that far."""
    child = os.fork()
    if not child:
        left = [step]

        def watch(event: str, arguments: tuple[object, ...]) -> None:
            if event.startswith(("open", "os.", "shutil.", "tempfile.", "ctypes.")):
                left[0] -= 1
                if left[0] == -1:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(watch)
        try:
            release.save(folder, force=True)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def main(source: Path, folder: Path, way: str) -> None:
    """Save over an earlier release again and again, and print how often the target was there, and missing."""
    if way == "in two steps":
        folders._exchange = lambda first, second: False
    release = anonymize(read_matrix(source, engine="memory"), Rule(trips=4))
    release.save(folder)
    # Flows are fitted once: a kill in the midst of a calculation is no step on the disk.
    patch.object(flat_matrix, "read_flows", return_value=read_flows(save.as_saved(release))).start()
    if is_built():
        page = (folder / "report.html").read_text(encoding="utf-8")
        patch.object(save, "make_page", return_value=page).start()  # drawing it takes longer than all the rest
    step, missing = 0, 0
    while save_until_killed(release, folder, step):
        step += 1
        if not folder.exists():
            missing += 1
            folders.restore(folder)
        check_whole(folder)
    check_whole(folder)
    print(step, missing, *os.listdir(folder.parent))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
