"""Run the Python blocks of a tutorial and put what they show below them, as a notebook would.

What a reader sees is what the program shows today. ``ODKANON_DOCS_OUTPUT=0`` leaves it out, for a quick build.
"""

from __future__ import annotations

import ast
import contextlib
import html
import io
import os
import re
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from odkanon import ReleaseWarning

_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PLACE = re.compile(r"<p>@@output-(\d+)@@</p>")


def is_wanted() -> bool:
    """Return whether outputs are part of the build."""
    return os.environ.get("ODKANON_DOCS_OUTPUT", "1") != "0"


def run_blocks(markdown: str) -> tuple[str, list[str]]:
    """Return a page with a mark below each block that shows something, and what to put there, as HTML."""
    names: dict[str, Any] = {}
    shown: list[str] = []

    def below(found: re.Match[str]) -> str:
        output = _run(found[1], names)
        if not output:
            return found[0]
        shown.append(output)
        return f"{found[0]}\n\n@@output-{len(shown) - 1}@@\n"

    with TemporaryDirectory() as folder, contextlib.chdir(Path(folder)), warnings.catch_warnings():
        warnings.simplefilter("ignore", ReleaseWarning)
        return _BLOCK.sub(below, markdown), shown


def insert_outputs(content: str, shown: list[str]) -> str:
    """Replace the marks in the HTML of a page."""
    return _PLACE.sub(lambda found: f'<div class="output">{shown[int(found[1])]}</div>', content)


def _run(code: str, names: dict[str, Any]) -> str:
    """Run a block; return what it prints and its last value, as HTML."""
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    value = None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "tutorial", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "tutorial", "eval"), names)
    text = printed.getvalue()
    parts = [f"<pre>{html.escape(text)}</pre>"] if text else []
    if value is not None:
        parts.append(value._repr_html_() if hasattr(value, "_repr_html_") else f"<pre>{html.escape(repr(value))}</pre>")
    return "".join(parts)
