"""Another version of ONNX Runtime than those that places were checked with is named, once."""

from __future__ import annotations

from importlib import metadata

import pytest

from remat_cli.runtime.session import unknown_version


@pytest.mark.parametrize(
    "installed, named",
    [
        ({"onnxruntime": "1.23.0"}, False),
        ({"onnxruntime-gpu": "1.31.1"}, False),
        ({"onnxruntime": "1.22.1"}, True),
        ({"onnxruntime-gpu": "2.0.0"}, True),
        ({}, False),
    ],
)
def test_another_version_is_named(installed: dict[str, str], named: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name not in installed:
            raise metadata.PackageNotFoundError(name)
        return installed[name]

    monkeypatch.setattr(metadata, "version", version)
    assert [next(iter(installed.values())) in note for note in unknown_version()] == [True] * named
