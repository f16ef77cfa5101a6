"""Child processes of our own, which import nothing from the folder in which the data lies."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HOME = str(Path(__file__).resolve().parents[2])
"""The folder in which this package lies."""


def safe_path() -> list[str]:
    """Return where modules may come from: all that this process searches, except the folder it was started in.

    Python puts that folder first where it is told a module or a line of code, so that a file ``numpy.py`` beside the
    data would be run as if it were numpy. The folder of this package stays, wherever work is done.
    """
    here = Path.cwd()
    kept = [entry for entry in sys.path if entry and Path(entry).absolute() != here]
    return kept if HOME in kept else [HOME, *kept]


def start_python(code: str) -> subprocess.Popen[bytes]:
    """Start an isolated Python that runs some code of ours, with pipes to its standard input and output."""
    start = f"import sys; sys.path[:] = {safe_path()!r}; {code}"
    # Isolated (-I): neither the folder it runs in nor variables of the environment say what is imported.
    return subprocess.Popen([sys.executable, "-I", "-c", start], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
