"""Every page's links lead somewhere: to a file of the repository, and to a heading that it has."""

from __future__ import annotations

import io
import re
import subprocess
import tokenize
from collections.abc import Collection, Iterator
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


SOURCE_FILE = re.compile(r"[\w./-]*\w\.(?:py|hpp|cpp)\b")


def tracked(*kinds: str) -> list[str]:
    asked = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *kinds]
    return subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()


def words_about(source: str) -> Iterator[str]:
    """The comments and docstrings of a module."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and token.string.startswith('"""')):
            yield token.string


def stale(text: str, files: Collection[str]) -> list[str]:
    """The source files that the text names, by their names or paths, and that are not there."""
    return [
        name
        for name in SOURCE_FILE.findall(text)
        if not any(file == name or file.endswith(f"/{name.lstrip('./')}") for file in files)
    ]


@pytest.mark.slow
def test_comments_and_docstrings_name_files_that_are_there() -> None:
    files = tracked("*.py", "*.hpp", "*.cpp")
    if not files:
        pytest.skip("not in a checkout")
    modules = [name for name in files if name.startswith(("remat_cli/", "solvers/", "profiles/", "building/"))]
    wrong = {
        name: found
        for name in modules
        if name.endswith(".py")
        and (found := [one for words in words_about((ROOT / name).read_text()) for one in stale(words, files)])
    }
    assert wrong == {}


def test_the_architecture_names_every_room_and_only_files_that_are_there() -> None:
    files = tracked("*.py", "*.hpp", "*.cpp", "*.c", "*.h")
    if not files:
        pytest.skip("not in a checkout")
    text = (ROOT / "ARCHITECTURE.md").read_text()
    rooms = {parts[1] for name in files if (parts := name.split("/"))[0] in ("solvers", "remat_cli") and len(parts) > 2}
    assert len(rooms) > 20
    assert {room for room in rooms if not re.search(rf"\b{room}\b", text)} == set()
    assert stale(text, files) == []


def test_every_room_says_its_duty() -> None:
    for package in ("solvers", "remat_cli"):
        for room in (ROOT / package).rglob("__init__.py"):
            if room.stat().st_size:
                assert room.read_text().startswith('"""'), room


def test_a_stale_name_is_found() -> None:
    files = ["solvers/orders/evict.py", "solvers/orders/walk.hpp"]
    assert stale("`walk.hpp` by `evict.py`, as orders/evict.py says", files) == []
    assert stale("passing.py, solvers/evict.py", files) == ["passing.py", "solvers/evict.py"]
