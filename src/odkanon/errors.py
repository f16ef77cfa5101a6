"""The one family of errors. Every message says what was wrong and what to do about it."""

import errno
from collections.abc import Iterable
from difflib import get_close_matches


class OdkanonError(Exception):
    """Base of every error that ODkAnon raises on purpose.

    Attributes
    ----------
    exit_code : int
        What the command line returns when this error ends a run.
    option : str or None
        The option that helps, such as ``resolution 8``; the command line adds it to the message in its own spelling.
    """

    exit_code = 2

    def __init__(self, message: str = "", *, option: str | None = None) -> None:
        super().__init__(message)
        self.option = option


class InputError(OdkanonError):
    """The input or an argument cannot be used as it is."""


class RefusedError(OdkanonError):
    """Nothing may be published under the rule that was asked for."""

    exit_code = 1


class UnsafeReleaseError(OdkanonError):
    """A class below its rule was about to become part of a release; this is a bug, and it stops here."""

    exit_code = 1


def is_disk_full(error: Exception) -> bool:
    """Tell whether a disk was full, whichever library says so."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    return any(words in str(error).lower() for words in ("no space left", "quota exceeded"))


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a suggestion for a misspelt name, ready to append to a message; empty where nothing is close."""
    lower = {column.lower(): column for column in known}
    close = get_close_matches(name.lower(), lower, 1, cutoff=0.5)
    return f" (did you mean {lower[close[0]]!r}?)" if close else ""
