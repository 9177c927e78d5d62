"""The optimal memory-persistent sequence of a chain: Algorithm 3 of "Optimal Re-materialization Strategies for
Heterogeneous Chains" (Beaumont, Eyraud-Dubois, Herrmann, Joly, Shilova), and of the Rotor paper before it.

`revolve` is the same recurrence without its first line: only inputs are kept, and every B comes right after its own
F_all. That is Griewank and Walther, "Algorithm 799: Revolve" (2000), for stages of different times and sizes, in the
heterogeneous AD model that the Rotor paper compares with (section 6).

Memory-persistent: what is kept is kept until its backward has used it. u_f, u_b are `Chain.forward` and `backward`;
a, ā, δ, o_f, o_b have their names. Sizes are rounded up to slots.

Invariant: a sequence found fits the limit in bytes, whatever the slots.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from solvers.methods.chains.chain import Chain, ChainStep
from solvers.methods.chains.program import ChainSegments, Ways, solve_segments, trace
from solvers.methods.chains.slots import in_slots

SLOTS = 500


def rotor(chain: Chain, limit: float, slots: int = SLOTS) -> tuple[ChainStep, ...] | None:
    """The sequence of least makespan within the limit; None where the program finds none."""
    small, unit = in_slots(chain, limit, slots)
    return best_sequence(segments(small), unit.count - int(small.a[0]))


def revolve(chain: Chain, limit: float, slots: int = SLOTS) -> tuple[ChainStep, ...] | None:
    """The same among sequences that keep inputs only."""
    small, unit = in_slots(chain, limit, slots)
    return best_sequence(without_ways(segments(small)), unit.count - int(small.a[0]))


def best_sequence(segments: ChainSegments, memory: int) -> tuple[ChainStep, ...] | None:
    if memory < 0:
        return None
    table = solve_segments(segments, memory)
    return trace(table, memory) if np.isfinite(table.whole()[memory]) else None


def segments(chain: Chain) -> ChainSegments:
    """A chain in slots as the program wants it: one way to run each stage, and it keeps all of ā."""
    a, abar, delta = (np.array(sizes, np.int64) for sizes in (chain.a, chain.abar, chain.delta))
    o_f, o_b = np.array(chain.o_f, np.int64), np.array(chain.o_b, np.int64)
    before = np.roll(delta, 1)  # δ^{l-1}
    stages = chain.length + 1
    ways = Ways(
        start=np.arange(stages + 1),
        time=np.zeros(stages),
        keep=abar,
        holds=np.ones(stages, np.bool_),
        loose=np.zeros(stages, np.bool_),
        forward=abar + o_f,
        backward=abar + delta + before + o_b,
    )
    return ChainSegments(
        walk=np.array(chain.forward, np.float64),
        walk_memory=a + o_f,
        a=a,
        delta=delta,
        ways=ways,
        at_once=np.maximum(delta + ways.forward, ways.backward),
        spared=np.zeros(stages),
    )


def without_ways(segments: ChainSegments) -> ChainSegments:
    """No stage may keep its ā while another runs."""
    none, no, nothing = np.zeros(0), np.zeros(0, np.bool_), np.zeros(0, np.int64)
    ways = Ways(np.zeros_like(segments.ways.start), none, nothing, no, no, nothing, nothing)
    return replace(segments, ways=ways)
