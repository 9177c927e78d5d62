"""Simulated annealing over orders with repeats, first computes free.

What counts is the cost, and so much for each byte over budget; how much is learnt on the way, so that the search goes
to and fro between orders that fit and orders that nearly do.
"""

from __future__ import annotations

import numpy as np

from solvers.methods.auto.layout import CROWDED, LOGGED, SLOTS, STEPS, TOTAL
from solvers.methods.auto.moves import drop_any, move_any, move_group, move_with, repeat, undo
from solvers.methods.auto.record import COST, EXCESS, Record, note_best, note_change, write_down
from solvers.methods.auto.state import fill, order_of
from solvers.methods.auto.tree import excess
from solvers.methods.exact.tables import NODES
from solvers.orders.arrays import Ints
from solvers.orders.compiled import entry, inner

_WATCH = 512  # moves between two looks at how dear a byte over budget should be
_STEP = 1.1  # by which it then changes
_MOVED = 0.4  # from here on a try moves computes about
_COLD = 0.01  # of the heat at the beginning


@entry
def anneal(
    t: Ints,
    s: Ints,
    record: Record,
    moves: int,
    hot: float,
    seed: int,
    price: float,
    dearest: float,
    once: bool,
    halt: Ints,
) -> None:
    """So many moves, cooling from `hot`.

    `price`: of a byte over budget, to begin with. `once`: only the order changes. `halt` becomes 1 when time is up.
    """
    np.random.seed(seed)
    facts = record.facts
    over, fitting = excess(s), 0
    for number in range(moves):
        if halt[0]:
            break
        if s[CROWDED] or s[STEPS] > s[SLOTS] // 3:
            s[CROWDED] = 0
            write_down(s, record)
            fill(t, s, np.append(order_of(s), t[NODES] - 1))
        if number % _WATCH == _WATCH - 1:
            if fitting < _WATCH // 5:
                price = min(price * _STEP, dearest)
            elif fitting > _WATCH // 2:
                price /= _STEP
            fitting = 0
        heat = hot * _COLD ** (number / moves)
        cost = s[TOTAL]
        s[LOGGED] = 0
        attempt(t, s, price, once)
        if s[LOGGED]:
            now = excess(s)
            rise = s[TOTAL] - cost + price * (now - over)
            if rise <= 0 or np.random.random() < np.exp(-rise / heat):
                over = now
                if over < facts[EXCESS] or (over == facts[EXCESS] and s[TOTAL] < facts[COST]):
                    note_best(s, record, over)
                else:
                    note_change(s, record)
            else:
                undo(t, s, 0)
        fitting += over == 0
    write_down(s, record)


@inner
def attempt(t: Ints, s: Ints, price: float, once: bool) -> None:
    kind = np.random.random()
    if once:
        kind = _MOVED + (1 - _MOVED) * kind
    if kind < 0.2:
        repeat(t, s)
        _drop_some(t, s, price, np.random.randint(4))
    elif kind < _MOVED:
        drop_any(t, s)
        _drop_some(t, s, price, np.random.randint(2))
    elif kind < 0.85:
        move_any(t, s)
    elif kind < 0.95:
        move_with(t, s)
    else:
        move_group(t, s)


@inner
def _drop_some(t: Ints, s: Ints, price: float, tries: int) -> None:
    """Drop other computes, as long as that makes things better."""
    if s[LOGGED] == 0 or tries == 0:
        return
    over = excess(s)
    for _ in range(tries):
        cost, kept = s[TOTAL], s[LOGGED]
        drop_any(t, s)
        if s[LOGGED] == kept:
            continue
        now = excess(s)
        if s[TOTAL] - cost + price * (now - over) > 0:
            undo(t, s, kept)
        else:
            over = now
