"""Files beside their place until they are whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from remat_cli.errors import BadInput
from remat_cli.formats.files import copy_whole, write_whole


def test_a_copy_is_the_same_and_all_there_is(tmp_path: Path) -> None:
    content = bytes(range(256)) * 5000
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(content)
    target.write_bytes(b"from before")
    copy_whole(source, target)
    assert target.read_bytes() == content
    write_whole(source, "anew")
    assert target.read_bytes() == content  # no second name for it
    assert {path.name for path in tmp_path.iterdir()} == {"source", "target"}


def test_a_copy_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"from before")
    with pytest.raises(BadInput):
        copy_whole(tmp_path / "nothing", target)
    assert target.read_bytes() == b"from before"
    assert [path.name for path in tmp_path.iterdir()] == ["target"]
