"""The pages have one top heading, contents where a page scrolls, and no names of modules outside of reference.

Links and quoted paths are held by `test_links.py`. How long sentences are is taste: `make words`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.words import MOST_WORDS, PROSE, ROOT, TOLD, too_long, without_code

SCREEN = 60  # lines from which on a page scrolls, and has headings for a table of contents
MODULE = re.compile(r"\b(?:solvers|profiles|remat_cli|tests)/\w[\w./-]*|(?<![\w/])\w+\.(?:py|hpp)\b")


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


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
