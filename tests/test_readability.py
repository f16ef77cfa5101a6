"""What people read from top to bottom is short and plain: words by kind of page, sentences, passive voice."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
INCLUDED = re.compile(r"^<!-- all ", re.MULTILINE)
CODE = re.compile(r"^```.*?^```|^    .*?$", re.MULTILINE | re.DOTALL)
NOT_PROSE = re.compile(r"^(\||!\[|#|:::|<|\[!|---).*$", re.MULTILINE)
MARKUP = re.compile(r"\]\([^)]*\)|[\[\]*_`>]")
ENDS = re.compile(r"(?<=[.!?:])\s+(?=[A-Z`*\[(])|\n\s*\n|\n(?=[*\d-]\.?\s)")
PASSIVE = re.compile(r"\b(?:is|are|was|were|be|been|being)\s+(?:\w+ly\s+|not\s+|never\s+)?\w+(?:ed|en|wn|lt|pt|nt)\b")
WORD = re.compile(r"[^\W\d_][\w'-]*")

FOLDED = re.compile(r"^<details.*?^</details>", re.MULTILINE | re.DOTALL)

MOST_WORDS = 12_500
"""In all pages outside the reference."""
MOST_ON_A_SCREEN = 320
"""In a guide, outside code and what is folded."""
MOST_LINES = 25
"""Lines of code in a guide, outside what is folded."""
LONGEST = 40
"""Words of a sentence."""
MOST_LONG = 0.02
"""Share of sentences that may be longer, for lists in the middle of a sentence."""
MOST_PASSIVE = 0.45
"""Share of sentences with a passive."""


def kinds() -> dict[str, str]:
    """Return the section of the navigation that each page is in."""
    found, section = {}, ""
    for line in (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("nav:")[2].splitlines():
        if re.match(r"  - [\w -]+:$", line):
            section = line.strip(" -:")
        for page in re.findall(r"([\w-]+\.md)$", line):
            found[page] = section if line.startswith("      ") else "Home"
    return found


KINDS = kinds()
READ = sorted(page for page, kind in KINDS.items() if kind in ("Home", "Tutorials", "How-to guides", "Explanation"))


def prose(text: str) -> str:
    """Return a page without code, tables and headings."""
    return NOT_PROSE.sub("\n", CODE.sub("\n", text))


def sentences(text: str) -> list[str]:
    """Return the sentences of a page that have words."""
    parts = (MARKUP.sub("", part).strip() for part in ENDS.split(prose(text)))
    return [each for each in parts if len(WORD.findall(each)) > 2]


def page_text(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def test_every_page_is_of_one_kind() -> None:
    assert set(KINDS) == {path.name for path in DOCS.glob("*.md")}
    assert {"Tutorials", "How-to guides", "Explanation", "Reference"} <= set(KINDS.values())


def test_a_busy_person_can_read_them() -> None:
    words = {page: len(page_text(page).split()) for page in READ}
    assert sum(words.values()) <= MOST_WORDS, sorted(words.items(), key=lambda each: -each[1])


@pytest.mark.parametrize("page", [page for page in READ if KINDS[page] == "How-to guides"])
def test_a_guide_is_one_task_on_one_screen(page: str) -> None:
    text = FOLDED.sub("", page_text(page))
    lines = sum(len(block.splitlines()) - 2 for block in re.findall(r"^```.*?^```", text, re.MULTILINE | re.DOTALL))
    assert lines <= MOST_LINES
    assert len(CODE.sub("\n", text).split()) <= MOST_ON_A_SCREEN


@pytest.mark.parametrize("page", READ)
def test_sentences_are_short(page: str) -> None:
    found = sentences(page_text(page))
    long = [each for each in found if len(WORD.findall(each)) > LONGEST]
    assert len(long) <= max(1, MOST_LONG * len(found)), "\n\n".join(long)


@pytest.mark.parametrize("page", READ)
def test_most_sentences_are_active(page: str) -> None:
    found = sentences(page_text(page))
    passive = [each for each in found if PASSIVE.search(each)]
    assert len(passive) <= max(3, MOST_PASSIVE * len(found)), "\n\n".join(passive)


def test_long_and_passive_sentences_are_found() -> None:
    text = "It is written by us. We write it.\n\n" + "word " * 50 + "end."
    found = sentences(text)
    assert [bool(PASSIVE.search(each)) for each in found] == [True, False, False]
    assert max(len(WORD.findall(each)) for each in found) > LONGEST
