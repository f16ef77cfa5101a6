"""Atomic writes: outputs that appear complete or not at all, and locks between processes.

A process holds a lock on its scratch folders, which ends with the process however it ends. A scratch folder without a
lock was left by a killed run; the next run that creates one in the same place removes it.
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

from odkanon.core.system import plain, remote
from odkanon.errors import InputError, is_disk_full

_DISK_FULL = "there is no disk space left for the output; nothing was written: free some, or choose a folder elsewhere"


class Claim:
    """A new scratch folder, locked until it is released.

    * ``parent``: the folder to create it in; scratch folders of killed runs there are removed.
    * ``prefix``, ``suffix``: start and end of its name, which only our own folders may have.
    """

    def __init__(self, parent: Path, prefix: str, suffix: str = "") -> None:
        for left in _abandoned(parent, prefix, suffix):
            shutil.rmtree(left, ignore_errors=True)
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=prefix, suffix=suffix, dir=parent))
            try:
                self._lock = _lock_folder(self.path)
            except (FileNotFoundError, BlockingIOError):  # another run removed it as abandoned before it was locked
                continue
            if self.path.exists():
                return

    def release(self) -> None:
        """Remove the folder and its contents."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


@contextmanager
def partial_folder(target: Path) -> Iterator[Path]:
    """Yield a hidden folder beside a target, in which to prepare it; it is removed at the end.

    Raises `InputError` if the disk is full, or the target is not on this machine.
    """
    target = _absolute(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        claim = Claim(target.parent, _prefix(target), ".partial")
        try:
            yield claim.path
        finally:
            claim.release()
    except OSError as error:
        if is_disk_full(error):
            raise InputError(_DISK_FULL) from None
        raise


def _absolute(target: Path) -> Path:
    """Return the absolute path of an output; raise for remote addresses and names that libraries cannot open."""
    address = remote(target)
    if address is not None:
        raise InputError(f"{address} is not on this machine; write to a local folder, and copy it there")
    return plain(target).absolute()


def check_new(path: Path, *, force: bool = False) -> None:
    """Raise if an output cannot be written to a path, or may not replace what is there."""
    _absolute(path)
    if os.path.lexists(path) and not force:
        raise InputError(f"{path} exists already; choose another name, or have it replaced", option="force")


def write_whole(path: Path, text: str) -> None:
    """Write a text file atomically."""
    with whole_file(path) as partial:
        write_text(partial, text)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path for a file, which is moved to its own path once it is complete."""
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
    """Move a finished folder to its place.

    If the system supports it, the previous folder is swapped with it in one step. Otherwise the previous folder is
    moved away first, and `restore` brings it back if the run is killed at that moment.

    * ``check``: raises if the folder may not go there. It runs under the lock, since another run may have written there
      meanwhile.
    * ``beside``: a finished file that belongs next to the folder. It stays `pending` until the folder is in place; if
      the run is killed in between, the next reader has to decide whether it belongs to the folder that is there.
    * ``sync``: flush everything to disk, so that even a power cut leaves no partial output.
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
    """Return the path of the file beside a folder until the folder is in place."""
    return folder.with_name(f"{_prefix(folder)}pending")


def _put(partial: Path, folder: Path) -> None:
    if not os.path.lexists(folder):
        partial.rename(folder)
    elif folder.is_symlink() or not _exchange(partial, folder):
        _replace(partial, folder)


def restore(folder: Path) -> None:
    """Move a folder back that a killed run has moved away and not replaced."""
    for old in _abandoned(folder.parent, _prefix(folder), ".old"):
        if not os.path.lexists(folder) and os.path.lexists(old / folder.name):
            (old / folder.name).rename(folder)
        shutil.rmtree(old, ignore_errors=True)


def _prefix(target: Path) -> str:
    return f".{target.name}.odkanon-"


def _exchange(first: Path, second: Path) -> bool:
    """Swap two folders in one step; return whether the system supports it."""
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
    """Yield the unlocked folders with matching names, each locked while it is in use."""
    ours = re.compile(rf"{re.escape(prefix)}[a-z0-9_]{{8}}{re.escape(suffix)}")
    try:
        names = [name for name in os.listdir(parent) if ours.fullmatch(name)]
    except OSError:
        return
    for name in names:
        try:
            lock = _lock_folder(parent / name)
        except OSError:
            continue
        if lock is not None:
            yield parent / name
            os.close(lock)


def write_text(path: Path, text: str) -> None:
    """Write a text file with the same bytes on every system, whatever its line endings."""
    path.write_text(text, encoding="utf-8", newline="\n")


@contextmanager
def exclusive_lock(target: Path) -> Iterator[None]:
    """Hold an advisory lock that makes check-then-write on a path atomic between processes.

    The lock is on a hidden file beside the path, and ends with the process however it ends. If that file cannot be
    created, or the file system has no locks, nothing is locked.
    """
    path = target.absolute().with_name(f".{target.absolute().name}.odkanon-lock")
    lock = _lock_file(path)
    try:
        yield
    finally:
        if lock is not None:
            # Removed while locked: a process that waits for it notices, and creates another.
            path.unlink(missing_ok=True)
            os.close(lock)


if sys.platform == "win32":

    def _lock_folder(folder: Path) -> int | None:
        """Return None: abandoned folders cannot be distinguished from those in use, so none is ever removed."""
        return None

    def _lock_file(path: Path) -> int | None:
        """Return None: an open file cannot be removed, and would stay."""
        return None

    def _sync(path: Path) -> None:
        """Do nothing: folders cannot be opened."""

else:
    import fcntl

    def _lock_folder(folder: Path) -> int | None:
        """Lock a folder and return the descriptor to close; None on file systems without locks."""
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

    def _lock_file(path: Path) -> int | None:
        """Create and lock a file, and return the descriptor to close; None if that is impossible."""
        while True:
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            except OSError:
                return None
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                    return descriptor
            except FileNotFoundError:  # the previous holder has removed it
                pass
            except OSError:
                os.close(descriptor)
                path.unlink(missing_ok=True)
                return None
            os.close(descriptor)

    def _sync(path: Path) -> None:
        """Flush a file or folder to disk."""
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
