"""The exceptions of ODkAnon, and the sentences that recur in them.

::

    OdkanonError
      InputError                 the input or an argument cannot be used as it is
        UnknownNameError         a name that is none of those that exist
        InvalidValueError        a value outside its range, or of the wrong type
        ColumnNotFoundError      a column that a table lacks
        FileMissingError         a path at which there is nothing
        UnreadableFileError      a file that cannot be parsed
        DamagedReleaseError      a release or recipe that is not what was written
        TargetExistsError        an output path that is taken
        OptionConflictError      options that exclude each other
        MissingExtraError        an optional dependency that is not installed
      RefusedError               nothing may be published under the rule
      UnsafeReleaseError         a bug that would have published too much

Every message states what is wrong and how to fix it. Sentences that recur are named constructors here; others are
worded where they are raised.
"""

import errno
import os
import traceback
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Self


class OdkanonError(Exception):
    """Base of every error that ODkAnon raises on purpose.

    The command line returns ``exit_code``. It adds ``option``, the option that helps (such as ``resolution 8``), to the
    message in its own spelling.
    """

    exit_code = 2

    def __init__(self, message: str = "", *, option: str | None = None) -> None:
        super().__init__(message)
        self.option = option


class InputError(OdkanonError):
    """The input or an argument cannot be used as it is."""


class UnknownNameError(InputError):
    """An unknown name."""

    @classmethod
    def among(cls, what: str, name: object, known: Iterable[object], *, listed: bool = True) -> Self:
        """Return the error for an unknown name, with the nearest known one and, by default, all of them."""
        names = [str(each) for each in known]
        choose = f"; choose from {', '.join(names)}" if listed and names else ""
        return cls(f"unknown {what} {name!r}{nearest(str(name), names)}{choose}")


class InvalidValueError(InputError):
    """A value outside its range or of the wrong type."""

    @classmethod
    def expected(cls, what: str, expected: str, got: object, *, option: str | None = None) -> Self:
        """Return the error for a value that is not what it must be: ``k must be a whole number ..., not '10'``."""
        text = repr(got)
        value = f"a {type(got).__name__}" if "\n" in text else f"{text:.100}"
        return cls(f"{what} must be {expected}, not {value}", option=option)

    @classmethod
    def not_understood(cls, text: object, advice: str) -> Self:
        """Return the error for a text that does not follow the syntax of an option, with what to write."""
        return cls(f"{text} is not understood; {advice}")

    @classmethod
    def reserved_name(cls, what: str, name: str, reason: str = "", *, option: str | None = None) -> Self:
        """Return the error for a name that already has a meaning."""
        because = f": {reason}" if reason else ""
        return cls(f"{what} cannot be called {name!r}{because}; choose another name", option=option)

    @classmethod
    def suffix(cls, path: object, *suffixes: str, reason: str = "") -> Self:
        """Return the error for an output path whose suffix names no format that can be written."""
        *most, last = suffixes
        listed = f"{', '.join(most)} or {last}" if most else last
        because = f": {reason}" if reason else ""
        return cls(f"{path} should end in {listed}{because}")


class ColumnNotFoundError(InputError):
    """A column that a table lacks."""

    @classmethod
    def from_missing(cls, table: str, missing: object, columns: Iterable[str], *, purpose: str = "") -> Self:
        """Return the error for a missing column, with the nearest one that the table has."""
        purpose = purpose and f" {purpose}"
        return cls(f"{table} has no column {missing!r}{purpose}{nearest(str(missing), columns)}")


class FileMissingError(InputError):
    """A path at which no file exists."""

    @classmethod
    def at(cls, path: object, *, what: str = "file", advice: str = "check the path") -> Self:
        """Return the error for a path at which no file exists."""
        return cls(f"there is no {what} {path}; {advice}")


