"""Times from paper: the longer of arithmetic and traffic, and a launch."""

from __future__ import annotations

import pytest

from profiles import roofline
from tests.profiles.making import constant, floats, signature


def test_every_device_has_its_figures():
    assert set(roofline.names()) >= {"v100", "a100", "h100", "h200", "cpu"}
    for name in roofline.names():
        device = roofline.device(name)
        assert "datasheet" in device.source.lower()
        assert device.peak["float"] >= device.vector["float"] > 0
        assert device.memory_bandwidth > 0


def test_a_big_product_is_bound_by_arithmetic():
    made = signature("MatMul", [floats(4096, 4096), floats(4096, 4096)], [floats(4096, 4096)])
    v100 = roofline.device("v100")
    assert v100.time(made) == pytest.approx(2 * 4096**3 / 15.7e12 * 1e9 + v100.launch_ns, rel=1e-6)


def test_an_addition_is_bound_by_memory():
    made = signature("Add", [floats(10**6), floats(10**6)], [floats(10**6)])
    h100 = roofline.device("h100")
    assert h100.time(made) == pytest.approx(12e6 / 3.35e12 * 1e9 + h100.launch_ns, abs=1)


def test_a_view_costs_nothing_and_a_tiny_op_its_launch():
    a100 = roofline.device("a100")
    assert a100.time(signature("Reshape", [floats(6), constant([2, 3])], [floats(2, 3)])) == 0
    assert a100.time(signature("Relu", [floats(6)], [floats(6)])) == pytest.approx(a100.launch_ns, abs=1)


def test_flops_alone_and_unknown_devices():
    made = signature("MatMul", [floats(2, 3), floats(3, 4)], [floats(2, 4)])
    assert roofline.estimate(made, "flops") == 48
    with pytest.raises(KeyError):
        roofline.estimate(made, "abacus")
