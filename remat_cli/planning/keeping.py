"""Plans for default sessions whose kernels are the original's, whatever optimizers do.

Invariant: an answer that found a plan is of one whose model is not `astray`. Ops that optimizers treat differently once
they are copied, and that cannot be let be, are run once; a note names them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from remat_cli.planning.asking import Fitting
from remat_cli.planning.fitting import fitted
from remat_cli.planning.holding import held
from remat_cli.planning.pipeline import Answer
from remat_cli.planning.subject import Subject
from remat_cli.planning.sure import surely
from remat_cli.rewrite import Rewritten
from solvers.problem import Status

SHARE = 0.75  # of the time that is left, for each time that it is asked
NAMED = 5
ONCE = "run once, since onnxruntime's optimizers would treat copies differently: {}"
ASTRAY = "with every one found, onnxruntime's optimizers would make other kernels than of the original"


def fitted_and_kept(asked: Fitting) -> Answer:
    """A schedule that fits, and whose results cannot differ from the original's in the session that it is for."""
    if asked.subject.kernels is None:
        return fitted(asked)
    limits, subject, once = asked.limits, asked.subject, set[str]()

    def keep(found: Answer) -> None:
        if (other := kept(found, asked)) is not None:
            asked.keep(replace(other, subject=subject))

    while True:
        now = replace(asked, subject=running_once(subject, once), limits=limits.share(SHARE), keep=keep)
        found = fitted(now)
        if not found.found or found.schedule.plan is None:
            return _told(found, subject, once)
        model = surely(subject, found.schedule.plan, asked.session)
        if (kept := _as_made(found, model, asked)) is not None:
            return _told(kept, subject, once)
        if now.late or len(once) == len(subject.nodes):
            return _given_up(found, model.astray or model.bare)
        once = more_once(subject, model.astray or model.bare, once)


def kept(found: Answer, asked: Fitting) -> Answer | None:
    """The answer as its model is made for the session, if that fits and keeps the original's kernels."""
    assert found.schedule.plan is not None
    return _as_made(found, surely(found.subject, found.schedule.plan, asked.session), asked)


def _as_made(found: Answer, model: Rewritten, asked: Fitting) -> Answer | None:
    if model.astray:
        return None
    if model.bare:  # what is let be is held as optimizers and the runtime's planner will have it
        figures = held(asked.session, model, asked.budget)
        found = replace(found, promise=figures.promise, placement=figures.placement)
    return found if asked.fits(found) else None


def _given_up(found: Answer, around: Collection[str]) -> Answer:
    result = found.schedule.result
    result = replace(result, status=Status.UNKNOWN, notes=(*result.notes, f"{ASTRAY}, around {_names(around)}"))
    return replace(found, schedule=replace(found.schedule, result=result))


def more_once(subject: Subject, values: Collection[str], once: Collection[str]) -> set[str]:
    """These ops, and those that make any of the values; where they are there already, all around them as well."""
    assert subject.graph is not None
    wanted = set(values)
    found = {op.name for op in subject.graph.ops if wanted.intersection((*op.writes, *op.reads))}
    if not found <= set(once):
        return found.union(once)
    near = {name for op in subject.graph.ops if op.name in found.union(once) for name in (*op.reads, *op.writes)}
    wider = {op.name for op in subject.graph.ops if near.intersection((*op.reads, *op.writes))}
    return wider if found and not wider <= set(once) else set(subject.nodes)


def running_once(subject: Subject, once: Collection[str]) -> Subject:
    named = zip(subject.nodes, subject.problem.nodes, strict=True)
    nodes = tuple(replace(node, once=node.once or name in once) for name, node in named)
    return subject.solving(replace(subject.problem, nodes=nodes))


def _told(found: Answer, subject: Subject, once: Collection[str]) -> Answer:
    """The answer as one of the subject that was asked about."""
    if not once:
        return found
    result = found.schedule.result
    result = replace(result, notes=(*result.notes, ONCE.format(_names(once))))
    return replace(found, subject=subject, schedule=replace(found.schedule, result=result))


def _names(found: Collection[str]) -> str:
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return ", ".join(sorted(found)[:NAMED]) + more
