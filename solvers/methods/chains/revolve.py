"""Revolve for stages of different times and sizes: the optimal sequence that keeps inputs only.

Griewank and Walther, "Algorithm 799: Revolve" (2000), in the heterogeneous AD model that the Rotor paper compares with
(section 6), converted by running F_all before each B. The same recurrence as `rotor` without its first line.

Invariant: every B comes right after its own F_all.
"""

from __future__ import annotations

from solvers.methods.chains.chain import Chain, ChainStep
from solvers.methods.chains.rotor import SLOTS, best_sequence, segments, without_ways
from solvers.methods.chains.slots import in_slots


def revolve(chain: Chain, limit: float, slots: int = SLOTS) -> tuple[ChainStep, ...] | None:
    """The sequence of least makespan within the limit; None where the program finds none."""
    small, unit = in_slots(chain, limit, slots)
    return best_sequence(without_ways(segments(small)), unit.count - int(small.a[0]))
