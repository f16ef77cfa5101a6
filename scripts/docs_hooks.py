"""What `make docs` does besides: pages from the root of the repository, and formulas as MathML.

Browsers draw MathML by themselves, without a script or a font from anywhere, so the site can be read from disk.
"""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError

ROOT = Path(__file__).resolve().parent.parent
_INCLUDE = re.compile(r"^<!-- all of \.\./(\w+\.md) -->$", re.MULTILINE)
_IN_DOCS = re.compile(r"\]\(docs/([^)]+)\)")
_OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./[^)]+\)")
_LOADED = re.compile(
    r'<(?:script|img|iframe)[^>]+src="(https?:[^"]+)|<link[^>]+rel="stylesheet"[^>]+href="(https?:[^"]+)'
)
_FORMULA = re.compile(r'<(span|div) class="arithmatex">(.*?)</\1>', re.DOTALL)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Bring in pages that live outside ``docs``, and name files of the source tree instead of linking to them."""
    return _OUTSIDE.sub(r"\1", _INCLUDE.sub(_included, markdown))


def _included(found: re.Match[str]) -> str:
    return _IN_DOCS.sub(r"](\1)", (ROOT / found[1]).read_text(encoding="utf-8"))


def on_page_content(content: str, **_: Any) -> str:
    """Turn the formulas of a page into MathML."""
    return _FORMULA.sub(_drawn, content)


def _drawn(found: re.Match[str]) -> str:
    formula = html.unescape(found[2]).strip()
    drawn: str = convert(formula[2:-2].strip(), display="block" if found[1] == "div" else "inline")
    return drawn


def on_post_build(config: MkDocsConfig) -> None:
    """Stop if a page would load anything from elsewhere."""
    for page in sorted(Path(config.site_dir).rglob("*.html")):
        found = _LOADED.search(page.read_text(encoding="utf-8"))
        if found:
            raise PluginError(f"{page.name} loads {found[1] or found[2]}; the site must do without a network")
