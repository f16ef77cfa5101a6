"""The one family of errors. Every message says what was wrong and what to do about it."""

import errno
import os
import traceback
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


UNEXPECTED = "this was not expected"
SHOW = "ODKANON_TRACEBACK"
"""Set by whoever wants to see where the program stopped, with lines of code; values are not shown even then."""


def unexpected(error: BaseException) -> str:
    """Return what to say of an error that nobody thought of: where it happened, and no values, which may be people."""
    if os.environ.get(SHOW):
        traceback.print_tb(error.__traceback__)
    frames = [(str(frame.f_globals.get("__name__")), line) for frame, line in traceback.walk_tb(error.__traceback__)]
    places = [f"{module}:{line}" for module, line in frames if module.split(".")[0] == "odkanon"]
    return (
        f"{UNEXPECTED}: {type(error).__name__} at {' < '.join(places[:-4:-1]) or 'an unknown place'}. Was a file "
        f"damaged or edited? If not, please report this line and what you ran; {SHOW}=1 shows more"
    )


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
