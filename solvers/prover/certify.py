"""Proves bounds that a search has found, or the best bounds that can be proved in the time.

Invariant: what is returned has passed `solvers.proof.check`; its bound is the one that follows from it, which may be
above or below the goal.
"""

from __future__ import annotations

from dataclasses import replace

from solvers.clock import Clock
from solvers.methods.exact.cuts import select_small_values
from solvers.problem import Grounds, Problem
from solvers.proof.certificate import Cases, CostProof, PeakProof, Sum
from solvers.proof.check import costs_of, derive_cost
from solvers.proof.peaks import surely_needs
from solvers.proof.rows import Name, Rows
from solvers.proof.timeline import timeline
from solvers.prover.duals import Duals
from solvers.prover.program import ProofProgram
from solvers.prover.tightening import tighten
from solvers.prover.tree import CaseTree

_CASES = 2000
_TIGHTENING = 0.5  # share of the time


def prove_cost(problem: Problem, grounds: Grounds, goal: int | None, clock: Clock) -> CostProof:
    """Prove that schedules cost at least `goal`, or for None that there are none; or prove as much of that as
    possible."""
    ended = problem.ended()
    rows = Rows(ended, grounds.budget, timeline(ended, grounds.order, grounds.pivots))
    program = ProofProgram(rows, select_small_values(ended, grounds.budget), grounds.peaks)
    duals = Duals(program)
    costs = costs_of(rows)
    enough = float("inf") if goal is None else goal - costs.unit * (1 - 1e-3)  # costs are multiples of the unit
    tighten(duals, enough, clock.share(_TIGHTENING))
    steps = CaseTree(duals, enough, clock, _CASES).run()
    proof = _slim(CostProof(grounds.budget, None, grounds.order, grounds.pivots, tuple(program.rows), tuple(steps)))
    return replace(proof, bound=derive_cost(problem, proof))


def prove_peak(problem: Problem, peak: int, node: int | None) -> PeakProof | None:
    """Prove that no schedule has a lower peak, if the sets of values back from that node, or from the end, show it."""
    return PeakProof(peak, node) if surely_needs(problem, node, peak) else None


def _slim(proof: CostProof) -> CostProof:
    """The same proof without rows that no step takes."""
    taken = {row for step in proof.steps if isinstance(step, Sum) for row in step.rows}
    for place in range(len(proof.rows) - 1, -1, -1):
        if place in taken and proof.rows[place][0] == "round":
            taken.add(int(proof.rows[place][1]))
    kept = sorted(taken)
    now = {row: place for place, row in enumerate(kept)}

    def name(row: int) -> Name:
        kind, *about = proof.rows[row]
        return (kind, now[int(about[0])], *about[1:]) if kind == "round" else (kind, *about)

    def step(old: Sum | Cases) -> Sum | Cases:
        return old if isinstance(old, Cases) else replace(old, rows=tuple(now[row] for row in old.rows))

    return replace(proof, rows=tuple(map(name, kept)), steps=tuple(map(step, proof.steps)))
