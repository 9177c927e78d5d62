"""The tutorial for PyTorch users runs as it stands, one snippet after another; only its limits are smaller here."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from remat_cli.errors import RematWarning

pytest.importorskip("onnxscript")
PAGE = Path(__file__).parents[2] / "docs" / "tutorials" / "pytorch.md"
STEPS = PAGE.read_text().partition("## Now your own module")[0]
SMALLER = {"torch.randn(64,": "torch.randn(32,", "(64,))": "(32,))", "costs=costs": "costs=costs, work_limit='100K'"}


def test_the_snippets_train_a_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    snippets = "".join(re.findall(r"```python\n(.*?)```", STEPS, re.DOTALL))
    for what, less in SMALLER.items():
        assert what in snippets
        snippets = snippets.replace(what, less)
    snippets = snippets.replace("remat.profile(training)", "remat.profile(training, estimate='cpu')")
    made: dict[str, Any] = {}
    with pytest.warns(RematWarning, match="estimates"):
        exec(compile(snippets, str(PAGE), "exec"), made)
    losses = [float(line) for line in capsys.readouterr().out.splitlines() if re.fullmatch(r"[\d.]+", line)]
    assert len(losses) == 5
    assert losses[-1] < losses[0]
    assert made["step"].updates == 5
