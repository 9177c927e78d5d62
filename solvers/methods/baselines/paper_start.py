"""A known schedule as a solution of the paper's program: the held, freed and used memory follows from the computes.

Invariant: only R is chosen; S is the order's own retention, and FREE and U are (5), (2) and (3) evaluated.
"""

from __future__ import annotations

from collections.abc import Sequence

from solvers.methods.baselines.paper_program import PaperProgram


def start_of(paper: PaperProgram, order: Sequence[int]) -> list[float] | None:
    """One number for each variable; None for an order that is not of the paper's form."""
    runs = _by_stage(paper, order)
    if [op for ops in runs for op in sorted(ops)] != list(order):
        return None
    values = [0.0] * len(paper.program.costs)
    for stage, ops in enumerate(runs):
        for op in ops:
            values[paper.R[stage, op]] = 1.0
    _retain(paper, runs, values)
    for stage in range(paper.count):
        _free(paper, stage, values)
    return values


def _by_stage(paper: PaperProgram, order: Sequence[int]) -> list[set[int]]:
    """A stage ends with a first compute; with splits, all of it goes into the last part."""
    runs: list[set[int]] = [set() for _ in range(paper.count)]
    stage = paper.splits - 1
    for op in order:
        if stage >= paper.count:  # runs again after all first computes
            break
        runs[stage].add(op)
        if op == stage // paper.splits:
            stage += paper.splits
    return runs


def _retain(paper: PaperProgram, runs: list[set[int]], values: list[float]) -> None:
    """Going backwards, a value that a later stage needs and this one does not make is held when this one begins."""
    needed = set(paper.problem.outputs)
    for stage in range(paper.count - 1, -1, -1):
        for op in sorted(runs[stage], reverse=True):
            needed.difference_update(paper.problem.nodes[op].writes)
            needed.update(paper.problem.nodes[op].reads)
        for value in needed:
            values[paper.S[stage, value]] = 1.0
    for held in paper.S.values():  # values that are never freed, though nobody needs them
        values[held] = max(values[held], paper.program.lows[held])


def _free(paper: PaperProgram, stage: int, values: list[float]) -> None:
    used = sum(paper.size(v) * values[held] for v, held in paper.held_in(stage))
    for op in paper.ops_of(stage):
        node = paper.problem.nodes[op]
        runs = values[paper.R[stage, op]] > 0.5
        used += sum(paper.size(value) for value in node.writes) if runs else 0.0
        values[paper.U[stage, op]] = used
        for value in dict.fromkeys((*node.reads, *node.writes)):
            known = (stage, value, op) in paper.FREE
            if runs and known and not _hazard(paper, stage, value, op, values):
                values[paper.FREE[stage, value, op]] = 1.0
                used -= paper.size(value)


def _hazard(paper: PaperProgram, stage: int, value: int, op: int, values: list[float]) -> bool:
    if stage == paper.count - 1 and value in paper.problem.outputs:
        return True
    later = (user for user in paper.users[value] if user > op and user in paper.ops_of(stage))
    kept = (stage + 1, value) in paper.S and values[paper.S[stage + 1, value]] > 0.5
    return kept or any(values[paper.R[stage, user]] > 0.5 for user in later)
