"""The one family of errors. Every message says what was wrong and what to do about it."""


class OdkanonError(Exception):
    """Base of every error that ODkAnon raises on purpose.

    Attributes
    ----------
    exit_code : int
        What the command line returns when this error ends a run.
    """

    exit_code = 2


class InputError(OdkanonError):
    """The input or an argument cannot be used as it is."""


class RefusedError(OdkanonError):
    """Nothing may be published under the rule that was asked for."""

    exit_code = 1


class UnsafeReleaseError(OdkanonError):
    """A class below its rule was about to become part of a release; this is a bug, and it stops here."""

    exit_code = 1
