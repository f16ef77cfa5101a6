"""File names and addresses: a name is never read as a pattern, an address or a home folder."""

from __future__ import annotations

import re
from pathlib import Path, PurePath

from odkanon.errors import InputError

_REMOTE = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):/{1,2}(?=[^/])")


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
