"""Segments released together, as one folder of releases: all of them or nothing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from odkanon._version import __version__
from odkanon.core.outputs import move_into_place, partial_folder, restore
from odkanon.errors import InputError
from odkanon.publish.save import save_release, statement, write_json
from odkanon.together import Together

INDEX = "index.json"
WHOLE = "whole"


def save_together(together: Together, folder: Path, *, force: bool = False) -> Path:
    """Write the whole and its segments as a folder of releases with an ``index.json``, all or nothing.

    Publishing only some of the folders is as safe as publishing all of them. Adding a release that was made
    separately is not.
    """
    check_index_target(folder, force=force)
    with partial_folder(folder) as partial:
        save_release(together.whole, partial / WHOLE)
        names = _folder_names(together)
        for name, part in zip(names, together.parts, strict=True):
            if part.release is not None:
                save_release(part.release, partial / name)
        write_json(partial / INDEX, _index(together, names), indent=2)
        move_into_place(partial, folder)
    return folder


def check_index_target(folder: Path, *, force: bool) -> None:
    """Raise if segments cannot go to this folder; worth asking before the work begins."""
    restore(folder)
    if not folder.exists():
        return
    is_ours = folder.is_dir() and ((folder / INDEX).is_file() or not any(folder.iterdir()))
    if not is_ours:
        raise InputError(f"{folder} exists and does not hold segments released together; choose another folder")
    if not force:
        raise InputError(f"{folder} exists already; choose another folder, or replace it with --force")


def _folder_names(together: Together) -> list[str]:
    """Return a name for each segment that every file system takes, and no two of which are the same."""
    taken = {WHOLE}
    names = []
    for part in together.parts:
        plain = re.sub(r"[^\w=,+.-]+", "_", part.title)[:100]
        name, number = plain, 2
        while name.lower() in taken:
            name, number = f"{plain}~{number}", number + 1
        taken.add(name.lower())
        names.append(name)
    return names


def _index(together: Together, names: list[str]) -> dict[str, Any]:
    return {
        "version": __version__,
        "statement": statement(together.whole.rule)
        + " So is every group that sums and differences of these tables single out.",
        "whole": WHOLE,
        "coarseness": together.coarseness,
        "suppressed": together.suppressed,
        "segments": [
            {
                "dimension": part.dimension,
                "segment": part.segment,
                "folder": None if part.release is None else name,
                **({"joined": part.joined} if part.joined else {}),
            }
            for name, part in zip(names, together.parts, strict=True)
        ],
    }
