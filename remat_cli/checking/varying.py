"""What a model's own results differ by from run to run: on a GPU some kernels add in the order in which threads come.

Sums in pieces are added in another order than the original's. There its further runs have inputs that differ in their
last digits. What comes to nothing but rounding differs by as much: the gradient of a bias before a BatchNormalization.

Invariant: only what the original was seen to do itself is allowed; a model with the same bits in two runs is allowed
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

import numpy as np

from remat_cli.checking.child import Reply
from remat_cli.checking.compare import Difference, Tolerance, differences

FACTOR = 8.0  # times as far as the original was seen to be from itself: a few runs do not show the farthest
TURNS = 3  # further runs of the original: an output may be the same by chance

Differences = tuple[Difference, ...]


def compare(
    names: Sequence[str],
    near: Tolerance,
    results: Callable[[str], Sequence[np.ndarray]],
    original: Callable[..., Reply],
) -> tuple[Differences, Differences]:
    """`beyond_itself` for what both models left in before.npz and after.npz. `original` runs the first of them again,
    and `results` reads a file of results."""
    was = results("before.npz")

    def again() -> Sequence[Difference]:
        reply = original(outputs="again.npz")
        if reply.refused or reply.failed:
            return ()
        return differences(names, was, results("again.npz"), near)

    return beyond_itself(differences(names, was, results("after.npz"), near), again)


def without(differs: Sequence[Difference], good: Container[str]) -> Differences:
    """The outputs that are less exact than the original's; later runs are compared like the first."""
    return tuple(one for one in differs if one.output.partition(" of the ")[0] not in good)


def noise_of(differs: Sequence[Difference], varies: Sequence[Difference]) -> frozenset[str]:
    """The outputs that are as near as the original's are to themselves, which no other witness need judge."""
    return frozenset(one.output for one in varies) - {one.output for one in differs}


def beyond_itself(
    wrong: Sequence[Difference], again: Callable[[], Sequence[Difference]]
) -> tuple[Differences, Differences]:
    """The differences that the original does not show between runs of its own, and those that it was seen to show.

    `again` runs the original once more, and compares its results with those of its first run.
    """
    left, seen = tuple(wrong), dict[str, Difference]()
    for _ in range(TURNS):
        own = again() if left else ()
        if not own:
            break
        for one in own:
            seen[one.output] = max(one, seen.get(one.output, one), key=lambda each: each.worst)
        left = tuple(one for one in left if one.output not in seen or one.worst > FACTOR * seen[one.output].worst)
    return left, tuple(seen.values())
