"""The way from Python to a loop and back, and the generator of random numbers that all loops draw from."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from solvers._loops import anneal_orders, drawn, memory_of, trim
from solvers.annealing.cooling import Cooling, Kept
from solvers.annealing.local import NO_PEAK, NO_ROOF
from solvers.orders.arrays import arrays_of
from solvers.orders.best import Best
from solvers.orders.measure import ILLEGAL, measure
from solvers.problem import Limits, Node, Problem

CHAIN = Problem(
    nodes=tuple(Node(1, (k - 1,) if k else (), (k,)) for k in range(5)), sizes=(1, 2, 3, 4, 5), outputs=(4,)
)


@pytest.mark.parametrize("seed", [0, 7, (1 << 32) - 1])
def test_it_draws_what_numpy_does(seed: int) -> None:
    assert drawn(seed, 2000, 0).tolist() == np.random.RandomState(seed).random_sample(2000).tolist()
    for bound in (1, 2, 3, 64, 1000, (1 << 31) + 5):
        expected = np.random.RandomState(seed).randint(0, bound, 500) if bound > 1 else np.zeros(500)
        assert drawn(seed, 500, bound).tolist() == expected.tolist()


def test_arguments_that_do_not_fit_are_refused() -> None:
    arrays = arrays_of(CHAIN)
    assert memory_of(arrays, np.arange(5)).tolist() == [1, 3, 5, 7, 9]
    with pytest.raises(TypeError, match="2 arguments"):
        memory_of(arrays)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="an array of 1 dimensions and format 'i', not one of 1 and 'lq'"):
        memory_of(arrays, np.arange(5, dtype=np.int32))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="an array of 2 dimensions"):
        memory_of(arrays, np.zeros((2, 2), np.int64))
    with pytest.raises(ValueError, match="contiguous"):
        memory_of(arrays, np.arange(10)[::2])
    with pytest.raises(TypeError):
        memory_of(arrays, [0, 1, 2, 3, 4])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a tuple of 19 fields"):
        memory_of((arrays.cost,), np.arange(5))  # type: ignore[arg-type]


def test_others_run_meanwhile_and_can_end_it() -> None:
    """A search without end is ended by another thread, which needs Python's lock for that."""
    arrays, order, halt = arrays_of(CHAIN.ended()), np.arange(6), np.zeros(1, np.int64)
    threading.Timer(0.05, lambda: halt.__setitem__(0, 1)).start()
    cooling = Cooling(1 << 60, 1.0, 1, 1.0, 10.0)
    found, _ = anneal_orders(arrays, order, 6, NO_ROOF, NO_PEAK, cooling, Kept.NOTHING, halt)
    assert sorted(set(found.tolist())) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "order", [[], [5], [0, 1, 2, 4, 5], [1, 0, 2, 3, 4, 5], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 6], [-1, 0, 1, 2, 3, 4, 5]]
)
def test_annealing_refuses_an_order_that_cannot_run(order: list[int]) -> None:
    arrays, cooling = arrays_of(CHAIN.ended()), Cooling(10, 1.0, 1, 1.0, 10.0)
    with pytest.raises(ValueError, match="an order that cannot run"):
        anneal_orders(
            arrays, np.array(order, np.int64), 6, NO_ROOF, NO_PEAK, cooling, Kept.NOTHING, np.zeros(1, np.int64)
        )


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4, 5], [0, 1, -1, 2, 3, 4], [0, 1, 2, 3, 4, 1 << 40], [-(1 << 62)]])
def test_an_order_that_names_no_node_is_refused_and_not_followed(order: list[int]) -> None:
    arrays, steps = arrays_of(CHAIN), np.array(order)
    assert len(trim(arrays, steps)) == len(memory_of(arrays, steps)) == 0
    assert measure(arrays, steps)[1] == ILLEGAL
    best = Best(CHAIN, 100, Limits())
    assert best.offer(order, "test") is None
    assert best.offer(range(5), "test") is not None
