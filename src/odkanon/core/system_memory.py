"""What this machine has to give."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def machine_memory(groups: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the bytes of memory of this machine, or of the container it is: a container sees all of its host's."""
    return min([_physical_memory(), *_container_limits(groups)])


def _physical_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return _windows_memory()


def _windows_memory() -> int:
    """Return the bytes of memory where there is no sysconf; 8 GiB where Windows does not tell either."""
    import ctypes

    class Status(ctypes.Structure):
        _fields_ = (
            ("length", ctypes.c_uint32),
            ("load", ctypes.c_uint32),
            ("total", ctypes.c_uint64),
            ("rest", ctypes.c_uint64 * 6),
        )

    status = Status(length=ctypes.sizeof(Status))
    try:
        ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))  # type: ignore[attr-defined]
    except (AttributeError, OSError):
        return 8 * 2**30
    return int(status.total) or 8 * 2**30


def _container_limits(groups: Path) -> Iterator[int]:
    """Yield the limits of control groups, of their second and first version; "max" and absurd ones are none."""
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            text = (groups / name).read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            continue
        if text.isdigit() and int(text) < 2**60:
            yield int(text)
