"""The cache of measurements: a kill loses nothing, a torn line harms nothing."""

from __future__ import annotations

import json

from profiles.cache import Cache
from profiles.device import Device
from profiles.measure import Timing

CPU = Device("cpu", "x", "CPUExecutionProvider", "", 2, (("onnxruntime", "1"),))
TIMING = Timing(1000, 0.01, 9, 64)


def test_what_was_kept_is_there_again(tmp_path):
    cache = Cache(CPU, tmp_path)
    cache.keep_timing("k", TIMING, "Relu", "2025-01-01")
    cache.keep_refusal("r", "no kernel", "ReluGrad", "2025-01-02")
    cache.keep_whole("g", {"ns": 5}, "2025-01-03")
    again = Cache(CPU, tmp_path)
    assert (again.timings, again.refusals, again.wholes) == ({"k": TIMING}, {"r": "no kernel"}, {"g": {"ns": 5}})
    assert again.dates["k"] == "2025-01-01"


def test_every_prefix_of_the_file_can_be_read_and_added_to(tmp_path):
    cache = Cache(CPU, tmp_path)
    for key in "abc":
        cache.keep_timing(key, TIMING, "Relu", "")
    assert cache.path is not None
    whole = cache.path.read_bytes()
    for length in range(len(whole)):
        cache.path.write_bytes(whole[:length])
        torn = Cache(CPU, tmp_path)
        complete = [line for line in whole[:length].splitlines() if _is_timing(line)]
        assert len(torn.timings) == len(complete)
        torn.keep_timing("new", TIMING, "Relu", "")
        assert set(Cache(CPU, tmp_path).timings) == {*torn.timings, "new"}


def test_foreign_lines_are_passed_over(tmp_path):
    cache = Cache(CPU, tmp_path)
    cache.keep_timing("k", TIMING, "Relu", "")
    assert cache.path is not None
    with cache.path.open("a") as file:
        file.write(
            '[]\n{"signature": "bad", "ns": -4, "spread": 0, "runs": 1, "workspace": 0}\n'
            '{"signature": "x", "ns": "y"}\n'
        )
    assert set(Cache(CPU, tmp_path).timings) == {"k"}


def test_other_devices_and_versions_have_other_files(tmp_path):
    Cache(CPU, tmp_path).keep_timing("k", TIMING, "Relu", "")
    other = Device("cpu", "x", "CPUExecutionProvider", "", 2, (("onnxruntime", "2"),))
    assert not Cache(other, tmp_path).timings


def test_a_cache_that_cannot_be_written_is_only_slow(tmp_path):
    (tmp_path / "file").write_text("")
    cache = Cache(CPU, tmp_path / "file" / "below")
    cache.keep_timing("k", TIMING, "Relu", "")
    assert cache.timings == {"k": TIMING}


def _is_timing(line: bytes) -> bool:
    try:
        return "ns" in json.loads(line)
    except ValueError:
        return False
