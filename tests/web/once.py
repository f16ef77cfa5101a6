"""Things that several test processes must not do at the same time."""

from __future__ import annotations

import hashlib
import importlib.util
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType


def load(path: Path) -> ModuleType:
    """Import a file that is in no package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def one_at_a_time(name: str, limit: float = 600.0) -> Iterator[None]:
    """Hold a lock that all test processes of this checkout share; one left behind by a crash expires."""
    mark = hashlib.sha256(str(Path(__file__).resolve()).encode()).hexdigest()[:12]
    lock = Path(tempfile.gettempdir()) / f"odkanon-{name}-{mark}.lock"
    while True:
        try:
            lock.mkdir()
            break
        except FileExistsError:
            with suppress(OSError):
                if time.time() - lock.stat().st_mtime > limit:
                    lock.rmdir()
            time.sleep(0.2)
    try:
        yield
    finally:
        with suppress(OSError):
            lock.rmdir()
