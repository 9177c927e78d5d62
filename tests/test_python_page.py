"""docs/reference/python.md: its snippets run as they stand, one after another, in a folder with a forward model.

Only searches are limited by work here, since a busy machine does little in a few seconds.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import remat_cli as remat
from remat_cli import errors
from tests.cli.running import Command

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "reference" / "python.md").read_text()
SNIPPETS = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.M | re.S)
SECONDS = re.compile(r"(remat\.(?:solve|sweep|max_batch)\([^#]*?)time_limit=\d+", flags=re.S)


@pytest.mark.slow
def test_the_page_runs(remat: Command, tmp_path: Path) -> None:
    assert remat("zoo", "cnn", "--batch", 4, "-o", "forward.onnx", "-q").code == 0
    assert len(SNIPPETS) >= 6
    names: dict[str, Any] = {}
    for snippet in SNIPPETS:
        exec(SECONDS.sub(r"\1work_limit=50_000", snippet), names)
    assert names["report"].ok
    for name in ("step.plan.json", "step.onnx", "step.costs.yaml", "step.remat.onnx"):
        assert (tmp_path / name).is_file()


def test_the_page_names_every_error() -> None:
    rows = dict(re.findall(r"^\| `remat\.(\w+)` .* \| (\d) \|$", PAGE, flags=re.M))
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and "code" in vars(kind)]
    assert rows == {kind.__name__: str(kind.code) for kind in kinds if kind is not errors.RematError}


@pytest.mark.parametrize(
    "name",
    [
        "grad",
        "profile",
        "in_pieces",
        "solve",
        "sweep",
        "max_batch",
        "emit",
        "verify",
        "session",
        "load_plan",
        "initial_state",
        "step",
    ],
)
def test_every_function_is_on_the_page(name: str) -> None:
    assert f"remat.{name}(" in PAGE
    assert getattr(remat, name).__doc__


def test_importing_it_brings_nothing_heavy() -> None:
    code = "import sys, remat_cli; print(sorted({'onnx', 'numpy', 'onnxruntime', 'click'} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_a_name_that_there_is_not() -> None:
    name = "differentiate"
    with pytest.raises(AttributeError, match=name):
        getattr(remat, name)
