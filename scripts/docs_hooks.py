"""What `make docs` adds: pages of the repository, the commands with their options, and formulas as MathML.

Browsers draw MathML by themselves, without a script or a font from anywhere, so the site can be read from disk.
"""

from __future__ import annotations

import html
import re
import shutil
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import typer
from docs_outputs import insert_outputs, is_wanted, run_blocks
from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError

import odkanon
from odkanon.cli import app

ROOT = Path(__file__).resolve().parent.parent
_INCLUDE = re.compile(r"^<!-- all of \.\./(\w+\.md) -->$", re.MULTILINE)
_OUTPUTS: dict[str, list[str]] = {}
LIVE_PAGE = "sample.html"
_COMMANDS = "<!-- all commands -->"
_EXAMPLE = re.compile(r"^`(odkanon .*?)`$", re.MULTILINE | re.DOTALL)
_IN_DOCS = re.compile(r"\]\(docs/([^)]+)\)")
_OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./[^)]+\)")
_LOADED = re.compile(
    r'<(?:script|img|iframe)[^>]+src="(https?:[^"]+)|<link[^>]+rel="stylesheet"[^>]+href="(https?:[^"]+)'
)
_FORMULA = re.compile(r'<(span|div) class="arithmatex">(.*?)</\1>', re.DOTALL)


def on_page_markdown(markdown: str, page: Any = None, **_: Any) -> str:
    """Bring in other pages, the commands and outputs; name files of the source tree without a link."""
    if _COMMANDS in markdown:
        markdown = markdown.replace(_COMMANDS, commands_reference())
    if page is not None and page.file.src_uri.startswith("tutorial-") and is_wanted():
        markdown, _OUTPUTS[page.file.src_uri] = run_blocks(markdown)
    return _OUTSIDE.sub(r"\1", _INCLUDE.sub(_included, markdown))


def commands_reference() -> str:
    """Return the help of every command as Markdown: what it does, examples, and its options by topic."""
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    return "\n\n".join(_command_section(name, command) for name, command in commands.items() if not command.hidden)


def _command_section(name: str, command: Any) -> str:
    summary, _, rest = command.help.partition("Examples\n--------\n")
    examples = [" ".join(each.split()) for each in _EXAMPLE.findall(rest)]
    lines = [f"## odkanon {name}", "", summary.strip()]
    if examples:
        lines += ["", "```text", *examples, "```"]
    shown = [option for option in command.params if not option.hidden]
    for topic, options in groupby(sorted(shown, key=_topic), key=_topic):
        lines += ["", f"**{topic.partition(' ')[2]}**", "", "| option | meaning |", "|---|---|"]
        lines += [f"| {_spelling(option)} | {_cell(option.help or '')} |" for option in options]
    return "\n".join(lines)


def _topic(option: Any) -> str:
    """Return the panel of an option, after a digit that puts arguments and the most used options first."""
    if option.param_type_name == "argument":
        return "0 Arguments"
    return f"2 {option.rich_help_panel}" if option.rich_help_panel else "1 Options"


def _spelling(option: Any) -> str:
    if option.param_type_name == "argument":
        return f"`{option.metavar or option.name.upper()}`"
    value = "" if option.is_flag else f" {option.metavar or option.name.upper()}"
    return ", ".join(f"`{name}{value}`" for name in option.opts[:1]) + (" (required)" if option.required else "")


def _cell(text: str) -> str:
    """Return text for a cell of a table."""
    return html.escape(" ".join(text.split()), quote=False).replace("|", "\\|").replace("[", "\\[")


def _included(found: re.Match[str]) -> str:
    return _IN_DOCS.sub(r"](\1)", (ROOT / found[1]).read_text(encoding="utf-8"))


def on_page_content(content: str, page: Any = None, **_: Any) -> str:
    """Turn the formulas of a page into MathML, and insert what its code shows."""
    shown = [] if page is None else _OUTPUTS.get(page.file.src_uri, [])
    return insert_outputs(_FORMULA.sub(_drawn, content), shown)


def _drawn(found: re.Match[str]) -> str:
    formula = html.unescape(found[2]).strip()
    drawn: str = convert(formula[2:-2].strip(), display="block" if found[1] == "div" else "inline")
    return drawn


def on_post_build(config: MkDocsConfig) -> None:
    """Add the page of a release, which the landing page shows; stop if a page would load anything from elsewhere."""
    with TemporaryDirectory() as folder:
        release = odkanon.anonymize(odkanon.make_survey(), protect=["participants", "persons"], resolution=9)
        shutil.copy(release.save(Path(folder) / "sample") / "report.html", Path(config.site_dir) / LIVE_PAGE)
    for page in sorted(Path(config.site_dir).rglob("*.html")):
        found = _LOADED.search(page.read_text(encoding="utf-8"))
        if found:
            raise PluginError(f"{page.name} loads {found[1] or found[2]}; the site must do without a network")
