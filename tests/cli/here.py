"""Runs a command inside this process, which is quicker where what is printed does not matter."""

from __future__ import annotations

from odkanon.cli import app


def run(*words: object) -> int:
    """Return the exit code of a command; errors are raised as the library does."""
    done = app([str(word) for word in words], standalone_mode=False)
    return done if isinstance(done, int) else 0
