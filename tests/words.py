"""`python -m tests.words`: sentences of the pages that are longer than they should be. It is taste, and gates nothing.

Code, tables and comments are not prose.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
TOLD = [ROOT / "README.md", DOCS / "index.md"]
TOLD += sorted(page for room in ("tutorials", "how-to", "explanation") for page in (DOCS / room).glob("*.md"))
PROSE = [*TOLD, *sorted((DOCS / "reference").glob("*.md"))]
MOST_WORDS = 30  # of a sentence


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


def main() -> int:
    found = [(page, said) for page in PROSE for said in too_long(page.read_text())]
    for page, said in found:
        print(f"{page.relative_to(ROOT)}: {said}")
    print(f"{len(found)} sentences of more than {MOST_WORDS} words")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
