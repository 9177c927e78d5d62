"""What workflows and CONTRIBUTING call is there: targets of the Makefile, scripts, modules of tests."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CALLING = [*sorted((ROOT / ".github" / "workflows").glob("*.yml")), ROOT / "CONTRIBUTING.md", ROOT / "README.md"]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))


@pytest.mark.parametrize("page", CALLING, ids=lambda page: page.name)
def test_what_is_called_is_there(page: Path) -> None:
    text = page.read_text()
    assert set(re.findall(r"(?:run: |^\$ |`)make ([a-z-]+)", text, flags=re.MULTILINE)) <= TARGETS
    assert all((ROOT / script).exists() for script in re.findall(r"\.ci/[\w.-]+\w", text))
    assert all(find_spec(module) for module in re.findall(r"python -m (tests[\w.]*\w)", text))


def test_the_gate_is_called() -> None:
    assert ".ci/run" in CALLING[0].parent.joinpath("tests.yml").read_text()