class UnreadableFileError(InputError):
    """A file that cannot be parsed."""

    @classmethod
    def because(cls, path: object, reason: object, *, as_: str = "", advice: str = "") -> Self:
        """Return the error for a file that cannot be read, with the first line of the reason."""
        lines = str(reason).strip().splitlines() or [type(reason).__name__]
        kind, help_ = f" as {as_}" if as_ else "", f"; {advice}" if advice else ""
        return cls(f"{path} cannot be read{kind} ({lines[0]}){help_}")

    @classmethod
    def empty(cls, name: object, *, needs: str = "a header and rows") -> Self:
        """Return the error for an empty file."""
        return cls(f"{name} is empty; it needs {needs}")

    @classmethod
    def truncated(cls, name: object, reason: object) -> Self:
        """Return the error for a compressed file that cannot be unpacked."""
        return cls(f"{name} cannot be unpacked ({reason}); it may be truncated, so copy it again")

    @classmethod
    def without_header(cls, path: object) -> Self:
        """Return the error for a text whose first line has no column names."""
        return cls(f"the first line of {path} has no header; give each column one name")


class DamagedReleaseError(InputError):
    """A release or a recipe that differs from what was written."""

    @classmethod
    def because(cls, path: object, reason: object, *, advice: str = "it was damaged or edited; save it again") -> Self:
        """Return the error for a file of a release that differs from what was written."""
        return cls(f"{path} {reason}; {advice}")


class TargetExistsError(InputError):
    """An output path that is taken."""

    @classmethod
    def at(cls, path: object, what: str = "exists already", *, advice: str = "choose another name") -> Self:
        """Return the error for an output path that is taken."""
        return cls(f"{path} {what}; {advice}")


class OptionConflictError(InputError):
    """Options that exclude each other."""

    @classmethod
    def between(cls, option: str, other: str, why: str, *, missing: bool = False) -> Self:
        """Return the error for an option that does not apply together with another one, or without it."""
        return cls(f"{option} does not apply {'without' if missing else 'with'} {other}: {why}; leave it out")


class MissingExtraError(InputError):
    """An optional dependency that is not installed."""

    @classmethod
    def needed_for(cls, purpose: str, package: str, extra: str) -> Self:
        """Return the error for a package that is not installed, with the command that installs it."""
        return cls(f"{purpose} needs {package}: pip install 'odkanon[{extra}]'")


class RefusedError(OdkanonError):
    """Nothing may be published under the rule."""

    exit_code = 1

    @classmethod
    def nothing_publishable(cls, reason: object) -> Self:
        """Return the error for a release that publishes nothing."""
        return cls(f"nothing can be published: {reason}")


class UnsafeReleaseError(OdkanonError):
    """A class below its rule was about to enter a release: a bug, stopped here."""

    exit_code = 1


class ReleaseWarning(UserWarning):
    """Something to know before a release is published; the terminal prints it as a caution."""


UNEXPECTED = "this was not expected"
SHOW = "ODKANON_TRACEBACK"
"""An environment variable that adds lines of code to the message of an unexpected error; values are never printed."""


def unexpected(error: BaseException) -> str:
    """Return the message for an unexpected error: where it happened, without values, which may be personal data."""
    if os.environ.get(SHOW):
        traceback.print_tb(error.__traceback__)
    frames = [(str(frame.f_globals.get("__name__")), line) for frame, line in traceback.walk_tb(error.__traceback__)]
    places = [f"{module}:{line}" for module, line in frames if module.split(".")[0] == "odkanon"]
    return (
        f"{UNEXPECTED}: {type(error).__name__} at {' < '.join(places[:-4:-1]) or 'an unknown place'}. Was a file "
        f"damaged or edited? If not, please report this line and what you ran; {SHOW}=1 shows more"
    )


def is_disk_full(error: Exception) -> bool:
    """Return whether an error of any library means that the disk is full."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    return any(words in str(error).lower() for words in ("no space left", "quota exceeded"))


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a suggestion for a misspelt name, ready to append to a message; empty if no name is close."""
    lower = {column.lower(): column for column in known}
    close = get_close_matches(name.lower(), lower, 1, cutoff=0.5)
    return f" (did you mean {lower[close[0]]!r}?)" if close else ""
