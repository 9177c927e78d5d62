"""What Inductor's functions of C++ are bound to hold: ops that follow each other share one, as far as all are kernels.

Such a function is given all its results at once, and what it reads is let go of after it. A result that is assembled of
others is there from their first on: they are made in it.

Invariant: this follows from an order alone. It is no word of Inductor's: whose code is looked at is judged by that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set

from remat_cli.torch.generated import HeldByCode
from solvers.problem import Problem
from solvers.schedule import evaluate


def joined(problem: Problem, order: Sequence[int], apart: Set[int], assembled: Set[int] = frozenset()) -> HeldByCode:
    """The bytes while each function runs, with the most that one of its ops holds beside its results. `apart`: the ops
    that share none; where these are not known, nothing is. `assembled`: those whose results are assembled."""
    if not apart:
        return HeldByCode(0)
    memory = evaluate(problem, order)[1].memory
    made = [_bytes(problem, problem.nodes[op].writes) for op in order]
    new = [
        max(0, bytes_made - _bytes(problem, problem.nodes[op].reads)) if op in assembled else bytes_made
        for op, bytes_made in zip(order, made, strict=True)
    ]
    kernels = []
    for run in _runs([op not in apart for op in order]):
        first = run[0]
        beside = [problem.nodes[order[place]].workspace for place in run]
        before = memory[first] - made[first] - beside[0]
        kernels.append((before + sum(new[place] for place in run) + max(beside), run))
    return HeldByCode(max((held for held, _ in kernels), default=0), tuple(kernels))


def _bytes(problem: Problem, values: Iterable[int]) -> int:
    return sum(problem.sizes[value] for value in values)


def _runs(kernels: Sequence[bool]) -> Iterator[tuple[int, ...]]:
    """The places of kernels that follow each other."""
    run: list[int] = []
    for place, is_kernel in enumerate([*kernels, False]):
        if is_kernel:
            run.append(place)
        elif run:
            yield tuple(run)
            run = []
