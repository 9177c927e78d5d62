"""Finds places for the next run from the requests of a traced one: `python -m remat_cli.runtime.learning UNIT` does it
elsewhere.

Invariant: the user's program loads no compiler, and for a large run it grows by nothing but arrays, because another
process searches.
"""

from __future__ import annotations

import subprocess
import sys
from array import array
from dataclasses import dataclass

from remat_cli.children import own_environment
from remat_cli.runtime.table import PlacesTable
from solvers.clock import Clock
from solvers.placement.lives import Lives
from solvers.placement.packing import pack

SECONDS = 60.0  # after this time the first placement is kept
PATIENCE = 2.0  # times as long the other process may take, which has to start
HERE = 4_000  # events: so few take less time and memory here than a process to start


@dataclass(frozen=True, slots=True)
class Events:
    """What a run asked for and gave back (size -1), in order, and where it lay."""

    sizes: array[int]
    addresses: array[int]

    def __len__(self) -> int:
        return len(self.sizes)

    def lifetimes(self, unit: int = 1) -> Lives:
        """The lifetimes of the run's requests, in multiples of `unit`; what was not given back lives to the end."""
        sizes: list[int] = []
        ends: dict[int, int] = {}
        held: dict[int, int] = {}  # address -> its request
        for size, address in zip(self.sizes, self.addresses, strict=True):
            if size >= 0:
                held[address] = len(sizes)
                sizes.append(-(-size // unit) * unit)
            elif address in held:
                ends[held.pop(address)] = len(sizes)
        return Lives.of((k, ends.get(k, len(sizes)), size) for k, size in enumerate(sizes))


def learn_places(seen: Events, unit: int = 1) -> PlacesTable:
    """Places that take no search, and by a search where these are not the best possible."""
    simple = pack(seen.lifetimes(unit), effort=0) if len(seen) <= HERE else None
    if simple is not None and simple.block == simple.bound:
        return PlacesTable.of(simple)
    return _learnt_elsewhere(seen, unit) or PlacesTable.of(simple or pack(seen.lifetimes(unit), effort=0))


def _learnt_elsewhere(seen: Events, unit: int) -> PlacesTable | None:
    """The same of a process of its own; None where that finds none."""
    command = [sys.executable, "-m", "remat_cli.runtime.learning", str(unit)]
    asked = seen.sizes.tobytes() + seen.addresses.tobytes()
    try:
        done = subprocess.run(
            command, input=asked, capture_output=True, timeout=PATIENCE * SECONDS, env=own_environment(), check=True
        )
        return PlacesTable.read(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def main(unit: str) -> None:
    given = sys.stdin.buffer.read()
    half = len(given) // 2
    seen = Events(array("q", given[:half]), array("Q", given[half:]))
    sys.stdout.buffer.write(PlacesTable.of(pack(seen.lifetimes(int(unit)), clock=Clock(SECONDS))).content())


if __name__ == "__main__":
    main(sys.argv[1])
