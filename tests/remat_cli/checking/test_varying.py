"""Results that vary from run to run, drawn by a stub in the place of a GPU whose kernels add in any order."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from remat_cli.checking.compare import EXACT, FACTOR, TURNS, compare
from remat_cli.checking.metered import Reply

NAMES = ("steady", "varying")
Arrays = list[np.ndarray]


def outputs(steady: float, varying: float) -> Arrays:
    return [np.float32([steady]), np.float32([varying])]


def compared(before: Arrays, after: Arrays, further: Iterator[Arrays]) -> tuple[list[str], list[str], int]:
    """The outputs that differ, those that vary, and how often the original ran again."""
    files, runs = {"before.npz": before, "after.npz": after}, []

    def original(outputs: str) -> Reply:
        files[outputs] = next(further)
        runs.append(outputs)
        return Reply()

    results: Callable[[str], Arrays] = files.__getitem__
    differs, varies = compare(NAMES, EXACT, results, original)
    return [one.output for one in differs], [one.output for one in varies], len(runs)


def test_what_does_not_differ_is_not_run_again() -> None:
    assert compared(outputs(1, 1), outputs(1, 1), iter([])) == ([], [], 0)


def test_a_steady_original_is_allowed_nothing() -> None:
    assert compared(outputs(1, 1), outputs(1, 1.5), iter([outputs(1, 1)])) == (["varying"], [], 1)


def test_as_near_as_the_original_is_to_itself() -> None:
    near = 1 + 0.9 * FACTOR * 0.25
    assert compared(outputs(1, 1), outputs(1, near), iter([outputs(1, 1.25)])) == ([], ["varying"], 1)


def test_farther_than_the_original_is_from_itself() -> None:
    far = 1 + 1.1 * FACTOR * 0.25
    again = iter([outputs(1, 1.25)] * TURNS)
    assert compared(outputs(1, 1), outputs(1, far), again) == (["varying"], ["varying"], TURNS)


def test_a_steady_output_beside_one_that_varies_is_allowed_nothing() -> None:
    again = iter([outputs(1, 1.25)] * TURNS)
    assert compared(outputs(1, 1), outputs(1.25, 1.25), again) == (["steady"], ["varying"], TURNS)


def test_what_was_the_same_by_chance_is_seen_in_a_further_run() -> None:
    again = iter([outputs(1.5, 1), outputs(1, 1.25)])
    differs, varies, runs = compared(outputs(1, 1), outputs(1.5, 1.25), again)
    assert (differs, sorted(varies), runs) == ([], ["steady", "varying"], 2)


def test_other_shapes_are_never_near() -> None:
    further = iter([outputs(1, 1.25)] * TURNS)
    assert compared(outputs(1, 1), [np.float32([1]), np.float32([1, 1])], further)[0] == ["varying"]
