"""Work as a generator: done at once, or followed by somebody who may leave while another goes on with it."""

from __future__ import annotations

from collections.abc import Generator
from inspect import GEN_CLOSED, GEN_SUSPENDED, getgeneratorstate

from solvers.coroutines import follow, run


def counted(steps: int) -> Generator[None, None, int]:
    for _ in range(steps):
        yield
    return steps


def test_all_is_done_at_once() -> None:
    for steps in (0, 1, 5):
        assert run(counted(steps)) == run(follow(counted(steps))) == steps


def test_work_stays_open_where_who_follows_it_leaves() -> None:
    work = counted(3)
    follower = follow(work)
    next(follower)
    follower.close()
    assert getgeneratorstate(follower) == GEN_CLOSED
    assert getgeneratorstate(work) == GEN_SUSPENDED
    assert run(work) == 3
