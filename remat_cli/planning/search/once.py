"""Attempts that differ in which ops run once: after a plan whose kernels go astray, the ops around that place do.

Invariant: the set grows from attempt to attempt, so that there is an end; a note of the answer names its ops.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from remat_cli.notes.kinds import PlanNote
from remat_cli.planning.search.answer import Answer
from remat_cli.planning.search.attempt import Attempt, Policy
from remat_cli.planning.search.checking import names
from remat_cli.planning.search.proofs import unproved
from remat_cli.planning.search.request import PlanRequest
from remat_cli.planning.subjects.subject import Subject
from solvers.notes import Note


def witnessed(asked: PlanRequest, budget: int, met: list[Answer]) -> Policy:
    """A plan that fits and passes. `budget`: the one that the user asked for; `met`: plans for that, met on the way."""
    if not asked.target.bears_witness(asked.subject):
        return (yield Attempt(asked, asked, budget, met=met)).found
    once, seldom = set[str](), asked.target.seldom_asks_again(asked.subject)
    while True:
        searched = replace(asked, subject=run_once(asked.subject, once), limits=asked.time.one_search(seldom))
        checked = yield Attempt(searched, asked, budget, met=met)
        if not checked.astray or searched.late or len(once) == len(asked.subject.nodes):
            return _as_of(asked.subject, checked.found, once)
        once = more_once(asked.subject, checked.astray, once)


def more_once(subject: Subject, values: Collection[str], once: Collection[str]) -> set[str]:
    """These ops, and the ops that make any of the values. Where those are in the set already, all ops around them
    too."""
    assert subject.graph is not None
    wanted = set(values)
    found = {op.name for op in subject.graph.ops if wanted.intersection((*op.writes, *op.reads))}
    if not found <= set(once):
        return found.union(once)
    near = {name for op in subject.graph.ops if op.name in found.union(once) for name in (*op.reads, *op.writes)}
    wider = {op.name for op in subject.graph.ops if near.intersection((*op.reads, *op.writes))}
    return wider if found and not wider <= set(once) else set(subject.nodes)


def run_once(subject: Subject, once: Collection[str]) -> Subject:
    """The subject in which these ops are never computed twice."""
    named = zip(subject.nodes, subject.problem.nodes, strict=True)
    nodes = tuple(replace(node, once=node.once or name in once) for name, node in named)
    return subject.solving(replace(subject.problem, nodes=nodes))


def _as_of(subject: Subject, found: Answer, once: Collection[str]) -> Answer:
    """The answer as one about the subject that was asked about."""
    if not once:
        return found
    found = found if found.found else unproved(found)
    return found.noted(Note(PlanNote.RUN_ONCE, (names(once),))).about(subject)
