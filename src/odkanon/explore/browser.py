"""Opening the page in a browser without telling its secret address to anybody else on the machine."""

from __future__ import annotations

import os
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory

_PAGE = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={url}">
<title>ODkAnon</title>
<p><a href="{url}">Open the explorer</a></p>
"""


@contextmanager
def opened_in_browser(url: str) -> Iterator[None]:
    """Open an address in a browser, and forget it when the work is done.

    A browser is started by a command line, which everybody on the machine can read. It is therefore given a file that
    only this user can read, and that file leads to the address.
    """
    with TemporaryDirectory(prefix="odkanon-") as folder:
        page = Path(folder) / "open.html"
        with os.fdopen(os.open(page, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(_PAGE.format(url=escape(url)))
        webbrowser.open(page.as_uri())
        yield
