"""The registered methods over chains: `rotor`, `rotor-floating`, `revolve` and `rotor+`.

Invariant: a FEASIBLE order was measured to fit; nothing here proves that none does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic

import numpy as np

from solvers.chains.from_graph import Stages, cut
from solvers.chains.polish import polish
from solvers.chains.staged import Found, best_orders, fine_slots
from solvers.chains.stage import Runner, Way
from solvers.chains.ways import all_ways
from solvers.exact.arrays import arrays_of
from solvers.exact.measure import measure
from solvers.problem import Limits, Problem, Progress, Result, Status

SLOTS = 500


def rotor(problem: Problem, budget: int, limits: Limits, *, slots: int = SLOTS) -> Result:
    found = []
    for most in (1, 2, 4):
        s = cut(problem, most)
        r = [Runner(s, k + 1) for k in range(len(s.stages))]
        found += best_orders(s, r, [[x.way(x.wanted())] for x in r], arrays_of(problem), budget, slots)[:1]
    return found


def rotor_plus(problem: Problem, budget: int, limits: Limits, *, slots: int = 0) -> Result:
    found = []
    for most, coarse in ((1,1),(1,2),(1,3),(1,4),(1,6),(1,9),(2,1),(2,2),(2,4),(2,8)):
        s = cut(problem, most, coarse)
        r = [Runner(s, k + 1) for k in range(len(s.stages))]
        t = monotonic()
        w = all_ways(r)
        print(most, coarse, 'ways', monotonic() - t, len(r), sum(map(len, w)))
        f = best_orders(s, r, w, arrays_of(problem), budget, fine_slots(len(r)))[:1]
        found += f
        if f:
            A = arrays_of(problem)
            o = polish(A, np.array(f[0].order), budget, lambda: False)
            print('polished', measure(A, o)[0]/sum(n.cost for n in problem.nodes), f[0].cost/sum(n.cost for n in problem.nodes), monotonic() - t)
    return found
