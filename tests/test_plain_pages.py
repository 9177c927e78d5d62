"""The pages read plainly: short sentences, one top heading, contents where a page scrolls, no names of modules.

Reference pages may name modules, and show what commands print; code, tables and comments are not prose. Links and
quoted paths are held by `test_links.py`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
TOLD = [ROOT / "README.md", DOCS / "index.md"]
TOLD += sorted(page for room in ("tutorials", "how-to", "explanation") for page in (DOCS / room).glob("*.md"))
PROSE = [*TOLD, *sorted((DOCS / "reference").glob("*.md"))]
MOST_WORDS = 30  # of a sentence
SCREEN = 60  # lines from which on a page scrolls, and has headings for a table of contents
MODULE = re.compile(r"\b(?:solvers|profiles|remat_cli|tests)/\w[\w./-]*|(?<![\w/])\w+\.(?:py|hpp)\b")


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```$|<!--.*?-->", "\n\n", text, flags=re.MULTILINE | re.DOTALL)


def prose(text: str) -> str:
    """What is left to be read aloud: an item of a list is a paragraph, what is quoted as code a word."""
    text = re.sub(r"^(?:\||#| {4,}).*$", "\n", without_code(text), flags=re.MULTILINE)
    text = re.sub(r"^ *(?:[-*]|\d+\.) ", "\n\n", text, flags=re.MULTILINE)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"`[^`]*`", "code", text)


def sentences(text: str) -> list[str]:
    paragraphs = (" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", prose(text)))
    return [said for each in paragraphs for said in re.split(r"(?<=[.!?])[*\"')]*\s+", each) if said]


def too_long(text: str) -> list[str]:
    return [said for said in sentences(text) if len(re.findall(r"[^\W_][\w'-]*", said)) > MOST_WORDS]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PROSE, ids=name)
def test_sentences_are_short(page: Path) -> None:
    assert too_long(page.read_text()) == []


@pytest.mark.parametrize("page", TOLD, ids=name)
def test_no_module_is_named_outside_of_reference(page: Path) -> None:
    assert MODULE.findall(without_code(page.read_text())) == []


@pytest.mark.parametrize("page", PROSE, ids=name)
def test_a_page_has_one_top_heading_and_contents_where_it_scrolls(page: Path) -> None:
    lines = page.read_text().splitlines()
    headings = [line for line in without_code(page.read_text()).splitlines() if line.startswith("#")]
    assert headings[0].startswith("# ")
    assert sum(line.startswith("# ") for line in headings) == 1
    if len(lines) > SCREEN and page.name != "glossary.md":  # the site makes a table of contents of these
        assert sum(line.startswith("## ") for line in headings) >= 3


def test_what_is_wrong_is_found() -> None:
    long = " ".join(["word"] * (MOST_WORDS + 1))
    assert too_long(f"# {long}\n\n| {long} |\n\n```\n{long}\n```\n\n`{long}` is code. So [this]({long}) is not.") == []
    assert len(too_long(f"Short.\n- {long}.\n- {long}\n  and more.")) == 2
    assert MODULE.findall("as `solvers/scip.py` and flow.hpp do, not examples/bench/auto.py") == [
        "solvers/scip.py",
        "flow.hpp",
    ]
