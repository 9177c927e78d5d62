"""How a search by simulated annealing cools, and what a byte over the budget costs it: what `cooling.hpp` is given."""

from __future__ import annotations

from typing import NamedTuple


class Cooling(NamedTuple):
    """`hot`: the rise in cost that is taken with a probability of 1/e at the beginning."""

    moves: int
    hot: float
    seed: int


class PricedCooling(NamedTuple):
    """`price`: of a byte over the budget at the beginning; `dearest`: what it may become at most."""

    cooling: Cooling
    price: float
    dearest: float
