"""Names of files: a name is a name, and never a pattern, an address or the way to somebody's home."""

from __future__ import annotations

import re
from pathlib import Path, PurePath

from odkanon.errors import InputError

_REMOTE = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):/{1,2}(?=[^/])")


def remote(source: str | PurePath) -> str | None:
    """Return the address of a source in an object store, such as ``s3a://bucket/trips``; None for local paths."""
    # A path object has lost one of the two slashes, and on Windows turned the others round.
    text = source.as_posix() if isinstance(source, PurePath) else source
    found = _REMOTE.match(text)
    return None if found is None else f"{found[1]}://{text[found.end() :]}"


def plain(path: Path) -> Path:
    """Return a path that every library takes for that very file.

    DuckDB and Arrow look for ``~t.csv`` in the home folder, and Arrow takes ``s3:x`` for an address; an absolute path
    is neither.

    Raises
    ------
    InputError
        If the name is not Unicode, which libraries cannot open.

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
        raise InputError(f"the name of {text!r} is not written in UTF-8; rename it") from None
    return path.absolute() if text.startswith("~") or ":" in text else path
