"""Room is made where an order takes too much: whole chains of computes are put in, which single ones never lead to."""

from __future__ import annotations

import numpy as np
import pytest

from solvers.annealing.local import LocalSearch
from solvers.clock import Clock
from solvers.methods.anyorder.unit_chain import reversal_bound
from solvers.orders.arrays import arrays_of
from solvers.orders.measure import measure
from tests.solvers.methods.anyorder.test_unit_chain import unit_chain

_MOVES, _GOES = 20_000, 8


@pytest.mark.parametrize("seed", range(4))
def test_goes_from_a_long_chain_fit_and_come_near_the_least_cost(seed: int) -> None:
    """Of a chain of which all schedules can be counted. Without clearing most seeds find nothing that fits."""
    problem, budget = unit_chain(32), 6
    least = reversal_bound(problem, budget)
    assert least is not None
    order, local = np.arange(len(problem.nodes)), LocalSearch(problem, budget, seed)
    for number in range(_GOES):
        order = local.go(order, number, _MOVES, Clock(1e9)).order
    cost, peak = measure(arrays_of(problem), order)
    assert peak <= budget
    assert least <= cost <= 1.08 * least
