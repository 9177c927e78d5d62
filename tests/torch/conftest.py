"""Tests of `remat_cli.torch`: skipped, with words, where torch is not installed. `make test-torch` runs them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

if find_spec("torch") is None:
    collect_ignore_glob = ["test_*.py"]


def pytest_report_header() -> str:
    return "" if find_spec("torch") else "tests/torch: skipped, torch is not installed (`make test-torch` installs it)"


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One thread, nothing compiled before, and three of torch's own partitions: each takes as long as a search here."""
    import torch

    from remat_cli.torch import seeds

    monkeypatch.setattr(seeds, "SETTINGS", seeds.SETTINGS[:3])
    torch.set_num_threads(1)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()
