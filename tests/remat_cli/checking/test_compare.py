"""Bit for bit, against values whose bits are known."""

from __future__ import annotations

import numpy as np
import pytest

from remat_cli.checking.compare import Tolerance, differences

NAN = np.float32(np.nan)


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        (np.float32([1, 2]), np.float32([1, 2]), None),
        (np.float32([1, NAN]), np.float32([1, NAN]), None),
        (np.array([0x7FC00001], np.uint32).view(np.float32), np.float32([NAN]), None),
        (np.float32([0.0]), np.float32([-0.0]), "1 of 1 elements differ"),
        (np.float32([1, NAN]), np.float32([1, 2]), "by inf at most: [1]"),
        (np.float32([[1, 5]]), np.float32([[1, 3]]), "by 2 at most: [0, 1] is 3.0 and should be 5.0"),
        (np.float32([1]), np.float64([1]), "it is float64[1], and should be float32[1]"),
        (np.float32(2), np.float32(3), "1 of 1 elements differ"),
        (np.array([True]), np.array([False]), "1 of 1 elements differ"),
        (np.int64([2**62]), np.int64([2**62 + 1]), "1 of 1 elements differ"),
        (np.float32([]), np.float32([]), None),
    ],
)
def test_differences(before: np.ndarray, after: np.ndarray, says: str | None) -> None:
    found = differences(["y"], [np.asarray(before)], [np.asarray(after)])
    assert bool(found) == (says is not None)
    if says:
        assert says in found[0].says


def test_a_missing_output() -> None:
    assert differences(["y", "z"], [np.zeros(1)] * 2, [np.zeros(1)])


@pytest.mark.parametrize(
    ("after", "near", "same"),
    [
        ([1.01, 2], Tolerance(relative=0.02), True),
        ([1.01, 2], Tolerance(relative=0.005), False),
        ([1, 2.001], Tolerance(absolute=0.01), True),
        ([1, NAN], Tolerance(absolute=10), False),
        ([1, np.inf], Tolerance(relative=0.5), False),
    ],
)
def test_near_is_as_near_as_is_asked(after: list[float], near: Tolerance, same: bool) -> None:
    assert (differences(["y"], [np.float32([1, 2])], [np.float32(after)], near) == []) is same


def test_the_worst_output_comes_first() -> None:
    pairs = ["a", "b", "c"], [np.zeros(2, np.float32)] * 3, [np.float32([0, gap]) for gap in (1, 3, 2)]
    assert [one.output for one in differences(*pairs)] == ["b", "c", "a"]
