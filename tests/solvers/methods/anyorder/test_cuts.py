"""The relaxation holds for every schedule in any order: projected, it satisfies every row at no greater cost."""

from __future__ import annotations

from random import Random

from solvers.clock import Clock
from solvers.methods.anyorder.windows import heaviest_path, windows_of
from solvers.methods.exact.cuts import build_cuts, expand_cuts
from solvers.methods.exact.grouped import GroupedProgram
from solvers.methods.exact.projection import project
from solvers.methods.exact.replaceable import advance
from solvers.methods.exact.tracing import Tracing
from solvers.plan import lower
from solvers.problem import Problem
from solvers.simulate import simulate
from solvers.updates import in_time
from tests.oracle.problems import random_problem


def test_every_order_satisfies_every_row_at_no_greater_cost() -> None:
    random = Random(7)
    across = wide = moved = traced = 0
    for _ in range(800):
        problem = random_problem(random, random.randint(2, 12))
        order = shuffled_order(random, problem, random.randint(0, 8))
        outcome = simulate(problem, lower(problem, order))
        grouped = posed(random, problem, outcome.peak)
        across += sum(map(len, grouped.across))
        wide += sum(low < high for low, high in zip(grouped.windows.low, grouped.windows.high, strict=True))
        moved += tuple(advance(grouped.problem, grouped.replaceable, order)) != order
        before = len(grouped.program.rows)
        Tracing(grouped, Clock()).add([random.random() ** 2 for _ in grouped.program.costs])
        traced += len(grouped.program.rows) - before
        solution = project(grouped, order)
        for columns, coefficients, low, high in grouped.program.rows:
            total = sum(c * solution[column] for column, c in zip(columns, coefficients, strict=True))
            assert low - 1e-9 <= total <= high + 1e-9, (problem, order, grouped.windows.pivots)
        cost = sum(cost * value for cost, value in zip(grouped.program.costs, solution, strict=True))
        assert cost + surely(grouped) <= outcome.cost
        again = expand_cuts(grouped, solution)
        simulate(problem, lower(problem, again))
    assert across > 100, "peaks off the path were hardly looked at"
    assert wide > 1000, "windows of several groups were hardly met"
    assert moved > 10, "passing values were hardly met"
    assert traced > 1000, "hardly anything was traced"


def posed(random: Random, problem: Problem, budget: int) -> GroupedProgram:
    """The relaxation at some nodes of a random long path."""
    ended = problem.ended()
    writer, count = ended.writers(), len(problem.nodes)
    weights = [random.randint(0, 9) for _ in ended.nodes]
    path = heaviest_path(ended, writer, weights)
    windows = windows_of(ended, writer, random.sample(path, random.randint(0, min(3, len(path)))))
    free = frozenset(random.sample(range(len(problem.sizes)), len(problem.sizes) // 3))
    many = random.choice((0, 40))
    peaks = {(random.randint(0, len(windows.pivots)), random.randrange(count)) for _ in range(many)}
    return build_cuts(ended, budget, windows, free, 1.0, peaks)


def surely(grouped: GroupedProgram) -> int:
    return sum(grouped.problem.nodes[i].cost for i in range(len(grouped.problem.nodes)) if grouped.windows.is_sure(i))


def shuffled_order(random: Random, problem: Problem, extra: int) -> tuple[int, ...]:
    """A legal order with first computes in any order, and repeats wherever they may run."""
    writer = problem.writers()
    waiting, order = set(range(len(problem.nodes))), list[int]()
    while waiting:
        ready = [n for n in sorted(waiting) if not waiting & {writer[value] for value in problem.nodes[n].reads}]
        order.append(random.choice(ready))
        waiting.discard(order[-1])
    repeatable = [index for index in order if not problem.nodes[index].once]
    for _ in range(extra if repeatable else 0):
        index = random.choice(repeatable)
        order.insert(random.randint(order.index(index) + 1, len(order)), index)
    return in_time(problem, order)
