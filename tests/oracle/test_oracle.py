"""The oracle against every short order of very small problems, as the replay sees them, and the replay as simulate."""

from __future__ import annotations

from collections import defaultdict
from itertools import product
from random import Random

import pytest

from solvers.faults import faults
from solvers.plan import lower
from solvers.problem import Problem
from solvers.simulate import simulate
from tests.oracle.exact import cheapest, lowest
from tests.oracle.problems import hasty_order, random_problem
from tests.oracle.replay import peak_of, replay
from tests.sampling import few


def brute_force(problem: Problem, longest: int, in_order: bool) -> dict[int, int]:
    """peak -> least cost, over every order up to a length."""
    found: defaultdict[int, int] = defaultdict(lambda: 1 << 62)
    count = len(problem.nodes)
    for length in range(count, longest + 1):
        for order in product(range(count), repeat=length):
            first = list(dict.fromkeys(order))
            if len(first) < count or (in_order and first != sorted(first)):
                continue
            figures = replay(problem, order)
            if figures is not None:
                found[max(figures[1])] = min(figures[0], found[max(figures[1])])
    return found


@pytest.mark.parametrize("any_order", few([False, True], 1))
def test_no_short_order_beats_the_oracle_and_the_oracle_is_reached(any_order: bool) -> None:
    for seed in range(300):
        random = Random(seed)
        problem = random_problem(random, random.choice((1, 2, 3, 3, 3)), 9)
        count = len(problem.nodes)
        orders = brute_force(problem, {1: 3, 2: 6, 3: 7}[count], not any_order)
        low = lowest(problem, any_order)
        assert peak_of(problem, low.order) == low.length
        assert low.length == min(orders) or (low.length < min(orders) and len(low.order) > 7), problem
        assert cheapest(problem, low.length - 1, any_order) is None
        for budget in sorted(orders):
            best = cheapest(problem, budget, any_order)
            assert best is not None
            figures = replay(problem, best.order)
            assert figures is not None
            assert figures[0] == best.length
            assert max(figures[1]) <= budget
            short = min(cost for peak, cost in orders.items() if peak <= budget)
            assert best.length == short or (best.length < short and len(best.order) > 7), (problem, budget)


def test_the_replay_and_simulate_agree() -> None:
    seen = 0  # orders in which an update is held back
    for seed in range(1500):
        random = Random(seed)
        problem = random_problem(random, random.randint(1, 14))
        assert not list(faults(problem))
        order = hasty_order(random, problem, random.randint(0, 8))
        plan = lower(problem, order)
        outcome = simulate(problem, plan)
        assert replay(problem, plan.order()) == (outcome.cost, list(outcome.memory)), (problem, order)
        held_back = plan.order() != order
        assert held_back == (replay(problem, order) is None), (problem, order)
        seen += held_back
    assert seen > 20
