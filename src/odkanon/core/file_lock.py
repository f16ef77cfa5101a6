"""One run at a time at one place: who looks whether something is there, and then puts it there, is not disturbed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def exclusive_lock(target: Path) -> Iterator[None]:
    """Wait until no other run is at a file or folder, and keep others away until the end.

    They meet at a hidden file beside it, whose lock ends with the process however it ends. Where that cannot be made,
    or the disk knows no locks, nobody is kept away.
    """
    path = target.absolute().with_name(f".{target.absolute().name}.odkanon-lock")
    lock = _lock(path)
    try:
        yield
    finally:
        if lock is not None:
            # While it is held: whoever waits for it sees that it is gone, and makes another.
            path.unlink(missing_ok=True)
            os.close(lock)


if sys.platform == "win32":

    def _lock(path: Path) -> int | None:
        """Return None: a file that is open cannot be removed, and would stay."""
        return None

else:
    import fcntl

    def _lock(path: Path) -> int | None:
        """Return what holds a file that is made for this; None where there can be none."""
        while True:
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            except OSError:
                return None
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                    return descriptor
            except FileNotFoundError:  # whoever held it before has removed it
                pass
            except OSError:
                os.close(descriptor)
                path.unlink(missing_ok=True)
                return None
            os.close(descriptor)
