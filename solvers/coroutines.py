"""Long work as a generator, so that whoever has it done may do something else between two steps, or leave it."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

Found = TypeVar("Found")


def run(work: Generator[None, None, Found]) -> Found:
    """What the work comes to, all of it done at once."""
    found: list[Found] = []

    def ended() -> Generator[None, None, None]:
        found.append((yield from work))

    for _ in ended():
        pass
    return found[0]


def follow(work: Generator[None, None, Found]) -> Generator[None, None, Found]:
    """The same work, which stays open where whoever follows it leaves: somebody else may go on with it."""
    while True:
        try:
            next(work)
        except StopIteration as ended:
            found: Found = ended.value
            return found
        yield
