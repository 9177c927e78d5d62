"""The cooling of a search by simulated annealing, and its price of a byte over the budget: the parameters of
`cooling.hpp`."""

from __future__ import annotations

from typing import NamedTuple


class Cooling(NamedTuple):
    """`temperature`: at the beginning, the rise in cost that is accepted with a probability of 1/e."""

    moves: int
    temperature: float
    seed: int


class PricedCooling(NamedTuple):
    """`price`: of a byte over the budget at the beginning; `dearest`: the highest price."""

    cooling: Cooling
    price: float
    dearest: float
