"""The cache of measurements: a kill loses nothing, a torn line harms nothing."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from profiles.cache import Cache
from profiles.device import Device
from profiles.measure import Timing
from tests.profiles.making import floats, signature, whole

CPU = Device("cpu", "x", "CPUExecutionProvider", "", 2, (("onnxruntime", "1"),))
TIMING = Timing(1000, 0.01, 9, 64)
RELU, TANH, GRAD = (signature(kind, [floats(2)], [floats(2)]) for kind in ("Relu", "Tanh", "ReluGrad"))
POOL = signature("MaxPool", [floats(1, 1, 4, 4)], [floats(1, 1, 3, 3), whole(1, 1, 3, 3)], kernel_shape=[2, 2])


def test_what_was_kept_is_there_again(tmp_path):
    cache = Cache(CPU, tmp_path)
    cache.keep_timing(RELU, TIMING, "2025-01-01")
    cache.keep_refusal(GRAD, "no kernel", "2025-01-02")
    cache.keep_whole("g", {"ns": 5}, "2025-01-03")
    again = Cache(CPU, tmp_path)
    assert (again.timings, again.refusals) == ({RELU.key: TIMING}, {GRAD.key: "no kernel"})
    assert again.wholes == {"g": {"ns": 5}}
    assert again.dates[RELU.key] == "2025-01-01"


@pytest.mark.slow
def test_every_prefix_of_the_file_can_be_read_and_added_to(tmp_path):
    cache = Cache(CPU, tmp_path)
    for made in (RELU, TANH, POOL):
        cache.keep_timing(made, TIMING, "")
    assert cache.path is not None
    whole = cache.path.read_bytes()
    for length in range(len(whole)):
        cache.path.write_bytes(whole[:length])
        torn = Cache(CPU, tmp_path)
        complete = [line for line in whole[:length].splitlines() if _is_timing(line)]
        assert len(torn.timings) == len(complete)
        torn.keep_timing(GRAD, TIMING, "")
        assert set(Cache(CPU, tmp_path).timings) == {*torn.timings, GRAD.key}


def test_foreign_lines_are_passed_over(tmp_path):
    cache = Cache(CPU, tmp_path)
    cache.keep_timing(RELU, TIMING, "")
    assert cache.path is not None
    with cache.path.open("a") as file:
        file.write(
            '[]\n{"signature": "bad", "ns": -4, "spread": 0, "runs": 1, "workspace": 0}\n'
            '{"signature": "x", "ns": "y"}\n'
        )
    assert set(Cache(CPU, tmp_path).timings) == {RELU.key}


def test_other_devices_and_versions_have_other_files(tmp_path):
    Cache(CPU, tmp_path).keep_timing(RELU, TIMING, "")
    other = Device("cpu", "x", "CPUExecutionProvider", "", 2, (("onnxruntime", "2"),))
    assert not Cache(other, tmp_path).timings


def test_a_cache_that_cannot_be_written_is_only_slow(tmp_path):
    (tmp_path / "file").write_text("")
    cache = Cache(CPU, tmp_path / "file" / "below")
    cache.keep_timing(RELU, TIMING, "")
    assert cache.timings == {RELU.key: TIMING}


def test_outputs_that_are_left_out_need_no_measurement_of_their_own(tmp_path):
    """But more outputs than were measured do, and so do other outputs."""
    cache = Cache(CPU, tmp_path)
    cache.keep_timing(POOL, TIMING, "")
    cache = Cache(CPU, tmp_path)
    image, indices = POOL.outputs
    assert cache.timing(replace(POOL, outputs=(image,))) == TIMING
    assert cache.timing(replace(POOL, outputs=(None, indices))) == TIMING
    for other in ((image, indices, image), (indices,), (floats(1, 1, 9, 9),)):
        assert cache.timing(replace(POOL, outputs=other)) is None
    cache.keep_timing(replace(POOL, outputs=(image,)), replace(TIMING, ns=7), "")
    assert (cache.timing(POOL), cache.timing(replace(POOL, outputs=(image,)))) == (TIMING, replace(TIMING, ns=7))
    cache.keep_refusal(GRAD, "no kernel", "")
    assert cache.refusal(replace(GRAD, outputs=(None,))) == "no kernel"


def _is_timing(line: bytes) -> bool:
    try:
        return "ns" in json.loads(line)
    except ValueError:
        return False
