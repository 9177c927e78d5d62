"""Finds places for the next run from the requests of a traced one: `python -m remat_cli.runtime.learning` searches
long.

Invariant: the user's program loads no compiler and grows no memory for the search, because another process does it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict

from solvers.placement.largest import Placement, largest_first
from solvers.placement.lifetimes import Lifetime

SECONDS = 60.0  # after this time the first placement is kept


def learn_places(lifetimes: Sequence[Lifetime]) -> Placement:
    """Places by size, the largest first, and by the search where that is not the best possible."""
    simple = largest_first(lifetimes)
    return simple if simple.block == simple.bound else search_places(lifetimes) or simple


def search_places(lifetimes: Sequence[Lifetime]) -> Placement | None:
    """The placement of the exact search, in a process of its own; None where that finds none."""
    asked = json.dumps([(one.start, one.end, one.bytes) for one in lifetimes])
    command = [sys.executable, "-m", "remat_cli.runtime.learning"]
    try:
        done = subprocess.run(command, input=asked, capture_output=True, text=True, timeout=SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    found = json.loads(done.stdout)
    return Placement(found["block"], found["bound"], tuple((size, at) for size, at in found["allocations"]))


def main() -> None:
    from solvers.placement.placed import placement

    lifetimes = [Lifetime(start, end, size) for start, end, size in json.load(sys.stdin)]
    print(json.dumps(asdict(placement(lifetimes))))


if __name__ == "__main__":
    main()
