"""Results on disk: whole or passed over, whoever else reads and writes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from remat_cli.results.store import Store, key_of, too_many

KEY = key_of({"what": "this"})
ANSWER = {"limit": 5.0, "result": {"order": [0, 1, 2, 1, 3], "bound": 7.25}}


@pytest.fixture
def heard() -> list[str]:
    return []


@pytest.fixture
def store(tmp_path: Path, heard: list[str]) -> Store:
    return Store(tmp_path / "results", heard.append)


def test_what_is_kept_is_found(store: Store) -> None:
    assert store.get(KEY) is None
    store.keep(KEY, {"model": "m.onnx"}, ANSWER)
    assert store.get(KEY) == ANSWER
    assert store.get(key_of({"what": "that"})) is None


@pytest.mark.slow
def test_whatever_byte_is_damaged_no_wrong_answer_is_given(store: Store, heard: list[str]) -> None:
    store.keep(KEY, {"model": "m.onnx"}, ANSWER)
    (entry,) = store.entries()
    whole = entry.path.read_bytes()
    for place in range(len(whole)):
        entry.path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x15]) + whole[place + 1 :])
        assert store.get(KEY) in (None, ANSWER)
    for length in range(len(whole) - 1):
        entry.path.write_bytes(whole[:length])
        assert store.get(KEY) is None
    assert len(heard) == 2  # once for each way of being damaged
    assert all(str(entry.path) in words for words in heard)


def test_an_entry_under_another_name_is_none(store: Store) -> None:
    store.keep(KEY, {}, ANSWER)
    (entry,) = store.entries()
    other = key_of({"what": "that"})
    place = entry.path.parents[1] / other[:2] / entry.path.name.replace(KEY, other)
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(entry.path.read_bytes())
    assert store.get(other) is None


def test_a_store_that_cannot_be_written_is_only_slow(tmp_path: Path, heard: list[str]) -> None:
    (tmp_path / "file").write_text("no folder")
    store = Store(tmp_path / "file", heard.append)
    for _ in range(2):
        store.keep(KEY, {}, ANSWER)
        assert store.get(KEY) is None
    assert len(heard) == 1
    assert list(store.entries()) == []


def test_no_store_keeps_nothing() -> None:
    store = Store(None)
    store.keep(KEY, {}, ANSWER)
    assert store.get(KEY) is None
    assert list(store.entries()) == []


WRITER = """
import sys
from pathlib import Path
from remat_cli.results.store import Store, key_of
store = Store(Path(sys.argv[1]), lambda words: sys.exit(words))
key = key_of({"what": "this"})
for turn in range(60):
    store.keep(key, {}, {"who": [sys.argv[2]] * 3000})
    found = store.get(key)
    if found is None or len(set(found["who"])) != 1 or len(found["who"]) != 3000:
        sys.exit(f"torn: {found}")
"""


def test_many_write_and_read_one_entry_at_once(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    going = [subprocess.Popen([*command, str(number)], stderr=subprocess.PIPE, text=True) for number in range(3)]
    assert [(process.communicate()[1], process.returncode) for process in going] == [("", 0)] * 3


def test_what_to_be_rid_of(store: Store) -> None:
    for number in range(4):
        store.keep(key_of({"number": number}), {"number": number}, {"size": "x" * 1000})
    entries = list(store.entries())
    size = entries[0].bytes
    assert len(entries) == 4
    assert list(too_many(entries, lambda _: True, None, None)) == []
    assert list(too_many(entries, lambda _: True, None, 2 * size)) == entries[2:]
    assert list(too_many(entries, lambda _: True, -1.0, None)) == entries
    assert [entry.about["number"] for entry in too_many(entries, lambda e: e.about["number"] != 2, None, None)] == [2]
    entries[1].path.write_text(json.dumps({"format": "remat-result/1"}) + "\n{}\n")
    assert [entry.path for entry in too_many(store.entries(whole=True), lambda _: True, None, None)] == [
        entries[1].path
    ]
