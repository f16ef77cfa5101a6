"""Folders that are ours for a while, and outputs that appear whole or not at all.

Whoever works in such a folder holds a lock on it, which ends with the process however it ends. One of ours without a
lock was left behind by a run that was killed; the next run that would make another in the same place removes it.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from odkanon.core.file_lock import exclusive_lock
from odkanon.core.paths import plain, remote
from odkanon.errors import InputError, is_disk_full

_NO_ROOM = "there is no disk space left for the output; nothing was written: free some, or choose a folder elsewhere"


class Claim:
    """A new folder that nobody else touches until it is released.

    Parameters
    ----------
    parent : Path
        Where to make it; what killed runs left there under the same names is removed.
    prefix, suffix : str
        What its name begins and ends with; nothing but our own folders may have such names.
    """

    def __init__(self, parent: Path, prefix: str, suffix: str = "") -> None:
        for left in _abandoned(parent, prefix, suffix):
            shutil.rmtree(left, ignore_errors=True)
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=prefix, suffix=suffix, dir=parent))
            try:
                self._lock = _lock(self.path)
            except (FileNotFoundError, BlockingIOError):  # another run took it for abandoned before it was locked
                continue
            if self.path.exists():
                return

    def release(self) -> None:
        """Remove the folder, with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


@contextmanager
def partial_folder(target: Path) -> Iterator[Path]:
    """Yield a hidden folder beside a file or folder, to prepare it in; whatever is left in it is removed at the end.

    Raises
    ------
    InputError
        If there is no space left on the disk, or it is no place on this machine.
    """
    target = _here(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        claim = Claim(target.parent, _prefix(target), ".partial")
        try:
            yield claim.path
        finally:
            claim.release()
    except OSError as error:
        if is_disk_full(error):
            raise InputError(_NO_ROOM) from None
        raise


def _here(target: Path) -> Path:
    """Return where an output goes, in full; raise for addresses elsewhere and names that libraries cannot open."""
    address = remote(target)
    if address is not None:
        raise InputError(f"{address} is not on this machine; write to a folder here, and copy it there")
    return plain(target).absolute()


def check_new(path: Path, *, force: bool = False) -> None:
    """Raise if nothing can be written to a path, or replaced there; worth asking before the work begins."""
    _here(path)
    if os.path.lexists(path) and not force:
        raise InputError(f"{path} exists already; choose another name, or have it replaced", option="force")


def write_whole(path: Path, text: str) -> None:
    """Write a file of text, all of it or nothing."""
    with whole_file(path) as partial:
        write_text(partial, text)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield where to write a file, which takes its own place when all of it is there."""
    with partial_folder(path) as partial:
        yield partial / path.name
        (partial / path.name).replace(path)


def move_into_place(
    partial: Path,
    folder: Path,
    *,
    check: Callable[[], None] | None = None,
    beside: Path | None = None,
    sync: bool = True,
) -> None:
    """Put a finished folder where it belongs.

    What was there before is swapped with it in one step where the system can do that. Elsewhere it is moved away first,
    and a run that is killed at that very moment leaves it to `restore`.

    Parameters
    ----------
    check : callable, optional
        Raises where the folder may not go there. It is asked again here, where no other run can put something there
        in between: of two that began at the same time, one would undo what the other has finished.
    beside : Path, optional
        A finished file that belongs next to the folder, under its own name. It waits as `pending` until the folder is
        in place, and then takes its own. A run that is killed in between leaves it waiting: whoever can tell that it
        goes with the folder that is there puts it in place, or removes it.
    sync : bool
        Wait until everything is on the disk, so that not even a power cut leaves half of it.
    """
    partial.chmod(0o755)
    for path in (*partial.rglob("*"), partial, *(() if beside is None else (beside,))) if sync else ():
        _sync(path)
    with exclusive_lock(folder):
        if check is not None:
            check()
        if beside is not None:
            beside.replace(pending(folder))
        _put(partial, folder)
        if sync:
            _sync(folder.parent)
        if beside is not None:
            pending(folder).replace(folder.with_name(beside.name))
            if sync:
                _sync(folder.parent)


def pending(folder: Path) -> Path:
    """Return where a file waits that goes with a folder which is not in place yet."""
    return folder.with_name(f"{_prefix(folder)}pending")


def _put(partial: Path, folder: Path) -> None:
    if not os.path.lexists(folder):
        partial.rename(folder)
    elif folder.is_symlink() or not _exchange(partial, folder):
        _replace(partial, folder)


def restore(folder: Path) -> None:
    """Put a folder back that a killed run has moved away and not replaced."""
    for old in _abandoned(folder.parent, _prefix(folder), ".old"):
        if not os.path.lexists(folder) and os.path.lexists(old / folder.name):
            (old / folder.name).rename(folder)
        shutil.rmtree(old, ignore_errors=True)


def _prefix(target: Path) -> str:
    return f".{target.name}.odkanon-"


def _exchange(first: Path, second: Path) -> bool:
    """Swap two folders in one step; tell whether that was possible."""
    if sys.platform != "linux":
        return False
    try:
        renameat2 = ctypes.CDLL(None).renameat2
    except (OSError, AttributeError):
        return False
    here, exchange = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of the kernel's headers
    return bool(renameat2(here, os.fsencode(first), here, os.fsencode(second), exchange) == 0)


def _replace(partial: Path, folder: Path) -> None:
    old = Claim(folder.parent, _prefix(folder), ".old")
    away = old.path / folder.name
    try:
        folder.rename(away)
        partial.rename(folder)
    except BaseException:
        if not os.path.lexists(folder):
            away.rename(folder)
        raise
    finally:
        old.release()


def _abandoned(parent: Path, prefix: str, suffix: str) -> Iterator[Path]:
    """Yield the folders of such names that nobody holds, each held while it is looked at."""
    ours = re.compile(rf"{re.escape(prefix)}[a-z0-9_]{{8}}{re.escape(suffix)}")
    try:
        names = [name for name in os.listdir(parent) if ours.fullmatch(name)]
    except OSError:
        return
    for name in names:
        try:
            lock = _lock(parent / name)
        except OSError:
            continue
        if lock is not None:
            yield parent / name
            os.close(lock)


if sys.platform == "win32":

    def _lock(folder: Path) -> int | None:
        """Return None: nothing tells an abandoned folder from one in use, so none is ever removed."""
        return None

    def _sync(path: Path) -> None:
        """Do nothing: folders cannot be opened."""

else:
    import fcntl

    def _lock(folder: Path) -> int | None:
        """Hold a folder, and return what to close to let go; None on disks that know no locks."""
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise
        except OSError:
            os.close(descriptor)
            return None
        return descriptor

    def _sync(path: Path) -> None:
        """Make sure that a file or folder is on the disk."""
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_text(path: Path, text: str) -> None:
    """Write a text file with the same bytes on every system, whatever it ends its lines with."""
    path.write_text(text, encoding="utf-8", newline="\n")
