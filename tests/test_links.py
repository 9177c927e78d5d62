"""Every page's links lead somewhere: to a file of the repository, and to a heading that it has."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\]\(([^)\s]+)\)")
QUOTED_PATH = re.compile(r"`((?:docs|examples|tests|solvers|remat_cli|profiles)/[\w./-]*[\w/])`")
CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    asked = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    listed = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    return [ROOT / name for name in listed] or sorted(ROOT.glob("[A-Z]*.md")) + sorted((ROOT / "docs").rglob("*.md"))


def anchors(page: Path) -> set[str]:
    """The headings of a page, as GitHub and the site turn them into anchors."""
    headings = re.findall(r"^#+ (.*)$", CODE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken(page: Path) -> list[str]:
    text = CODE.sub("", page.read_text())
    wrong = [path for path in QUOTED_PATH.findall(text) if not (ROOT / path).exists()]
    for link in LINK.findall(text):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            wrong.append(link)
    return wrong


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    assert broken(page) == []


def test_a_page_has_one_top_heading() -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        assert len(re.findall(r"^# ", CODE.sub("", page.read_text()), re.MULTILINE)) == 1, page.relative_to(ROOT)


def test_links_that_lead_nowhere_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A title\n[a](#a-title) [b](#nothing) [c](nowhere.md) [d](https://example.org) `docs/nothing.md`\n"
    )
    assert broken(page) == ["docs/nothing.md", "#nothing", "nowhere.md"]
