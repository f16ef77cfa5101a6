"""The machine: its memory, isolated child processes, and file names, which are never patterns or addresses."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PurePath

from odkanon.errors import InputError

_REMOTE = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):/{1,2}(?=[^/])")


HOME = str(Path(__file__).resolve().parents[2])
"""The folder that contains this package."""


def safe_path() -> list[str]:
    """Return the module search path of this process without the working directory.

    Python puts that directory first when it runs a module or a line of code, so a file ``numpy.py`` beside the data
    would be imported as numpy. The folder of this package stays on the path, wherever it is.
    """
    here = Path.cwd()
    kept = [entry for entry in sys.path if entry and Path(entry).absolute() != here]
    return kept if HOME in kept else [HOME, *kept]


def start_python(code: str) -> subprocess.Popen[bytes]:
    """Start an isolated Python process that runs some code, with pipes to its standard input and output."""
    start = f"import sys; sys.path[:] = {safe_path()!r}; {code}"
    # Isolated (-I): neither the working directory nor environment variables affect imports.
    return subprocess.Popen([sys.executable, "-I", "-c", start], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def machine_memory(groups: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the bytes of memory of this machine, or of its container, which sees all memory of its host."""
    return min([_physical_memory(), *_container_limits(groups)])


def _physical_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return _windows_memory()


def _windows_memory() -> int:
    """Return the bytes of memory of a machine without sysconf; 8 GiB if Windows does not report them either."""
    import ctypes

    class Status(ctypes.Structure):
        _fields_ = (
            ("length", ctypes.c_uint32),
            ("load", ctypes.c_uint32),
            ("total", ctypes.c_uint64),
            ("others", ctypes.c_uint64 * 6),
        )

    status = Status(length=ctypes.sizeof(Status))
    try:
        ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))  # type: ignore[attr-defined]
    except (AttributeError, OSError):
        return 8 * 2**30
    return int(status.total) or 8 * 2**30


def _container_limits(groups: Path) -> Iterator[int]:
    """Yield the limits of control groups, version 2 and 1; "max" and absurdly large ones are none."""
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            text = (groups / name).read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            continue
        if text.isdigit() and int(text) < 2**60:
            yield int(text)


def remote(source: str | PurePath) -> str | None:
    """Return the address of a source in an object store, such as ``s3a://bucket/trips``; None for local paths."""
    # A path object has lost one of the two slashes, and has backslashes on Windows.
    text = source.as_posix() if isinstance(source, PurePath) else source
    found = _REMOTE.match(text)
    return None if found is None else f"{found[1]}://{text[found.end() :]}"


def plain(path: Path) -> Path:
    """Return a path that every library reads as that file.

    DuckDB and Arrow look for ``~t.csv`` in the home folder, and Arrow reads ``s3:x`` as an address; an absolute path is
    neither.

    Raises `InputError` if the name is not valid Unicode, which libraries cannot open.

    Examples
    --------
    >>> plain(Path("t.csv")).as_posix()
    't.csv'
    >>> plain(Path("~t.csv")).is_absolute()
    True
    """
    text = str(path)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"the name of {text!r} is not valid UTF-8; rename the file") from None
    return path.absolute() if text.startswith("~") or ":" in text else path
