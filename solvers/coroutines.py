"""Long work as a generator, whose steps may say something: whoever has it done may do something else between two steps,
or leave it."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

Found = TypeVar("Found")
Said = TypeVar("Said")


def run(work: Generator[Said, None, Found]) -> Found:
    """What the work comes to, all of it done at once."""
    found: list[Found] = []

    def ended() -> Generator[Said, None, None]:
        found.append((yield from work))

    for _ in ended():
        pass
    return found[0]


def follow(work: Generator[Said, None, Found]) -> Generator[Said, None, Found]:
    """The same work, which stays open where whoever follows it leaves: somebody else may go on with it."""
    while True:
        try:
            said = next(work)
        except StopIteration as ended:
            found: Found = ended.value
            return found
        yield said
