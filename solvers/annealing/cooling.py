"""What a go of simulated annealing is asked for: how it cools, what a byte over the budget costs, what it keeps. The
parameters of `cooling.hpp`."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class Kept(IntEnum):
    """What no move changes: nothing; how often each node is computed at most; or the order of first computes."""

    NOTHING, REPEATS, ORDER = range(3)


class Cooling(NamedTuple):
    """`temperature`: at the beginning, the rise in cost that is accepted with a probability of 1/e. `price`: of a byte
    over the budget at the beginning; `dearest`: the highest price."""

    moves: int
    temperature: float
    seed: int
    price: float
    dearest: float
